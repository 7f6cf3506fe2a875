import pytest
from tests.ask.intent.questions import TODAY, VALUES, build_intent

from opposable.ask.intent.intent import IntentFilter, OrderBy
from opposable.ask.intent.parser import SemanticParser
from opposable.ask.semantics.loader import parse_semantic_model

TOP = {"order_by": OrderBy(column="revenue"), "intent_type": "dimension"}
BOTTOM = {"order_by": OrderBy(column="revenue", direction="ASC"), "intent_type": "dimension"}
CASES = {
    "What was the revenue in 2024?": build_intent("revenue", time={"granularity": "year", "year": 2024}),
    "2024年的流水是多少": build_intent("revenue", time={"granularity": "year", "year": 2024}),
    "Revenue by city": build_intent("revenue", dimensions=["city"], intent_type="dimension"),
    "销售额>100的城市": build_intent(
        "revenue",
        dimensions=["city"],
        filters=[IntentFilter(dimension="revenue", value=100, operator=">")],
        intent_type="dimension",
    ),
    "Cities with revenue >= 1,000": build_intent(
        "revenue",
        dimensions=["city"],
        filters=[IntentFilter(dimension="revenue", value=1000, operator=">=")],
        intent_type="dimension",
    ),
    "订单金额≤50的订单数": build_intent("orders", filters=[IntentFilter(dimension="amount", value=50, operator="<=")]),
    "revenue for each city and year": build_intent(
        "revenue", dimensions=["city"], time={"grain": "year"}, intent_type="dimension"
    ),
    "Which city has the most customers?": build_intent(
        "customers", dimensions=["city"], limit=1, order_by={"column": "customers"}, intent_type="dimension"
    ),
    "各城市的销售额": build_intent("revenue", dimensions=["city"], intent_type="dimension"),
    "按城市和客户统计订单数": build_intent("orders", dimensions=["city", "customer"], intent_type="dimension"),
    "Top 3 clients by revenue": build_intent("revenue", dimensions=["customer"], limit=3, **TOP),
    "销售额最高的3个客户": build_intent("revenue", dimensions=["customer"], limit=3, **TOP),
    "销售额前五的城市": build_intent("revenue", dimensions=["city"], limit=5, **TOP),
    "哪个城市的销售额最高？": build_intent("revenue", dimensions=["city"], limit=1, **TOP),
    "Which town has the highest sales?": build_intent("revenue", dimensions=["city"], limit=1, **TOP),
    "各城市销售额，从低到高": build_intent(
        "revenue", dimensions=["city"], order_by={"column": "revenue", "direction": "ASC"}, intent_type="dimension"
    ),
    "How many orders from Shanghai?": build_intent("orders", filters=[IntentFilter(dimension="city", value="上海")]),
    "上海有多少客户？": build_intent("customers", filters=[IntentFilter(dimension="city", value="上海")]),
    "柏林和上海的订单数分别是多少": build_intent(
        "orders",
        dimensions=["city"],
        filters=[IntentFilter(dimension="city", value=("Berlin", "上海"), operator="in")],
        intent_type="dimension",
    ),
    "除了上海，各城市的订单数": build_intent(
        "orders",
        dimensions=["city"],
        filters=[IntentFilter(dimension="city", value="上海", operator="!=")],
        intent_type="dimension",
    ),
    "订单金额大于100的订单数": build_intent(
        "orders", filters=[IntentFilter(dimension="amount", value=100, operator=">")]
    ),
    "units excluding tea": build_intent("units", exclusions=["tea"], intent_type="complex"),
    "不包括茶的上海销量": build_intent(
        "units", exclusions=["tea"], filters=[IntentFilter(dimension="city", value="上海")], intent_type="complex"
    ),
    "上海以外的订单数": build_intent("orders", filters=[IntentFilter(dimension="city", value="上海", operator="!=")]),
    "大额订单数": build_intent("orders", filters=[IntentFilter(dimension="big", value=True)]),
    "Clients with more than 1,000 of revenue": build_intent(
        "revenue",
        dimensions=["customer"],
        filters=[IntentFilter(dimension="revenue", value=1000, operator=">")],
        intent_type="dimension",
    ),
    "Clients with revenue above 100": build_intent(
        "revenue",
        dimensions=["customer"],
        filters=[IntentFilter(dimension="revenue", value=100, operator=">")],
        intent_type="dimension",
    ),
    "orders by city": build_intent("orders", dimensions=["city"], intent_type="dimension"),
    "revenue, units by city": build_intent("revenue", "units", dimensions=["city"], intent_type="dimension"),
    "按城市，产品统计销量": build_intent("units", dimensions=["city", "product"], intent_type="dimension"),
    "Units of tea, cup in Berlin": build_intent(
        "units",
        filters=[
            IntentFilter(dimension="product", value=("tea", "cup"), operator="in"),
            IntentFilter(dimension="city", value="Berlin"),
        ],
    ),
    "订单数超过40的城市": build_intent(
        "orders",
        dimensions=["city"],
        filters=[IntentFilter(dimension="orders", value=40, operator=">")],
        intent_type="dimension",
    ),
    "2024年每个月的销售额": build_intent(
        "revenue", time={"granularity": "year", "year": 2024, "grain": "month"}, intent_type="dimension"
    ),
    "Q1流水同比增长多少": build_intent(
        "revenue",
        time={"granularity": "quarter", "year": 2024, "quarter": 1, "comparison": "yoy"},
        intent_type="trend",
    ),
    "订单金额超过100的订单数": build_intent(
        "orders", filters=[IntentFilter(dimension="amount", value=100, operator=">")]
    ),
    "除了柏林或上海的订单数": build_intent(
        "orders", filters=[IntentFilter(dimension="city", value=("Berlin", "上海"), operator="not in")]
    ),
    "total customers in Berlin": build_intent("customers", filters=[IntentFilter(dimension="city", value="Berlin")]),
    "visits and customers by city": build_intent("visits", "customers", dimensions=["city"], intent_type="dimension"),
    "revenue of city Berlin": build_intent("revenue", filters=[IntentFilter(dimension="city", value="Berlin")]),
    "units of tea": build_intent("units", filters=[IntentFilter(dimension="product", value="tea")]),
    "sales of Bob": build_intent("revenue", filters=[IntentFilter(dimension="customer", value="Bob")]),
    "which cities have the highest revenue": build_intent("revenue", dimensions=["city"], **TOP),
    "top city by revenue": build_intent("revenue", dimensions=["city"], limit=1, **TOP),
    "top cities by revenue": build_intent("revenue", dimensions=["city"], **TOP),
    "bottom amounts by revenue": build_intent("revenue", dimensions=["amount"], **BOTTOM),
    "bottom amount by revenue": build_intent("revenue", dimensions=["amount"], limit=1, **BOTTOM),
    "销售额垫底的订单金额": build_intent("revenue", dimensions=["amount"], limit=1, **BOTTOM),
    "柏林和上海以外的订单数": build_intent(
        "orders", filters=[IntentFilter(dimension="city", value=("Berlin", "上海"), operator="not in")]
    ),
    "客户李雷的销售额": build_intent("revenue", filters=[IntentFilter(dimension="customer", value="李雷")]),
}


