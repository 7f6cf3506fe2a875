from opposable.ask.semantics.loader import parse_semantic_model
from opposable.ask.semantics.model import Dimension, Join, Metric, Term

SHORT = """
name: 游戏
table: 流水表
metrics:
  流水: {expr: SUM(金额), default_filters: 有效, synonyms: [收入, flow]}
  单价: 流水 / 笔数
  笔数:
    expr: COUNT(*)
dimensions:
  region:
    expr: 地区
    values: {overseas: 海外}
filters:
  有效: 状态 = 1
exclusions:
  测试: {expr: 类型 = '测试', description: 剔除测试数据}
joins:
  - 流水表.部门编号 = 部门.编号
  - 流水表.a = "按 月".b
"""


def test_the_short_form_is_parsed():
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
    assert model.filters == {"有效": Term(id="有效", expr="状态 = 1", table="流水表")}
    assert model.exclusions == {
        "测试": Term(id="测试", expr="类型 = '测试'", table="流水表", description="剔除测试数据")
    }
    assert model.joins == (
        Join(many="流水表", one="部门", on=(("部门编号", "编号"),)),
        Join(many="流水表", one="按 月", on=(("a", "b"),)),
    )
    assert list(model.tables) == ["流水表", "部门", "按 月"]
    assert (
        model.document.describe_location(("exclusions", "测试", "expr")) == "model.yaml, line 16: exclusions.测试.expr"
    )
