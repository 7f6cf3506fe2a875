"""Tools registered, replaced, switched and taken out at run time."""

import asyncio

import pytest

from opposable.domain.call_context import NO_CONTEXT
from opposable.domain.errors import BadInput, ToolRegistrationError
from opposable.domain.specs import AgentToolBinding, Capability, Example, FunctionToolSpec, HttpToolSpec, Registration
from opposable.domain.tools import ToolDefinition
from opposable.tools.function import FunctionTool, tool
from opposable.tools.library import ToolLibrary
from opposable.tools.tool_names import SAFE_NAME_PATTERN

pytestmark = pytest.mark.anyio

NOTHING = {"type": "object", "properties": {}}


class RawTool:
    """A tool whose schema comes as data."""

    timeout = None

    def __init__(self, tool_id, name="", parameters=NOTHING, description="Raw."):
        self.tool_id = tool_id
        self.definition = ToolDefinition(name or tool_id.replace(".", "_"), description, parameters)

    async def run(self, arguments, context):
        return {"ran": self.tool_id, "with": arguments}


def spec(tool_id="shop", **more) -> FunctionToolSpec:
    return FunctionToolSpec(tool_id=tool_id, module_path="m", **more)


def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


async def test_a_spec_with_several_actions_is_one_entry():
    library = ToolLibrary()
    done = library.register(spec(), [RawTool("shop.buy"), RawTool("shop.sell")])
    assert done == Registration(tool_id="shop", accepted=("shop_buy", "shop_sell"))
    assert [one.tool_id for one in library.specs] == ["shop"]
    result = await library.call_action("shop", "sell", {"n": 1})
    assert result.data == {"ran": "shop.sell", "with": {"n": 1}}
    assert (await library.call("shop.buy", {})).name == "shop_buy"
    assert (await library.call_action("shop", "steal", {})).failure == "unknown_tool"
    unnamed = await library.call_action("shop", "", {})
    assert unnamed.content == "shop has several actions. Name one of them as the action: buy, sell."


async def test_a_schema_may_have_null_for_properties():
    library = ToolLibrary([RawTool("ping", parameters={"type": "object", "properties": None, "required": None})])
    assert (await library.call("ping", {})).failure is None


REFUSED = [
    ({}, [], "The spec defines no callable tool."),
    (
        {"dependencies": ("add", "till", "scale")},
        [RawTool("shop")],
        "It depends on till, scale, which are not registered.",
    ),
    ({"dependencies": ("shop",)}, [RawTool("shop")], "It depends on shop, which is not registered."),
    (
        {"tool_id": "add"},
        [RawTool("add")],
        "There is already a tool named 'add'. Replace it, or give this one another id.",
    ),
]


@pytest.mark.parametrize(("more", "tools", "reason"), REFUSED)
def test_an_invalid_spec_is_reported_and_changes_nothing(more, tools, reason):
    library = ToolLibrary([add])
    given = spec(**{"tool_id": "shop", **more})
    assert library.register(given, tools) == Registration(tool_id=given.tool_id, rejected={given.tool_id: reason})
    assert library.names == ("add",)