@pytest.mark.parametrize("question", CASES)
def test_rules_resolve_questions(question, shop_model):
    parsed = SemanticParser(shop_model, VALUES).parse(question, TODAY)
    assert (parsed.intent, parsed.unmatched_words, parsed.ambiguities) == (CASES[question], (), ())
    assert parsed.is_resolved


@pytest.mark.parametrize(
    ("question", "unmatched_words", "ambiguities"),
    [
        ("revenue of purple elephants", ("purple elephants",), ()),
        ("share of revenue by city", ("share",), ()),
        ("各城市销售额占比", ("占比",), ()),
        ("how is the weather", ("how", "weather"), ("no metric of the semantic model is named",)),
        ("revenue growth", (), ("what a change is measured against",)),
        ("revenue above 100", (), ("a bound on a metric needs groups",)),
        ("orders with paid tax", ("tax",), ()),
        ("How many orders were shipped?", ("shipped",), ()),
        ("What is the value of the orders?", ("value",), ("whether orders are counted",)),
        ("orders sold in Berlin", ("sold",), ()),
        ("current customers in Berlin", ("current",), ("whether customers are counted",)),
        ("销售额同比增长超过10%的城市", ("%",), ("what the number 10 means",)),
        ("Which town has the lowest sales?", (), ("groups without rows of revenue are not found",)),
        ("cities with revenue under 300", (), ("groups without rows of revenue are not found",)),
        ("销售额低于300的城市", (), ("groups without rows of revenue are not found",)),
        ("销售额垫底的城市", (), ("groups without rows of revenue are not found",)),
        ("订单金额总和", (), ("what is counted", "no metric of the semantic model is named")),
        ("list all customers", (), ("whether customers are counted",)),
        ("revenue per order", (), ("whether rows are wanted by order", "how orders relates to the words before it")),
        ("按销售额排序的城市", (), ("whether the highest or the lowest come first",)),
        ("每年12月的订单数", (), ("the question names several periods",)),
        ("revenue by order", (), ("whether rows are wanted by order", "how orders relates to the words before it")),
        ("revenue of Ann and Bob each", (), ("whether rows are wanted by each",)),
        ("units of Berlin, product", (), ("whether rows are wanted by product",)),
        ("柏林的销量，产品", (), ("whether rows are wanted by product",)),
        (
            "revenue of Berlin, customers",
            (),
            ("whether customers are counted", "how customers relates to the words before it"),
        ),
        ("customers with orders", (), ("whether customers are counted", "how orders relates to the words before it")),
        (
            "list all customers by revenue",
            (),
            (
                "whether rows are wanted by revenue",
                "whether customers are counted",
                "how revenue relates to the words before it",
            ),
        ),
        ("revenue in Berlin and orders in Shanghai", (), ("how orders relates to the words before it",)),
        ("柏林的销售额和上海的订单数", (), ("how orders relates to the words before it",)),
        ("revenue / orders", ("/",), ("how orders relates to the words before it",)),
        ("销售额/订单数", ("/",), ("how orders relates to the words before it",)),
        ("top cities", (), ("what is ranked",)),
        ("orders of 2 cities", (), ("what is ranked",)),
        ("Top 3 cities and clients by revenue", (), ("the best within each group",)),
        (
            "cities with revenue over 50 or more than 1 order",
            ("than",),
            ("what the number 1 means", "how orders relates to the words before it"),
        ),
        ("number of orders from Berlin or big orders", (), ("which conditions are alternatives",)),
        ("how many cities are there", (), ("what is counted",)),
        ("上海或已付款的订单数", (), ("which conditions are alternatives",)),
        ("现有客户数", ("现",), ("how customers relates to the words before it",)),
        ("卖出的订单数", ("卖出",), ()),
        ("每个城市销售额最高的客户", (), ("the best within each group",)),
        ("top 3 clients in each city by revenue", (), ("the best within each group",)),
        ("每个月销售额最高的城市", (), ("the best within each group",)),
        ("orders with total above 10 by city", (), ("what the number 10 means",)),
        ("2024年销售额同比增长超过100的城市", (), ("what the number 100 means",)),
        ("revenue not in 2024", (), ("what not leaves out",)),
        ("revenue excluding 2024 in Berlin", (), ("what excluding leaves out",)),
        ("2024年以外的订单数", (), ("what 以外 leaves out",)),
        ("上海2024年以外的订单数", (), ("what 以外 leaves out",)),
        (
            "customers without orders",
            (),
            ("what without leaves out", "whether customers are counted", "how orders relates to the words before it"),
        ),
        (
            "revenue by city with not more than 100 orders",
            (),
            ("what not leaves out", "how orders relates to the words before it"),
        ),
        ("orders in Berlin or of Ann", (), ("which conditions are alternatives",)),
        ("revenue and customers in Berlin", (), ("whether customers are counted",)),
        ("revenue, customers in Berlin", (), ("whether customers are counted",)),
        ("customers and revenue in Berlin", (), ("whether customers are counted",)),
        ("revenue by city and customer", (), ("how customers relates to the words before it",)),
        ("orders of Ann and Berlin", (), ("which conditions are alternatives",)),
        ("李雷和上海的订单数", (), ("which conditions are alternatives",)),
        (
            "top 3 and bottom 3 cities by revenue",
            (),
            (
                "what the number 3 means",
                "groups without rows of revenue are not found",
                "whether the highest or the lowest come first",
            ),
        ),
        (
            "revenue by city top 3 by orders",
            (),
            ("the best within each group", "how orders relates to the words before it", "what is ranked"),
        ),
        ("revenue by city order by orders desc", (), ("how orders relates to the words before it", "what is ranked")),
        ("Where are the orders?", ("Where",), ()),
        (
            "revenue above orders by city",
            (),
            ("which number follows above", "how orders relates to the words before it"),
        ),
        ("销售额超过去年的城市", (), ("which number follows 超过",)),
        ("orders up to 2023", (), ("which number follows up to",)),
        ("Revenue where city ≠ Berlin", ("where", "≠"), ("whether rows are wanted by city",)),
        ("revenue > -100 by city", ("-",), ("which number follows >", "what the number 100 means")),
        ("revenue <> 100 by city", (), ("which number follows <", "what the number 100 means")),
        ("amount !> 100 by city", ("!",), ("what the number 100 means", "no metric of the semantic model is named")),
        ("which city has the best customers", ("best",), ()),
        ("which city has the most customers by revenue", (), ("the best within each group",)),
        ("大于100的订单数", (), ("what the number 100 means",)),
        ("top 200,000 cities by revenue", (), ("what the number 200,000 means",)),
        ("monthly revenue by \x00", ("\x00",), ("whether rows are wanted by \x00",)),
        ("销售额最高的100万个客户", (), ("what the number 100万 means",)),
        ("各城市大于100的订单数", (), ("what the number 100 means",)),
        (
            "各城市的订单数和100以上的订单数",
            (),
            ("what the number 100 means", "how orders relates to the words before it"),
        ),
        ("revenue not in 2024 excluding Berlin", (), ("what not leaves out",)),
        ("revenue not above 100 by city except Berlin", (), ("what not leaves out", "what the number 100 means")),
        ("2024年以外除了上海的销售额", (), ("what 以外 leaves out",)),
        (
            "number of customers without visits in Berlin",
            (),
            ("what without leaves out", "how visits relates to the words before it"),
        ),
        (
            "how many customers without orders in Berlin",
            (),
            ("what without leaves out", "how orders relates to the words before it"),
        ),
        ("top 3 cities by revenue with yoy growth in 2024", (), ("whether the value or its growth is ranked",)),
        ("top 3 cities by revenue, growth in 2024 yoy", (), ("whether the value or its growth is ranked",)),
        ("2024年销售额最高的3个城市及同比增长率", (), ("whether the value or its growth is ranked",)),
        ("2024年各城市销售额和同比增长率从高到低", (), ("whether the value or its growth is ranked",)),
        ("list clients in Berlin with their revenue", ("their",), ("whether rows are wanted by customer",)),
        ("products in Berlin and units", (), ("whether rows are wanted by product",)),
        (
            "customers in Berlin with their revenue",
            ("their",),
            ("whether customers are counted", "how revenue relates to the words before it"),
        ),
        ("列出上海的客户及其销售额", ("其",), ("whether rows are wanted by customer",)),
        ("列出上海的客户和销售额", (), ("whether rows are wanted by customer",)),
        ("by city", (), ("no metric of the semantic model is named",)),
        ("Berlin by product", (), ("no metric of the semantic model is named",)),
        ("revenue where city is not Berlin and client is Ann", ("where",), ("whether rows are wanted by city",)),
        ("城市不是上海、客户是李雷的销售额", (), ("whether rows are wanted by city",)),
        ("除上海的李雷外的销售额", (), ("what 除 leaves out", "what 外 leaves out")),
        ("revenue excluding Berlin Ann", (), ("what excluding leaves out",)),
        ("second highest city by revenue", ("second",), ()),
        ("orders in the 2010s", ("s",), ("what the number 2010 means",)),
        ("按星期几统计订单数", ("星期",), ("whether rows are wanted by 星期",)),
        ("城市销售额大于100的有几个", (), ("what is counted",)),
        ("orders from Berlin to Shanghai", ("to",), ("which conditions are alternatives",)),
    ],
)
def test_rules_report_unmatched_words_and_ambiguities(question, unmatched_words, ambiguities, shop_model):
    parsed = SemanticParser(shop_model, VALUES).parse(question, TODAY)
    assert (parsed.unmatched_words, parsed.ambiguities, parsed.is_resolved) == (unmatched_words, ambiguities, False)
    assert parsed.confidence < 1


