"""From a response to a value, or to the failure it means; no secret passes."""

import email.utils
import re
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson

from opposable.domain.errors import (
    FieldProblem,
    InvalidArguments,
    ToolError,
    ToolFailed,
    ToolRefused,
    ToolUnavailable,
)
from opposable.safety.network.response_body import lines_of, read_capped, text_of
from opposable.tools.http.argument_defaults import shown
from opposable.tools.http.response_extract import Extract
from opposable.tools.http.secrets import Redaction

_SENTENCE = 600
_MARKED_UP = 8_000  # characters of a page that are searched for its sentence
_ERROR_BYTES = 64_000
_TRANSIENT = frozenset({408, 425, 429, 502, 503, 504})
_MARKUP = re.compile(r"<(script|style)\b.*?</\1>|<[^>]{1,500}>", re.IGNORECASE | re.DOTALL)
_TOLD = ("message", "detail", "error_description", "title", "error", "errors", "msg", "reason")
_SHOWN_HEADERS = frozenset(
    {"content-length", "content-type", "etag", "last-modified", "location", "link", "retry-after"}
)
LINE_STREAMS = frozenset(
    {
        "application/x-ndjson",
        "application/ndjson",
        "application/jsonl",
        "application/x-jsonlines",
        "application/json-seq",
    }
)
EVENT_STREAM = "text/event-stream"


@dataclass(frozen=True, slots=True)
class Reading:
    """How an endpoint's answers are read."""

    extract: Extract | None
    max_bytes: int
    max_characters: int | None


async def value_of_response(response: aiohttp.ClientResponse, reading: Reading, redaction: Redaction) -> Any:
    """What a successful response brings: JSON where the bytes are JSON, else text; an empty one its status.

    Raises: `ToolFailed` for JSON larger than the cap, or text where the extract needs JSON.
    """
    if response.method == "HEAD":
        shown = {name.lower(): value for name, value in response.headers.items() if name.lower() in _SHOWN_HEADERS}
        return {"status": response.status, "headers": redaction.data(shown)}
    raw, more = await read_capped(response, reading.max_bytes)
    if not raw:
        return {"status": response.status}
    text = text_of(raw, response.charset, cut=more)
    if text is None:
        return {"content_type": response.content_type, "bytes": len(raw)} | ({"more": True} if more else {})
    parsed = _parsed(text)
    if parsed is _NOT_JSON and more and text.lstrip()[:1] in ("{", "["):
        raise ToolFailed(f"The answer is larger than {reading.max_bytes:,} bytes; ask for less at a time.")
    if parsed is not _NOT_JSON:
        data = redaction.data(parsed)
        return _limited(reading.extract(data) if reading.extract else data, reading.max_characters)
    if reading.extract is not None:
        raise ToolFailed(
            f"The server answered {response.content_type} where JSON was expected: {_start(text, redaction)}"
        )
    told = redaction.text(text)
    return _limited(f"{told}\n…" if more else told, reading.max_characters)


async def pieces_of(
    response: aiohttp.ClientResponse, reading: Reading, redaction: Redaction
) -> AsyncGenerator[Any, None]:
    """The pieces of a streaming response as they come: extracted, redacted; what the extract does not find is left out.

    A piece is the data of a server-sent event, a line of newline-delimited JSON, or a line of text.
    """
    kind = response.content_type
    charset = response.charset or "utf-8"
    lines = lines_of(response, reading.max_bytes)
    async for text in _events(lines, charset) if kind == EVENT_STREAM else _lines(lines, charset):
        parsed = _parsed(text)
        value = redaction.text(text) if parsed is _NOT_JSON else redaction.data(parsed)
        if reading.extract is not None and parsed is not _NOT_JSON:
            value = reading.extract(value)
        if value is not None:
            yield value


def joined(pieces: list[Any], reading: Reading) -> Any:
    """Pieces as one value: extracted texts run on, lines stay lines, data becomes a list."""
    if not all(isinstance(piece, str) for piece in pieces):
        return _limited(pieces, reading.max_characters)
    return _limited(("" if reading.extract else "\n").join(pieces), reading.max_characters)


