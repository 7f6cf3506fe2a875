"""Conversion between records and rows, whose columns have the names of the fields."""

from dataclasses import fields
from typing import Any, TypeVar

from sqlalchemy import Row

T = TypeVar("T")


def to_record(record_class: type[T], row: Row[Any], **converted: Any) -> T:
    """Return the record of a row. `converted` are the fields that differ from the column, or have none."""
    columns = row._mapping  # noqa: SLF001 - the documented name; a row may have methods of any name
    names = {field.name for field in fields(record_class)} - converted.keys()  # type: ignore[arg-type]  # a dataclass
    return record_class(**{name: columns[name] for name in names}, **converted)


def to_row(record: Any, *left_out: str) -> dict[str, Any]:
    """Return the row of a record, without the fields in `left_out`."""
    return {field.name: getattr(record, field.name) for field in fields(record) if field.name not in left_out}