@pytest.mark.parametrize("question", ["orders except city Berlin", "除了城市柏林的订单数"])
def test_a_negated_value_may_follow_its_dimension(question, shop_model):
    parsed = SemanticParser(shop_model, VALUES).parse(question, TODAY)
    assert parsed.intent.filters == (IntentFilter(dimension="city", value="Berlin", operator="!="),)
    assert parsed.is_resolved


@pytest.mark.parametrize("question", ["all orders", "ALL the orders", "total orders", "Total orders", " All orders"])
def test_words_of_a_question_are_no_values_in_other_letters_or_at_its_start(question, shop_model):
    parsed = SemanticParser(shop_model, {"city": ["All", "Total"]}).parse(question, TODAY)
    assert (parsed.intent.filters, parsed.is_resolved) == ((), True)


@pytest.mark.parametrize(
    ("question", "values"),
    [
        ("tell us the revenue", []),
        ("revenue in US", ["US"]),
        ("revenue in us", ["US"]),
        ("revenue in USA", ["USA"]),
        ("revenue by month vs the year before", []),
    ],
)
def test_pronouns_and_prepositions_are_no_values_of_other_letters(question, values, shop_model):
    parsed = SemanticParser(shop_model, {"city": ["US", "USA"], "product": ["Vs."]}).parse(question, TODAY)
    assert [condition.value for condition in parsed.intent.filters] == values
    assert parsed.is_resolved


