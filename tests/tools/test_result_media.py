"""Images in results: seen by models that take them, described to others."""

import pytest

from opposable.agent.agent import Agent
from opposable.domain.content import DictWithMedia, ImagePart, TextPart
from opposable.domain.errors import BadInput
from opposable.domain.messages import user_message
from opposable.models.profile import ModelProfile
from opposable.models.scripted import ScriptedModel, reply_with_calls, tool_call
from opposable.tools.mcp.result_content import McpContent
from opposable.tools.result_media import find_media

pytestmark = pytest.mark.anyio

PIXEL = ImagePart("", b"\x89PNG\r\n\x1a\n", "image/png")


class SeeingModel(ScriptedModel):
    profile = ModelProfile(images=True)


def chart() -> list:
    """Draw a chart."""
    return ["two bars", PIXEL]


def test_images_are_found_in_every_kind_of_result():
    result = DictWithMedia({"bytes": 8})
    result.media = (PIXEL,)
    block = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}
    broken = {**block, "data": "?"}
    for value in (PIXEL, ["text", PIXEL], result, McpContent("[image]", [{"type": "text"}, block, broken])):
        assert find_media(value) == (PIXEL,)
    for value in (None, "text", 3, ["text"], {"media": 3}):
        assert find_media(value) == ()


async def test_a_model_that_takes_images_sees_those_of_results():
    model = SeeingModel(reply_with_calls(tool_call("chart")), "two bars")
    await Agent(model, [chart]).run("draw")
    text = "two bars\n[image image/png, 8 bytes]"
    result = model.requests[1].messages[-1]
    assert (result.content, result.parts) == (text, (TextPart(text), PIXEL))


async def test_another_model_gets_a_description():
    model = ScriptedModel(reply_with_calls(tool_call("chart")), "two bars")
    await Agent(model, [chart]).run("draw")
    result = model.requests[1].messages[-1]
    assert (result.content, result.parts) == ("two bars\n[image image/png, 8 bytes]", ())


async def test_an_image_of_the_user_is_refused_by_a_model_that_takes_none():
    task = [user_message("see", (TextPart("see"), PIXEL))]
    with pytest.raises(BadInput, match="The model scripted takes no images"):
        await Agent(ScriptedModel("hi")).run(task)
    assert (await Agent(SeeingModel("hi")).run(task)).text == "hi"
