"""Strict JSON text with exact whole numbers."""

import codecs
import json
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson

from opposable.domain.errors import BadInput
from opposable.domain.text_normalization import shorten_text

NON_FINITE_TEXTS = ("NaN", "Infinity", "-Infinity")
"""The texts of the floats that JSON does not have."""
_LONG_NUMBER = re.compile(r"\d{17}")
_STRING_OR_BRACE = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?|[{}]')
_STRING_OR_BRACKET = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[{}\[\]]')  # also without an end, in linear time
_SURROGATE_PAIR_OR_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)
_DIGITS_AS_ZEROS = bytes.maketrans(b"123456789", b"000000000")


def parse_json(text: str | bytes) -> Any:
    """Parse JSON text, or its UTF-8 bytes.

    Raises:
        ValueError: `text` is not JSON, or is nested too deeply.
    """
    if isinstance(text, str):
        has_long_number = _LONG_NUMBER.search(text) is not None
    else:  # a whole response: this is ten times as fast as a pattern
        has_long_number = b"0" * 17 in text.translate(_DIGITS_AS_ZEROS)
    if has_long_number:  # orjson rounds whole numbers beyond 64 bits
        return _load_json(text, parse_constant=_reject_constant)
    return orjson.loads(text)


def _load_json(text: str | bytes, **options: Any) -> Any:
    try:
        return json.loads(text, **options)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def parse_reply_json(raw: bytes) -> Any:
    """Parse the JSON of a model's server, which may have lone surrogates where a token ends inside a character.

    Raises:
        ValueError: `raw` is not JSON, or is nested too deeply.
    """
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return _load_json(raw)


def to_portable_json(text: str, max_depth: int) -> str:
    """Return JSON text that strict parsers accept.

    Lone surrogates, which programs write that cut a text inside a character, become question marks. A list or object
    below `max_depth` levels of nesting becomes "[nested too deeply]".
    """
    parts: list[str] = []
    copied_to = depth = 0
    for token in _STRING_OR_BRACKET.finditer(text):
        match token[0][0]:
            case "{" | "[":
                depth += 1
                if depth == max_depth + 1:
                    parts += [text[copied_to : token.start()], '"[nested too deeply]"']
            case "}" | "]":
                if depth == max_depth + 1:
                    copied_to = token.end()
                depth -= 1
            case _ if depth <= max_depth and "\\u" in token[0]:
                string = _SURROGATE_PAIR_OR_ESCAPE.sub(lambda match: "?" if match[1] else match[0], token[0])
                parts += [text[copied_to : token.start()], string]
                copied_to = token.end()
    return "".join([*parts, text[copied_to:]])


def check_unique_keys(raw: bytes, file: Path | str, first_line: int = 1) -> None:
    """Check that no object of a JSON file has a key twice, of which parsers drop the first value.

    What is not JSON is left to its parser.

    Raises:
        BadInput: An object has a key twice; the message has the line.
    """
    raw = raw.removeprefix(codecs.BOM_UTF8)
    try:
        orjson.loads(raw)
    except orjson.JSONDecodeError:
        return
    text = raw.decode()
    keys_by_level: list[set[str]] = []
    for token in _STRING_OR_BRACE.finditer(text):
        if token[0] == "{":
            keys_by_level.append(set())
        elif token[0] == "}":
            keys_by_level.pop()
        elif token[2]:  # a key
            key = orjson.loads(token[1])
            if key in keys_by_level[-1]:
                line = first_line + text.count("\n", 0, token.start())
                raise BadInput(f"{file}, line {line}: {key} is defined twice: remove one of them.")
            keys_by_level[-1].add(key)


def split_json_lines(raw: bytes, file: Path) -> list[bytes]:
    """Return the lines of a file of JSON lines, without the byte order mark that editors of Windows write.

    Raises:
        BadInput: The content of the file is not UTF-8, or an object has a key twice.
    """
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        raise BadInput(f"{file} is not UTF-8 text. Save it as UTF-8.") from error
    lines = raw.removeprefix(codecs.BOM_UTF8).splitlines()
    for number, line in enumerate(lines, 1):
        check_unique_keys(line, file, number)
    return lines


def dump_json(value: Any, *, default: Callable[[Any], Any] | None = None, sort_keys: bool = False) -> bytes:
    """Serialize a value as UTF-8 JSON, with whole numbers of any length and lists nested to any depth.

    Lone surrogates, which no server accepts, become question marks; NaN and the infinities become null. `default`
    converts values of other types; keys of other types are allowed with it.
    """
    try:
        if default is None:
            return orjson.dumps(value)
        return orjson.dumps(value, default, orjson.OPT_NON_STR_KEYS | (orjson.OPT_SORT_KEYS if sort_keys else 0))
    except TypeError:
        try:
            text = json.dumps(value, default=default, sort_keys=sort_keys, ensure_ascii=False, allow_nan=False)
        except (RecursionError, ValueError):  # nested some 900 deep, or NaN
            text = "".join(_generate_json(value, default, sort_keys))
        return text.encode("utf-8", "replace")


def _generate_json(value: Any, default: Callable[[Any], Any] | None, sort_keys: bool) -> Iterator[str]:
    """Yield the text of a value without recursion, which limits the depth of `orjson.dumps` and `json.dumps`."""
    opened = {0: (iter([("", value)]), "")}  # by the id of the container: what remains of it, and its end
    while opened:
        remaining, end = opened[next(reversed(opened))]
        for prefix, item in remaining:
            yield prefix
            if item is None or isinstance(item, str | int | float):
                is_finite = not isinstance(item, float) or math.isfinite(item)
                yield json.dumps(item, ensure_ascii=False) if is_finite else "null"
                continue
            if id(item) in opened:
                raise ValueError("Circular reference detected")
            start, inner, inner_end = _open_container(item, default, sort_keys)
            yield start
            opened[id(item)] = inner, inner_end
            break
        else:
            opened.popitem()
            yield end


def _open_container(
    value: Any, default: Callable[[Any], Any] | None, sort_keys: bool
) -> tuple[str, Iterator[tuple[str, Any]], str]:
    """Return the start of a container, its values with the text before each, and its end."""
    if isinstance(value, dict):
        pairs = enumerate(sorted(value.items()) if sort_keys else value.items())
        return (
            "{",
            ((", " * (n > 0) + json.dumps({key: 0}, ensure_ascii=False)[1:-2], one) for n, (key, one) in pairs),
            "}",
        )
    if isinstance(value, list | tuple):
        return "[", ((", " * (n > 0), one) for n, one in enumerate(value)), "]"
    if default is None:
        raise TypeError(f"{type(value).__name__} is not JSON")
    return "", iter([("", default(value))]), ""


def format_non_finite(value: float) -> str:
    """Return the text for NaN or an infinity."""
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def preview_json(value: Any, max_characters: int = 200) -> str:
    """Return a value as JSON for a message, truncated to `max_characters`."""
    return shorten_text(dump_json(value, default=str).decode(), max_characters)
