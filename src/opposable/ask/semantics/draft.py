"""Drafts a semantic model of a database, with joins that fit its data."""

import re
from typing import Any

from opposable.ask.catalog.table_samples import get_column_kind
from opposable.ask.semantics.join_graph import build_identifier, split_source
from opposable.domain.errors import ToolError
from opposable.domain.text_normalization import split_camel_case
from opposable.sql.database import Database, QueryLimits
from opposable.sql.schema import Column, DatabaseSchema, Table

_MAX_DIMENSION_VALUES = 60
"""Most distinct values of a text column that becomes a dimension; it must also have fewer values than rows."""
_MAX_TABLES = 60
_KEY_NAME_PATTERN = re.compile(
    r"(?:^|[_\s])(?:id|key|code|no|nr|zip|phone|fax|year|latitude|longitude)$|(?<=[a-z])(?:Id|ID|Key|Code)$",
    re.IGNORECASE,
)
_LABEL_NAME_PATTERN = re.compile(r"name$|title$", re.IGNORECASE)


async def draft_semantic_model(database: Database) -> str:
    """Draft a semantic model and return it as YAML.

    The draft has joins, dimensions with few values, and counts, sums and averages. Joins come from foreign keys and
    from column names, and only those that fit the data are included. Synonyms, units and default filters are left to
    the user.
    """
    drafter = _Drafter(database, await database.get_schema())
    await drafter.draft()
    return drafter.to_yaml()


