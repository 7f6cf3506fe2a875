"""Decoding of text files."""

import codecs
import re

_SAMPLE_BYTES = 8192
_CHARACTERS = re.compile(
    rb"(?P<western>(?<![\x80-\xff])[\x80-\xff](?![\x80-\xff])|(?<=[A-Za-z])[\x80-\xff]{2}(?=[A-Za-z]))|[\x80-\xff]{2}"
)
"""Letters such as "ö" and "öß" among ASCII characters, and Chinese characters, which have two bytes."""


def detect_encoding(sample: bytes) -> str | None:
    """Return the encoding of a text file by its first bytes, None for a binary file.

    Detects UTF-8, UTF-16 and UTF-32 with a byte-order mark, and GB18030 with its subsets GBK and GB2312; else
    Windows-1252, which contains the letters of Latin-1.
    """
    if sample.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    if sample.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):  # the former begins as UTF-16 does
        return "utf-32"
    if sample.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if b"\0" in sample[:_SAMPLE_BYTES]:
        return None
    for encoding in ("utf-8", "gb18030"):
        try:
            codecs.getincrementaldecoder(encoding)().decode(sample)  # the sample may end within a character
        except UnicodeDecodeError:
            continue
        is_western = [bool(match["western"]) for match in _CHARACTERS.finditer(sample)]
        return "cp1252" if encoding == "gb18030" and sum(is_western) * 2 > len(is_western) else encoding
    return "cp1252"


def decode_text(content: bytes) -> str | None:
    """Return the text of a file, None for a binary one.

    Undecodable bytes become U+FFFD.
    """
    encoding = detect_encoding(content)
    return None if encoding is None else content.decode(encoding, "replace")


def truncate_line(line: str, max_characters: int) -> str:
    """Truncate a line to `max_characters`, ending with … where it was longer."""
    return line if len(line) <= max_characters else line[: max_characters - 1] + "…"