@pytest.mark.parametrize(
    ("question", "unmatched_words"),
    [("second highest city by revenue", ("second",)), ("revenue at the end of 2024", ("at", "the end"))],
)
def test_words_of_a_question_are_no_values_of_other_forms(question, unmatched_words, shop_model):
    parsed = SemanticParser(shop_model, {"product": ["Seconds", "The End"]}).parse(question, TODAY)
    assert parsed.unmatched_words == unmatched_words


def test_a_time_within_a_term_separates_its_words():
    model = parse_semantic_model("""
time: orders.day
metrics:
  orders: {expr: COUNT(*), table: orders}
  order_value: {expr: AVG(amount), table: orders, synonyms: [average order]}
""")
    parsed = SemanticParser(model, {}).parse("average daily orders", TODAY)
    assert (parsed.intent.metrics, parsed.unmatched_words) == (("orders",), ("average",))


@pytest.mark.parametrize("question", ["How many orders in active?", "ACTIVE的订单数"])
def test_a_value_means_all_its_spellings(question, shop_model):
    spellings = ["Active", "active", "ACTIVE ", "Inactive"]
    parsed = SemanticParser(shop_model, {"city": spellings}).parse(question, TODAY)
    assert parsed.intent.filters == (IntentFilter(dimension="city", value=tuple(spellings[:3]), operator="in"),)
    word = "ACTIVE" if "ACTIVE" in question else "active"
    assert parsed.assumptions == (f"{word} includes 'Active', 'active', 'ACTIVE '",)
    assert parsed.is_resolved


def test_a_value_of_one_spelling_is_no_assumption(shop_model):
    parsed = SemanticParser(shop_model, {"city": ["Active"]}).parse("orders in active", TODAY)
    assert parsed.intent.filters == (IntentFilter(dimension="city", value="Active"),)
    assert (parsed.assumptions, parsed.confidence) == ((), 1)


def test_a_long_question_goes_to_the_model(shop_model):
    parser = SemanticParser(shop_model, VALUES)
    assert parser.parse("revenue" + " " * 3_980 + " in Berlin", TODAY).intent.filters
    parsed = parser.parse("revenue" + " " * 4_000 + " in Berlin", TODAY)
    assert (parsed.ambiguities, parsed.is_resolved) == (("the question is too long for the rules",), False)
