"""The declared steps."""

from dataclasses import replace

import pytest

from opposable.domain.events import Reply, Token
from opposable.domain.messages import assistant_message, user_message
from opposable.domain.tools import ToolDefinition
from opposable.domain.usage import Usage
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


def write_note(text, logprob):
    return Reply(
        assistant_message(f'note(text="{text}")'),
        usage=Usage(10, 1),
        tokens=(Token("note", (("note", logprob),)),),
    )


async def request_note(*replies):
    model = PythonProtocolModel(ScriptedModel(*replies))
    options = ModelOptions(tool_choice="required")
    return [part async for part in model.stream((user_message("Hello"),), (NOTE,), options)][-1].message.tool_calls


@pytest.mark.parametrize(
    ("replies", "text", "requests"),
    [
        ([("likely", -3.9)], "likely", 1),
        ([("unlikely", -9.0), ("other", -10.0), ("likely", -1.0)], "likely", 3),
        ([("first", -5.0), *[("other", -6.0)] * 8], "first", 9),
        ([("first", -7.0), ("better", -6.0), *[("other", -8.0)] * 7], "better", 9),
    ],
)
async def test_an_unlikely_reply_is_sampled_again(replies, text, requests):
    inner = ScriptedModel(*[write_note(*reply) for reply in replies])
    stream = PythonProtocolModel(inner).stream((user_message("Hello"),), (NOTE,), ModelOptions(tool_choice="required"))
    reply = [part async for part in stream][-1]
    assert [call.arguments for call in reply.message.tool_calls] == [{"text": text}]
    assert reply.usage == Usage(10 * requests, requests)


async def test_a_truncated_reply_is_not_sampled_again_and_no_sample_to_take():
    truncated = replace(write_note("the mo", -1.0), finish="length")
    assert len(await request_note(replace(truncated, tokens=(Token("note", (("note", -9.0),)),)))) == 1
    [call] = await request_note(write_note("first", -9.0), truncated, *[write_note("other", -10.0)] * 7)
    assert call.arguments == {"text": "first"}


async def test_an_unlikely_reply_is_used_without_assistance():
    model = PythonProtocolModel(ScriptedModel(write_note("first", -9.0)), ModelProfile("constrained"))
    stream = model.stream((user_message("Hello"),), (NOTE,), ModelOptions(tool_choice="required"))
    assert [part async for part in stream][-1].message.tool_calls[0].arguments == {"text": "first"}