INVALID_DEFINITIONS = [
    ({"type": "array"}, "must be a JSON Schema of type object"),
    ({"type": "objekt"}, "type object"),
    ({"type": "object", "properties": {"a": {"type": "strin"}}}, "not a valid JSON Schema"),
    ({"type": "object", "properties": {"a": {"$ref": "https://example.com/x.json"}}}, "refers to https://example.com"),
    ({"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}}, "not a valid JSON Schema"),
    ({"type": "object", "properties": {"a": {"pattern": "("}}}, "not a valid JSON Schema"),
    ({"type": "object", "properties": {"a": {"default": object()}}}, ""),
]


@pytest.mark.parametrize(("schema", "reason"), INVALID_DEFINITIONS)
def test_a_tool_with_an_invalid_schema_is_rejected_and_the_others_work(schema, reason):
    library = ToolLibrary()
    done = library.register(
        spec(), [RawTool("shop.good"), RawTool("shop.bad", parameters=schema), RawTool("shop.fine")]
    )
    assert done.accepted == library.names == ("shop_good", "shop_fine")
    assert list(done.rejected) == ["shop.bad"]
    assert reason in done.rejected["shop.bad"]


def test_actions_with_foreign_or_repeated_ids_are_rejected():
    library = ToolLibrary()
    done = library.register(spec(), [RawTool("shop.a"), RawTool("shopping.a"), RawTool("shop.a", "other")])
    assert done.accepted == ("shop_a",)
    assert done.rejected["shopping.a"] == "its id must be 'shop' or begin with 'shop.'"
    assert done.rejected["shop.a"] == "there is another action of this name"
    taken = library.register(spec("shop.a"), [RawTool("shop.a")])
    assert taken.rejected == {"shop.a": "its id is taken by an action of 'shop'"}


IDS = [
    "a.b",
    "a_b",
    "天气",
    "天气.查询",
    "查询",
    "x" * 100,
    "x" * 64 + ".y",
    "x" * 64 + ".z",
    "A.B",
    "search_tools",
    "a..b",
]


async def test_every_id_has_a_unique_safe_name_that_leads_back_to_it():
    library = ToolLibrary([RawTool(one, "same") for one in IDS])
    names = library.names
    assert len(set(names)) == len(IDS)
    assert all(SAFE_NAME_PATTERN.match(name) for name in names)
    assert [library.find_tool(name).tool_id for name in names] == IDS
    assert [(await library.call(one, {})).data["ran"] for one in names] == IDS
    again = ToolLibrary([RawTool(one, "same") for one in IDS])
    assert again.names == names


TWINS = [("math.add", "math_add"), ("math_add", "math.add")]
"""Pairs of ids with the same safe name. The tool that is registered first has it."""


def create_twins(first: str, second: str) -> ToolLibrary:
    functions = {"math.add": add, "math_add": lambda_like}
    return ToolLibrary([FunctionTool(functions[one], tool_id=one) for one in (first, second)])


@pytest.mark.parametrize(("first", "second"), TWINS)
async def test_a_name_never_changes_and_a_later_tool_of_that_id_has_a_hashed_one(first, second):
    library = create_twins(first, second)
    hashed = library.names[1]
    assert library.names == ("math_add", hashed) == tuple(one.name for one in library.definitions)
    assert hashed.startswith("math_add_")
    ran = {"math.add": 3, "math_add": "other"}
    assert (await library.call("math_add", {"a": 1, "b": 2})).data == ran[first]
    assert (await library.call(hashed, {"a": 1, "b": 2})).data == ran[second]
    assert (await library.call("math.add", {"a": 1, "b": 2})).data == 3
    assert (await library.call(hashed, {"a": 1, "b": "x"})).content.startswith(f"The arguments of {hashed} do not fit")
    with pytest.raises(ToolRegistrationError, match="already a tool"):
        library.register(FunctionTool(add, tool_id="math_add"))
    given = spec(first)
    assert library.replace(given, [RawTool(first)]).accepted == ("math_add",)
    assert set(library.names) == {"math_add", hashed}
    bound = library.with_bindings([AgentToolBinding(tool_id=one) for one in (second, first)])
    assert bound.names == (hashed, "math_add")
    assert bound.find_tool("math_add").tool_id == first


@pytest.mark.parametrize(("first", "second"), TWINS)
async def test_an_action_is_called_by_its_exact_id_whatever_its_name(first, second):
    library = create_twins(first, second)
    assert (await library.call_action("math.add", "", {"a": 1, "b": 2})).data == 3
    assert (await library.call_action("math_add", "", {"a": 1, "b": 2})).data == "other"
    library.disable("math_add")
    assert (await library.call_action("math_add", "", {"a": 1, "b": 2})).failure == "unknown_tool"
    library.unregister("math_add")
    library.register(spec("math_add"), [RawTool("math_add.more")])
    assert "more" in (await library.call_action("math_add", "", {"a": 1, "b": 2})).content


def lambda_like(a: int, b: int) -> str:
    """Another."""
    return "other"


@pytest.mark.parametrize("tool_id", ["a b", "a/b", "", "x" * 101])
def test_an_invalid_tool_id_is_refused(tool_id):
    with pytest.raises(ToolRegistrationError, match="not a valid tool id"):
        ToolLibrary([RawTool(tool_id, "fine")])


async def test_a_tool_taken_out_while_it_runs_ends_its_call():
    going, go = asyncio.Event(), asyncio.Event()

    async def slow() -> str:
        """Wait."""
        going.set()
        await go.wait()
        return "done"

    library = ToolLibrary([slow, add])
    running = asyncio.create_task(library.call("slow", {}))
    await going.wait()
    assert library.unregister("slow")
    assert not library.unregister("slow")
    assert library.names == ("add",)
    assert (await library.call("slow", {})).failure == "unknown_tool"
    go.set()
    assert (await running).content == "done"


async def test_a_disabled_tool_stays_registered_and_is_neither_listed_nor_run():
    library = ToolLibrary([add, lambda_like])
    assert library.search("add integers")
    assert library.disable("add")
    assert library.names == ("lambda_like",)
    assert (await library.call("add", {"a": 1, "b": 2})).failure == "unknown_tool"
    assert library.get_spec("add").enabled is False
    assert library.get_health("add").state == "disabled"
    assert [found.name for found in library.search("add integers")] == []
    assert library.enable("add")
    assert library.get_spec("add").enabled is True
    assert (await library.call("add", {"a": 1, "b": 2})).data == 3
    assert [found.name for found in library.search("add integers")] == ["add"]
    assert not library.enable("nothing")


def test_a_disabled_spec_is_registered_disabled():
    library = ToolLibrary()
    assert library.register(spec(enabled=False), [RawTool("shop")]).has_tools
    assert (library.names, library.get_spec("shop").enabled) == ((), False)


async def test_a_replaced_tool_keeps_its_counts_and_a_failed_replacement_changes_nothing():
    library = ToolLibrary()
    library.register(spec(), [RawTool("shop.buy"), RawTool("shop.sell")])
    await library.call("shop_buy", {})
    refused = library.replace(spec(version="2.0.0"), [RawTool("shop.buy", parameters={"type": "array"})])
    assert not refused.has_tools
    assert library.names == ("shop_buy", "shop_sell")
    assert library.replace(spec(version="2.0.0"), [RawTool("shop.buy"), RawTool("shop.lend")]).accepted == (
        "shop_buy",
        "shop_lend",
    )
    assert (library.get_spec("shop").version, library.get_health("shop").calls) == ("2.0.0", 1)
    assert library.replace(spec("new"), [RawTool("new")]).has_tools


def test_asking_by_type_and_tags():
    library = ToolLibrary([add])
    library.register(spec(tags=("money", "web")), [RawTool("shop")])
    library.register(
        HttpToolSpec(tool_id="page", endpoint={"url_template": "http://x/"}, tags=("web",)), [RawTool("page")]
    )
    assert [one.tool_id for one in library.get_specs_by_type("http")] == ["page"]
    assert [one.tool_id for one in library.get_specs_by_type("function")] == ["add", "shop"]
    assert [one.tool_id for one in library.get_specs_by_tags(["web", "money"])] == ["shop", "page"]
    assert [one.tool_id for one in library.get_specs_by_tags(["web", "money"], match_all=True)] == ["shop"]
    assert library.get_spec("nothing") is None


def test_a_tool_written_in_code_has_a_spec_too():
    @tool(name="shop.price", tags=("money",), idempotent=True, cache_seconds=5, timeout=3)
    def price(article: str) -> float:
        """The price of an article."""
        return 1.0

    library = ToolLibrary([price, add])
    first, second = library.specs
    assert (first.tool_id, first.tags, first.idempotent, first.timeout) == ("shop.price", ("money",), True, 3)
    assert (second.tool_id, second.function_name, second.description) == ("add", "add", "Add two integers.")
    with pytest.raises(ToolRegistrationError, match="cache_seconds"):
        tool(cache_seconds=-1)(add)


NAVIGATOR = FunctionToolSpec(
    tool_id="browser",
    display_name="网页导航器",
    description="提供网页导航和元素交互功能。",
    module_path="m",
    tags=("web", "browser"),
    capabilities=(
        Capability(name="navigate", examples=(Example(arguments={"url": "https://example.com"}),)),
        Capability(name="click"),
    ),
)
URL = {
    "type": "object",
    "properties": {"url": {"type": "string", "description": "目标网页"}, "wait": {"type": "integer"}},
    "required": ["url"],
}


def test_tools_are_described_in_short_and_in_full_in_both_languages():
    library = ToolLibrary([add])
    library.register(
        NAVIGATOR,
        [RawTool("browser.navigate", parameters=URL, description="导航到网页。其他。"), RawTool("browser.click")],
    )
    assert library.describe() == "- add: Add two integers.\n- browser_navigate: 导航到网页。\n- browser_click: Raw."
    assert library.describe("browser", "full", "zh") == (
        "工具：网页导航器 (ID: browser)\n"
        "类型：function\n"
        "描述：提供网页导航和元素交互功能。\n"
        "标签：web、browser\n"
        "可用功能：\n"
        "  - browser_navigate：导航到网页。其他。\n"
        "    参数：url (string, 必需) 目标网页；wait (integer, 可选)\n"
        '    示例：{"url":"https://example.com"}\n'
        "  - browser_click：Raw.\n"
        "    参数：无"
    )
    assert library.describe("add", "full") == (
        "Tool: add (ID: add)\n"
        "Type: function\n"
        "Description: Add two integers.\n"
        "Actions:\n"
        "  - add: Add two integers.\n"
        "    Parameters: a (integer, required); b (integer, required)"
    )
    assert library.get_examples("browser", "navigate") == (Example(arguments={"url": "https://example.com"}),)
    assert library.get_examples("browser", "click") == ()
    with pytest.raises(BadInput, match="no tool with the id 'nothing'"):
        library.describe("nothing")


async def test_calls_of_one_batch_have_ids_of_their_own():
    results = await ToolLibrary([add]).call_many(
        [("add", {"a": n, "b": 1}) for n in range(5)], NO_CONTEXT, max_concurrency=2
    )
    assert [one.data for one in results] == [1, 2, 3, 4, 5]
    assert len({one.call_id for one in results}) == 5


@pytest.mark.parametrize("name", ["say", "说", "taken", "two words", ""])
async def test_a_spec_may_name_its_tool_for_models(name):
    library = ToolLibrary([RawTool("taken")])
    expected = "say" if name == "say" else "a"
    assert library.register(spec("a", name=name), [RawTool("a")]).accepted == (expected,)
    assert (await library.call("a", {})).name == expected
