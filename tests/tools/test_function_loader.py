"""Functions and classes named by a spec."""

import sys
from types import ModuleType

import pytest

from opposable.app.tool_factory import DEFAULT_ALLOWED_FUNCTIONS
from opposable.domain.call_context import Approved, CallContext, Denied
from opposable.domain.errors import BadInput
from opposable.domain.specs import AgentToolBinding, Capability, FunctionToolSpec
from opposable.tools.function_loader import load_tools
from opposable.tools.library import ToolLibrary

pytestmark = pytest.mark.anyio

SOURCE = '''
import functools
import subprocess
from pathlib import Path
from subprocess import Popen, run
from opposable import tool
from opposable.domain.specs import RateLimit

class Till:
    """A till."""
    def __init__(self, start: int, currency: str = "EUR"):
        if start < 0:
            raise ValueError("a till cannot owe")
        self.sum, self.currency = start, currency
    def put(self, amount: int) -> str:
        """Put money in."""
        self.sum += amount
        return f"{self.sum} {self.currency}"
    def look(self) -> int:
        """Look into it."""
        return self.sum
    def _secret(self) -> int:
        return 1

def price(article: str) -> str:
    """The price of an article."""
    return f"{article}: 5"

@tool(name="other")
def decorated(n: int) -> int:
    """Twice."""
    return 2 * n

@tool(needs_approval=True, rate_limit=RateLimit(calls=1), timeout=3, description="Pay money back.")
def refund(order: int) -> str:
    return f"refunded {order}"

class Desk:
    """A desk."""
    @tool(needs_approval=True, timeout=3, description="Pay money back.")
    def refund(self, order: int) -> str:
        return f"refunded {order}"
    @classmethod
    def from_options(cls, **options):
        return cls()
    @classmethod
    def get_name(cls) -> str:
        return cls.__name__
    @classmethod
    @tool(needs_approval=True)
    def close(cls, reason: str) -> str:
        return f"{cls.__name__}: {reason}"
    @functools.lru_cache
    def count(self) -> int:
        return 1
    @tool(rate_limit=RateLimit(calls=1), failure_when={"/ok": False})
    def stamp(self) -> dict:
        return {"ok": False}

def _hidden() -> int:
    return 1

def unclear(*things) -> int:
    return 1
'''


@pytest.fixture(autouse=True, scope="module")
def shop():
    module = ModuleType("shop_of_tests.till")
    sys.modules["shop_of_tests"] = ModuleType("shop_of_tests")
    sys.modules["shop_of_tests.till"] = module
    exec(SOURCE, module.__dict__)
    yield
    del sys.modules["shop_of_tests.till"], sys.modules["shop_of_tests"]


ALLOWED = ("shop_of_tests",)


def spec(tool_id="till", **more) -> FunctionToolSpec:
    return FunctionToolSpec(**{"tool_id": tool_id, "module_path": "shop_of_tests.till", **more})


async def test_the_methods_of_a_class_are_actions_of_one_object():
    given = spec(class_name="Till", init_params={"start": 5}, timeout=3)
    tools = load_tools(given, allowed=ALLOWED)
    assert [(one.tool_id, one.timeout) for one in tools] == [("till.look", 3), ("till.put", 3)]
    library = ToolLibrary()
    assert library.register(given, tools).accepted == ("till_look", "till_put")
    await library.call_action("till", "put", {"amount": 2})
    assert (await library.call_action("till", "look", {})).data == 7


def test_capabilities_choose_actions_and_may_describe_them():
    chosen = (Capability(name="put", description="把钱放进去"),)
    [only] = load_tools(spec(class_name="Till", init_params={"start": 0}, capabilities=chosen), allowed=ALLOWED)
    assert (only.tool_id, only.definition.description) == ("till.put", "把钱放进去")


