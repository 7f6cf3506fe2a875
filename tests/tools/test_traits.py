"""What tools declare about their calls."""

import pytest

from opposable.domain.specs import FunctionToolSpec, HttpToolSpec, McpServerSpec
from opposable.tools.function import FunctionTool, tool, tools_from_object
from opposable.tools.library import ToolLibrary
from opposable.tools.traits import ToolTraits, get_traits


def get_order(order: str) -> str:
    """Get an order."""
    return order


class _ServerTool:
    tool_id = "shop.read"

    def __init__(self, **hints: bool) -> None:
        self.hints = hints


READS = ToolTraits(read_only=True, idempotent=True)
FUNCTION = FunctionToolSpec(tool_id="get_order", module_path="x")
SERVER = McpServerSpec(tool_id="shop", url="http://127.0.0.1:1/mcp")


def _http(method: str, **fields: object) -> HttpToolSpec:
    return HttpToolSpec(tool_id="t", endpoint={"url_template": "http://h/x", "method": method}, **fields)


@pytest.mark.parametrize(
    ("made_tool", "spec", "traits"),
    [
        (FunctionTool(get_order), None, ToolTraits()),
        (FunctionTool(get_order), FUNCTION, ToolTraits()),
        (tool(read_only=True)(get_order), None, READS),
        (tool(idempotent=True)(get_order), None, ToolTraits(idempotent=True)),
        (tool(read_only=True)(get_order), FUNCTION, READS),
        (tool(read_only=True)(get_order), FUNCTION.model_copy(update={"read_only": False}), ToolTraits()),
        (tool(untrusted_output=True)(get_order), None, ToolTraits(untrusted_output=True)),
        (object(), _http("GET"), READS),
        (object(), _http("HEAD"), READS),
        (object(), _http("POST"), ToolTraits()),
        (object(), _http("PUT", idempotent=True), ToolTraits(idempotent=True)),
        (object(), _http("GET", read_only=False), ToolTraits()),
        (object(), _http("GET", untrusted_output=True), ToolTraits(True, True, True)),
        (_ServerTool(), SERVER, ToolTraits(untrusted_output=True)),
        (_ServerTool(read_only_hint=True), SERVER, ToolTraits(True, True, True)),
        (_ServerTool(idempotent_hint=True), SERVER, ToolTraits(False, True, True)),
        (
            _ServerTool(read_only_hint=True),
            SERVER.model_copy(update={"read_only": False, "untrusted_output": False}),
            ToolTraits(),
        ),
    ],
)
def test_traits_come_from_declarations(made_tool, spec, traits):
    assert get_traits(made_tool, spec) == traits


def test_object_declares_its_reading_methods():
    class Orders:
        def list(self) -> str:
            """List orders."""
            return ""

        def cancel(self) -> str:
            """Cancel all."""
            return ""

    library = ToolLibrary(tools_from_object(Orders(), "orders", read_only=("list",)))
    assert library.get_traits("orders_list") == READS
    assert library.get_traits("orders_cancel") == ToolTraits()
    assert library.get_traits("missing") is None
