from pathlib import Path

import pytest

from opposable.ask.semantics.loader import load_semantic_model, parse_semantic_model
from opposable.ask.semantics.model import Dimension, Exclusion, Filter, Join, Metric, ModelTable
from opposable.domain.errors import BadInput

SHORT = """
name: 游戏
table: 流水表
metrics:
  流水: {expr: SUM(金额), default_filters: 有效, synonyms: [收入, flow]}
  单价: 流水 / 笔数
  笔数:
    expr: COUNT(*)
dimensions:
  - id: region
    expr: 地区
    values: {overseas: 海外}
filters:
  有效: 状态 = 1
exclusions:
  测试: {expr: 类型 = '测试', description: 剔除测试数据}
joins:
  - 流水表.部门编号 = 部门.编号
  - {from: 流水表.a, to: '"按 月".b'}
"""


def test_the_short_form_is_read():
    model = parse_semantic_model(SHORT)
    assert model.metrics == {
        "流水": Metric(
            id="流水", expr="SUM(金额)", table="流水表", default_filters=("有效",), synonyms=("收入", "flow")
        ),
        "单价": Metric(id="单价", expr="流水 / 笔数", table="流水表"),
        "笔数": Metric(id="笔数", expr="COUNT(*)", table="流水表"),
    }
    assert model.dimensions == {
        "region": Dimension(id="region", expr="地区", table="流水表", values={"overseas": ("海外",)})
    }
    assert model.filters == {"有效": Filter(id="有效", expr="状态 = 1", table="流水表")}
    assert model.exclusions == {
        "测试": Exclusion(id="测试", expr="类型 = '测试'", table="流水表", description="剔除测试数据")
    }
    assert model.joins == (
        Join(many="流水表", one="部门", on=(("部门编号", "编号"),)),
        Join(many="流水表", one="按 月", on=(("a", "b"),)),
    )
    assert list(model.tables) == ["流水表", "部门", "按 月"]
    assert model.describe_location("exclusions.测试.expr") == "model.yaml, line 16: exclusions.测试.expr"


WRONG = {
    "metrics:\n  a: SUM(x)\nmetric: {}": "model.yaml, line 3: metric: there is no such section; did you mean metrics?",
    "metrics:\n  a: {exp: SUM(x)}": "model.yaml, line 2: metrics.a.expr: is missing: add it.\n"
    "model.yaml, line 2: metrics.a.exp: there is no such field; did you mean expr?",
    "metrics:\n  a: {expr: [1]}": "model.yaml, line 2: metrics.a.expr: must be text, not a list.",
    "metrics:\n  a: SUM(x)\n  a: SUM(y)": "model.yaml, line 3: a is defined twice: remove one of them.",
    "metrics:\n  a: SUM(x)\nfilters:\n  a: x = 1": "model.yaml, line 4: filters.a: the id a is already used in metrics "
    "(line 2): rename one of them.",
    "metrics: {a: SUM(x)}\njoins: [a = b]": "model.yaml, line 2: joins.0: 'a = b' is not a join: write many.column = "
    "one.column, such as orders.customer_id = customers.id (AND for more columns).",
    "metrics: &m {a: SUM(x)}\ndimensions: *m": "model.yaml, line 1: anchors and aliases (& and *) are not supported: "
    "repeat the value.",
    "metrics: !!python/object:os.system {}": "model.yaml, line 1: tags (!) are not supported: write plain values.",
    "metrics: {a: [": "model.yaml, line 1: invalid YAML: ",
    "[1, 2]": "model.yaml, line 1: a semantic model is a mapping with metrics, ",
    "": "model.yaml, line 1: a semantic model is a mapping with metrics, ",
    "name: x": "model.yaml, line 1: it defines no metrics and no dimensions: ",
    "a: " * 40: "model.yaml, line 1: invalid YAML: ",
    "metrics: " + "[" * 40 + "]" * 40: "model.yaml, line 1: nested deeper than 24 levels.",
    "x" * 1_000_001: "model.yaml has 1,000,001 characters: at most 1,000,000 are allowed.",
    "ontology: []": "model.yaml, line 1: this is an Ossie ontology, ",
}


