"""What text a file's bytes are."""

import codecs

_SAMPLE_BYTES = 8192


def detect_encoding(sample: bytes) -> str | None:
    """The encoding of a text file by its first bytes, None for a binary one.

    Knows UTF-8 with or without a mark, UTF-16 with one, and GB18030 (so also GBK and GB2312) where UTF-8 does not fit.
    """
    if sample.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    if sample.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if b"\0" in sample[:_SAMPLE_BYTES]:
        return None
    for encoding in ("utf-8", "gb18030"):
        try:
            codecs.getincrementaldecoder(encoding)().decode(sample)  # a character cut at the end is no error
        except UnicodeDecodeError:
            continue
        return encoding
    return "latin-1"


def decode_text(content: bytes) -> str | None:
    """A whole file's text, None for a binary file; bytes that fit nowhere become U+FFFD."""
    encoding = detect_encoding(content)
    return None if encoding is None else content.decode(encoding, "replace")


def truncate_line(line: str, max_characters: int) -> str:
    """At most `most` characters of a line, with … where it was cut."""
    return line if len(line) <= max_characters else line[: max_characters - 1] + "…"
