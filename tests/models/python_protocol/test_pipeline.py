"""The declared steps."""

import pytest

from opposable.domain.events import Reply, Token
from opposable.domain.messages import assistant_message, user_message
from opposable.domain.tools import ToolDefinition
from opposable.models.base import ModelOptions
from opposable.models.profile import ModelProfile
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


async def test_no_step_withholds_a_call_without_assistance():
    profile = ModelProfile("constrained")
    model = PythonProtocolModel(ScriptedModel(INVENTED), profile)
    reply = [part async for part in model.stream((user_message("Hello"),), (NOTE,), ModelOptions())][-1]
    assert [call.arguments for call in reply.message.tool_calls] == [{"text": "the moon"}]


async def test_the_default_profile_is_that_of_the_inner_model():
    inner = ScriptedModel("x")
    inner.profile = ModelProfile(images=True, context=4000)
    assert PythonProtocolModel(inner).profile == ModelProfile("constrained", assisted=True, images=True, context=4000)


async def test_a_step_can_be_left_out():
    assert await request_calls(ScriptedModel(INVENTED, "Hello.")) == ()
    assert len(await request_calls(ScriptedModel(INVENTED), ("acceptance",))) == 1
