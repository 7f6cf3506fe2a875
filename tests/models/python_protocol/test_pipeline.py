"""The declared steps."""

import pytest

from opposable.domain.events import Reply, Token
from opposable.domain.messages import assistant_message, user_message
from opposable.domain.tools import ToolDefinition
from opposable.models.base import ModelOptions
from opposable.models.python_protocol.model import PythonProtocolModel
from opposable.models.scripted import ScriptedModel

pytestmark = pytest.mark.anyio

NOTE = ToolDefinition(
    "note", "Note a text.", {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
)
INVENTED = Reply(assistant_message('note(text="the moon")'), tokens=(Token("note", (("note", -0.6), ("pass", -0.9))),))


async def request_calls(inner, without=()):
    stream = PythonProtocolModel(inner, without=without).stream((user_message("Hello"),), (NOTE,), ModelOptions())
    return [part async for part in stream][-1].message.tool_calls


async def test_a_step_can_be_left_out():
    assert await request_calls(ScriptedModel(INVENTED, "Hello.")) == ()
    assert len(await request_calls(ScriptedModel(INVENTED), ("acceptance",))) == 1
