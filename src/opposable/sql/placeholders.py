"""Binding of `{{name}}` placeholders in SQL as parameters.

Values never enter the text.
"""

import datetime
import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any

from opposable.domain.argument_problems import must_be
from opposable.domain.errors import FieldProblem, InvalidArguments
from opposable.sql.function_allowlist import Dialect
from opposable.sql.lexer import split_segments
from opposable.sql.schema import unquote_name

_PLACEHOLDER = re.compile(r"\{\{\s*([^\W\d]\w*)\s*\}\}")
_OTHER_MARK = re.compile(r"(?<![\w:$@])[:$@]([^\W\d]\w*)")
_PARAMETER_PREFIX: dict[Dialect, str] = {"duckdb": "$", "sqlite": ":", "postgres": "$", "mysql": ":"}
_CLICKHOUSE_TYPES: dict[type, str] = {
    bool: "Bool",
    int: "Int64",
    float: "Float64",
    datetime.datetime: "DateTime64(6)",
    datetime.date: "Date32",
    type(None): "Nullable(String)",
}
_SCALAR_TYPES = (str, int, float, bool, datetime.date, datetime.datetime)


@dataclass(slots=True)
class BoundSql:
    """SQL with parameter marks of its dialect.

    `values` maps parameter names to values, `placeholders` parameter marks to the placeholders they replace.
    """

    sql: str
    values: dict[str, Any] = field(default_factory=dict)
    placeholders: dict[str, str] = field(default_factory=dict)
    dialect: Dialect = "sqlite"

    def restore_placeholders(self, sql: str) -> str:
        """Return SQL with placeholders in place of the parameter marks.

        `sql` is this SQL or a repair of it.
        """
        if not self.placeholders:
            return sql
        marks = "|".join(re.escape(mark) for mark in sorted(self.placeholders, key=len, reverse=True))
        return "".join(
            re.sub(rf"(?:{marks})(?!\w)", lambda match: self.placeholders[match.group()], part.text)
            if part.kind == "code"
            else part.text
            for part in split_segments(sql, self.dialect)
        )


def build_mark(key: str, value: Any, dialect: Dialect) -> str:
    """Return the mark of a parameter in SQL; ClickHouse's has the type of the value."""
    if dialect == "clickhouse":
        return f"{{{key}:{_CLICKHOUSE_TYPES.get(type(value), 'String')}}}"
    return f"{_PARAMETER_PREFIX[dialect]}{key}"


def bind_placeholders(
    sql: str,
    dialect: Dialect,
    parameters: Mapping[str, Any] | None = None,
    missing_is_null: bool = False,
    identifiers: Container[str] = (),
) -> BoundSql:
    """Bind every `{{name}}` in `sql`. In quotes, one that `parameters` does not name is text.

    A list becomes `(a, b)`.

    Args:
        sql: The query.
        dialect: SQL dialect of the parameter marks.
        parameters: Values by name.
        missing_is_null: Bind NULL to placeholders without a value, for checks before the values are known; also in
            strings.
        identifiers: Names of tables and columns; one that contains braces is not a placeholder.

    Raises:
        InvalidArguments: A value is missing or of an unsupported type, or a placeholder is where none can be.
    """
    binder = _Binder(dialect, dict(parameters or {}), missing_is_null, identifiers)
    text = "".join(binder.bind_segment(part.kind, part.text) for part in split_segments(sql, dialect))
    if binder.problems or (problems := binder.list_misspelt()):
        raise InvalidArguments(tuple(dict.fromkeys(binder.problems or problems)))
    return BoundSql(text, binder.values, binder.placeholders, dialect)


def find_other_marks(bound: BoundSql, parameters: Container[str]) -> tuple[FieldProblem, ...]:
    """Return a problem for each name of `parameters` that rejected SQL writes as `:name`, `$name` or `@name`."""
    code = " ".join(part.text for part in split_segments(bound.sql, bound.dialect) if part.kind == "code")
    marks = (mark for mark in _OTHER_MARK.finditer(code) if mark[1] in parameters)
    return tuple(FieldProblem("sql", f"write {{{{{mark[1]}}}}} instead of {mark[0]}") for mark in marks)


