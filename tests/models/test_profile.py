"""What a model's profile says about images."""

import pytest

from opposable.domain.content import FilePart, ImagePart, TextPart
from opposable.domain.errors import BadInput
from opposable.domain.messages import tool_message, user_message
from opposable.models.base import ModelOptions, ModelWrapper, adapt_options
from opposable.models.profile import ModelProfile, adapt_media, set_images
from opposable.models.scripted import ScriptedModel

PIXEL = ImagePart("", b"\x89PNG\r\n\x1a\n", "image/png")
SEEN = user_message("see\nthis", (TextPart("see"), PIXEL, TextPart("this"), FilePart("https://a.example/b.pdf")))


def test_a_model_of_text_refuses_images_by_default():
    with pytest.raises(BadInput, match=r"takes no images and files.*OPPOSABLE_IMAGES=placeholder"):
        adapt_media(ScriptedModel("hi"), [SEEN])
    plain = (user_message("text"),)
    assert adapt_media(ScriptedModel("hi"), plain) == plain


def test_a_placeholder_replaces_each_image_where_the_setting_asks_for_it():
    model = ScriptedModel("hi")
    set_images(model, "placeholder")
    chart = "bars\n[image image/png, 8 bytes]"  # as the loop writes the result of a tool
    results = [tool_message("c", "chart", chart, (TextPart(chart), PIXEL)), tool_message("d", "photo", "", (PIXEL,))]
    assert adapt_media(model, [SEEN, *results]) == (
        user_message("see\n[image image/png, 8 bytes]\nthis\n[file https://a.example/b.pdf]"),
        tool_message("c", "chart", chart),
        tool_message("d", "photo", "[image image/png, 8 bytes]"),
    )


def test_images_are_accepted_where_the_setting_says_so():
    model = ScriptedModel("hi")
    set_images(model, "accept")
    assert adapt_media(model, [SEEN]) == (SEEN,)


def test_a_reasoning_model_gets_no_sampling_settings():
    options = ModelOptions(stream=False, max_tokens=400, temperature=0.0, top_logprobs=1, response_schema={})
    model = ScriptedModel("hi")
    assert adapt_options(model, options) is options
    model.profile = ModelProfile(reasoning=True)
    assert adapt_options(model, options) == ModelOptions(stream=False, response_schema={})


def test_a_model_around_another_has_its_profile():
    model = ScriptedModel("hi")
    model.profile = ModelProfile(assisted=True)
    assert ModelWrapper(model).profile == model.profile
    assert ModelWrapper(model, ModelProfile(images=True)).profile == ModelProfile(images=True)
