"""The public fake."""

import pytest

from opposable.domain.errors import BadInput, ModelUnavailable
from opposable.domain.events import CallDelta, Reply, TextDelta
from opposable.domain.messages import assistant_message, user_message
from opposable.domain.usage import Usage
from opposable.models.base import ModelOptions
from opposable.models.scripted import ScriptedModel, reply_with_calls, tool_call

pytestmark = pytest.mark.anyio


async def collect_parts(model, **options):
    return [part async for part in model.stream((user_message("hi"),), (), ModelOptions(**options))]


async def test_lines_are_said_in_turn_and_the_last_again():
    model = ScriptedModel(
        "one", reply_with_calls(tool_call("f", "{}", "c1")), lambda history: history[-1].content, chunk_size=2
    )
    assert await collect_parts(model) == [
        TextDelta("on"),
        TextDelta("e"),
        Reply(assistant_message("one"), "stop", Usage(10, 5, 1)),
    ]
    assert (await collect_parts(model))[0] == CallDelta(0, "c1", "f", "{}")
    assert (await collect_parts(model, stream=False)) == [Reply(assistant_message("hi"), "stop", Usage(10, 5, 1))]
    assert (await collect_parts(model))[-1].message.content == "hi"
    assert len(model.requests) == 4


async def test_errors_in_the_script_are_raised():
    with pytest.raises(ModelUnavailable):
        await collect_parts(ScriptedModel(ModelUnavailable("down")))


async def test_a_script_without_replies_says_so():
    with pytest.raises(BadInput, match="has no reply"):
        await collect_parts(ScriptedModel())
