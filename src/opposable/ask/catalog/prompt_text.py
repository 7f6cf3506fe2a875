"""Database text prepared for a prompt: quoted values and token counts."""

import unicodedata

from opposable.parsers import escape_special_tokens


def format_prompt_value(text: str, max_characters: int = 40) -> str:
    """Quote a database value for a prompt.

    The result is one line in single quotes, of at most about `max_characters`, without control characters,
    invisible characters or the special tokens of a chat template.
    """
    one_line = "".join(" " if char.isspace() else char for char in text[: 4 * max_characters])
    visible = "".join(char for char in one_line if unicodedata.category(char)[0] != "C")
    flat = " ".join(visible.split())
    shortened = flat if len(flat) <= max_characters else flat[: max_characters - 1] + "…"
    return escape_special_tokens("'" + shortened.replace("'", "''") + "'")


def estimate_tokens(text: str) -> int:
    """Estimate how many tokens a model reads `text` as."""
    wide = sum(1 for char in text if ord(char) > 0x2E80)
    return int((len(text) - wide) / 3.2 + wide) + 1
