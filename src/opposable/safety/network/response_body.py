"""Reading and decoding of response bodies."""

import codecs
import re
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import aiohttp

_BINARY_CONTROL_CHARACTER = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?([\w.:-]{2,40})", re.IGNORECASE)
_BYTE_ORDER_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_CHUNK_BYTES = 65_536
_SUPERSETS = {"gb2312": "gb18030", "gbk": "gb18030", "iso8859-1": "cp1252"}
"""The encodings that browsers read in place of others."""
_NON_TEXT_CODECS = frozenset({"idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined", "utf-7"})


async def read_body(response: "aiohttp.ClientResponse", max_bytes: int) -> tuple[bytes, bool]:
    """Read at most `max_bytes` of a decompressed body.

    Return the bytes, and whether there are more.
    """
    body = bytearray()
    async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
        body += chunk
        if len(body) > max_bytes:
            return bytes(body[:max_bytes]), True
    return bytes(body), False


async def iter_lines(response: "aiohttp.ClientResponse", max_bytes: int) -> AsyncGenerator[bytes, None]:
    """Yield the lines of a body as they arrive, with their line endings.

    Stop after `max_bytes`, with a last line that may be cut.
    """
    line_parts: list[bytes] = []  # of a line whose end has not arrived
    read_bytes = 0
    async for chunk in response.content.iter_any():
        read_bytes += len(chunk)
        *ends, rest = re.split(rb"(?<=\n)", chunk)
        for end in ends:
            yield b"".join((*line_parts, end))
            line_parts = []
        line_parts.append(rest)
        if read_bytes > max_bytes:
            break
    if rest := b"".join(line_parts):
        yield rest


def decode_body(raw: bytes, charset: str | None = None, *, truncated: bool = False) -> str | None:
    """Return a body as text, None where it is binary.

    A `truncated` one may end within a character. The encoding is, in this order: that of a byte-order mark, UTF-8
    where valid, `charset` (from the header) or the one in an HTML page, GB18030. GB2312 and GBK are read as GB18030,
    ISO 8859-1 as Windows-1252. Undecodable bytes become U+FFFD.
    """
    for mark, encoding in _BYTE_ORDER_MARKS:
        if raw.startswith(mark):
            return raw.decode(encoding, "replace")
    declared = _normalize_charset(charset)
    if b"\0" in raw[:8192]:
        is_wide = declared is not None and declared.startswith(("utf-16", "utf-32"))
        return raw.decode(declared or "", "replace") if is_wide else None
    declared = declared or _normalize_charset(_find_meta_charset(raw))
    for encoding in dict.fromkeys(filter(None, ("utf-8", declared, "gb18030"))):
        if encoding == "gb18030" and declared != encoding and _BINARY_CONTROL_CHARACTER.search(raw[:8192]):
            return None
        try:
            return codecs.getincrementaldecoder(encoding)().decode(raw, final=not truncated)
        except UnicodeDecodeError:
            continue
    return raw.decode(declared or "utf-8", "replace")


def _find_meta_charset(raw: bytes) -> str | None:
    match = _META_CHARSET.search(raw[:4096])
    return match[1].decode("ascii", "replace") if match else None


def _normalize_charset(charset: str | None) -> str | None:
    """Return Python's name of a text encoding, None where it is unknown."""
    if not charset:
        return None
    try:
        codec = codecs.lookup(charset.strip("\"' "))
    except (LookupError, ValueError):
        return None
    text = codec._is_text_encoding  # noqa: SLF001 - excludes codecs such as `hex` and `zlib`
    if not text or codec.name.replace("_", "-") in _NON_TEXT_CODECS:
        return None
    return _SUPERSETS.get(codec.name, codec.name)
