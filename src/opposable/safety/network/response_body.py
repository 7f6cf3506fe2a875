"""The bytes of a response: read up to a cap, and told as text."""

import codecs
import re
from collections.abc import AsyncGenerator

import aiohttp

_META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?([\w.:-]{2,40})", re.IGNORECASE)
_BYTE_ORDER_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_CHUNK_BYTES = 65_536
_NON_TEXT_CODECS = frozenset({"idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined", "utf-7"})


async def read_body(response: aiohttp.ClientResponse, max_bytes: int) -> tuple[bytes, bool]:
    """At most `most` bytes of a body (after decompression), and whether there would have been more."""
    read = bytearray()
    async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
        read += chunk
        if len(read) > max_bytes:
            return bytes(read[:max_bytes]), True
    return bytes(read), False


async def iter_lines(response: aiohttp.ClientResponse, max_bytes: int) -> AsyncGenerator[bytes, None]:
    """The lines of a body as they come, without their ends; reading stops after `most` bytes."""
    rest = b""
    read = 0
    async for chunk in response.content.iter_any():
        read += len(chunk)
        *lines, rest = re.split(rb"\r\n|\n", rest + chunk)
        for line in lines:
            yield line
        if read > max_bytes:
            return
    if rest:
        yield rest.removesuffix(b"\r")


def decode_body(raw: bytes, charset: str | None = None, *, truncated: bool = False) -> str | None:
    """A body as text, None where it is binary; one that was `cut` may end within a character.

    A byte-order mark counts first, then UTF-8 where the bytes are UTF-8, then `charset` (the header's, or an HTML page's
    own), then GB18030. GB2312 and GBK are read as GB18030, which holds both. What fits nowhere becomes U+FFFD.
    """
    for mark, encoding in _BYTE_ORDER_MARKS:
        if raw.startswith(mark):
            return raw.decode(encoding, "replace")
    if b"\0" in raw[:8192]:
        return None
    told = _normalize_charset(charset) or _normalize_charset(_find_meta_charset(raw))
    for encoding in dict.fromkeys(filter(None, ("utf-8", told, "gb18030"))):
        try:
            return codecs.getincrementaldecoder(encoding)().decode(raw, final=not truncated)
        except UnicodeDecodeError:
            continue
    return raw.decode(told or "utf-8", "replace")


def _find_meta_charset(raw: bytes) -> str | None:
    found = _META_CHARSET.search(raw[:4096])
    return found[1].decode("ascii", "replace") if found else None


def _normalize_charset(charset: str | None) -> str | None:
    """A charset's name as Python has it, None for an unknown one or one that is no text encoding."""
    if not charset:
        return None
    try:
        codec = codecs.lookup(charset.strip("\"' "))
    except (LookupError, ValueError):
        return None
    text = codec._is_text_encoding  # noqa: SLF001 - the codecs `hex` and `zlib` would be taken for charsets
    if not text or codec.name.replace("_", "-") in _NON_TEXT_CODECS:
        return None
    return "gb18030" if codec.name in ("gb2312", "gbk") else codec.name
