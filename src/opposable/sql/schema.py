"""Schema of a database: tables, columns and keys, and their text for a model."""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from opposable.sql.function_allowlist import Dialect
from opposable.sql.name_similarity import suggest_names


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    `type` is the engine's name of it. `references` is "table.column" for a foreign key.
    """

    name: str
    type: str
    nullable: bool = True
    primary_key: bool = False
    references: str | None = None
    comment: str | None = None

    @property
    def is_key(self) -> bool:
        """Whether the column is part of the primary key or refers to another table."""
        return self.primary_key or self.references is not None


@dataclass(frozen=True, slots=True)
class Table:
    """A table or view.

    `schema` is empty for the default schema. `hidden_columns` are names that a query may use, but that hold no data of
    the table, such as `rank` of SQLite's full-text search. `row_count` is None where it is unknown, and an estimate where
    `is_row_count_exact` is false.
    """

    name: str
    columns: tuple[Column, ...]
    schema: str = ""
    kind: str = "table"
    comment: str | None = None
    row_count: int | None = None
    is_row_count_exact: bool = True
    hidden_columns: frozenset[str] = frozenset()

    @property
    def full_name(self) -> str:
        """`schema.name`, or `name` alone in the default schema."""
        return f"{self.schema}.{self.name}" if self.schema else self.name

    @property
    def primary_key(self) -> tuple[str, ...]:
        """The names of the columns of the primary key."""
        return tuple(column.name for column in self.columns if column.primary_key)

    def find_column(self, name: str) -> Column | None:
        """Return the column of this name in any letter case."""
        wanted = fold_name(name)
        return next((column for column in self.columns if fold_name(column.name) == wanted), None)


@dataclass(frozen=True)
class DatabaseSchema:
    """The tables and views of one database; names may omit `default_schema`."""

    tables: tuple[Table, ...]
    default_schema: str = "main"
    dialect: Dialect = "sqlite"
    has_table_case: bool = False
    """Whether a MySQL server distinguishes names of tables by letter case."""
    partitions: tuple[Table, ...] = ()
    """PostgreSQL: partitions of `tables`, which a query may name, but which are not listed."""
    allowed_functions: frozenset[str] = frozenset()
    """Functions of the database that only compute or read its tables; case-folded."""
    refused_functions: frozenset[str] = frozenset()
    """PostgreSQL: functions that `value.name` could call without being allowed, or that run as their owner; case-folded.
    ClickHouse: the functions of the engine and of its users that are not allowed."""
    refused_operators: frozenset[str] = frozenset()
    """PostgreSQL: operators of the database that run as their owner, or that `pg_catalog` does not have."""
    refused_types: frozenset[str] = frozenset()
    """PostgreSQL: row types of relations that are not listed or not fully readable, and arrays of them; case-folded."""

    @cached_property
    def _by_name(self) -> Mapping[str, Table]:
        tables = (*self.tables, *self.partitions)
        with_schema = {fold_name(table.name): table for table in reversed(tables) if table.schema}
        return with_schema | {fold_name(table.name): table for table in tables if not table.schema}

    @cached_property
    def _by_full_name(self) -> Mapping[tuple[str, str], Table]:
        tables = (*self.partitions, *self.tables)
        return {(fold_name(table.schema or self.default_schema), fold_name(table.name)): table for table in tables}

    @cached_property
    def _by_exact_name(self) -> Mapping[tuple[str, str], Table]:
        return {(table.schema or self.default_schema, table.name): table for table in (*self.partitions, *self.tables)}

    @cached_property
    def _ambiguous(self) -> frozenset[tuple[str, str]]:
        """Schemas and folded names that several tables have, in different letter cases."""
        counts = Counter((table.schema, fold_name(table.name)) for table in self.tables)
        return frozenset(key for key, count in counts.items() if count > 1)

    @cached_property
    def names(self) -> frozenset[str]:
        """Names of all tables and columns."""
        columns = (column.name for table in self.tables for column in table.columns)
        return frozenset([*(table.name for table in self.tables), *columns])

    def find_exact_table(self, name: str, schema: str = "") -> Table | None:
        """Return the table of exactly this name in a schema, the default one where empty."""
        return self._by_exact_name.get((schema or self.default_schema, name))

    def find_table(self, name: str, schema: str = "") -> Table | None:
        """Return the table of exactly this name, or the only one of this name in another letter case.

        `name` may have quotes and a schema ("s.t").
        """
        plain = name.strip()
        first, _, last = ("", "", "") if schema else plain.rpartition(".")
        for path, candidate in (
            (schema, name),
            (schema, unquote_name(plain)),
            (unquote_name(first), unquote_name(last)),
        ):
            table = self.find_exact_table(candidate, path) or self.find_table_by_identifier(candidate, path)
            if table and (table.name == candidate or (table.schema, fold_name(table.name)) not in self._ambiguous):
                return table
        return None

    def find_table_by_identifier(self, name: str, schema: str = "") -> Table | None:
        """Return the table of an unquoted identifier.

        A dot or quote in it is part of the name.
        """
        if schema:
            return self._by_full_name.get((fold_name(schema), fold_name(name)))
        return self._by_name.get(fold_name(name))

    def similar_tables(self, name: str) -> tuple[str, ...]:
        """Return up to three similar table names, most similar first."""
        return suggest_names(unquote_name(name.strip()), [table.full_name for table in self.tables])

    def to_ddl(self, tables: Iterable[str] = (), samples: Mapping[str, Mapping[str, list[Any]]] | None = None) -> str:
        """Return the schema as compact DDL with comments, for a model.

        Args:
            tables: Full names of the tables to include; all where empty.
            samples: Sample values by the full name of a table and the name of a column.
        """
        wanted = {name.casefold() for name in tables}
        included = [t for t in self.tables if not wanted or t.full_name.casefold() in wanted]
        samples = samples or {}
        return "\n\n".join(_table_to_ddl(table, samples.get(table.full_name, {}), self.dialect) for table in included)


def unquote_name(name: str) -> str:
    """Return a name without surrounding quotes."""
    if len(name) >= 2 and (name[0], name[-1]) in {('"', '"'), ("`", "`"), ("[", "]"), ("'", "'")}:
        return name[1:-1].replace(name[-1] * 2, name[-1])
    return name


def _table_to_ddl(table: Table, samples: Mapping[str, list[Any]], dialect: Dialect) -> str:
    rows = "" if table.row_count is None else f"{'' if table.is_row_count_exact else 'about '}{table.row_count} rows"
    columns = [_column_to_ddl(column, samples.get(column.name, []), dialect) for column in table.columns]
    return format_create_table(table, [to_one_line(table.comment), rows], columns, dialect)


def _column_to_ddl(column: Column, values: list[Any], dialect: Dialect) -> tuple[list[str], list[str]]:
    parts = [to_one_line(quote_name(column.name, dialect)), to_one_line(column.type, 80)]
    parts += ["PRIMARY KEY"] if column.primary_key else []
    parts += ["NOT NULL"] if not column.nullable and not column.primary_key else []
    parts += [f"REFERENCES {'.'.join(quote_reference(column.references, dialect))}"] if column.references else []
    shown = ", ".join(to_one_line(repr(value)) for value in values)
    return parts, [to_one_line(column.comment), f"e.g. {shown}" if shown else ""]


def format_create_table(
    table: Table,
    notes: Sequence[str],
    columns: Sequence[tuple[Sequence[str], Sequence[str]]],
    dialect: Dialect,
    omitted_columns: int = 0,
) -> str:
    """Return CREATE TABLE with notes as SQL comments, and a comment on columns that are left out.

    Each of `columns` has the parts of its definition and its notes. Empty parts and notes are left out.
    """
    head = f"CREATE {table.kind.upper()} {to_one_line(quote_table_path(table, dialect))} ({_format_notes(notes)}"
    body = "\n".join(
        f"  {' '.join(filter(None, parts))}{',' if n < len(columns) else ''}{_format_notes(column_notes)}"
        for n, (parts, column_notes) in enumerate(columns, start=1)
    )
    more = f"\n  -- and {omitted_columns} more columns" if omitted_columns else ""
    return f"{head}\n{body}{more}\n);"


def _format_notes(notes: Iterable[str]) -> str:
    text = "; ".join(filter(None, notes))
    return f" -- {text}" if text else ""


def to_one_line(text: str | None, max_characters: int = 200) -> str:
    """Return text on one line, truncated and without control characters; "" for None.

    Such text can neither imitate lines of the schema nor control a terminal.
    """
    start = (text or "")[: 8 * max_characters]
    if not start.isprintable():
        spaced = (" " if char.isspace() else char for char in start)
        start = "".join(char for char in spaced if unicodedata.category(char)[0] != "C")
    flat = " ".join(start.split())
    return flat if len(flat) <= max_characters else flat[: max_characters - 1] + "…"


def quote_name(name: str, dialect: Dialect = "sqlite") -> str:
    """Return a name as SQL, in quotes of the dialect where it needs them."""
    folded = dialect == "postgres" and name != fold_name(name)
    unread = dialect == "clickhouse" and not name.isascii()
    if name.isidentifier() and name.casefold() not in _RESERVED[dialect] and not folded and not unread:
        return name
    if dialect == "mysql":
        return "`" + name.replace("`", "``") + "`"
    return quote_identifier(name.replace("\\", "\\\\") if dialect == "clickhouse" else name)


def quote_identifier(name: str) -> str:
    """Return a name in double quotes, as SQL."""
    return '"' + name.replace('"', '""') + '"'


def fold_name(name: str) -> str:
    """Return a name as the engines compare it, with its ASCII letters in lower case.

    `str.casefold` also maps other letters, such as `ſ` to `s`, so that one name could pass for another.
    """
    return name.lower() if name.isascii() else "".join(char.lower() if char.isascii() else char for char in name)


def quote_table_path(table: Table, dialect: Dialect = "sqlite") -> str:
    """Return the name of a table as SQL, with a schema other than the default."""
    name = quote_name(table.name, dialect)
    return f"{quote_name(table.schema, dialect)}.{name}" if table.schema else name


def quote_reference(references: str, dialect: Dialect = "sqlite") -> tuple[str, str]:
    """Return the table and the column of a "table.column" as SQL on one line."""
    *path, column = (to_one_line(quote_name(name, dialect), 120) for name in references.split("."))
    return ".".join(path), column


_RESERVED_WORDS = """abort action add after all alter always analyse analyze and anti any array as asc asof asymmetric attach before
    begin between both by cascade case cast check collate collation column columns commit conflict constraint create
    cross cube current current_date current_time current_timestamp database default deferrable deferred delete desc
    describe detach distinct do drop each else end escape except exclude exclusive exists explain fail false fetch
    filter first following for foreign from full function generated glob grant group grouping groups having if ignore
    ilike immediate in index indexed initially inner insert instead intersect interval into is isnull join key lambda
    last lateral leading left like limit localtime localtimestamp map match materialized merge natural no not nothing
    notnull null nulls of offset on only or order others outer over overlaps partition pivot placing plan positional
    pragma preceding primary qualify query raise range recursive references regexp reindex release rename replace
    restrict returning right rollback rollup row rows sample savepoint select semi set show similar some struct
    summarize symmetric table tablesample temp temporary then ties to trailing transaction trigger true try_cast
    unbounded union unique unpivot update using vacuum values variadic verbose view virtual when where window with
    within without"""
_MYSQL_RESERVED_WORDS = """accessible asensitive before bigint binary blob both call cascade change char character
    condition continue convert cume_dist current_role current_user cursor databases day_hour day_microsecond
    day_minute day_second dec decimal declare delayed delete_domain_id dense_rank deterministic distinctrow div
    do_domain_ids double dual elseif empty enclosed escaped except exit explain first_value float float4 float8 force
    fulltext function get groups high_priority hour_microsecond hour_minute hour_second ignore_domain_ids infile inout
    insensitive int int1 int2 int3 int4 int8 integer io_after_gtids iterate json_table keys kill lag last_value lead
    leave linear lines load localtime lock long longblob longtext loop low_priority manual master_bind
    master_demote_to_replica master_demote_to_slave master_ssl_verify_server_cert match maxvalue mediumblob mediumint
    mediumtext middleint minute_microsecond minute_second mod modifies no_write_to_binlog nth_value ntile numeric
    offset optimize optimizer_costs option optionally out outer outfile page_checksum parallel parse_vcol_expr
    percent_rank portion precision procedure purge qualify rank read read_write reads real ref_system_id release
    repeat require resignal return revoke rlike row_number schema schemas second_microsecond sensitive separator
    signal smallint spatial specific sql sql_big_result sql_buffer_result sql_cache sql_calc_found_rows sql_no_cache
    sql_small_result sqlexception sqlstate sqlwarning ssl starting stats_auto_recalc stats_persistent
    stats_sample_pages stored straight_join system terminated tinyblob tinyint tinytext undo unlock unsigned usage use
    utc_date utc_time utc_timestamp varbinary varchar varcharacter varying while write xor year_month zerofill"""
_DIALECT_RESERVED_WORDS: dict[Dialect, str] = {
    "sqlite": "autoincrement",
    "duckdb": "at authorization binary concurrently freeze pivot_longer pivot_wider unpack",
    "postgres": "authorization binary concurrently current_catalog current_role current_schema current_user freeze "
    "session_user system_user user",
    "mysql": _MYSQL_RESERVED_WORDS,
    "clickhouse": "top",
}
"""Words that an engine rejects as a column or, such as `user` on PostgreSQL, reads as a function without parentheses."""
_RESERVED: dict[Dialect, frozenset[str]] = {
    dialect: frozenset(f"{_RESERVED_WORDS} {words}".split()) for dialect, words in _DIALECT_RESERVED_WORDS.items()
}
