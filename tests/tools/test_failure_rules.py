"""Failures that a spec's `failure_when` declares."""

import pytest
from pydantic import ValidationError

from opposable.domain.specs import FunctionToolSpec
from opposable.tools.failure_rules import is_failure
from opposable.tools.function import FunctionTool, tool
from opposable.tools.library import ToolLibrary

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("rules", "result", "failed"),
    [
        ({}, {"ok": False, "error": "no"}, False),
        ({"/ok": False}, {"ok": False}, True),
        ({"/ok": False}, {"ok": 0}, False),
        ({"/ok": False}, {}, False),
        ({"ok": False}, {"ok": False}, True),
        ({"/status": ["error", "failed"]}, {"status": "failed"}, True),
        ({"/status": ["error", "failed"]}, {"status": "done"}, False),
        ({"/error": {"not": None}}, {"error": "no such branch"}, True),
        ({"/error": {"not": None}}, {"error": None}, False),
        ({"/error": {"not": None}}, {"value": 3}, False),
        ({"/error": {"not": None}}, "a text", False),
        ({"/errors": {"not": [None, []]}}, {"errors": []}, False),
        ({"/errors": {"not": [None, []]}}, {"errors": [{"message": "no such field"}]}, True),
        ({"/status": {"not": ["ok", "accepted"]}}, {"status": "rejected"}, True),
        ({"/result/0/code": 7}, {"result": [{"code": 7}]}, True),
        ({"/a~1b": 1}, {"a/b": 1}, True),
        ({"/ok": False}, '{"ok": false}', True),
        ({"/ok": False, "/code": 5}, {"ok": True, "code": 5}, True),
    ],
)
def test_result_is_a_failure_only_where_a_rule_matches(rules, result, failed):
    assert is_failure(result, rules) is failed


@pytest.mark.parametrize("rules", [{"": 1}, {"/": 1}, {"/ok": {"is": False}}, {"/ok": {"not": 1, "is": 2}}])
def test_rule_of_another_form_is_rejected(rules):
    with pytest.raises(ValidationError, match="failure_when"):
        FunctionToolSpec(tool_id="hold", module_path="x", failure_when=rules)


def hold(branch: str) -> dict[str, object]:
    """Put a book on hold."""
    return {"ok": False, "error": "branch must be one of CEN, RIV"}


async def test_value_that_looks_like_an_error_is_data():
    library = ToolLibrary([hold])
    results = [await library.call("hold", {"branch": "x"}) for _ in range(6)]
    assert [(result.failure, result.data) for result in results] == [(None, hold("x"))] * 6
    health = library.get_health("hold")
    assert (health.failures, health.state) == ({}, "ok")


async def test_declared_failure_is_reported_with_the_whole_value():
    library = ToolLibrary([tool(failure_when={"/ok": False})(hold)])
    result = await library.call("hold", {"branch": "x"})
    assert (result.failure, result.data) == ("failed", None)
    assert result.content == '{"ok":false,"error":"branch must be one of CEN, RIV"}'
    assert library.get_health("hold").failures == {"failed": 1}


async def test_stored_spec_declares_failures_of_a_function():
    library = ToolLibrary()
    spec = FunctionToolSpec(tool_id="hold", module_path="x", failure_when={"/error": {"not": None}})
    library.register(spec, [FunctionTool(hold)])
    assert (await library.call("hold", {"branch": "x"})).failure == "failed"


async def test_binding_of_an_agent_can_declare_failures():
    from opposable.domain.specs import AgentToolBinding

    library = ToolLibrary([hold]).with_bindings(
        [AgentToolBinding(tool_id="hold", config={"failure_when": {"/ok": False}})]
    )
    assert (await library.call("hold", {"branch": "x"})).failure == "failed"