def told_piece(piece: Any, reading: Reading) -> str:
    """A piece as it is reported while the answer comes."""
    if isinstance(piece, str):
        return piece if reading.extract else f"{piece}\n"
    return f"{orjson.dumps(piece).decode()}\n"


async def failure_of(response: aiohttp.ClientResponse, redaction: Redaction, given: dict[str, Any]) -> ToolError:
    """The failure a response's status means, with the server's own sentence: capped, and no secret in it."""
    status = response.status
    host = response.url.host
    if 300 <= status < 400:
        to = redaction.text(response.headers.get("location", ""))[:200]
        return ToolRefused(
            f"{host} redirects to {to or 'nowhere'} (HTTP {status}), and this tool follows no redirects."
        )
    raw, more = await read_capped(response, _ERROR_BYTES)
    said = _sentence(text_of(raw, response.charset, cut=more), redaction)
    if status in _TRANSIENT:
        wait = _wait(response.headers.get("retry-after"))
        return ToolUnavailable(f"{host} cannot answer now (HTTP {status}){wait}: {said}")
    if status in (400, 422):
        problem = FieldProblem("", f"the server refused them (HTTP {status}): {said}", shown(given))
        return InvalidArguments((problem,))
    if status in (401, 403):
        return ToolFailed(f"{host} did not accept this tool's credentials or rights (HTTP {status}): {said}")
    return ToolFailed(f"{host} answered HTTP {status}: {said}")


_NOT_JSON = object()


def _parsed(text: str) -> Any:
    start = text.lstrip("\ufeff \t\r\n\x1e")
    if start[:1] not in '{["-0123456789tfn':
        return _NOT_JSON
    try:
        return orjson.loads(start)
    except orjson.JSONDecodeError:
        return _NOT_JSON


def _limited(value: Any, most: int | None) -> Any:
    if most is None:
        return value
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return value if len(text) <= most else f"{text[:most]}…"


async def _lines(lines: AsyncGenerator[bytes, None], charset: str) -> AsyncGenerator[str, None]:
    async for line in lines:
        if line.strip():
            yield _decoded(line, charset)


async def _events(lines: AsyncGenerator[bytes, None], charset: str) -> AsyncGenerator[str, None]:
    """The data of server-sent events; comments, other fields and the closing [DONE] are left out."""
    data: list[str] = []
    async for line in lines:
        if line.startswith(b"data:"):
            data.append(_decoded(line[5:].removeprefix(b" "), charset))
        elif not line and data:
            told, data = "\n".join(data), []
            if told.strip() != "[DONE]":
                yield told
    told = "\n".join(data)
    if told and told.strip() != "[DONE]":
        yield told


def _decoded(line: bytes, charset: str) -> str:
    return text_of(line, charset) or line.decode("utf-8", "replace")


def _sentence(text: str | None, redaction: Redaction) -> str:
    if text is None:
        return "(no text)"
    parsed = _parsed(text)
    told = _told(parsed) if parsed is not _NOT_JSON else _MARKUP.sub(" ", text[:_MARKED_UP])
    plain = " ".join(redaction.text(told).split()) or "(no text)"
    return plain if len(plain) <= _SENTENCE else plain[:_SENTENCE] + "…"


def _told(value: Any) -> str:
    """The sentence inside an error's JSON, wherever APIs are used to put it; the JSON where there is none."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        for name in _TOLD:
            inner = value.get(name)
            if isinstance(inner, str) and inner.strip():
                return inner
            if isinstance(inner, dict | list) and inner:
                return _told(inner)
    return orjson.dumps(value).decode()


def _start(text: str, redaction: Redaction) -> str:
    return repr(redaction.text(" ".join(text[:2000].split()))[:120])


def _wait(retry_after: str | None) -> str:
    """`Retry-After` (seconds, or an HTTP date) in words; nothing where it is absent or makes no sense."""
    if retry_after is None:
        return ""
    try:
        seconds = float(retry_after)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time()
        except (TypeError, ValueError):
            return ""
    return f", try again in {max(0, round(seconds))} s" if seconds < 1e9 else ""
