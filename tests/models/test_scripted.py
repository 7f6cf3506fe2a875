"""The public fake."""

import pytest

from opposable.domain.errors import ModelUnavailable
from opposable.domain.events import CallDelta, Reply, TextDelta
from opposable.domain.messages import assistant, user
from opposable.domain.usage import Usage
from opposable.models.base import ModelOptions
from opposable.models.scripted import ScriptedModel, call, calls

pytestmark = pytest.mark.anyio


async def parts(model, **options):
    return [part async for part in model.stream((user("hi"),), (), ModelOptions(**options))]


async def test_lines_are_said_in_turn_and_the_last_again():
    model = ScriptedModel("one", calls(call("f", "{}", "c1")), lambda history: history[-1].content, piece=2)
    assert await parts(model) == [TextDelta("on"), TextDelta("e"), Reply(assistant("one"), "stop", Usage(10, 5, 1))]
    assert (await parts(model))[0] == CallDelta(0, "c1", "f", "{}")
    assert (await parts(model, stream=False)) == [Reply(assistant("hi"), "stop", Usage(10, 5, 1))]
    assert (await parts(model))[-1].message.content == "hi"
    assert len(model.requests) == 4


async def test_errors_in_the_script_are_raised():
    with pytest.raises(ModelUnavailable):
        await parts(ScriptedModel(ModelUnavailable("down")))
