"""Tools that run what they are given, and requests that say what is to be run."""

import orjson
import pytest

from opposable.domain.messages import user
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.models import python_texts as texts
from opposable.models.base import ModelOptions
from opposable.models.python_protocol import PythonProtocolModel
from opposable.models.python_running import is_said, runner
from opposable.models.python_said import words
from opposable.models.scripted import ScriptedModel


def of(name: str, about: str = "", description: str = "", required: bool = True, **more) -> ToolDefinition:
    properties = {name: {"type": "string", "description": about, **more}}
    schema = {"type": "object", "properties": properties, "required": [name] if required else []}
    return ToolDefinition("tool", description, schema)


@pytest.mark.parametrize(
    ("tool", "parameter"),
    [
        (of("command", "The command line."), "command"),
        (of("sql", description="Run one SQL statement."), "sql"),
        (of("query", "要执行的 SQL 语句"), "query"),
        (of("code", "Python code"), "code"),
        (of("query", "What to search for."), None),
        (of("code", "The country, as two letters.", "A country."), None),
        (of("command", "One of the commands.", enum=["start", "stop"]), None),
        (of("command", "The command line.", required=False), None),
        (of("text", "The commands."), None),
    ],
)
def test_a_tool_runs_what_it_is_given_where_its_parameter_says_so(tool, parameter):
    assert runner((tool,)) == (parameter and ("tool", parameter))


def test_of_two_that_run_what_they_are_given_nobody_knows_which_is_meant():
    assert runner((of("command", "The command line."), of("sql", "SQL"))) is None


@pytest.mark.parametrize(
    ("command", "said", "is_so"),
    [
        ("docker ps", "is it running? use docker ps", True),
        ("dir C:\\Users", "run dir c:\\users", True),
        ("SELECT name FROM users", "请执行 select name from users", True),
        ("docker ps -a", "is it running? use docker ps", False),
        ("date", "what is the date", False),
        ("how about his", "how about his?", False),
        ("", "run nothing", False),
    ],
)
def test_a_request_says_what_is_to_be_run(command, said, is_so):
    call = ToolCall("1", "tool", orjson.dumps({"command": command}).decode())
    assert is_said(call, "command", words(said)) is is_so


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("said", "command"),
    [("Is it up? Use docker ps", "docker ps"), ("Is Docker up?", None)],
    ids=["said", "not said"],
)
async def test_what_the_request_says_is_run_though_the_model_saw_no_function_for_it(said, command):
    begun = f'{texts.BEGINNING}tool(command="'
    inner = ScriptedModel(f"{texts.BEGINNING}pass", f'{begun}docker ps")', "I cannot tell.", piece=99)
    model = PythonProtocolModel(inner)
    tools = (of("command", "The command line."),)
    reply = [part async for part in model.stream((user(said),), tools, ModelOptions())][-1]
    assert [orjson.loads(call.arguments) for call in reply.message.tool_calls] == (
        [{"command": command}] if command else []
    )
    assert reply.message.content == ("" if command else "I cannot tell.")
    assert inner.requests[1].messages[-1].content == begun
    assert inner.requests[1].messages[-2].content == said
