from opposable.ask.intent.intent import StructuredIntent
from opposable.ask.intent.prompt_definitions import format_definitions


def test_definitions_are_those_of_the_intent(shop_model):
    intent = StructuredIntent(metrics=("revenue",), dimensions=("city",))
    assert format_definitions(shop_model, intent).splitlines() == [
        "metric revenue: SUM(amount) (of orders; unit EUR; only rows where paid)",
        "dimension city: city (of customers)",
        "filter paid: status = 'paid' (of orders)",
        "join lines.order_id = orders.id",
        "join orders.customer_id = customers.id",
        "join visits.customer_id = customers.id",
    ]
