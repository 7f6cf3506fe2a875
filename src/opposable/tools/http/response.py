"""Converts a response to a value, or to the error that its status means, with secrets redacted."""

import codecs
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opposable.domain.backoff import parse_retry_after
from opposable.domain.errors import ToolError, ToolFailed, ToolRefused, ToolUnavailable
from opposable.domain.json_text import dump_json, parse_json
from opposable.domain.text_normalization import shorten_text
from opposable.safety.network.response_body import decode_body, iter_lines, read_body
from opposable.tools.failure_rules import is_failure
from opposable.tools.http.response_extract import Extract
from opposable.tools.http.secrets import Redactor
from opposable.tools.result_text import value_to_text

if TYPE_CHECKING:
    import aiohttp

_MAX_ERROR_CHARACTERS = 4_000  # of a page or a failure of the server; what is wrong with a request is reported whole
_MAX_ERROR_BYTES = 64_000
_TRANSIENT_STATUSES = frozenset({408, 425, 429, 502, 503, 504})
_GATEWAY_STATUSES = frozenset({502, 504})
"""The gateway lost the answer of a server that may have done what was asked."""
_MARKUP_PATTERN = re.compile(r"<(script|style)\b.*?(?:</\1>|\Z)|<[^<>]{1,2000}>", re.IGNORECASE | re.DOTALL)
_ERROR_MESSAGE_KEYS = ("message", "detail", "error_description", "title", "error", "errors", "msg", "reason")
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
class ResponseOptions:
    """How the answers of an endpoint are read."""

    extract: Extract | None
    max_bytes: int
    max_characters: int | None
    failure_when: Mapping[str, Any]
    headers: tuple[str, ...] = ()


async def read_value(response: "aiohttp.ClientResponse", options: ResponseOptions, redactor: Redactor) -> Any:
    """Return the value of a successful response: JSON (see `_parse_value`), else text.

    An empty response has its status, and the location of what was created.

    Raises:
        ToolFailed: The body is a failure by `failure_when`, JSON exceeds the limit, or the extract needs JSON and the
            answer is text.
    """
    if response.method == "HEAD":
        headers = {name.lower(): value for name, value in response.headers.items() if name.lower() in _SHOWN_HEADERS}
        return {"status": response.status, "headers": redactor.redact_data(headers)}
    raw, is_truncated = await read_body(response, options.max_bytes)
    if not raw:
        location = response.headers.get("location")  # of what was created
        return {"status": response.status} | ({"location": redactor.redact_text(location)} if location else {})
    text = decode_body(raw, response.charset, truncated=is_truncated)
    if text is None:
        return {"content_type": response.content_type, "bytes": len(raw)} | ({"more": True} if is_truncated else {})
    parsed = _parse_value(text, response.content_type, options.extract)
    if parsed is _NOT_JSON and is_truncated and text.lstrip()[:1] in ("{", "["):
        raise ToolFailed(f"The answer is larger than {options.max_bytes:,} bytes; ask for less at a time.")
    if parsed is not _NOT_JSON:
        data = redactor.redact_data(parsed)
        if is_failure(data, options.failure_when):
            raise ToolFailed(str(_truncate_value(value_to_text(data), options.max_characters)))
        return _truncate_value(options.extract(data) if options.extract else data, options.max_characters)
    if options.extract is not None:
        start = repr(redactor.redact_text(" ".join(text[:2000].split()))[:120])
        raise ToolFailed(f"The server answered {response.content_type} where JSON was expected: {start}")
    redacted = redactor.redact_text(text)
    return _truncate_value(f"{redacted}\n…" if is_truncated else redacted, options.max_characters)


def add_headers(value: Any, response: "aiohttp.ClientResponse", options: ResponseOptions, redactor: Redactor) -> Any:
    """Return the value with those of the response's headers that the spec lists; the value itself without any."""
    found = {name: response.headers.getall(name, []) for name in options.headers}
    shown = {name: redactor.redact_text(", ".join(values)) for name, values in found.items() if values}
    return {"headers": shown, "body": value} if shown else value


async def read_stream(
    response: "aiohttp.ClientResponse",
    options: ResponseOptions,
    redactor: Redactor,
    report: Callable[[str], None] | None,
) -> Any:
    """Report the deltas of a streaming response, extracted and redacted, and return them joined.

    A delta is the data of a server-sent event, a line of newline-delimited JSON, or a line of text with its ending. The
    last one of a response with more than `max_bytes` is "…". Deltas without a match are left out.

    Extracted texts run on, events become lines, data become a list. The lines of a text become the value that
    `read_value` returns for the whole text.
    """
    is_text = response.content_type == "text/plain" and options.extract is None  # its lines are not JSON each
    end = "" if options.extract or is_text else "\n"
    charset = response.charset or "utf-8"
    lines = iter_lines(response, options.max_bytes)
    is_event_stream = response.content_type == EVENT_STREAM
    deltas: list[Any] = []

    def add_delta(delta: Any) -> None:
        deltas.append(delta)
        if report is not None:
            report(f"{delta}{end}" if isinstance(delta, str) else f"{dump_json(delta).decode()}\n")

    async for text in _read_events(lines, charset) if is_event_stream else _read_lines(lines, charset, is_text):
        parsed = _NOT_JSON if is_text else _parse_value(text, response.content_type, options.extract)
        value = redactor.redact_text(text) if parsed is _NOT_JSON else redactor.redact_data(parsed)
        if options.extract is not None and parsed is not _NOT_JSON:
            value = options.extract(value)
        if value is not None:
            add_delta(value)
    if not response.content.at_eof():
        add_delta("\n…" if is_text else "…")
    if not deltas:
        return {"status": response.status}
    joined: Any = deltas
    if all(isinstance(delta, str) for delta in deltas):
        joined = end.join(deltas)
        parsed = _parse_value(joined, "text/plain", None) if is_text else _NOT_JSON
        joined = joined if parsed is _NOT_JSON else parsed
    # A secret may be split between two deltas, so the joined value is redacted again.
    return redactor.redact_data(_truncate_value(joined, options.max_characters))