class _Binder:
    """State of one binding: the values so far, and the problems."""

    def __init__(
        self, dialect: Dialect, parameters: dict[str, Any], missing_is_null: bool, identifiers: Container[str]
    ) -> None:
        self.dialect = dialect
        self.key_prefix = "" if dialect == "postgres" else "p"
        self.parameters = parameters
        self.missing_is_null = missing_is_null
        self.identifiers = identifiers
        self.placeholders: dict[str, str] = {}
        self.values: dict[str, Any] = {}
        self.problems: list[FieldProblem] = []
        self._keys: dict[tuple[str, int], str] = {}
        self._previous_text = ""
        self._used_names: set[str] = set()
        self._text_names: set[str] = set()

    def list_misspelt(self) -> list[FieldProblem]:
        """Return a problem for each parameter that no placeholder uses, if placeholders in quotes are left as text."""
        unused = sorted(self.parameters.keys() - self._used_names) if self._text_names else []
        names = ", ".join(sorted(self._text_names))
        return [
            FieldProblem(f"parameters.{name}", f"the query has no such placeholder (in quotes: {names})")
            for name in unused
        ]

    def bind_segment(self, kind: str, text: str) -> str:
        before, self._previous_text = self._previous_text, text
        if "{{" not in text or kind == "comment":
            return text
        if kind == "code":
            return _PLACEHOLDER.sub(lambda match: self._bind_in_code(match, text), text)
        raw = kind != "string" or before[-1:].isalpha() or text.startswith("$")
        if raw and self.parameters.keys().isdisjoint(names := _PLACEHOLDER.findall(text)):
            self._text_names.update(names)
            return text
        if kind == "string":
            return self._bind_in_string(text[1:-1], raw)
        if unquote_name(text) not in self.identifiers:
            self.problems.append(FieldProblem("sql", "a placeholder replaces a value, not a name", text))
        return text

    def _bind_in_code(self, match: "re.Match[str]", text: str) -> str:
        value = self._look_up_value(match.group(1))
        if not isinstance(value, list | tuple):
            return self._add_parameter(match.group(1), value)
        if not value and self.dialect in ("postgres", "mysql"):
            problem = "the list is empty, and this engine has no IN (): leave the condition out"
            self.problems.append(FieldProblem(f"parameters.{match.group(1)}", problem))
        marks = ", ".join(self._add_parameter(match.group(1), item, i) for i, item in enumerate(value, 1))
        self.placeholders[marks] = f"{{{{{match.group(1)}}}}}"
        return marks if text[: match.start()].rstrip().endswith("(") else f"({marks})"

    def _bind_in_string(self, inner: str, raw: bool) -> str:
        if raw:
            self.problems.append(FieldProblem("sql", "a placeholder cannot stand in a string with a prefix", inner))
            return f"'{inner}'"
        marks: list[str] = []
        start = 0
        for match in _PLACEHOLDER.finditer(inner):
            name = match.group(1)
            if name not in self.parameters and not self.missing_is_null:
                self._text_names.add(name)
                continue
            value = self._look_up_value(name)
            if isinstance(value, list | tuple):
                self.problems.append(FieldProblem(f"parameters.{name}", "a list cannot stand inside quotes"))
                value = None
            marks += [f"'{inner[start : match.start()]}'"] if match.start() > start else []
            marks.append(self._add_parameter(name, value))
            start = match.end()
        marks += [f"'{inner[start:]}'"] if start < len(inner) else []
        if len(marks) > 1 and self.dialect == "mysql":
            return f"CONCAT({', '.join(marks)})"
        return marks[0] if len(marks) == 1 else f"({' || '.join(marks)})"

    def _look_up_value(self, name: str) -> Any:
        self._used_names.add(name)
        if name in self.parameters:
            return self.parameters[name]
        if self.missing_is_null:
            return None
        names = ", ".join(self.parameters) or "none"
        self.problems.append(
            FieldProblem(f"parameters.{name}", f"a value for {{{{{name}}}}} is missing (given: {names})")
        )
        return None

    def _add_parameter(self, name: str, value: Any, index: int = 0) -> str:
        if value is not None and not isinstance(value, _SCALAR_TYPES):
            problem = must_be(f"text, a number, true, false, null or a list of these, not {type(value).__name__}")
            self.problems.append(FieldProblem(f"parameters.{name}", problem))
        key = self._keys.setdefault((name, index), f"{self.key_prefix}{len(self._keys) + 1}")
        self.values[key] = value
        mark = build_mark(key, value, self.dialect)
        self.placeholders[mark] = f"{{{{{name}}}}}"
        return mark
