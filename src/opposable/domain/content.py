"""Parts of a message that is more than text: images and files."""

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from opposable.domain.errors import BadInput

MAX_MEDIA_BYTES = 20 * 1024 * 1024
"""The largest image or file of a message."""


@dataclass(frozen=True, slots=True)
class TextPart:
    """A text between images or files."""

    text: str


@dataclass(frozen=True, slots=True)
class ImagePart:
    """An image, by URL or as bytes.

    Attributes:
        url: An HTTP URL, "" for an image in `data`.
        data: The encoded image, b"" for one at `url`.
        media_type: The type of `data`, such as `image/png`.
        detail: The resolution that the model should use, "" for its default.
    """

    url: str = ""
    data: bytes = b""
    media_type: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class FilePart:
    """A file, by URL or as bytes.

    Attributes:
        url: An HTTP URL, "" for a file in `data`.
        data: The content, b"" for a file at `url`.
        media_type: The type of the content, such as `application/pdf`.
        name: The file name, "" if unknown.
    """

    url: str = ""
    data: bytes = b""
    media_type: str = ""
    name: str = ""


ContentPart = TextPart | ImagePart | FilePart


class DictWithMedia(dict[str, Any]):
    """A JSON object that a tool returned, with images, files or text that models may see too.

    Attributes:
        media: The images and files.
        text: The text for the model instead of the object as JSON, if any.
        blocks: The content of an MCP result as its server sent it, if the object comes from one.
    """

    media: tuple[ImagePart | FilePart, ...] = ()
    text: str = ""
    blocks: tuple[dict[str, Any], ...] = ()


def join_text(parts: Sequence[ContentPart]) -> str:
    """Return the text of the parts, one line or more each."""
    return "\n".join(part.text for part in parts if isinstance(part, TextPart))


def describe_media(part: ImagePart | FilePart) -> str:
    """Return a short text for an image or file, for a model that takes text only."""
    kind = "image" if isinstance(part, ImagePart) else "file"
    return f"[{kind} {part.url}]" if part.url else f"[{kind} {part.media_type}, {len(part.data):,} bytes]"


def to_data_url(part: ImagePart | FilePart) -> str:
    """Return the URL of an image or file, a `data:` URL for one with bytes."""
    return part.url or f"data:{part.media_type};base64,{base64.b64encode(part.data).decode()}"


def parse_data_url(url: str) -> tuple[str, bytes]:
    """Return the media type and the bytes of a `data:` URL.

    Raises:
        BadInput: The URL is not one with Base64, or its data is larger than `MAX_MEDIA_BYTES`.
    """
    head, comma, data = url.partition(",")
    media_type, _, encoding = head.removeprefix("data:").rpartition(";")
    if not url.startswith("data:") or not comma or encoding != "base64" or not media_type:
        raise BadInput(f"{url[:60]!r} is not a data URL. Write data:image/png;base64,… with the data in Base64.")
    return media_type, decode_base64(data)


def decode_base64(data: str) -> bytes:
    """Return the bytes of a Base64 text.

    Raises:
        BadInput: The text is not Base64, or has more than `MAX_MEDIA_BYTES`.
    """
    if len(data) > MAX_MEDIA_BYTES * 4 // 3 + 4:
        raise BadInput(f"An image or file may have at most {MAX_MEDIA_BYTES:,} bytes.")
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadInput(f"The data {data[:40]!r} is not valid Base64.") from error


def part_to_json(part: ContentPart) -> dict[str, Any]:
    """Return the JSON form of a part: its type, and its fields that are not empty."""
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    form: dict[str, Any] = {"type": "image" if isinstance(part, ImagePart) else "file"}
    for name in ("url", "media_type", "detail", "name"):
        if value := getattr(part, name, ""):
            form[name] = value
    return form | ({"data": base64.b64encode(part.data).decode()} if part.data else {})


def part_from_json(form: dict[str, Any]) -> ContentPart:
    """Return the part of a JSON form.

    Raises:
        BadInput: The form is not one of a part.
    """
    fields = {name: value for name, value in form.items() if name != "type"}
    if "data" in fields:
        fields["data"] = decode_base64(str(fields["data"]))
    kinds: dict[Any, type[ContentPart]] = {"text": TextPart, "image": ImagePart, "file": FilePart}
    try:
        return kinds[form.get("type")](**fields)
    except (KeyError, TypeError) as error:
        raise BadInput(f"{str(form)[:100]} is not a text, an image or a file.") from error
