"""Strict JSON text with exact whole numbers."""

import json
import re
from typing import Any

import orjson

_LONG_NUMBER = re.compile(r"\d{17}")


def parse_json(text: str) -> Any:
    """Parse JSON text.

    Raises:
        ValueError: `text` is not JSON, or is nested too deeply.
    """
    if _LONG_NUMBER.search(text):  # orjson rounds whole numbers beyond 64 bits
        try:
            return json.loads(text, parse_constant=_reject_constant)
        except RecursionError as error:
            raise ValueError("nested too deeply") from error
    return orjson.loads(text)


def parse_reply_json(raw: bytes) -> Any:
    """Parse the JSON of a model's server, which may have lone surrogates where a token ends inside a character.

    Raises:
        ValueError: `raw` is not JSON.
    """
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return json.loads(raw)


def dump_json(value: Any) -> bytes:
    """Serialize a value as UTF-8 JSON.

    Lone surrogates, which no server accepts, become question marks.
    """
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def preview_json(value: Any, max_characters: int = 200) -> str:
    """Return a value as JSON for a message, truncated to `max_characters`."""
    text = orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    return text if len(text) <= max_characters else text[:max_characters] + "…"