class _Drafter:
    """Collects the joins, metrics and dimensions of a draft."""

    def __init__(self, database: Database, schema: DatabaseSchema) -> None:
        self._database = database
        self._schema = schema
        self._tables = [table for table in schema.tables if table.kind == "table"][:_MAX_TABLES]
        self._names = _assign_table_names(self._tables)
        self._keys = {table.full_name: [c.name for c in table.columns if c.primary_key] for table in self._tables}
        self._used_ids: set[str] = set()
        self._joins: list[tuple[str, str, str, str]] = []
        self._times: dict[str, str] = {}
        self._metrics: dict[str, Any] = {}
        self._dimensions: dict[str, Any] = {}

    async def draft(self) -> None:
        """Collect the joins, then the terms of the other columns."""
        for table in self._tables:
            for column in table.columns:
                await self._add_join(table, column)
        join_columns = {(many, column) for many, column, _, _ in self._joins}
        for table in self._tables:
            self._add_count_metric(table)
            for column in table.columns:
                is_key = column.name in self._keys[table.full_name]
                if not is_key and (table.full_name, column.name) not in join_columns:
                    await self._add_column_terms(table, column)

    def to_yaml(self) -> str:
        """Return the draft as YAML."""
        import yaml

        data: dict[str, Any] = {"name": re.sub(r"\.\w+$", "", self._database.name)}
        renamed = [table for table in self._tables if self._names[table.full_name] != table.name]
        declarations = {self._names[table.full_name]: {"source": _format_source(table)} for table in renamed}
        for full_name, time in self._times.items():
            declarations.setdefault(self._names[full_name], {})["time"] = time
        data |= {"tables": declarations} if declarations else {}
        data |= {"joins": [self._format_join(*join) for join in self._joins]} if self._joins else {}
        data |= {"metrics": self._metrics, "dimensions": self._dimensions}
        return str(yaml.safe_dump(data, allow_unicode=True, sort_keys=False, width=120))

    def _format_join(self, many: str, column: str, one: str, key: str) -> str:
        left = f"{_quote_name(self._names[many])}.{_quote_name(column)}"
        return f"{left} = {_quote_name(self._names[one])}.{_quote_name(key)}"

    def _allocate_id(self, *candidates: str) -> str:
        """Return the first unused candidate, as an id."""
        ids = [re.sub(r"[^\w]+", "_", name).strip("_") or "term" for name in candidates]
        ids += [f"{ids[-1]}_{number}" for number in range(2, 100)]
        chosen = next(candidate for candidate in ids if candidate.casefold() not in self._used_ids)
        self._used_ids.add(chosen.casefold())
        return chosen

    async def _add_join(self, table: Table, column: Column) -> None:
        """Add the join of a column if each value has exactly one match."""
        for other, key in self._find_join_candidates(table, column):
            if await self._is_valid_join(table, column, other, key):
                self._joins.append((table.full_name, column.name, other.full_name, key))
                return

    def _find_join_candidates(self, table: Table, column: Column) -> list[tuple[Table, str]]:
        """Return the tables that a column may refer to, with their keys."""
        if column.references:
            name, _, key = column.references.rpartition(".")
            other = self._schema.find_table(name)
            return [(other, key)] if other is not None and other.full_name != table.full_name else []
        if not _KEY_NAME_PATTERN.search(column.name):
            return []
        stem = _strip_key_suffix(column.name)
        candidates: list[tuple[Table, str]] = []
        for other in self._tables:
            key = self._get_single_key(other)
            if other.full_name == table.full_name or not key:
                continue
            table_stem = _strip_key_suffix(other.name)
            if _is_same_key(column.name, key) or stem in (table_stem, table_stem.rstrip("s")):
                candidates.append((other, key))
        return candidates

    def _get_single_key(self, table: Table) -> str:
        """Return the single primary key, or a first column named like a key."""
        keys = self._keys[table.full_name]
        if keys:
            return keys[0] if len(keys) == 1 else ""
        first = table.columns[0].name if table.columns else ""
        return first if _KEY_NAME_PATTERN.search(first) else ""

    async def _is_valid_join(self, table: Table, column: Column, other: Table, key: str) -> bool:
        """Return whether `other.key` is unique and contains every value of the column.

        A column that is the primary key of its own table refers to no other table.
        """
        many, one = self._format_path(table), self._format_path(other)
        many_column, one_key = self._quote(column.name), self._quote(key)
        counts = await self._fetch_row(
            f"SELECT COUNT(*), COUNT(DISTINCT {many_column}) FROM {many} WHERE NOT {many_column} IS NULL"  # noqa: S608 - quoted by sqlglot
        )
        if not counts or not counts[0] or (column.primary_key and counts[0] == counts[1]):
            return False
        duplicate_keys = await self._fetch_row(
            f"SELECT COUNT(*) FROM (SELECT {one_key} FROM {one} GROUP BY {one_key} HAVING COUNT(*) > 1) AS d"  # noqa: S608 - as above
        )
        if duplicate_keys != (0,):
            return False
        orphans = await self._fetch_row(
            f"SELECT COUNT(*) FROM {many} AS m LEFT JOIN {one} AS o ON m.{many_column} = o.{one_key} "  # noqa: S608 - as above
            f"WHERE NOT m.{many_column} IS NULL AND o.{one_key} IS NULL"
        )
        return orphans == (0,)

    async def _fetch_row(self, sql: str) -> tuple[Any, ...]:
        """Return the first row of a query; () if the query returns no row or fails."""
        try:
            result = await self._database.run(sql, limits=QueryLimits(max_rows=1))
        except ToolError:
            return ()
        return result.rows[0] if result.rows else ()

    def _quote(self, name: str) -> str:
        quotes = "mysql" if self._database.dialect == "mysql" else "postgres"
        return str(build_identifier(name).sql(dialect=quotes))

    def _format_path(self, table: Table) -> str:
        name = self._quote(table.name)
        return f"{self._quote(table.schema)}.{name}" if table.schema else name

    def _add_count_metric(self, table: Table) -> None:
        self._metrics[self._allocate_id(f"{table.name}_count")] = {
            "expr": "COUNT(*)",
            "table": self._names[table.full_name],
            "synonyms": [f"number of {_name_to_words(table.name)}"],
        }

    async def _add_column_terms(self, table: Table, column: Column) -> None:
        """Add the time, the dimension, or the sum and average of a column, by its type."""
        match get_column_kind(column):
            case "date":
                if await self._has_parsable_dates(table, column):
                    self._times.setdefault(table.full_name, self._quote(column.name))
            case "number" if "bool" not in column.type.casefold():
                if not _KEY_NAME_PATTERN.search(column.name) and not column.references:
                    self._add_sum_and_average(table, column)
            case "number" | "text":
                await self._add_dimension(table, column)

    def _add_sum_and_average(self, table: Table, column: Column) -> None:
        for function, word in (("SUM", "total"), ("AVG", "average")):
            short_name = f"{word}_{column.name}"
            ref = self._allocate_id(short_name, f"{word}_{table.name}_{column.name}")
            metric: dict[str, Any] = {
                "expr": f"{function}({self._quote(column.name)})",
                "table": self._names[table.full_name],
            }
            if ref.casefold() == re.sub(r"\W+", "_", short_name).casefold():
                metric["synonyms"] = [f"{word} {_name_to_words(column.name)}"]
            self._metrics[ref] = metric

    async def _add_dimension(self, table: Table, column: Column) -> None:
        expr = self._quote(column.name)
        counts = await self._fetch_row(f"SELECT COUNT(*), COUNT(DISTINCT {expr}) FROM {self._format_path(table)}")  # noqa: S608 - quoted by sqlglot
        if not counts or not counts[1]:
            return
        row_count, value_count = counts
        has_few_values = value_count <= min(_MAX_DIMENSION_VALUES, max(row_count - 1, 1))
        if has_few_values or _LABEL_NAME_PATTERN.search(column.name):
            ref = self._allocate_id(column.name, f"{table.name}_{column.name}")
            self._dimensions[ref] = {"expr": expr, "table": self._names[table.full_name]}

    async def _has_parsable_dates(self, table: Table, column: Column) -> bool:
        """Return whether the engine parses the dates of a column.

        SQLite stores dates as any text.
        """
        if self._database.dialect != "sqlite":
            return True
        name = self._quote(column.name)
        counts = await self._fetch_row(
            f"SELECT COUNT({name}), COUNT(STRFTIME('%Y', {name})) FROM {self._format_path(table)}"  # noqa: S608 - quoted by sqlglot
        )
        return bool(counts) and counts[0] > 0 and counts[0] == counts[1]


