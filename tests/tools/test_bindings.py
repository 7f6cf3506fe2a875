"""The tools of one agent."""

import pytest

from opposable.domain.call_context import CallContext
from opposable.domain.errors import ToolRegistrationError, ToolUnavailable
from opposable.domain.specs import AgentToolBinding, Capability, FunctionToolSpec, RateLimit
from opposable.tools.circuit_breaker import CircuitBreakerOptions
from opposable.tools.function import FunctionTool, tools_from_object
from opposable.tools.library import ToolLibrary

pytestmark = pytest.mark.anyio


class Shop:
    """A shop, by whose name a tool says who it is."""

    def __init__(self, name="far"):
        self.name = name
        self.calls = 0

    def price(self, article: str) -> str:
        """The price of an article."""
        self.calls += 1
        return f"{self.name} {article}"

    def stock(self) -> int:
        """How much there is."""
        raise ToolUnavailable("down")


def create_binding(tool_id="shop", enabled=True, **config) -> AgentToolBinding:
    return AgentToolBinding(tool_id=tool_id, enabled=enabled, config=config)


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def create_library(shop=None, **more) -> ToolLibrary:
    library = ToolLibrary([add], circuit_breaker=CircuitBreakerOptions(0.5, 2, 60, 30))
    spec = FunctionToolSpec(tool_id="shop", module_path="m", class_name="Shop", **more)
    library.register(spec, tools_from_object(shop or Shop(), "shop"))
    return library


async def test_an_agent_has_only_the_tools_of_its_enabled_bindings():
    library = create_library()
    bound = library.with_bindings([create_binding(), create_binding("add", enabled=False), create_binding("ghost")])
    assert bound.names == ("shop_price", "shop_stock")
    assert bound.rejected_bindings == {"ghost": "There is no enabled tool named 'ghost'. Add or enable it."}
    assert (await bound.call("add", {"a": 1, "b": 2})).failure == "unknown_tool"
    assert (await bound.call("shop_price", {"article": "pen"})).content == "far pen"
    assert [found.name for found in bound.search("price of the article, add")] == ["shop_price"]
    assert library.names == ("add", "shop_price", "shop_stock")


async def test_a_binding_changes_rules_for_its_agent_only():
    library = create_library()
    chosen = [{"name": "price"}]
    bound = library.with_bindings(
        [create_binding(timeout=5, needs_approval=True, capabilities=chosen), create_binding("add", description="Sum.")]
    )
    assert bound.names == ("shop_price", "add")
    assert [one.description for one in bound.definitions] == ["The price of an article.", "Sum."]
    assert (bound.get_spec("shop").timeout, library.get_spec("shop").timeout) == (5, None)
    assert (await bound.call("shop_price", {"article": "x"})).failure == "denied"
    assert (await library.call("shop_price", {"article": "x"})).failure is None
    assert (await bound.call("add", {"a": 1, "b": 2})).data == 3


INVALID_BINDINGS = [
    ({"timeout": -1}, "timeout: must be greater than 0"),
    ({"colour": "red"}, "colour: is not a known field"),
    ({"tool_id": "other"}, "cannot change tool_id"),
    ({"tool_type": "http"}, "cannot change tool_type"),
    ({"init_params": {"name": "near"}}, "which is not possible here"),
]


@pytest.mark.parametrize(("config", "reason"), INVALID_BINDINGS)
def test_an_invalid_binding_is_rejected_with_the_reason(config, reason):
    bound = create_library().with_bindings([AgentToolBinding(tool_id="shop", config=config), create_binding("add")])
    assert bound.names == ("add",)
    assert reason in bound.rejected_bindings["shop"]


async def test_a_config_that_makes_another_tool_makes_it_once():
    made = []

    def make(spec):
        made.append(spec)
        return tools_from_object(Shop(spec.init_params["name"]), spec.tool_id)

    library = create_library(init_params={"name": "far"})
    bound = library.with_bindings([create_binding(init_params={"name": "near"})], make)
    assert (await bound.call("shop_price", {"article": "pen"})).content == "near pen"
    library.register(FunctionTool(add, tool_id="more"))
    assert (await bound.call("shop_price", {"article": "pen"})).content == "near pen"
    assert len(made) == 1


async def test_a_view_follows_the_library():
    library = create_library()
    bound = library.with_bindings([create_binding(), create_binding("later")])
    before = bound.definitions
    assert bound.definitions is before
    library.register(FunctionTool(add, tool_id="later"))
    assert bound.names == ("shop_price", "shop_stock", "later")
    library.disable("shop")
    assert bound.names == ("later",)
    library.enable("shop")
    library.unregister("later")
    assert bound.names == ("shop_price", "shop_stock")
    assert (await bound.call("later", {"a": 1, "b": 2})).failure == "unknown_tool"
    with pytest.raises(ToolRegistrationError, match="the tools of one agent"):
        bound.register(add)
    with pytest.raises(ToolRegistrationError, match="the tools of one agent"):
        bound.unregister("shop")


async def test_health_and_circuit_are_shared():
    library = create_library()
    first, second = library.with_bindings([create_binding()]), library.with_bindings([create_binding(timeout=9)])
    await first.call("shop_stock", {})
    await first.call("shop_stock", {})
    assert [one.get_health("shop").state for one in (library, first, second)] == ["open"] * 3
    assert (await second.call("shop_price", {"article": "x"})).attempts == 0


async def test_alternatives_are_those_the_agent_has():
    def shop_copy(article: str) -> str:
        """The price of an article."""
        return article

    library = create_library()
    library.register(shop_copy)
    assert [one.tool_id for one in library.find_alternatives("shop")] == ["shop_copy"]
    assert library.with_bindings([create_binding()]).find_alternatives("shop") == []


async def test_rate_limits_are_shared_and_a_bindings_own_applies_in_addition():
    library = create_library(rate_limit=RateLimit(calls=3, seconds=60))
    plain, strict = (
        library.with_bindings([create_binding()]),
        library.with_bindings([create_binding(rate_limit={"calls": 1})]),
    )

    async def call(one):
        return (await one.call("shop_price", {"article": "x"})).failure

    assert [await call(strict), await call(strict)] == [None, "rate_limited"]
    assert [await call(plain), await call(library)] == [None, None]
    assert [await call(plain), await call(library)] == ["rate_limited", "rate_limited"]


async def test_cached_results_are_shared_between_equal_bindings():
    shop = Shop()
    library = create_library(shop, idempotent=True, cache_seconds=60)
    same, other = (
        library.with_bindings([create_binding()]),
        library.with_bindings([create_binding(metadata={"region": "north"})]),
    )
    results = [await one.call("shop_price", {"article": "x"}) for one in (library, same, other, other)]
    assert [one.cached for one in results] == [False, True, False, True]
    assert shop.calls == 2


async def test_a_view_of_a_view_is_narrower_still():
    bound = (
        create_library()
        .with_bindings([create_binding(), create_binding("add")])
        .with_bindings([create_binding("add"), create_binding("shop", capabilities=[{"name": "stock"}])])
    )
    assert bound.names == ("add", "shop_stock")
    result = await bound.call("search_tools", {"need": "price"}, CallContext("r"))
    assert {tool["name"] for tool in result.data["tools"]} == {"add", "shop_stock"}


def test_capabilities_of_a_spec_stay_its_own():
    library = create_library(capabilities=(Capability(name="price"),))
    assert library.with_bindings([create_binding()]).get_spec("shop") == library.get_spec("shop")