@pytest.mark.parametrize("text", WRONG, ids=lambda text: text[:40])
def test_what_is_wrong_is_told_with_file_and_line(text):
    with pytest.raises(BadInput) as error:
        parse_semantic_model(text)
    assert str(error.value).startswith(WRONG[text])


def test_a_file_that_is_not_there_is_told():
    with pytest.raises(BadInput, match=r"`nowhere.yaml` does not exist. Pass the path"):
        load_semantic_model("nowhere.yaml")


OSSIE = """
version: 0.2.0.dev0
semantic_model:
  - name: shop
    datasets:
      - name: sales
        source: db.public.sales_2024
        primary_key: [id]
        fields:
          - name: net
            expression: {dialects: [{dialect: SNOWFLAKE, expression: x}, {dialect: ANSI_SQL, expression: gross - tax}]}
          - name: day
            expression: {dialects: [{dialect: ANSI_SQL, expression: day}]}
            datatype: Date
            ai_context: {synonyms: [日期]}
      - name: stores
        source: stores
    relationships:
      - {name: r, from: sales, to: stores, from_columns: [store_id], to_columns: [id]}
    metrics:
      - name: revenue
        expression: {dialects: [{dialect: ANSI_SQL, expression: SUM(sales.net)}]}
        ai_context: {synonyms: [销售额]}
    custom_extensions:
      - vendor_name: OPPOSABLE
        data: '{"filters": {"big": "sales.gross > 10"}, "exclusions": {"void": "sales.void = 1"}, "default_filters": ["big"]}'
"""


def test_ossie_is_read_with_computed_fields_put_in():
    model = parse_semantic_model(OSSIE)
    assert model.metrics == {
        "revenue": Metric(id="revenue", expr="SUM((sales.gross - sales.tax))", synonyms=("销售额",))
    }
    assert model.tables["sales"] == ModelTable(id="sales", source="db.public.sales_2024", time="day", key=("id",))
    assert model.joins == (Join(many="sales", one="stores", on=(("store_id", "id"),)),)
    assert model.dimensions["day"].synonyms == ("日期",)
    assert (list(model.filters), list(model.exclusions), model.default_filters) == (["big"], ["void"], ("big",))


SAMPLE = Path(__file__).parents[3].parent / "shared" / "data" / "text2sql" / "sample" / "semantic" / "tpcds.ossie.yaml"


@pytest.mark.skipif(not SAMPLE.is_file(), reason="the public files do not lie beside this checkout")
def test_the_public_ossie_model_is_read():
    model = load_semantic_model(SAMPLE)
    assert (len(model.metrics), len(model.dimensions), len(model.joins)) == (5, 31, 4)
    assert model.metrics["total_sales"].synonyms == ("total revenue", "gross sales", "sales amount")


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
  - {name: running, type: cumulative, type_params: {measure: total}}
  - {name: paid, type: simple, filter: "{{ Dimension('order__status') }} = 'paid'", type_params: {measure: total}}
"""


def test_metricflow_is_read_and_what_is_not_supported_is_named():
    model = parse_semantic_model(METRICFLOW)
    assert {name: metric.expr for name, metric in model.metrics.items()} == {
        "revenue": "SUM(amount)",
        "orders": "COUNT(*)",
        "average": '"revenue" / "orders"',
        "double": "revenue * 2",
    }
    assert model.metrics["revenue"].synonyms == ("销售额",)
    assert model.tables["orders"] == ModelTable(id="orders", source="fct_orders", time="order_date")
    assert model.joins == (Join(many="orders", one="customers", on=(("customer_id", "id"),)),)
    assert model.unsupported == (
        "line 11: the measure p95 is not supported (agg: percentile)",
        "line 21: the metric running is not supported (type: cumulative)",
        "line 22: the metric paid is not supported (filter: write a filter in the short form instead)",
    )
