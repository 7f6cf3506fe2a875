"""Images and files of messages: their JSON forms, and the order of parts."""

from dataclasses import replace

import pytest

from opposable.domain.content import FilePart, ImagePart, TextPart, parse_data_url, part_from_json, to_data_url
from opposable.domain.errors import BadInput
from opposable.domain.json_forms import message_from_json, message_to_json
from opposable.domain.messages import user_message

PIXEL = ImagePart("", b"\x89PNG\r\n\x1a\n", "image/png", "low")
PARTS = (TextPart("first:"), PIXEL, TextPart("second:"), FilePart("https://example.com/a.pdf", name="a.pdf"))


def test_a_message_with_images_is_stored_and_read_back():
    message = user_message("first:\nsecond:", PARTS)
    assert message_from_json(message_to_json(message, include_parsing=True)) == message
    assert "parts" not in message_to_json(user_message("text"))


def test_a_changed_text_comes_before_the_images():
    message = user_message("first:\nsecond:", PARTS)
    assert message.ordered_parts == PARTS
    assert replace(message, content="other").ordered_parts == (TextPart("other"), PIXEL, PARTS[3])


def test_a_data_url_is_read_and_written():
    url = to_data_url(PIXEL)
    assert url == "data:image/png;base64,iVBORw0KGgo="
    assert parse_data_url(url) == ("image/png", PIXEL.data)


@pytest.mark.parametrize(
    "url", ["", "a.png", "data:image/png,abc", "data:;base64,YQ==", "data:image/png;base64,?", "data:image/png;base64"]
)
def test_a_malformed_data_url_is_rejected(url):
    with pytest.raises(BadInput):
        parse_data_url(url)


def test_too_much_data_is_rejected():
    with pytest.raises(BadInput, match="20,971,520 bytes"):
        parse_data_url("data:image/png;base64," + "A" * 28_000_000)


@pytest.mark.parametrize("form", [{}, {"type": "video"}, {"type": "text"}, {"type": "image", "made_up": 1}])
def test_a_malformed_part_is_rejected(form):
    with pytest.raises(BadInput):
        part_from_json(form)