def _assign_table_names(tables: list[Table]) -> dict[str, str]:
    """Assign a name to each table, by full name.

    A name that the short form cannot express is replaced.
    """
    used_names = {table.name.casefold() for table in tables}
    names: dict[str, str] = {}
    for table in tables:
        name = table.name
        if table.schema or split_source(name) != [name]:
            plain = re.sub(r"[^\w]+", "_", table.full_name).strip("_") or "table"
            candidates = (plain, *(f"{plain}_{number}" for number in range(2, 999)))
            name = next(candidate for candidate in candidates if candidate.casefold() not in used_names)
            used_names.add(name.casefold())
        names[table.full_name] = name
    return names


def _format_source(table: Table) -> str:
    """Format the source of a table; names with separators are quoted."""
    parts = [table.schema, table.name] if table.schema else [table.name]
    return ".".join(part if split_source(part) == [part] else '"' + part.replace('"', '""') + '"' for part in parts)


def _quote_name(name: str) -> str:
    return name if re.fullmatch(r"\w+", name) else '"' + name.replace('"', '""') + '"'


def _is_same_key(column: str, key: str) -> bool:
    """Return whether a column has the name of a key, without short prefixes."""
    without_prefix = [re.sub(r"^[a-z]{1,3}_", "", name.casefold()) for name in (column, key)]
    return without_prefix[0] == without_prefix[1] and key.casefold() not in ("id", "key")


def _strip_key_suffix(name: str) -> str:
    return re.sub(r"(?:[_\s]?(?:id|key))$", "", name, flags=re.IGNORECASE).replace("_", "").casefold()


def _name_to_words(name: str) -> str:
    return " ".join(re.split(r"[_\s]+", split_camel_case(name))).strip().casefold()
