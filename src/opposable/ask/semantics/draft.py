"""Drafts a semantic model of a database, in the short form, with joins that were tried on its data."""

import re
from dataclasses import dataclass, field
from typing import Any

from opposable.ask.semantics.join_graph import build_identifier, split_source
from opposable.domain.errors import ToolError
from opposable.sql.database import Database, QueryLimits
from opposable.sql.schema import Column, DatabaseSchema, Table

_MAX_DIMENSION_VALUES = 60
"""A text column with at most this many values, and fewer than its rows, is a dimension."""
_MAX_TABLES = 60
_NUMERIC_TYPE_NAMES = ("INT", "DEC", "NUM", "REAL", "DOUB", "FLOA", "MONEY", "HUGE")
_DATE_TYPE_NAMES = ("DATE", "TIME")
_TEXT_TYPE_NAMES = ("CHAR", "TEXT", "STRING", "CLOB", "ENUM")
_KEY_NAME_PATTERN = re.compile(
    r"(?:^|[_\s])(?:id|key|code|no|nr|zip|phone|fax|year|latitude|longitude)$|(?<=[a-z])(?:Id|ID|Key|Code)$",
    re.IGNORECASE,
)


@dataclass(slots=True)
class _DraftState:
    database: Database
    schema: DatabaseSchema
    joins: list[tuple[str, str, str, str]] = field(default_factory=list)
    used_ids: set[str] = field(default_factory=set)
    table_names: dict[str, str] = field(default_factory=dict)
    """What the model calls each table, by its full name."""

    def allocate_id(self, *candidates: str) -> str:
        """The first of these names that is free, as an id."""
        names = [re.sub(r"[^\w]+", "_", name).strip("_") or "term" for name in candidates]
        names += [f"{names[-1]}_{number}" for number in range(2, 100)]
        chosen = next(name for name in names if name.casefold() not in self.used_ids)
        self.used_ids.add(chosen.casefold())
        return chosen


async def draft_semantic_model(database: Database) -> str:
    """YAML of a first semantic model: joins, dimensions of few values, and counts, sums and averages.

    Joins come from foreign keys and from column names, and stand only where the data bears them out. What the names
    mean to people (synonyms, units, default filters) is left to be written.
    """
    import yaml

    state = _DraftState(database, await database.get_schema())
    tables = [table for table in state.schema.tables if table.kind == "table"][:_MAX_TABLES]
    _assign_table_names(state, tables)
    keys = {table.full_name: [c.name for c in table.columns if c.primary_key] for table in tables}
    for table in tables:
        for column in table.columns:
            await _add_join(state, table, column, tables, keys)
    linked = {(many, column) for many, column, _, _ in state.joins}
    metrics: dict[str, Any] = {}
    dimensions: dict[str, Any] = {}
    times: dict[str, str] = {}
    for table in tables:
        metrics |= _build_count_metric(state, table)
        for column in table.columns:
            if (table.full_name, column.name) in linked or column.name in keys[table.full_name]:
                continue
            await _add_column_terms(state, table, column, metrics, dimensions, times)
    data: dict[str, Any] = {"name": re.sub(r"\.\w+$", "", database.name)}
    renamed = [table for table in tables if state.table_names[table.full_name] != table.name]
    declared = {state.table_names[table.full_name]: {"source": _format_source(table)} for table in renamed}
    for name, time in times.items():
        declared.setdefault(state.table_names[name], {})["time"] = time
    data |= {"tables": declared} if declared else {}
    names = state.table_names
    joins = [
        f"{_quote_name(names[a])}.{_quote_name(b)} = {_quote_name(names[c])}.{_quote_name(d)}"
        for a, b, c, d in state.joins
    ]
    data |= {"joins": joins} if joins else {}
    data |= {"metrics": metrics, "dimensions": dimensions}
    return str(yaml.safe_dump(data, allow_unicode=True, sort_keys=False, width=120))


def _assign_table_names(state: _DraftState, tables: list[Table]) -> None:
    """Gives each table the name it has, or one without signs where that could be read as a path or in another way."""
    taken = {table.name.casefold() for table in tables}
    for table in tables:
        name = table.name
        if table.schema or split_source(name) != [name]:
            plain = re.sub(r"[^\w]+", "_", table.full_name).strip("_") or "table"
            name = next(n for n in (plain, *(f"{plain}_{i}" for i in range(2, 999))) if n.casefold() not in taken)
            taken.add(name.casefold())
        state.table_names[table.full_name] = name


def _format_source(table: Table) -> str:
    """The table as `source` names it: in quotes where a sign in its name would be read otherwise."""
    parts = [table.schema, table.name] if table.schema else [table.name]
    return ".".join(part if split_source(part) == [part] else '"' + part.replace('"', '""') + '"' for part in parts)


def _quote_name(name: str) -> str:
    return name if re.fullmatch(r"\w+", name) else '"' + name.replace('"', '""') + '"'


def _quote_sql_name(name: str) -> str:
    return str(build_identifier(name).sql(dialect="postgres"))


def _build_count_metric(state: _DraftState, table: Table) -> dict[str, Any]:
    ref = state.allocate_id(f"{table.name}_count")
    return {
        ref: {
            "expr": "COUNT(*)",
            "table": state.table_names[table.full_name],
            "synonyms": [f"number of {_split_name_into_words(table.name)}"],
        }
    }


async def _add_join(
    state: _DraftState, table: Table, column: Column, tables: list[Table], keys: dict[str, list[str]]
) -> None:
    """The join that a column makes, by its foreign key or by its name, when every value finds exactly one row."""
    for other, key in _find_join_candidates(state, table, column, tables, keys):
        if await _is_valid_join(state, table, column.name, other, key):
            state.joins.append((table.full_name, column.name, other.full_name, key))
            return


