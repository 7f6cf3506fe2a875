"""A second look: tools that run what they are given, and requests that say a call whole."""

from dataclasses import replace

import pytest

from opposable.domain.errors import ModelError
from opposable.domain.events import Reply, Token
from opposable.domain.language import split_words
from opposable.domain.messages import assistant_message, user_message
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.models.base import ModelOptions
from opposable.models.python_protocol import prompts as texts
from opposable.models.python_protocol.model import PythonProtocolModel
from opposable.models.python_protocol.second_attempt import get_likely_call_prefix, is_fully_requested
from opposable.models.scripted import ScriptedModel


def define_tool(name: str, about: str = "", description: str = "", required: bool = True, **more) -> ToolDefinition:
    properties = {name: {"type": "string", "description": about, **more}}
    schema = {"type": "object", "properties": properties, "required": [name] if required else []}
    return ToolDefinition("tool", description, schema)


def build_call(**arguments) -> ToolCall:
    return ToolCall("1", "tool", arguments)


@pytest.mark.parametrize(
    ("tool", "is_so"),
    [
        (define_tool("command", "The command line."), True),
        (define_tool("sql", description="Run one SQL statement."), True),
        (define_tool("query", "要执行的 SQL 语句"), True),
        (define_tool("code", "Python code"), True),
        (define_tool("query", "What to search for."), False),
        (define_tool("code", "The country, as two letters.", "A country."), False),
        (define_tool("command", "One of the commands.", enum=["start", "stop"]), False),
        (define_tool("command", "The command line.", required=False), False),
        (define_tool("text", "The commands."), False),
    ],
)
def test_a_tool_runs_what_it_is_given_where_its_parameter_says_so(tool, is_so):
    [name] = tool.parameters["properties"]
    assert is_fully_requested((build_call(**{name: "docker ps"}),), (tool,), split_words("run docker ps")) is is_so


@pytest.mark.parametrize(
    ("alternatives", "begun"),
    [
        ((("pass", -0.7), ("tool", -0.8)), "tool"),
        ((("pass", -0.7), ("import", -0.9), (" to", -2.0), ("tool", -3.0)), "to"),
        ((("pass", -0.4), ("tool", -1.2)), ""),
        ((("pass", -0.7), ("import", -0.8), ("\n", -4.0)), ""),
        ((("pass", -0.7), ("to", -5.0)), ""),
        ((), ""),
    ],
    ids=["leaning", "by its beginning", "sure", "towards no function", "too faintly", "nothing known"],
)
def test_a_call_is_leaned_towards_where_its_name_might_have_stood_there(alternatives, begun):
    assert get_likely_call_prefix((Token("", ()), Token("pass", alternatives)), (define_tool("command"),)) == begun


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
    tool = define_tool("command", "The command line.")
    assert is_fully_requested((build_call(command=command),), (tool,), split_words(said)) is is_so


NOTE = ToolDefinition(
    "tool",
    "",
    {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "kind": {"type": "integer", "description": "1 for cleaning, 2 for ironing"},
            "size": {"type": "string", "enum": ["small", "large"]},
            "sure": {"type": "boolean"},
        },
    },
)


@pytest.mark.parametrize(
    ("required", "arguments", "said", "is_so"),
    [
        (["text"], {"text": "it is not in there"}, "They said: it is not in there.", False),
        (["kind"], {"kind": 2}, "Who does ironing?", True),
        (["kind"], {"kind": 1}, "Who does ironing?", False),
        (["kind"], {"kind": 2}, "Who cooks?", False),
        (["size"], {"size": "large"}, "A large one", True),
        (["size"], {"size": "small"}, "A large one", False),
        (["kind", "size"], {"kind": 2, "size": "large"}, "ironing for a large house", True),
        (["kind", "size"], {"kind": 2}, "ironing for a large house", False),
        (["sure"], {"sure": True}, "I am sure", False),
        ([], {"size": "large"}, "A large one", False),
    ],
)
def test_a_request_says_a_call_whole(required, arguments, said, is_so):
    tool = replace(NOTE, parameters={**NOTE.parameters, "required": required})
    assert is_fully_requested((build_call(**arguments),), (tool,), split_words(said)) is is_so


def test_two_calls_are_not_said_whole():
    tool = define_tool("command", "The command line.")
    assert not is_fully_requested((build_call(command="docker ps"),) * 2, (tool,), split_words("run docker ps"))


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("said", "sure", "command"),
    [
        ("Is it up? Use docker ps", -0.3, "docker ps"),
        ("Is Docker up?", -0.3, None),
        ("Is it up? ps says it of docker", -0.01, "docker ps"),
        ("Who are you?", -0.01, None),
    ],
    ids=["said whole", "not said", "said, and surely meant", "meant, but not said"],
)
async def test_a_call_that_the_model_leaned_towards_is_made_where_the_request_bears_it_out(said, sure, command):
    second = Reply(
        assistant_message(f'{texts.REPLY_PREFIX}tool(command="docker ps")'), tokens=(Token("", (("", sure),)),)
    )
    inner = ScriptedModel(build_passed_reply(-0.7), second, "I cannot tell.", chunk_size=99)
    model = PythonProtocolModel(inner)
    tools = (define_tool("command", "The command line."),)
    reply = [part async for part in model.stream((user_message(said),), tools, ModelOptions(max_tokens=900))][-1]
    assert [call.arguments for call in reply.message.tool_calls] == ([{"command": command}] if command else [])
    assert reply.message.content == ("" if command else "I cannot tell.")
    assert inner.requests[1].messages[-1].content == f"{texts.REPLY_PREFIX}tool"
    assert inner.requests[1].messages[:-1] == inner.requests[0].messages[:-1], "a server keeps these worked out"
    assert inner.requests[1].options.max_tokens < 900


def test_the_way_out_is_no_name():
    tokens = (Token("pass", (("pass", -0.7), ("reset", -0.8))),)
    assert get_likely_call_prefix(tokens, (replace(define_tool("command"), name="password_reset"),)) == ""


@pytest.mark.anyio
async def test_a_second_look_that_fails_adds_nothing():
    inner = ScriptedModel(build_passed_reply(-0.7), ModelError("gone"), "I cannot tell.", chunk_size=99)
    tools = (define_tool("command", "The command line."),)
    parts = [
        part async for part in PythonProtocolModel(inner).stream((user_message("docker ps"),), tools, ModelOptions())
    ]
    assert parts[-1].message.content == "I cannot tell."


@pytest.mark.anyio
async def test_a_model_that_is_sure_is_not_asked_twice():
    inner = ScriptedModel(build_passed_reply(-0.4), "I cannot tell.", chunk_size=99)
    tools = (define_tool("command", "The command line."),)
    parts = [
        part
        async for part in PythonProtocolModel(inner).stream((user_message("Use docker ps"),), tools, ModelOptions())
    ]
    assert (len(inner.requests), parts[-1].message.content) == (2, "I cannot tell.")


def build_passed_reply(out: float) -> Reply:
    return Reply(
        assistant_message(f"{texts.REPLY_PREFIX}pass"), tokens=(Token("pass", (("pass", out), ("tool", -2.0))),)
    )
