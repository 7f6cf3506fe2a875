"""Turns `{{name}}` in SQL into bound parameters; a value is never pasted into the text."""

import datetime
import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any

from opposable.domain.errors import FieldProblem, InvalidArguments
from opposable.sql.function_allowlist import Dialect
from opposable.sql.lexer import segments
from opposable.sql.schema import unquoted

_PLACEHOLDER = re.compile(r"\{\{\s*([^\W\d]\w*)\s*\}\}")
_MARK = {"duckdb": "$", "sqlite": ":", "postgres": "$"}
_SCALARS = (str, int, float, bool, datetime.date, datetime.datetime)


@dataclass(slots=True)
class Bound:
    """SQL with the dialect's own parameter marks, and their values by name."""

    sql: str
    values: dict[str, Any] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)

    def restored(self, sql: str) -> str:
        """`sql` (this one, or a repair of it) with the placeholders where the parameter marks stand."""
        if not self.written:
            return sql
        marks = "|".join(re.escape(mark) for mark in sorted(self.written, key=len, reverse=True))
        return "".join(
            re.sub(rf"(?:{marks})(?!\w)", lambda found: self.written[found.group()], part.text)
            if part.kind == "code"
            else part.text
            for part in segments(sql)
        )


def bind(
    sql: str,
    dialect: Dialect,
    parameters: Mapping[str, Any] | None = None,
    missing_is_null: bool = False,
    names: Container[str] = (),
) -> Bound:
    """`sql` with every `{{name}}` bound, in quotes (`'{{name}}'`, `'%{{name}}%'`) or not; a list becomes `(a, b)`.

    `missing_is_null` binds NULL to what has no value: for checks before the values are known. `names` are those of
    tables and columns: one with braces in it is itself.

    Raises:
        InvalidArguments: a value is missing, of no usable type, or a placeholder stands where none can.
    """
    binder = _Binder(dialect, dict(parameters or {}), missing_is_null, names)
    text = "".join(binder.segment(part.kind, part.text) for part in segments(sql))
    if binder.problems:
        raise InvalidArguments(tuple(dict.fromkeys(binder.problems)))
    return Bound(text, binder.values, binder.written)


class _Binder:
    def __init__(
        self, dialect: Dialect, parameters: dict[str, Any], missing_is_null: bool, names: Container[str]
    ) -> None:
        self.mark = _MARK[dialect]
        self.letter = "" if dialect == "postgres" else "p"
        self.parameters = parameters
        self.missing_is_null = missing_is_null
        self.names = names
        self.written: dict[str, str] = {}
        self.values: dict[str, Any] = {}
        self.problems: list[FieldProblem] = []
        self._keys: dict[tuple[str, int], str] = {}
        self._before = ""

    def segment(self, kind: str, text: str) -> str:
        before, self._before = self._before, text
        if "{{" not in text or kind == "comment":
            return text
        if kind == "code":
            return _PLACEHOLDER.sub(lambda found: self._code(found, text), text)
        if kind == "string":
            return self._string(text[1:-1], raw=before[-1:].isalpha())
        if unquoted(text) not in self.names:
            self.problems.append(FieldProblem("sql", "a placeholder stands for a value, not for a name", text))
        return text

    def _code(self, found: "re.Match[str]", text: str) -> str:
        value = self._value(found.group(1))
        if not isinstance(value, list | tuple):
            return self._mark_of(found.group(1), value)
        marks = ", ".join(self._mark_of(found.group(1), item, i) for i, item in enumerate(value, 1))
        return marks if text[: found.start()].rstrip().endswith("(") else f"({marks})"

    def _string(self, inner: str, raw: bool) -> str:
        if raw:
            self.problems.append(FieldProblem("sql", "a placeholder cannot stand in a string with a prefix", inner))
            return f"'{inner}'"
        pieces = _PLACEHOLDER.split(inner)
        marks: list[str] = []
        for index, piece in enumerate(pieces):
            if index % 2 == 0:
                marks += [f"'{piece}'"] if piece else []
                continue
            value = self._value(piece)
            if isinstance(value, list | tuple):
                self.problems.append(FieldProblem(f"parameters.{piece}", "a list cannot stand inside quotes"))
                value = None
            marks.append(self._mark_of(piece, value))
        return marks[0] if len(marks) == 1 else f"({' || '.join(marks)})"

    def _value(self, name: str) -> Any:
        if name in self.parameters:
            return self.parameters[name]
        if self.missing_is_null:
            return None
        given = ", ".join(self.parameters) or "none"
        self.problems.append(
            FieldProblem(f"parameters.{name}", f"a value for {{{{{name}}}}} is missing (given: {given})")
        )
        return None

    def _mark_of(self, name: str, value: Any, index: int = 0) -> str:
        if value is not None and not isinstance(value, _SCALARS):
            told = f"must be text, a number, true, false, null or a list of these, not {type(value).__name__}"
            self.problems.append(FieldProblem(f"parameters.{name}", told))
        key = self._keys.setdefault((name, index), f"{self.letter}{len(self._keys) + 1}")
        self.values[key] = value
        self.written[f"{self.mark}{key}"] = f"{{{{{name}}}}}"
        return f"{self.mark}{key}"
