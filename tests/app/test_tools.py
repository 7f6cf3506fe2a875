"""Libraries have the built-in, optional, stored and SQL tools, or the named ones."""

from pathlib import Path

import pytest
from tests.app.settings import BUILTIN, SQL, create_settings

from opposable.app.agents import open_agent
from opposable.app.stored_tools import check_tool_health, save_tools, set_tool_enabled
from opposable.app.tool_factory import create_builtin_library
from opposable.app.tools import open_tools, require_tool, select_tools
from opposable.domain.errors import BadInput
from opposable.domain.specs import EndpointConfig, FunctionToolSpec, HttpToolSpec
from opposable.tools.function import FunctionTool
from opposable.tools.library import ToolLibrary

pytestmark = pytest.mark.anyio


async def test_only_the_named_tools_are_selected_each_once(tmp_path: Path) -> None:
    assert create_builtin_library(create_settings(tmp_path)).names == BUILTIN
    async with open_agent(
        create_settings(tmp_path), "hi", "http://127.0.0.1:9/v1#m", ["time", "echo", "Echo"]
    ) as agent:
        assert agent.library.names == ("time", "echo")
    with pytest.raises(BadInput) as caught:
        select_tools(create_builtin_library(create_settings(tmp_path)), ["file-serch"])
    assert str(caught.value) == (
        f"There is no tool named 'file-serch'. Did you mean file_search? The tools are: {', '.join(BUILTIN)}."
    )


def test_a_tool_is_named_by_its_exact_id_first() -> None:
    def sell() -> str:
        """Sell."""
        return "sold"

    ids = ("shop.order", "shop_order")
    library = ToolLibrary([FunctionTool(sell, tool_id=tool_id) for tool_id in ids])
    assert tuple(require_tool(library, tool_id).tool_id for tool_id in ids) == ids


async def test_a_stored_tool_with_a_dot_in_its_id_says_why_it_cannot_be_used(tmp_path: Path) -> None:
    endpoint = EndpointConfig(url_template="http://127.0.0.1:9/orders")
    spec = HttpToolSpec(tool_id="shop.orders", endpoint=endpoint)
    settings = create_settings(tmp_path)
    assert (await save_tools(create_settings(tmp_path, private_hosts=("127.0.0.1",)), [spec]))[0].has_tools
    with pytest.raises(BadInput, match=r"The stored tool 'shop\.orders' cannot be used: 127\.0\.0\.1 is a loopback"):
        async with open_tools(settings, required_name="shop.orders"):
            raise AssertionError
    [health] = await check_tool_health(settings)
    assert health.reason.startswith("shop.orders: 127.0.0.1 is a loopback")


async def test_the_name_of_an_object_selects_its_actions(tmp_path: Path) -> None:
    names = ["data_analyzer", "data_analyzer.group", "time"]
    async with open_agent(create_settings(tmp_path), "hi", "http://127.0.0.1:9/v1#m", names) as agent:
        actions = ("describe", "group", "correlate", "chart")
        assert set(agent.library.names) == {"time", *(f"data_analyzer_{action}" for action in actions)}
    with pytest.raises(BadInput, match="Pass --db DATABASE"):
        select_tools(create_builtin_library(create_settings(tmp_path)), ["sql"])


async def test_the_tools_over_a_database_follow_the_built_in_ones(tmp_path: Path, shop: str) -> None:
    async with open_tools(create_settings(tmp_path), shop) as library:
        assert library.names[: len(BUILTIN + SQL)] == BUILTIN + SQL
        assert (await library.call("sql_execute", {"sql": "SELECT price FROM item"})).data["rows"] == [[1.5]]
    async with open_tools(create_settings(tmp_path)) as library:
        assert set(library.names) - set(BUILTIN) >= {"python_executor", "web_scraper", "data_analyzer_describe"}


async def test_a_stored_tool_takes_the_place_of_an_optional_one(tmp_path: Path) -> None:
    spec = FunctionToolSpec(
        tool_id="python_executor",
        module_path="opposable.builtin_tools.python.python_executor",
        class_name="PythonExecutor",
    )
    settings = create_settings(tmp_path, modules=("opposable.builtin_tools",))
    assert [registration.accepted for registration in await save_tools(settings, [spec])] == [("python_executor",)]
    async with open_tools(settings) as library:
        assert library.get_spec("python_executor") == spec
        assert (await library.call("python_executor", {"code": "6 * 7"})).data == {"value": 42}


@pytest.mark.parametrize("is_enabled", [True, False])
async def test_no_optional_tool_takes_the_place_of_a_stored_one_that_cannot_be_used(
    tmp_path: Path, is_enabled: bool
) -> None:
    spec = FunctionToolSpec(
        tool_id="data_analyzer",
        module_path="opposable.builtin_tools.data_files.data_analyzer",
        class_name="DataAnalyzer",
        init_params={"roots": [str(tmp_path)]},
        needs_approval=True,
    )
    modules = ("opposable.builtin_tools",)
    assert (await save_tools(create_settings(tmp_path, modules=modules), [spec]))[0].has_tools
    if not is_enabled:
        await set_tool_enabled(create_settings(tmp_path), "data_analyzer", enabled=False)
    settings = create_settings(tmp_path, modules=() if is_enabled else modules)
    async with open_tools(settings) as library:
        assert not any("data_analyzer" in name for name in library.names)
    reason = (
        "opposable.*may not be used" if is_enabled else "it is disabled. To enable it: opposable tools enable data_a"
    )
    with pytest.raises(BadInput, match=f"The stored tool 'data_analyzer' cannot be used: {reason}"):
        async with open_tools(settings, required_name="data_analyzer.describe"):
            raise AssertionError
    with pytest.raises(BadInput, match="cannot be used"):
        async with open_agent(settings, "hi", "http://127.0.0.1:9/v1#m", ["data_analyzer"]):
            raise AssertionError
