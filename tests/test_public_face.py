"""The public face: complete, and usable with nothing but the core installed."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import opposable
from opposable import parsers

CORE_ONLY = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {extras}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
import asyncio
from opposable import Agent, ScriptedModel, tool
from opposable.models.factory import create_model
from opposable.models.scripted import reply_with_calls, tool_call

create_model("http://127.0.0.1:1/v1#m")

@tool
def add(a: int, b: int) -> int:
    '''Add.'''
    return a + b

script = ScriptedModel(reply_with_calls(tool_call("add", "{{'a': 2, 'b': 3}}")), "5")
print(asyncio.run(Agent(script, [add]).run("2 + 3")).text)
"""
EXTRAS = {
    *("typer", "rich", "click", "pydantic_settings", "dotenv", "filelock", "requests"),
    *("xllamacpp", "duckdb", "sqlglot", "fastapi", "starlette", "uvicorn", "anyio", "httpx2", "openai"),
}


def test_the_library_needs_nothing_but_the_core():
    code = CORE_ONLY.format(extras=sorted(EXTRAS))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("5\n", "")


def test_every_public_name_is_there_and_described():
    kinds = ("FailureKind", "Event", "Model")  # types without a docstring of their own
    undescribed = [name for name in opposable.__all__ if name not in kinds and not getattr(opposable, name).__doc__]
    assert undescribed == []


@pytest.mark.parametrize("package", [opposable, parsers])
def test_type_checkers_see_the_public_names_where_they_are(package):
    imports = [
        node for node in ast.walk(ast.parse(Path(package.__file__).read_text())) if isinstance(node, ast.ImportFrom)
    ]
    seen = {alias.asname: node.module for node in imports for alias in node.names if alias.asname == alias.name}
    assert sorted(seen) == package.__all__
    assert all(getattr(package, name) is getattr(import_module(module), name) for name, module in seen.items())


def test_a_missing_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'opposable' has no attribute 'Agents'"):
        _ = opposable.Agents


def test_importing_the_library_loads_no_model_parser_or_assistance():
    code = "import sys; from opposable import Agent, tool; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    heavy = {"aiohttp", "pydantic", "opposable.parsers.stream_parser", "opposable.agent.failure_memory"}
    assert loaded & heavy == set()
    assert "opposable.agent.assistance.assistance_policy" not in loaded
