"""Decoding of text files."""

import codecs

_SAMPLE_BYTES = 8192


def detect_encoding(sample: bytes) -> str | None:
    """Return the encoding of a text file by its first bytes, None for a binary file.

    Detects UTF-8, UTF-16 with a byte-order mark, and GB18030 with its subsets GBK and GB2312; else Latin-1.
    """
    if sample.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    if sample.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if b"\0" in sample[:_SAMPLE_BYTES]:
        return None
    for encoding in ("utf-8", "gb18030"):
        try:
            codecs.getincrementaldecoder(encoding)().decode(sample)  # the sample may end within a character
        except UnicodeDecodeError:
            continue
        return encoding
    return "latin-1"


def decode_text(content: bytes) -> str | None:
    """Return the text of a file, None for a binary one.

    Undecodable bytes become U+FFFD.
    """
    encoding = detect_encoding(content)
    return None if encoding is None else content.decode(encoding, "replace")


def truncate_line(line: str, max_characters: int) -> str:
    """Truncate a line to `max_characters`, ending with … where it was longer."""
    return line if len(line) <= max_characters else line[: max_characters - 1] + "…"
