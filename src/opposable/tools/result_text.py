"""The text for the model of a value that a tool returned."""

import contextlib
import dataclasses
import math
from collections import UserString
from collections.abc import Mapping, Sequence, Set, ValuesView
from typing import Any

import orjson

from opposable.domain.content import DictWithMedia
from opposable.domain.json_text import dump_json, format_non_finite
from opposable.tools.result_media import find_media, replace_media

_PLAIN_TYPES = frozenset({str, int, bool, type(None)})
_MISSING_TYPES = frozenset({"NaTType", "NAType"})  # `NaT` and `NA` of pandas


def value_to_text(value: Any) -> str:
    """Return text as it is and any other value as JSON."""
    if isinstance(value, str):  # a member of a `StrEnum` is one too, and formats as its name
        return str.__str__(value) if value.isascii() else value.encode("utf-8", "replace").decode()
    if find_media(value) and not isinstance(value, dict):
        value = replace_media(value)
        return value if isinstance(value, str) else "\n".join(value_to_text(item) for item in value)
    if isinstance(value, bytes | bytearray):
        return _bytes_to_text(value)
    try:
        raw = orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_SUBCLASS)
    except TypeError:
        if isinstance(value, DictWithMedia) and value.text:
            return value.text
        value = to_jsonable(value)
        raw = dump_json(value, default=encode_value)
    if b"null" in raw and _has_non_finite(value):  # of which orjson makes null
        value = to_jsonable(value)
        return value if isinstance(value, str) else dump_json(value, default=str).decode()
    return raw.decode()


def _has_non_finite(value: Any) -> bool:
    """Return whether a value that orjson serializes holds NaN or an infinity."""
    pending = [[value]]
    for items in pending:
        for item in items:
            kind = type(item)
            if kind in _PLAIN_TYPES:
                continue
            if kind is float:
                if not math.isfinite(item):
                    return True
            elif kind is dict:
                pending.append(item.values())
            elif kind is list or kind is tuple:
                pending.append(item)
            elif fields := getattr(kind, "__dataclass_fields__", None):
                pending.append([getattr(item, name, None) for name in fields])
    return False


def _bytes_to_text(value: bytes | bytearray) -> str:
    """Return bytes that are text in UTF-8, such as the output of a program, as text, and a description of others."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return f"<{len(value)} bytes>"
    return f"<{len(value)} bytes>" if "\0" in text else text


def _has_row_labels(value: Any) -> bool:
    """Return whether the rows of a table or column of pandas have labels, not only numbers from the default index."""
    index = getattr(value, "index", None)  # of a list: a method
    return hasattr(index, "is_unique") and type(index).__name__ != "RangeIndex"


def _table_to_records(table: Any) -> Any:
    """Return one object for each row of a table of pandas, with the labels of the rows as further columns."""
    with contextlib.suppress(ValueError):  # a label has the name of a column
        labeled = table.reset_index() if _has_row_labels(table) else table
        if getattr(labeled.columns, "is_unique", True):  # else columns would be lost
            return _remove_nan(labeled.to_dict(orient="records"))
    rows = [*table.itertuples(index=False, name=None)]
    return _remove_nan({"index": [*table.index], "columns": [*table.columns], "data": rows})


def _remove_nan(value: Any) -> Any:
    """Replace NaN by None: in pandas, it is a missing value."""
    if isinstance(value, dict):
        return {key: _remove_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_remove_nan(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def encode_value(value: Any) -> Any:
    """Convert a value that orjson cannot serialize, as `default` of `orjson.dumps`: the way models get it, else its text."""
    converted = to_jsonable(value)
    return str(value) if converted is value else converted


def to_jsonable(value: Any) -> Any:
    """Convert a value that orjson cannot serialize to types that it can; not one nested deeper than some 300 lists."""
    try:
        return _convert(value)
    except RecursionError:
        return value


def _convert(value: Any) -> Any:
    if isinstance(value, type):  # its methods are those of its instances
        return value
    if type(value).__name__ in _MISSING_TYPES:
        return None
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True)
    if dataclasses.is_dataclass(value):  # without `asdict`, which copies values that cannot be copied, such as locks
        return {field.name: _convert(getattr(value, field.name, None)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        pairs = list(value.multi_items() if hasattr(value, "multi_items") else value.items())
        converted = {str(key): _convert(item) for key, item in pairs}
        return converted if len(converted) == len(pairs) else str(value)  # headers and queries may repeat a key
    if hasattr(value, "to_dicts"):  # a table of polars
        return _convert(value.to_dicts())
    if hasattr(value, "to_dict") and hasattr(value, "columns"):  # a table of pandas
        return _convert(_table_to_records(value))
    if hasattr(value, "to_dict") and _has_row_labels(value):  # a column or row of pandas
        return _convert(_remove_nan(value.to_dict() if value.index.is_unique else list(value.items())))
    if isinstance(value, Sequence) and (hasattr(value, "_asdict") or hasattr(value, "keys")):
        # a named tuple, or a row of SQLAlchemy or sqlite3, which may repeat a name
        row: Any = value
        record = row._asdict() if hasattr(row, "_asdict") else dict(zip(row.keys(), row, strict=True))
        return _convert(record if len(record) == len(value) else list(value))
    if hasattr(value, "tolist"):  # arrays and numbers of numpy, columns of pandas
        items = value.tolist()
        return _convert(_remove_nan(items) if hasattr(value, "to_dict") else items)
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, float) and not math.isfinite(value):
        return format_non_finite(value)
    if isinstance(value, bytes | bytearray):
        return _bytes_to_text(value)
    if isinstance(value, Sequence | Set | ValuesView) and not isinstance(value, UserString):
        return [_convert(item) for item in value]
    return value
