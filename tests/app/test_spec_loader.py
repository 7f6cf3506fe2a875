"""Tools of every kind from their specs."""

import sys
from pathlib import Path

import pytest

from opposable.app.spec_loader import SpecLoader, ToolPermissions
from opposable.domain.specs import EndpointConfig, FunctionToolSpec, HttpToolSpec, McpServerSpec, SkillSpec
from opposable.tools.library import ToolLibrary

pytestmark = pytest.mark.anyio


@pytest.fixture
async def box(tmp_path: Path):
    async with SpecLoader(ToolLibrary(), ToolPermissions(roots=(tmp_path,))) as made:
        yield made


def function(tool_id: str, module: str, **more) -> FunctionToolSpec:
    return FunctionToolSpec(tool_id=tool_id, module_path=module, **more)


async def test_a_function_is_named_by_module(box):
    spec = function("calculator", "opposable.builtin_tools.calculator.calculator", function_name="calculator")
    assert (await box.add(spec)).accepted == ("calculator",)
    assert (await box.library.call("calculator", {"expression": "25*4"})).data["result"] == 100


async def test_an_internal_endpoint_is_a_built_in_tool(box):
    spec = HttpToolSpec(
        tool_id="计算器", description="数学计算", endpoint=EndpointConfig(url_template="internal://calculator")
    )
    [name] = (await box.add(spec)).accepted
    assert (await box.library.call(name, {"expression": "25*4"})).data["result"] == 100


async def test_an_mcp_server_brings_its_tools_and_takes_them_with_it(box):
    server = McpServerSpec(
        tool_id="clock", command=sys.executable, args=("-m", "mcp_server_time", "--local-timezone", "UTC")
    )
    assert set((await box.add(server)).accepted) == {"clock_get_current_time", "clock_convert_time"}
    result = await box.library.call("clock.get_current_time", {"timezone": "Asia/Shanghai"})
    assert result.failure is None
    assert await box.remove("clock")
    assert box.library.names == ()


async def test_a_skill_is_a_folder(box, tmp_path):
    folder = tmp_path / "greet"
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\nname: greet\ndescription: 打招呼\n---\nSay hello in the user's language.\n")
    assert "greet" in (await box.add(SkillSpec(tool_id="greet", path=folder))).accepted
    assert "Say hello" in (await box.library.call("greet", {})).content


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (function("x", "os", function_name="system"), "may not be used"),
        (
            HttpToolSpec(tool_id="x", endpoint=EndpointConfig(url_template="internal://shell")),
            "no built-in tool 'shell'",
        ),
        (HttpToolSpec(tool_id="x", endpoint=EndpointConfig(url_template="http://127.0.0.1/a")), "127.0.0.1"),
        (SkillSpec(tool_id="x", path=Path("/no/such/folder")), "no"),
        (McpServerSpec(tool_id="x", command="no-such-program"), "no-such-program"),
        (McpServerSpec(tool_id="x", command="python3", enabled=False), "switched off"),
    ],
)
async def test_what_cannot_be_used_is_set_aside_with_the_reason(box, spec, said):
    came = await box.add(spec)
    assert (came.ok, box.library.names) == (False, ())
    assert said in came.set_aside["x"]


async def test_a_taken_id_is_told_and_may_be_replaced(box):
    spec = function("t", "opposable.builtin_tools.echo", function_name="echo")
    assert (await box.add(spec)).ok
    assert "already" in (await box.add(spec)).set_aside["t"]
    changed = spec.model_copy(update={"description": "Say it again."})
    assert (await box.add(changed, replace=True)).ok
    assert box.library.definitions[0].description == "Say it again."


async def test_programs_may_be_forbidden(tmp_path):
    async with SpecLoader(ToolLibrary(), ToolPermissions(allow_programs=False)) as box:
        came = await box.load(McpServerSpec(tool_id="x", command="python3"))
        assert "may not be started" in came.set_aside["x"]