@pytest.mark.parametrize(
    ("target", "capability", "parameter"),
    [
        ({"class_name": "Till", "init_params": {"start": 0}}, "put", "amount"),
        ({"function_name": "price"}, "price", "article"),
    ],
)
def test_capabilities_describe_parameters(target, capability, parameter):
    properties = {parameter: {"type": "null", "description": "商品"}, "other": {"description": "unknown"}}
    chosen = (Capability(name=capability, parameters={"type": "object", "properties": properties}),)
    before = load_tools(spec(**target, capabilities=[{"name": capability}]), allowed=ALLOWED)[0].definition.parameters
    [only] = load_tools(spec(**target, capabilities=chosen), allowed=ALLOWED)
    described = {parameter: {**before["properties"][parameter], "description": "商品"}}
    assert only.definition.parameters == {**before, "properties": described}


@pytest.mark.parametrize(
    ("name", "arguments", "result"), [("price", {"article": "pen"}, "pen: 5"), ("decorated", {"n": 4}, 8)]
)
async def test_a_function_is_one_tool_under_the_specs_id(name, arguments, result):
    given = spec("mine", function_name=name, description="Mine.")
    [only] = load_tools(given, allowed=["shop_of_tests.till:price", "shop_of_tests.till:decorated"])
    assert (only.tool_id, only.definition.description) == ("mine", "Mine.")
    library = ToolLibrary()
    library.register(given, [only])
    assert (await library.call("mine", arguments)).data == result


async def test_a_spec_of_a_decorated_function_has_the_rules_of_the_decorator():
    given = spec("pay", function_name="refund")
    [only] = load_tools(given, allowed=ALLOWED)
    assert (only.definition.description, only.timeout) == ("Pay money back.", 3)
    library = ToolLibrary()
    library.register(given, [only])
    assert (await library.call("pay", {"order": 1})).failure == "denied"
    approving = CallContext(approve=approve)
    bound = library.with_bindings([AgentToolBinding(tool_id="pay", config={"description": "Pay."})])
    assert (await bound.call("pay", {"order": 1})).failure == "denied"
    results = [(await one.call("pay", {"order": 1}, approving)).failure for one in (library, bound)]
    assert results == [None, "rate_limited"]


async def approve(request) -> Approved:
    return Approved()


async def test_a_specs_own_rules_come_before_those_of_the_decorator():
    given = spec("pay", function_name="refund", timeout=9, description="Mine.", rate_limit={"calls": 2})
    [only] = load_tools(given, allowed=ALLOWED)
    assert (only.definition.description, only.timeout) == ("Mine.", 9)
    library = ToolLibrary(approve=approve)
    library.register(given, [only])
    assert [(await library.call("pay", {"order": 1})).failure for _ in range(3)] == [None, None, "rate_limited"]


async def test_the_methods_of_a_specs_class_are_those_of_an_object_with_their_rules():
    given = spec("desk", class_name="Desk")
    library = ToolLibrary(approve=deny)
    accepted = library.register(given, load_tools(given, allowed=ALLOWED)).accepted
    assert accepted == ("desk_close", "desk_count", "desk_refund", "desk_stamp")
    calls = [("count", {}), ("close", {"reason": "late"}), ("refund", {"order": 1}), ("stamp", {}), ("stamp", {})]
    failures = [(await library.call_action("desk", action, arguments)).failure for action, arguments in calls]
    assert failures == [None, "denied", "denied", "failed", "rate_limited"]
    bound = library.with_bindings([AgentToolBinding(tool_id="desk", config={"needs_approval": True})])
    assert (await bound.call_action("desk", "count", {})).failure == "denied"


async def test_capabilities_choose_class_methods():
    given = spec("desk", class_name="Desk", capabilities=[{"name": "get_name"}, {"name": "close"}])
    library = ToolLibrary(approve=approve)
    library.register(given, load_tools(given, allowed=ALLOWED))
    assert library.names == ("desk_close", "desk_get_name")
    assert (await library.call("desk.close", {"reason": "late"})).data == "Desk: late"
    assert (await library.call("desk.get_name", {})).data == "Desk"


