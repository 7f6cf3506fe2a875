"""Fallbacks: another model is asked after some failures, never after an answer."""

import pytest

from opposable.domain.content import ImagePart, TextPart
from opposable.domain.errors import (
    BadInput,
    ContextFull,
    ModelError,
    ModelNotFound,
    ModelRefusedKey,
    ModelRejected,
    ModelUnavailable,
)
from opposable.domain.events import Reply, TextDelta
from opposable.domain.messages import user_message
from opposable.models.base import ModelOptions
from opposable.models.fallback import FallbackModel
from opposable.models.profile import ModelProfile
from opposable.models.scripted import ScriptedModel

pytestmark = pytest.mark.anyio


async def get_text(model, stream=False):
    events = [event async for event in model.stream([user_message("hi")], (), ModelOptions(stream=stream))]
    assert isinstance(events[-1], Reply)
    return events[-1].message.content


@pytest.mark.parametrize(
    "error",
    [
        ModelUnavailable("a"),
        ModelUnavailable("a", status=429),
        ModelRefusedKey("a"),
        ModelNotFound("a"),
        ModelError("The response is not JSON."),
    ],
    ids=["unavailable", "rate limit", "key", "not found", "no reply"],
)
async def test_the_next_model_is_asked_after_a_failure(error):
    first, second = ScriptedModel(error), ScriptedModel("from b")
    assert await get_text(FallbackModel("m", [first, second])) == "from b"
    assert (len(first.requests), len(second.requests)) == (1, 1)


@pytest.mark.parametrize("error", [ModelRejected("no", status=400), ContextFull("full")], ids=["rejected", "context"])
async def test_a_request_that_would_fail_again_is_not_repeated(error):
    second = ScriptedModel("from b")
    with pytest.raises(type(error)):
        await get_text(FallbackModel("m", [ScriptedModel(error), second]))
    assert second.requests == []


async def test_each_model_gets_images_as_its_profile_says():
    first, second = ScriptedModel(ModelUnavailable("a")), ScriptedModel("from b")
    first.profile, second.profile = ModelProfile(images=True), ModelProfile(images=False, image_placeholders=True)
    picture = user_message("look", parts=(TextPart("look"), ImagePart("", b"\x89PNG", "image/png")))
    [event async for event in FallbackModel("m", [first, second]).stream([picture])]
    assert first.requests[0].messages[0].parts == picture.parts
    assert second.requests[0].messages[0].parts == ()


async def test_a_model_that_takes_no_images_is_passed_over():
    candidates = [ScriptedModel(ModelUnavailable("a")), ScriptedModel("from b"), ScriptedModel("from c")]
    for candidate, takes_images in zip(candidates, (True, False, True), strict=True):
        candidate.profile = ModelProfile(images=takes_images)
    picture = user_message("look", parts=(TextPart("look"), ImagePart("", b"\x89PNG", "image/png")))
    events = [event async for event in FallbackModel("m", candidates).stream([picture])]
    assert events[-1].message.content == "from c"
    with pytest.raises(BadInput, match="takes no images"):
        [event async for event in FallbackModel("m", candidates[:2]).stream([picture])]


async def test_the_failures_can_be_chosen():
    model = FallbackModel("m", [ScriptedModel(ContextFull("full")), ScriptedModel("long")], ["context_full"])
    assert await get_text(model) == "long"
    with pytest.raises(ModelUnavailable):
        await get_text(FallbackModel("m", [ScriptedModel(ModelUnavailable("a")), ScriptedModel("b")], ["context_full"]))


async def test_the_last_failure_is_raised():
    model = FallbackModel("m", [ScriptedModel(ModelUnavailable("a")), ScriptedModel(ModelUnavailable("b"))])
    with pytest.raises(ModelUnavailable, match="b"):
        await get_text(model)


async def test_an_answer_that_has_begun_is_never_replaced():
    class BreakingModel(ScriptedModel):
        profile = ModelProfile(images=True)

        async def stream(self, messages, tools=(), options=None):
            yield TextDelta("a")
            raise ModelUnavailable("away")

    model = FallbackModel("m", [BreakingModel(""), ScriptedModel("b")])
    with pytest.raises(ModelUnavailable, match="away"):
        await get_text(model, stream=True)
    assert model.profile.images
