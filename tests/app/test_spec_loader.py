"""Tools of every kind are created and registered from their specs."""

import sys
from pathlib import Path

import pytest

from opposable.app.spec_loader import SpecLoader, ToolPermissions
from opposable.domain.specs import EndpointConfig, FunctionToolSpec, HttpToolSpec, McpServerSpec, SkillSpec
from opposable.tools.library import ToolLibrary

pytestmark = pytest.mark.anyio


@pytest.fixture
async def loader(tmp_path: Path):
    async with SpecLoader(ToolLibrary(), ToolPermissions(roots=(tmp_path,))) as created:
        yield created


def build_function_spec(tool_id: str, module: str, **options) -> FunctionToolSpec:
    return FunctionToolSpec(tool_id=tool_id, module_path=module, **options)


async def test_a_function_is_named_by_module(loader):
    spec = build_function_spec(
        "calculator", "opposable.builtin_tools.calculator.calculator", function_name="calculator"
    )
    assert (await loader.load(spec)).accepted == ("calculator",)
    assert (await loader.library.call("calculator", {"expression": "25*4"})).data["result"] == 100


async def test_an_internal_endpoint_is_a_built_in_tool(loader):
    spec = HttpToolSpec(
        tool_id="计算器", description="数学计算", endpoint=EndpointConfig(url_template="internal://calculator")
    )
    [name] = (await loader.load(spec)).accepted
    assert (await loader.library.call(name, {"expression": "25*4"})).data["result"] == 100


async def test_an_mcp_server_adds_its_tools_and_removes_them(loader):
    server = McpServerSpec(
        tool_id="clock", command=sys.executable, args=("-m", "mcp_server_time", "--local-timezone", "UTC")
    )
    assert set((await loader.load(server)).accepted) == {"clock_get_current_time", "clock_convert_time"}
    result = await loader.library.call("clock.get_current_time", {"timezone": "Asia/Shanghai"})
    assert result.failure is None
    assert await loader.remove("clock")
    assert loader.library.names == ()


async def test_a_skill_is_a_folder(loader, tmp_path):
    folder = tmp_path / "greet"
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\nname: greet\ndescription: 打招呼\n---\nSay hello in the user's language.\n")
    assert "greet" in (await loader.load(SkillSpec(tool_id="greet", path=folder))).accepted
    assert "Say hello" in (await loader.library.call("greet", {})).content


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        (build_function_spec("x", "os", function_name="system"), "To allow it, list os in OPPOSABLE_MODULES."),
        (
            build_function_spec("x", "opposable.builtin_tools.clock", function_name="nothing"),
            "The owner allows: opposable.builtin_tools.calculator.calculator:calculator",
        ),
        (
            HttpToolSpec(tool_id="x", endpoint=EndpointConfig(url_template="internal://shell")),
            "no built-in tool 'shell'",
        ),
        (HttpToolSpec(tool_id="x", endpoint=EndpointConfig(url_template="http://127.0.0.1/a")), "127.0.0.1"),
        (SkillSpec(tool_id="x", path=Path("/no/such/folder")), "no"),
        (McpServerSpec(tool_id="x", command="no-such-program"), "no-such-program"),
        (McpServerSpec(tool_id="x", command="python3", enabled=False), "disabled"),
    ],
)
async def test_an_unusable_spec_is_rejected_with_the_reason(loader, spec, reason):
    registration = await loader.load(spec)
    assert (registration.has_tools, loader.library.names) == (False, ())
    assert reason in registration.rejected["x"]


async def test_an_unusable_spec_of_a_list_does_not_reject_the_others(loader):
    specs = [
        build_function_spec("shell", "os", function_name="system"),
        HttpToolSpec(tool_id="sum", endpoint=EndpointConfig(url_template="internal://calculator")),
        McpServerSpec(tool_id="notes", command="no-such-program"),
        HttpToolSpec(tool_id="现在", endpoint=EndpointConfig(url_template="internal://time")),
    ]
    registrations = [await loader.load(spec) for spec in specs]
    assert [(one.tool_id, one.has_tools) for one in registrations] == [
        ("shell", False),
        ("sum", True),
        ("notes", False),
        ("现在", True),
    ]
    assert {spec.tool_id for spec in loader.library.specs} == {"sum", "现在"}


async def test_a_registered_id_is_rejected_unless_replaced(loader):
    spec = build_function_spec("t", "opposable.builtin_tools.echo", function_name="echo")
    assert (await loader.load(spec)).has_tools
    assert "already registered" in (await loader.load(spec)).rejected["t"]
    changed = spec.model_copy(update={"description": "Say it again."})
    assert (await loader.load(changed, replace=True)).has_tools
    assert loader.library.definitions[0].description == "Say it again."


async def test_programs_may_be_forbidden(tmp_path):
    async with SpecLoader(ToolLibrary(), ToolPermissions(allow_programs=False)) as loader:
        registration = await loader.load(McpServerSpec(tool_id="x", command="python3"))
        assert "may not be started" in registration.rejected["x"]
