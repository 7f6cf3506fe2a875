"""Schema views: the part of a schema for one question, and its DDL for a prompt."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opposable.ask.catalog.table_samples import get_column_kind
from opposable.parsers import escape_special_tokens
from opposable.sql.function_allowlist import Dialect
from opposable.sql.schema import Column, Table, format_create_table, quote_name, quote_reference, to_one_line

_MAX_COMMENT_CHARACTERS = 80
_LONG_SAMPLES_CHARACTERS = 40
"""Total length of a column's samples from which fewer of them are shown."""


@dataclass(frozen=True, slots=True)
class TableView:
    """A table with the columns that a prompt shows, and a few values of each column."""

    table: Table
    columns: tuple[Column, ...]
    samples: Mapping[str, Sequence[str]]

    def to_ddl(self, dialect: Dialect) -> str:
        """Return the table as CREATE TABLE, with comments and values as SQL comments."""
        notes = [to_one_line(self.table.comment, _MAX_COMMENT_CHARACTERS)]
        about = "" if self.table.is_row_count_exact else "about "
        notes += [f"{about}{self.table.row_count} rows"] if self.table.row_count else []
        columns = [self._describe_column(column, dialect) for column in self.columns]
        omitted_columns = len(self.table.columns) - len(self.columns)
        return escape_special_tokens(format_create_table(self.table, notes, columns, dialect, omitted_columns))

    def _describe_column(self, column: Column, dialect: Dialect) -> tuple[list[str], list[str]]:
        """Return the parts of the definition of a column, and its notes."""
        parts = [to_one_line(quote_name(column.name, dialect)), shorten_type(column.type)]
        parts += ["PRIMARY KEY"] if column.primary_key else []
        if column.references:
            table, key = quote_reference(column.references, dialect)
            parts.append(f"REFERENCES {table}({key})" if table else f"REFERENCES {key}")
        samples = self._select_samples(column)
        notes = [to_one_line(column.comment, _MAX_COMMENT_CHARACTERS)]
        notes += [f"e.g. {', '.join(samples)}"] if samples else []
        return parts, notes

    def _select_samples(self, column: Column) -> list[str]:
        """Select the samples of a column: none of keys, one of dates, fewer of long texts."""
        values = self.samples.get(column.name, ())
        kind = get_column_kind(column)
        if kind == "number":
            return [] if column.is_key else [format_prompt_value(value)[1:-1] for value in values[:2]]
        count = 1 if kind == "date" else 3 if sum(map(len, values)) < _LONG_SAMPLES_CHARACTERS else 2
        return [format_prompt_value(value) for value in values[:count]]


@dataclass(frozen=True, slots=True)
class SchemaView:
    """The tables of a schema that a prompt shows for one question, and the number of the others."""

    dialect: Dialect
    tables: tuple[TableView, ...]
    omitted_tables: int = 0

    def to_ddl(self) -> str:
        """Return the tables as compact CREATE TABLE text, with values of the database in SQL comments only, in quotes."""
        lines = [table.to_ddl(self.dialect) for table in self.tables]
        if self.omitted_tables:
            lines.append(f"-- and {self.omitted_tables} more tables that do not concern the question")
        return "\n".join(lines)


def shorten_type(name: str) -> str:
    """Shorten the name of a type: `character varying(80)` becomes `varchar`."""
    shortened = re.sub(r"\bcharacter varying\b", "varchar", to_one_line(name, 60), flags=re.IGNORECASE)
    shortened = re.sub(r"\btimestamp with(out)? time zone\b", "timestamp", shortened, flags=re.IGNORECASE)
    if not re.match(r"(?i)struct|map|enum", shortened):
        shortened = re.sub(r"\s*\([\d, ]*\)", "", shortened)
    return re.sub(r"[^\w\s\[\](),.:'\"-]", "", shortened)


def format_prompt_value(text: str, max_characters: int = 40) -> str:
    """Quote a database value for a prompt: one line of at most about `max_characters`, without special tokens."""
    return escape_special_tokens("'" + to_one_line(text, max_characters).replace("'", "''") + "'")


def estimate_tokens(text: str) -> int:
    """Estimate how many tokens a model reads `text` as."""
    wide = 0 if text.isascii() else sum(1 for char in text if ord(char) > 0x2E80)
    return int((len(text) - wide) / 3.2 + wide) + 1
