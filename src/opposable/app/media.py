"""Images and files that users name: a path, an HTTP URL or a data URL."""

import asyncio
import mimetypes
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from opposable.domain.content import MAX_MEDIA_BYTES, ContentPart, FilePart, ImagePart, TextPart, parse_data_url
from opposable.domain.errors import BadInput, ToolError
from opposable.domain.messages import Message, user_message
from opposable.safety.network.guarded_client import GuardedClient, HttpRequest
from opposable.safety.network.response_body import read_body

_IMAGE_SIGNATURES = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))


async def create_user_message(text: str, sources: Sequence[str], private_hosts: Sequence[str] = ()) -> Message:
    """Return a message of the user with images and files.

    Args:
        text: The text.
        sources: Paths, HTTP URLs or data URLs.
        private_hosts: Private addresses that URLs may have.

    Raises:
        BadInput: A source cannot be read, is neither image nor PDF, or is too large.
    """
    if not sources:
        return user_message(text)
    media = [await load_media(source, private_hosts) for source in sources]
    return user_message(text, (TextPart(text), *media))


async def load_media(source: str, private_hosts: Sequence[str] = ()) -> ImagePart | FilePart:
    """Return the image or file of a path, an HTTP URL or a data URL. Raises: as `create_user_message`."""
    if source.startswith(("data:", "http://", "https://")):
        return await load_media_from_url(source, private_hosts)
    return _to_part(await asyncio.to_thread(_read_file, source), source)


async def load_media_from_url(url: str, private_hosts: Sequence[str] = (), *, name: str = "") -> ImagePart | FilePart:
    """Return the image or file of an HTTP URL or a data URL; a file gets the name.

    Raises: as `create_user_message`; every other source is an error too.
    """
    if url.startswith(("http://", "https://")):
        return _to_part(await fetch_media(url, private_hosts), url, name)
    _, data = parse_data_url(url)
    return _to_part(data, url[:40], name or "document.pdf")


def _read_file(source: str) -> bytes:
    try:
        with Path(source).expanduser().open("rb") as file:
            data = file.read(MAX_MEDIA_BYTES + 1)
    except (OSError, RuntimeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise BadInput(f"Cannot read the image {source!r}: {reason}.") from error
    if len(data) > MAX_MEDIA_BYTES:
        raise _too_large_error(source)
    return data


async def fetch_media(url: str, private_hosts: Sequence[str] = ()) -> bytes:
    """Return the content of a URL; addresses that the guard of tools refuses are refused. Raises: `BadInput`."""
    client = GuardedClient(private_hosts)
    try:
        async with client.send(HttpRequest("GET", url, {"accept": "image/*, */*"}, max_redirects=3)) as response:
            if response.status != 200:
                raise BadInput(f"Cannot fetch {url!r}: the server answered HTTP {response.status}.")
            data, has_more = await read_body(response, MAX_MEDIA_BYTES)
    except ToolError as error:
        raise BadInput(f"Cannot fetch {url!r}: {error}") from error
    finally:
        await client.aclose()
    if has_more:
        raise _too_large_error(url)
    return data


async def inline_remote_media(messages: Sequence[Message], private_hosts: Sequence[str] = ()) -> tuple[Message, ...]:
    """Return the messages with the images and files at URLs fetched, for servers that fetch none. Raises: `BadInput`."""
    inlined: list[Message] = []
    for message in messages:
        parts: list[ContentPart] = []
        for part in message.parts:
            if isinstance(part, TextPart) or not part.url:
                parts.append(part)
                continue
            fetched = _to_part(await fetch_media(part.url, private_hosts), part.url)
            if isinstance(part, ImagePart) and isinstance(fetched, ImagePart):
                fetched = replace(fetched, detail=part.detail)
            parts.append(fetched)
        inlined.append(message if tuple(parts) == message.parts else replace(message, parts=tuple(parts)))
    return tuple(inlined)


def _to_part(data: bytes, source: str, name: str = "") -> ImagePart | FilePart:
    """Return the part for the data of a source, by its first bytes; a file has the name of the source by default."""
    for signature, media_type in _IMAGE_SIGNATURES:
        if data.startswith(signature):
            return ImagePart("", data, media_type)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return ImagePart("", data, "image/webp")
    if data.startswith(b"%PDF-"):
        return FilePart("", data, "application/pdf", name or Path(source).name or "document.pdf")
    kind = mimetypes.guess_type(source)[0] or "an unknown type"
    raise BadInput(f"{source!r} ({kind}) is not an image. Pass a PNG, JPEG, GIF or WebP image, or a PDF.")


def _too_large_error(source: str) -> BadInput:
    return BadInput(f"{source!r} is larger than {MAX_MEDIA_BYTES:,} bytes. Pass a smaller image.")
