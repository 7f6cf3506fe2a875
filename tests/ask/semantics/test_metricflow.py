import pytest

from opposable.ask.semantics.expressions import BoundModel
from opposable.ask.semantics.loader import parse_semantic_model
from opposable.ask.semantics.model import Join, ModelTable

METRICFLOW = """
semantic_models:
  - name: orders
    model: ref('fct_orders')
    defaults: {agg_time_dimension: ordered}
    entities: [{name: order, type: primary, expr: id}, {name: customer, type: foreign, expr: customer_id}]
    dimensions: [{name: ordered, type: time, expr: order_date}, {name: status, type: categorical}]
    measures:
      - {name: total, agg: sum, expr: amount}
      - {name: count, agg: count, expr: 1}
      - {name: p95, agg: percentile, expr: amount}
  - name: customers
    model: ref('dim_customers')
    entities: [{name: customer, type: primary, expr: id}]
    dimensions: [{name: city, type: categorical}]
metrics:
  - {name: revenue, type: simple, label: 销售额, type_params: {measure: total}}
  - {name: orders, type: simple, type_params: {measure: {name: count}}}
  - {name: average, type: ratio, type_params: {numerator: revenue, denominator: orders}}
  - {name: double, type: derived, type_params: {expr: r * 2, metrics: [{name: revenue, alias: r}]}}
  - name: crossed
    type: derived
    type_params: {expr: revenue / r, metrics: [{name: orders, alias: revenue}, {name: revenue, alias: r}]}
  - {name: running, type: cumulative, type_params: {measure: total}}
  - {name: paid, type: simple, filter: "{{ Dimension('order__status') }} = 'paid'", type_params: {measure: total}}
"""


def test_metricflow_is_parsed_and_unsupported_metrics_are_listed():
    model = parse_semantic_model(METRICFLOW)
    assert {name: metric.expr for name, metric in model.metrics.items()} == {
        "revenue": "SUM(amount)",
        "orders": "COUNT(*)",
        "average": "revenue / orders",
        "double": "revenue * 2",
        "crossed": "orders / revenue",
    }
    assert model.metrics["revenue"].synonyms == ("销售额",)
    assert model.tables["orders"] == ModelTable(id="orders", source="fct_orders", time="order_date")
    assert model.joins == (Join(many="orders", one="customers", on=(("customer_id", "id"),)),)
    assert model.unsupported == (
        "line 11: the measure p95 is not supported (agg: percentile)",
        "line 24: the metric running is not supported (type: cumulative)",
        "line 25: the metric paid is not supported (filter: write a filter in the short form instead)",
    )


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb", "postgres", "mysql", "clickhouse"])
@pytest.mark.parametrize("name", ["end", "case", "interval", "desc", "orders"])
def test_a_ratio_may_be_of_a_metric_with_the_name_of_a_keyword(name, dialect):
    metrics = METRICFLOW.partition("  - {name: double")[0]
    model = parse_semantic_model(
        metrics.replace("name: orders, type: simple", f"name: {name}, type: simple").replace(
            "numerator: revenue, denominator: orders", f"numerator: {name}, denominator: revenue"
        )
    )
    assert set(BoundModel(model, dialect).resolve_base_metrics("average")) == {"revenue", name}