async def deny(request) -> Denied:
    return Denied("no")


INVALID_SPECS = [
    (
        {"class_name": "Till"},
        "init_params do not fit Till: missing a required argument: 'start'. It takes: start, currency.",
    ),
    ({"class_name": "Till", "init_params": {"start": 1, "x": 2}}, "unexpected keyword argument 'x'"),
    ({"class_name": "Till", "init_params": {"start": -1}}, "Till cannot be created: ValueError: a till cannot owe"),
    ({"class_name": "Shop"}, "shop_of_tests.till has no Shop. It has: Till, price, decorated, refund, Desk, unclear."),
    ({"class_name": "price"}, "price in shop_of_tests.till is not a class. Name a function by function_name."),
    ({"function_name": "Till"}, "Till in shop_of_tests.till is not a function. Name a class by class_name."),
    ({"function_name": "price", "init_params": {"a": 1}}, "init_params are for classes, and price is a function."),
    ({"function_name": "price", "class_name": "Till"}, "give either class_name or function_name."),
    ({}, "give either class_name or function_name."),
    ({"function_name": "unclear"}, "a model cannot pass the parameter 'things'"),
    ({"module_path": "shop_of_tests.tell", "function_name": "x"}, "there is no module shop_of_tests.tell"),
    (
        {"class_name": "Till", "init_params": {"start": 1}, "capabilities": (Capability(name="take"),)},
        "Till has no take. Its public methods are: look, put.",
    ),
]


@pytest.mark.parametrize(("more", "reason"), INVALID_SPECS)
def test_a_missing_or_unsuitable_object_is_reported(more, reason):
    with pytest.raises(BadInput) as raised:
        load_tools(spec(**more), allowed=ALLOWED)
    assert str(raised.value).startswith("till: ")
    assert reason in str(raised.value)


ATTACKS = [
    ({"function_name": "run"}, ALLOWED),
    ({"class_name": "Popen", "init_params": {"args": ["true"]}}, ALLOWED),
    ({"class_name": "Path", "init_params": {}}, ALLOWED),
    ({"function_name": "subprocess"}, ALLOWED),
    ({"function_name": "_hidden"}, ALLOWED),
    ({"function_name": "price.__globals__"}, ALLOWED),
    ({"class_name": "Till.__init__"}, ALLOWED),
    ({"function_name": "__import__"}, ALLOWED),
    ({"module_path": "os", "function_name": "system"}, ALLOWED),
    ({"module_path": "subprocess", "function_name": "run"}, ()),
    ({"module_path": "shop_of_tests_evil", "function_name": "price"}, ALLOWED),
    ({"module_path": "shop_of_tests.till", "function_name": "price"}, ("shop_of_tests.till:decorated",)),
    ({"module_path": "opposable.safety.filesystem.allowed_roots", "class_name": "Roots"}, None),
    ({"module_path": "opposable.builtin_tools.file_search", "class_name": "FileSearch"}, None),
]


@pytest.mark.parametrize(("more", "allowed"), ATTACKS)
def test_only_allowed_modules_are_imported(more, allowed):
    with pytest.raises(BadInput):
        load_tools(spec(**more), DEFAULT_ALLOWED_FUNCTIONS if allowed is None else allowed)


@pytest.mark.parametrize(
    ("module", "name", "arguments", "data"),
    [
        ("calculator.calculator", "calculator", {"expression": "2+3"}, {"expression": "2+3", "result": 5}),
        ("echo", "echo", {"text": "hi"}, "hi"),
    ],
)
async def test_harmless_built_in_functions_may_be_named_without_asking(module, name, arguments, data):
    given = spec("mine", module_path=f"opposable.builtin_tools.{module}", function_name=name)
    library = ToolLibrary()
    assert library.register(given, load_tools(given, DEFAULT_ALLOWED_FUNCTIONS)).has_tools
    assert (await library.call("mine", arguments)).data == data
