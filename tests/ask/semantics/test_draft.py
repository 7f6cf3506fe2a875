import pytest

from opposable.ask.semantics.draft import draft_semantic_model
from opposable.ask.semantics.lint import lint_semantic_model
from opposable.ask.semantics.loader import parse_semantic_model

pytestmark = pytest.mark.anyio


async def test_a_draft_has_no_findings_and_only_joins_that_fit_the_data(sales):
    text = await draft_semantic_model(sales)
    model = parse_semantic_model(text)
    assert [finding for finding in await lint_semantic_model(model, sales) if finding.severity != "info"] == []
    assert [join.text for join in model.joins] == ["sales.部门编号 = 部门.编号"]
    assert {"total_amount", "average_amount", "sales_count"} <= set(model.metrics)
    assert model.tables["sales"].time == "day"
    assert "city" in model.dimensions
