"""Turns `{{name}}` in SQL into bound parameters; a value is never pasted into the text."""

import datetime
import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any

from opposable.domain.errors import FieldProblem, InvalidArguments
from opposable.sql.function_allowlist import Dialect
from opposable.sql.lexer import split_segments
from opposable.sql.schema import unquote_name

_PLACEHOLDER = re.compile(r"\{\{\s*([^\W\d]\w*)\s*\}\}")
_PARAMETER_PREFIX = {"duckdb": "$", "sqlite": ":", "postgres": "$"}
_SCALAR_TYPES = (str, int, float, bool, datetime.date, datetime.datetime)


@dataclass(slots=True)
class BoundSql:
    """SQL with the dialect's own parameter marks, and their values by name."""

    sql: str
    values: dict[str, Any] = field(default_factory=dict)
    placeholders: dict[str, str] = field(default_factory=dict)

    def restore_placeholders(self, sql: str) -> str:
        """`sql` (this one, or a repair of it) with the placeholders where the parameter marks stand."""
        if not self.placeholders:
            return sql
        marks = "|".join(re.escape(mark) for mark in sorted(self.placeholders, key=len, reverse=True))
        return "".join(
            re.sub(rf"(?:{marks})(?!\w)", lambda found: self.placeholders[found.group()], part.text)
            if part.kind == "code"
            else part.text
            for part in split_segments(sql)
        )


def bind_placeholders(
    sql: str,
    dialect: Dialect,
    parameters: Mapping[str, Any] | None = None,
    missing_is_null: bool = False,
    identifiers: Container[str] = (),
) -> BoundSql:
    """`sql` with every `{{name}}` bound, in quotes (`'{{name}}'`, `'%{{name}}%'`) or not; a list becomes `(a, b)`.

    `missing_is_null` binds NULL to what has no value: for checks before the values are known. `names` are those of
    tables and columns: one with braces in it is itself.

    Raises:
        InvalidArguments: a value is missing, of no usable type, or a placeholder stands where none can.
    """
    binder = _Binder(dialect, dict(parameters or {}), missing_is_null, identifiers)
    text = "".join(binder.bind_segment(part.kind, part.text) for part in split_segments(sql))
    if binder.problems:
        raise InvalidArguments(tuple(dict.fromkeys(binder.problems)))
    return BoundSql(text, binder.values, binder.placeholders)


class _Binder:
    def __init__(
        self, dialect: Dialect, parameters: dict[str, Any], missing_is_null: bool, identifiers: Container[str]
    ) -> None:
        self.prefix = _PARAMETER_PREFIX[dialect]
        self.key_prefix = "" if dialect == "postgres" else "p"
        self.parameters = parameters
        self.missing_is_null = missing_is_null
        self.identifiers = identifiers
        self.placeholders: dict[str, str] = {}
        self.values: dict[str, Any] = {}
        self.problems: list[FieldProblem] = []
        self._keys: dict[tuple[str, int], str] = {}
        self._previous_text = ""

    def bind_segment(self, kind: str, text: str) -> str:
        before, self._previous_text = self._previous_text, text
        if "{{" not in text or kind == "comment":
            return text
        if kind == "code":
            return _PLACEHOLDER.sub(lambda found: self._bind_in_code(found, text), text)
        if kind == "string":
            return self._bind_in_string(text[1:-1], raw=before[-1:].isalpha())
        if unquote_name(text) not in self.identifiers:
            self.problems.append(FieldProblem("sql", "a placeholder stands for a value, not for a name", text))
        return text

    def _bind_in_code(self, found: "re.Match[str]", text: str) -> str:
        value = self._look_up_value(found.group(1))
        if not isinstance(value, list | tuple):
            return self._add_parameter(found.group(1), value)
        marks = ", ".join(self._add_parameter(found.group(1), item, i) for i, item in enumerate(value, 1))
        return marks if text[: found.start()].rstrip().endswith("(") else f"({marks})"

    def _bind_in_string(self, inner: str, raw: bool) -> str:
        if raw:
            self.problems.append(FieldProblem("sql", "a placeholder cannot stand in a string with a prefix", inner))
            return f"'{inner}'"
        pieces = _PLACEHOLDER.split(inner)
        marks: list[str] = []
        for index, piece in enumerate(pieces):
            if index % 2 == 0:
                marks += [f"'{piece}'"] if piece else []
                continue
            value = self._look_up_value(piece)
            if isinstance(value, list | tuple):
                self.problems.append(FieldProblem(f"parameters.{piece}", "a list cannot stand inside quotes"))
                value = None
            marks.append(self._add_parameter(piece, value))
        return marks[0] if len(marks) == 1 else f"({' || '.join(marks)})"

    def _look_up_value(self, name: str) -> Any:
        if name in self.parameters:
            return self.parameters[name]
        if self.missing_is_null:
            return None
        given = ", ".join(self.parameters) or "none"
        self.problems.append(
            FieldProblem(f"parameters.{name}", f"a value for {{{{{name}}}}} is missing (given: {given})")
        )
        return None

    def _add_parameter(self, name: str, value: Any, index: int = 0) -> str:
        if value is not None and not isinstance(value, _SCALAR_TYPES):
            told = f"must be text, a number, true, false, null or a list of these, not {type(value).__name__}"
            self.problems.append(FieldProblem(f"parameters.{name}", told))
        key = self._keys.setdefault((name, index), f"{self.key_prefix}{len(self._keys) + 1}")
        self.values[key] = value
        self.placeholders[f"{self.prefix}{key}"] = f"{{{{{name}}}}}"
        return f"{self.prefix}{key}"