def _find_join_candidates(
    state: _DraftState, table: Table, column: Column, tables: list[Table], keys: dict[str, list[str]]
) -> list[tuple[Table, str]]:
    if column.references:
        name, _, key = column.references.rpartition(".")
        other = state.schema.find_table(name)
        return [(other, key)] if other is not None and other.full_name != table.full_name else []
    if not _KEY_NAME_PATTERN.search(column.name):
        return []
    bare = _strip_key_suffix(column.name)
    found: list[tuple[Table, str]] = []
    for other in tables:
        own = keys[other.full_name]
        first = other.columns[0].name if other.columns else ""
        key = own[0] if len(own) == 1 else first if not own and _KEY_NAME_PATTERN.search(first) else ""
        if other.full_name == table.full_name or not key:
            continue
        stem = re.sub(r"^[a-z]{1,3}_", "", column.name.casefold())
        same = stem == re.sub(r"^[a-z]{1,3}_", "", key.casefold()) and key.casefold() not in ("id", "key")
        if same or bare in (_strip_key_suffix(other.name), _strip_key_suffix(other.name).rstrip("s")):
            found.append((other, key))
    return found


def _strip_key_suffix(name: str) -> str:
    return re.sub(r"(?:[_\s]?(?:id|key))$", "", name, flags=re.IGNORECASE).replace("_", "").casefold()


async def _is_valid_join(state: _DraftState, table: Table, column: str, other: Table, key: str) -> bool:
    """Whether `other.key` is unique and holds every value of `table.column`; its own key is no reference."""
    many, one = _format_table_path(table), _format_table_path(other)
    unique = f"SELECT COUNT(*) FROM (SELECT {_quote_sql_name(key)} FROM {one} GROUP BY {_quote_sql_name(key)} HAVING COUNT(*) > 1) AS d"  # noqa: S608 - quoted by sqlglot
    lost = (
        f"SELECT COUNT(*) FROM {many} AS m LEFT JOIN {one} AS o ON m.{_quote_sql_name(column)} = o.{_quote_sql_name(key)} "  # noqa: S608 - as above
        f"WHERE NOT m.{_quote_sql_name(column)} IS NULL AND o.{_quote_sql_name(key)} IS NULL"
    )
    filled = f"SELECT COUNT(*), COUNT(DISTINCT {_quote_sql_name(column)}) FROM {many} WHERE NOT {_quote_sql_name(column)} IS NULL"  # noqa: S608 - as above
    rows = await _fetch_row(state, filled)
    if (
        not rows
        or not rows[0]
        or (next((c.primary_key for c in table.columns if c.name == column), False) and rows[0] == rows[1])
    ):
        return False
    return await _fetch_row(state, unique) == (0,) and await _fetch_row(state, lost) == (0,)


async def _fetch_row(state: _DraftState, sql: str) -> tuple[Any, ...]:
    try:
        found = await state.database.run(sql, limits=QueryLimits(max_rows=1))
    except ToolError:
        return ()
    return found.rows[0] if found.rows else ()


def _format_table_path(table: Table) -> str:
    return (
        f"{_quote_sql_name(table.schema)}.{_quote_sql_name(table.name)}"
        if table.schema
        else _quote_sql_name(table.name)
    )


async def _add_column_terms(
    state: _DraftState,
    table: Table,
    column: Column,
    metrics: dict[str, Any],
    dimensions: dict[str, Any],
    times: dict[str, str],
) -> None:
    """What one column gives: a time, a dimension, or a sum and an average."""
    kind = column.type.upper()
    name = _split_name_into_words(column.name)
    if any(word in kind for word in _DATE_TYPE_NAMES):
        if await _has_parsable_dates(state, table, column):
            times.setdefault(table.full_name, _quote_sql_name(column.name))
        return
    if any(word in kind for word in _NUMERIC_TYPE_NAMES):
        if _KEY_NAME_PATTERN.search(column.name) or column.references:
            return
        for function, word in (("SUM", "total"), ("AVG", "average")):
            ref = state.allocate_id(f"{word}_{column.name}", f"{word}_{table.name}_{column.name}")
            expr = f"{function}({_quote_sql_name(column.name)})"
            whole = ref.casefold() == re.sub(r"\W+", "_", f"{word}_{column.name}").casefold()
            metrics[ref] = {
                "expr": expr,
                "table": state.table_names[table.full_name],
                **({"synonyms": [f"{word} {name}"]} if whole else {}),
            }
        return
    if any(word in kind for word in _TEXT_TYPE_NAMES) or "BOOL" in kind:
        column_sql = _quote_sql_name(column.name)
        found = await _fetch_row(
            state, f"SELECT COUNT(*), COUNT(DISTINCT {column_sql}) FROM {_format_table_path(table)}"
        )
        named = re.search(r"name$|title$", column.name, re.IGNORECASE) is not None
        if found and found[1] and (found[1] <= min(_MAX_DIMENSION_VALUES, max(found[0] - 1, 1)) or named):
            dimensions[state.allocate_id(column.name, f"{table.name}_{column.name}")] = {
                "expr": column_sql,
                "table": state.table_names[table.full_name],
            }


async def _has_parsable_dates(state: _DraftState, table: Table, column: Column) -> bool:
    """Whether a column's values are dates that the engine reads."""
    name = _quote_sql_name(column.name)
    if state.database.dialect != "sqlite":
        return True
    found = await _fetch_row(
        state, f"SELECT COUNT({name}), COUNT(STRFTIME('%Y', {name})) FROM {_format_table_path(table)}"
    )
    return bool(found) and found[0] > 0 and found[0] == found[1]


def _split_name_into_words(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[_\s]+", " ", name).strip().casefold()
