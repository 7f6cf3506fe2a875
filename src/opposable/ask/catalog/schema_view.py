"""The part of a schema that a question needs, and its text for a model: short, with keys, comments and real values."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from opposable.ask.catalog.prompt_text import estimate_tokens, format_prompt_value
from opposable.ask.catalog.value_matching import ValueMatch
from opposable.ask.catalog.value_sampling import get_column_kind
from opposable.parsers import escape_special_tokens
from opposable.sql.function_allowlist import Dialect
from opposable.sql.schema import Column, Table, quote_name, quote_table_path, to_one_line

_MAX_COMMENT_CHARACTERS = 80
_LONG_SAMPLES_CHARACTERS = 40
"""Characters of samples from which on fewer are shown."""


@dataclass(frozen=True, slots=True)
class TableView:
    """A table with the columns that are shown of it. `samples` has a few values by column, `left_out` counts columns."""

    table: Table
    columns: tuple[Column, ...]
    samples: Mapping[str, tuple[str, ...]]
    matches: tuple[ValueMatch, ...] = ()
    omitted_columns: int = 0

    def to_ddl(self, dialect: Dialect) -> str:
        """The table as CREATE TABLE, each column on a line with what is known of it behind."""
        notes = [to_one_line(self.table.comment, _MAX_COMMENT_CHARACTERS) or ""]
        notes += (
            [f"{'' if self.table.is_row_count_exact else 'about '}{self.table.row_count} rows"]
            if self.table.row_count
            else []
        )
        lines = [self._format_column(column, dialect) for column in self.columns]
        body = "\n".join(f"  {code}{',' if i < len(lines) - 1 else ''}{note}" for i, (code, note) in enumerate(lines))
        more = f"\n  -- and {self.omitted_columns} more columns" if self.omitted_columns else ""
        head = f"CREATE {self.table.kind.upper()} {to_one_line(quote_table_path(self.table, dialect))} ("
        told = "; ".join(note for note in notes if note)
        return escape_special_tokens(f"{head}{f' -- {told}' if told else ''}\n{body}{more}\n);")

    def _format_column(self, column: Column, dialect: Dialect) -> tuple[str, str]:
        parts = [to_one_line(quote_name(column.name, dialect)) or "", shorten_type(column.type)]
        parts += ["PRIMARY KEY"] if column.primary_key else []
        parts += [f"REFERENCES {_format_reference(column.references)}"] if column.references else []
        named = [format_prompt_value(match.value) for match in self.matches if match.column == column.name]
        values = [text for text in self._select_samples(column) if text not in named]
        notes = [to_one_line(column.comment, _MAX_COMMENT_CHARACTERS) or ""]
        notes += [f"asked for: {', '.join(named)}"] if named else []
        notes += [f"e.g. {', '.join(values)}"] if values else []
        told = "; ".join(note for note in notes if note)
        return " ".join(part for part in parts if part), f" -- {told}" if told else ""

    def _select_samples(self, column: Column) -> list[str]:
        """The samples worth their tokens: none of keys, one of dates, fewer of long texts; numbers without quotes."""
        values = self.samples.get(column.name, ())
        match get_column_kind(column):
            case "number" if column.primary_key or column.references:
                return []
            case "number":
                return [format_prompt_value(value)[1:-1] for value in values[:2]]
            case "date":
                return [format_prompt_value(value) for value in values[:1]]
            case _:
                return [
                    format_prompt_value(value)
                    for value in values[: 3 if sum(map(len, values)) < _LONG_SAMPLES_CHARACTERS else 2]
                ]


@dataclass(frozen=True, slots=True)
class SchemaView:
    """What a model is shown of a database for one question.

    `matches` are the values the question names; `left_out` counts tables that are not shown.
    """

    dialect: Dialect
    tables: tuple[TableView, ...]
    matches: tuple[ValueMatch, ...] = ()
    omitted_tables: int = 0

    def to_ddl(self) -> str:
        """The tables as compact CREATE TABLE text, in which values from the database stand quoted and in comments only."""
        return "\n".join(table.to_ddl(self.dialect) for table in self.tables)

    @property
    def token_count(self) -> int:
        """About how many tokens `ddl()` is."""
        return estimate_tokens(self.to_ddl())


def _format_reference(references: str) -> str:
    """`table(column)` for "table.column"."""
    table, dot, column = references.rpartition(".")
    return to_one_line(f"{table}({column})" if dot else column, 120) or ""


def shorten_type(name: str) -> str:
    """A type without what a query need not know: `character varying(80)` is `varchar`."""
    plain = re.sub(r"\bcharacter varying\b", "varchar", to_one_line(name, 60) or "", flags=re.IGNORECASE)
    plain = re.sub(r"\btimestamp with(out)? time zone\b", "timestamp", plain, flags=re.IGNORECASE)
    plain = plain if re.match(r"(?i)struct|map|enum", plain) else re.sub(r"\s*\([\d, ]*\)", "", plain)
    return re.sub(r"[^\w\s\[\](),.:'\"-]", "", plain)
