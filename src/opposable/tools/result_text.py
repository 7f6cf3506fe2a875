"""The text for the model of a value that a tool returned."""

import dataclasses
from collections import UserString
from collections.abc import Mapping, Sequence, Set, ValuesView
from typing import Any

import orjson

from opposable.domain.content import DictWithMedia
from opposable.domain.json_text import dump_json
from opposable.tools.result_media import find_media, replace_media


def value_to_text(value: Any) -> str:
    """Return text as it is and any other value as JSON."""
    if isinstance(value, str):  # a member of a `StrEnum` is one too, and formats as its name
        return value.encode("utf-8", "replace").decode() if _has_surrogates(value) else str.__str__(value)
    if find_media(value) and not isinstance(value, dict):
        value = replace_media(value)
        return value if isinstance(value, str) else "\n".join(value_to_text(item) for item in value)
    if isinstance(value, bytes | bytearray):
        return f"<{len(value)} bytes>"
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_SUBCLASS).decode()
    except TypeError:
        if isinstance(value, DictWithMedia) and value.text:
            return value.text
        return dump_json(_to_jsonable(value), default=str).decode()


def encode_value(value: Any) -> Any:
    """Convert a value that orjson cannot serialize, as `default` of `orjson.dumps`: the way models get it, else its text."""
    converted = _to_jsonable(value)
    return str(value) if converted is value else converted


def _has_surrogates(text: str) -> bool:
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _to_jsonable(value: Any) -> Any:
    """Convert a value that orjson cannot serialize to types that it can."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _to_jsonable(dataclasses.asdict(value))
    if isinstance(value, Mapping):
        pairs = list(value.multi_items() if hasattr(value, "multi_items") else value.items())
        converted = {str(key): _to_jsonable(item) for key, item in pairs}
        return converted if len(converted) == len(pairs) else str(value)  # headers and queries may repeat a key
    if hasattr(value, "to_dict") and hasattr(value, "columns"):  # a table of pandas
        return _to_jsonable(value.to_dict(orient="records"))
    if hasattr(value, "tolist"):  # arrays and numbers of numpy, columns of pandas
        return _to_jsonable(value.tolist())
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, bytes | bytearray):
        return f"<{len(value)} bytes>"
    if isinstance(value, Sequence | Set | ValuesView) and not isinstance(value, UserString):
        return [_to_jsonable(item) for item in value]
    return value