async def error_from_response(response: "aiohttp.ClientResponse", redactor: Redactor) -> ToolError:
    """Return the error that a response's status means, with the server's message, truncated and redacted."""
    status = response.status
    host = response.url.host
    if 300 <= status < 400 and (location := response.headers.get("location")):
        target = redactor.redact_text(location)[:200]
        return ToolRefused(f"{host} redirects to {target} (HTTP {status}), and this tool follows no redirects.")
    raw, is_truncated = await read_body(response, _MAX_ERROR_BYTES)
    message = _extract_message(decode_body(raw, response.charset, truncated=is_truncated), status, redactor)
    if status in _TRANSIENT_STATUSES:
        asked_seconds = parse_retry_after(response.headers.get("retry-after", ""))
        seconds = round(asked_seconds) if asked_seconds is not None and asked_seconds < 1e9 else None
        wait = "" if seconds is None else f", try again in {seconds} s"
        return ToolUnavailable(
            f"{host} cannot answer now (HTTP {status}){wait}: {message}",
            retry_after=seconds or 0,
            outcome_unknown=status in _GATEWAY_STATUSES,
        )
    if status in (401, 403):
        return ToolFailed(f"{host} did not accept this tool's credentials or rights (HTTP {status}): {message}")
    return ToolFailed(f"{host} answered HTTP {status}: {message}")


_NOT_JSON = object()


def _parse_json(text: str) -> Any:
    start = text.lstrip("\ufeff \t\r\n\x1e")
    if start[:1] not in '{["-0123456789tfn':
        return _NOT_JSON
    try:
        return parse_json(start)
    except ValueError:
        return _NOT_JSON


def _parse_value(text: str, content_type: str, extract: Extract | None) -> Any:
    """Return the JSON value of an answer, `_NOT_JSON` for a text.

    A number, true, false or null is a text where the content type is not JSON: 1.10 may be a version. So is a string in
    a plain text, which may be a quotation, unless there is an extract, which expects JSON.
    """
    parsed = _parse_json(text)
    if "json" in content_type or isinstance(parsed, dict | list):
        return parsed
    is_quotation = content_type == "text/plain" and extract is None
    return parsed if isinstance(parsed, str) and not is_quotation else _NOT_JSON


def _truncate_value(value: Any, max_characters: int | None) -> Any:
    if max_characters is None:
        return value
    text = value if isinstance(value, str) else dump_json(value).decode()
    return value if len(text) <= max_characters else f"{text[:max_characters]}…"


async def _read_lines(lines: AsyncGenerator[bytes, None], charset: str, is_text: bool) -> AsyncGenerator[str, None]:
    async for line in lines:
        if is_text or line.strip():
            yield _decode_line(line if is_text else line.rstrip(b"\r\n"), charset)


async def _read_events(lines: AsyncGenerator[bytes, None], charset: str) -> AsyncGenerator[str, None]:
    """Yield the data of server-sent events, without comments, other fields and the final [DONE]."""
    data: list[str] = []
    async for line in lines:
        line = line.removeprefix(codecs.BOM_UTF8).rstrip(b"\r\n")
        if line.startswith(b"data:"):
            data.append(_decode_line(line[5:].removeprefix(b" "), charset))
        elif not line and data:
            event, data = "\n".join(data), []
            if event.strip() != "[DONE]":
                yield event
    event = "\n".join(data)
    if event and event.strip() != "[DONE]":
        yield event


def _decode_line(line: bytes, charset: str) -> str:
    return decode_body(line, charset) or line.decode("utf-8", "replace")


def _extract_message(text: str | None, status: int, redactor: Redactor) -> str:
    """Return the text of an error without markup and secrets, truncated unless it says what is wrong with a request."""
    if text is None:
        return "(no text)"
    parsed = _parse_json(text)
    is_markup = text.lstrip().startswith("<")
    if parsed is not _NOT_JSON:
        message = _describe_error(redactor.redact_data(parsed))
    else:
        message = " ".join(_MARKUP_PATTERN.sub(" ", text).split()) if is_markup else text
    plain = redactor.redact_text(message).strip() or "(no text)"
    return plain if 400 <= status < 500 and not is_markup else shorten_text(plain, _MAX_ERROR_CHARACTERS)


def _describe_error(value: Any) -> str:
    """Return the message that is all there is in the JSON of an error, else the JSON itself."""
    while isinstance(value, dict) and len(value) == 1 and next(iter(value)) in _ERROR_MESSAGE_KEYS:
        [value] = value.values()
    return value if isinstance(value, str) else dump_json(value).decode()
