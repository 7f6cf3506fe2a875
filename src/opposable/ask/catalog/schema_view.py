"""The part of a schema that a question needs, and its text for a model: short, with keys, comments and real values."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from opposable.ask.catalog.text_normalization import shown, token_estimate
from opposable.ask.catalog.value_matching import ValueMatch
from opposable.ask.catalog.value_sampling import kind_of
from opposable.parsers import defuse
from opposable.sql.function_allowlist import Dialect
from opposable.sql.schema import Column, Table, one_line, quoted, quoted_path

_COMMENT = 80
_LONG = 40
"""Characters of samples from which on fewer are shown."""


@dataclass(frozen=True, slots=True)
class TableView:
    """A table with the columns that are shown of it. `samples` has a few values by column, `left_out` counts columns."""

    table: Table
    columns: tuple[Column, ...]
    samples: Mapping[str, tuple[str, ...]]
    matches: tuple[ValueMatch, ...] = ()
    left_out: int = 0

    def ddl(self, dialect: Dialect) -> str:
        """The table as CREATE TABLE, each column on a line with what is known of it behind."""
        notes = [one_line(self.table.comment, _COMMENT) or ""]
        notes += [f"{'' if self.table.rows_exact else 'about '}{self.table.rows} rows"] if self.table.rows else []
        lines = [self._line(column, dialect) for column in self.columns]
        body = "\n".join(f"  {code}{',' if i < len(lines) - 1 else ''}{note}" for i, (code, note) in enumerate(lines))
        more = f"\n  -- and {self.left_out} more columns" if self.left_out else ""
        head = f"CREATE {self.table.kind.upper()} {one_line(quoted_path(self.table, dialect))} ("
        told = "; ".join(note for note in notes if note)
        return defuse(f"{head}{f' -- {told}' if told else ''}\n{body}{more}\n);")

    def _line(self, column: Column, dialect: Dialect) -> tuple[str, str]:
        parts = [one_line(quoted(column.name, dialect)) or "", short_type(column.type)]
        parts += ["PRIMARY KEY"] if column.primary_key else []
        parts += [f"REFERENCES {_target(column.references)}"] if column.references else []
        named = [shown(match.value) for match in self.matches if match.column == column.name]
        values = [text for text in self._sampled(column) if text not in named]
        notes = [one_line(column.comment, _COMMENT) or ""]
        notes += [f"asked for: {', '.join(named)}"] if named else []
        notes += [f"e.g. {', '.join(values)}"] if values else []
        told = "; ".join(note for note in notes if note)
        return " ".join(part for part in parts if part), f" -- {told}" if told else ""

    def _sampled(self, column: Column) -> list[str]:
        """The samples worth their tokens: none of keys, one of dates, fewer of long texts; numbers without quotes."""
        values = self.samples.get(column.name, ())
        match kind_of(column):
            case "number" if column.primary_key or column.references:
                return []
            case "number":
                return [shown(value)[1:-1] for value in values[:2]]
            case "date":
                return [shown(value) for value in values[:1]]
            case _:
                return [shown(value) for value in values[: 3 if sum(map(len, values)) < _LONG else 2]]


@dataclass(frozen=True, slots=True)
class SchemaView:
    """What a model is shown of a database for one question.

    `matches` are the values the question names; `left_out` counts tables that are not shown.
    """

    dialect: Dialect
    tables: tuple[TableView, ...]
    matches: tuple[ValueMatch, ...] = ()
    left_out: int = 0

    def ddl(self) -> str:
        """The tables as compact CREATE TABLE text, in which values from the database stand quoted and in comments only."""
        return "\n".join(table.ddl(self.dialect) for table in self.tables)

    @property
    def tokens(self) -> int:
        """About how many tokens `ddl()` is."""
        return token_estimate(self.ddl())


def _target(references: str) -> str:
    """`table(column)` for "table.column"."""
    table, dot, column = references.rpartition(".")
    return one_line(f"{table}({column})" if dot else column, 120) or ""


def short_type(name: str) -> str:
    """A type without what a query need not know: `character varying(80)` is `varchar`."""
    plain = re.sub(r"\bcharacter varying\b", "varchar", one_line(name, 60) or "", flags=re.IGNORECASE)
    plain = re.sub(r"\btimestamp with(out)? time zone\b", "timestamp", plain, flags=re.IGNORECASE)
    plain = plain if re.match(r"(?i)struct|map|enum", plain) else re.sub(r"\s*\([\d, ]*\)", "", plain)
    return re.sub(r"[^\w\s\[\](),.:'\"-]", "", plain)
