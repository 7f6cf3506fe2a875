"""Drafts a semantic model of a database, in the short form, with joins that were tried on its data."""

import re
from dataclasses import dataclass, field
from typing import Any

from opposable.ask.semantics.join_graph import identifier, source_parts
from opposable.domain.errors import ToolError
from opposable.sql.database import Database, Limits
from opposable.sql.schema import Column, Schema, Table

_FEW = 60
"""A text column with at most this many values, and fewer than its rows, is a dimension."""
_MAX_TABLES = 60
_NUMBERS = ("INT", "DEC", "NUM", "REAL", "DOUB", "FLOA", "MONEY", "HUGE")
_DATES = ("DATE", "TIME")
_TEXTS = ("CHAR", "TEXT", "STRING", "CLOB", "ENUM")
_KEYISH = re.compile(
    r"(?:^|[_\s])(?:id|key|code|no|nr|zip|phone|fax|year|latitude|longitude)$|(?<=[a-z])(?:Id|ID|Key|Code)$",
    re.IGNORECASE,
)


@dataclass(slots=True)
class _Draft:
    database: Database
    schema: Schema
    joins: list[tuple[str, str, str, str]] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    names: dict[str, str] = field(default_factory=dict)
    """What the model calls each table, by its full name."""

    def id(self, *candidates: str) -> str:
        """The first of these names that is free, as an id."""
        names = [re.sub(r"[^\w]+", "_", name).strip("_") or "term" for name in candidates]
        names += [f"{names[-1]}_{number}" for number in range(2, 100)]
        chosen = next(name for name in names if name.casefold() not in self.ids)
        self.ids.add(chosen.casefold())
        return chosen


async def draft(database: Database) -> str:
    """YAML of a first semantic model: joins, dimensions of few values, and counts, sums and averages.

    Joins come from foreign keys and from column names, and stand only where the data bears them out. What the names
    mean to people (synonyms, units, default filters) is left to be written.
    """
    import yaml

    state = _Draft(database, await database.schema())
    tables = [table for table in state.schema.tables if table.kind == "table"][:_MAX_TABLES]
    _name_tables(state, tables)
    keys = {table.full_name: [c.name for c in table.columns if c.primary_key] for table in tables}
    for table in tables:
        for column in table.columns:
            await _join(state, table, column, tables, keys)
    linked = {(many, column) for many, column, _, _ in state.joins}
    metrics: dict[str, Any] = {}
    dimensions: dict[str, Any] = {}
    times: dict[str, str] = {}
    for table in tables:
        metrics |= _count(state, table)
        for column in table.columns:
            if (table.full_name, column.name) in linked or column.name in keys[table.full_name]:
                continue
            await _column(state, table, column, metrics, dimensions, times)
    data: dict[str, Any] = {"name": re.sub(r"\.\w+$", "", database.name)}
    renamed = [table for table in tables if state.names[table.full_name] != table.name]
    declared = {state.names[table.full_name]: {"source": _source(table)} for table in renamed}
    for name, time in times.items():
        declared.setdefault(state.names[name], {})["time"] = time
    data |= {"tables": declared} if declared else {}
    names = state.names
    joins = [f"{_part(names[a])}.{_part(b)} = {_part(names[c])}.{_part(d)}" for a, b, c, d in state.joins]
    data |= {"joins": joins} if joins else {}
    data |= {"metrics": metrics, "dimensions": dimensions}
    return str(yaml.safe_dump(data, allow_unicode=True, sort_keys=False, width=120))


def _name_tables(state: _Draft, tables: list[Table]) -> None:
    """Gives each table the name it has, or one without signs where that could be read as a path or in another way."""
    taken = {table.name.casefold() for table in tables}
    for table in tables:
        name = table.name
        if table.schema or source_parts(name) != [name]:
            plain = re.sub(r"[^\w]+", "_", table.full_name).strip("_") or "table"
            name = next(n for n in (plain, *(f"{plain}_{i}" for i in range(2, 999))) if n.casefold() not in taken)
            taken.add(name.casefold())
        state.names[table.full_name] = name


def _source(table: Table) -> str:
    """The table as `source` names it: in quotes where a sign in its name would be read otherwise."""
    parts = [table.schema, table.name] if table.schema else [table.name]
    return ".".join(part if source_parts(part) == [part] else '"' + part.replace('"', '""') + '"' for part in parts)


def _part(name: str) -> str:
    return name if re.fullmatch(r"\w+", name) else '"' + name.replace('"', '""') + '"'


def _sql(name: str) -> str:
    return str(identifier(name).sql(dialect="postgres"))


def _count(state: _Draft, table: Table) -> dict[str, Any]:
    ref = state.id(f"{table.name}_count")
    return {
        ref: {
            "expr": "COUNT(*)",
            "table": state.names[table.full_name],
            "synonyms": [f"number of {_words(table.name)}"],
        }
    }


async def _join(state: _Draft, table: Table, column: Column, tables: list[Table], keys: dict[str, list[str]]) -> None:
    """The join that a column makes, by its foreign key or by its name, when every value finds exactly one row."""
    for other, key in _targets(state, table, column, tables, keys):
        if await _fits(state, table, column.name, other, key):
            state.joins.append((table.full_name, column.name, other.full_name, key))
            return


def _targets(
    state: _Draft, table: Table, column: Column, tables: list[Table], keys: dict[str, list[str]]
) -> list[tuple[Table, str]]:
    if column.references:
        name, _, key = column.references.rpartition(".")
        other = state.schema.find_table(name)
        return [(other, key)] if other is not None and other.full_name != table.full_name else []
    if not _KEYISH.search(column.name):
        return []
    bare = _bare(column.name)
    found: list[tuple[Table, str]] = []
    for other in tables:
        own = keys[other.full_name]
        first = other.columns[0].name if other.columns else ""
        key = own[0] if len(own) == 1 else first if not own and _KEYISH.search(first) else ""
        if other.full_name == table.full_name or not key:
            continue
        stem = re.sub(r"^[a-z]{1,3}_", "", column.name.casefold())
        same = stem == re.sub(r"^[a-z]{1,3}_", "", key.casefold()) and key.casefold() not in ("id", "key")
        if same or bare in (_bare(other.name), _bare(other.name).rstrip("s")):
            found.append((other, key))
    return found


def _bare(name: str) -> str:
    return re.sub(r"(?:[_\s]?(?:id|key))$", "", name, flags=re.IGNORECASE).replace("_", "").casefold()


async def _fits(state: _Draft, table: Table, column: str, other: Table, key: str) -> bool:
    """Whether `other.key` is unique and holds every value of `table.column`; its own key is no reference."""
    many, one = _path(table), _path(other)
    unique = f"SELECT COUNT(*) FROM (SELECT {_sql(key)} FROM {one} GROUP BY {_sql(key)} HAVING COUNT(*) > 1) AS d"  # noqa: S608 - quoted by sqlglot
    lost = (
        f"SELECT COUNT(*) FROM {many} AS m LEFT JOIN {one} AS o ON m.{_sql(column)} = o.{_sql(key)} "  # noqa: S608 - as above
        f"WHERE NOT m.{_sql(column)} IS NULL AND o.{_sql(key)} IS NULL"
    )
    filled = f"SELECT COUNT(*), COUNT(DISTINCT {_sql(column)}) FROM {many} WHERE NOT {_sql(column)} IS NULL"  # noqa: S608 - as above
    rows = await _row(state, filled)
    if (
        not rows
        or not rows[0]
        or (next((c.primary_key for c in table.columns if c.name == column), False) and rows[0] == rows[1])
    ):
        return False
    return await _row(state, unique) == (0,) and await _row(state, lost) == (0,)


async def _row(state: _Draft, sql: str) -> tuple[Any, ...]:
    try:
        found = await state.database.run(sql, limits=Limits(rows=1))
    except ToolError:
        return ()
    return found.rows[0] if found.rows else ()


def _path(table: Table) -> str:
    return f"{_sql(table.schema)}.{_sql(table.name)}" if table.schema else _sql(table.name)


async def _column(
    state: _Draft,
    table: Table,
    column: Column,
    metrics: dict[str, Any],
    dimensions: dict[str, Any],
    times: dict[str, str],
) -> None:
    """What one column gives: a time, a dimension, or a sum and an average."""
    kind = column.type.upper()
    name = _words(column.name)
    if any(word in kind for word in _DATES):
        if await _dated(state, table, column):
            times.setdefault(table.full_name, _sql(column.name))
        return
    if any(word in kind for word in _NUMBERS):
        if _KEYISH.search(column.name) or column.references:
            return
        for function, word in (("SUM", "total"), ("AVG", "average")):
            ref = state.id(f"{word}_{column.name}", f"{word}_{table.name}_{column.name}")
            expr = f"{function}({_sql(column.name)})"
            whole = ref.casefold() == re.sub(r"\W+", "_", f"{word}_{column.name}").casefold()
            metrics[ref] = {
                "expr": expr,
                "table": state.names[table.full_name],
                **({"synonyms": [f"{word} {name}"]} if whole else {}),
            }
        return
    if any(word in kind for word in _TEXTS) or "BOOL" in kind:
        column_sql = _sql(column.name)
        found = await _row(state, f"SELECT COUNT(*), COUNT(DISTINCT {column_sql}) FROM {_path(table)}")  # noqa: S608 - quoted by sqlglot
        named = re.search(r"name$|title$", column.name, re.IGNORECASE) is not None
        if found and found[1] and (found[1] <= min(_FEW, max(found[0] - 1, 1)) or named):
            dimensions[state.id(column.name, f"{table.name}_{column.name}")] = {
                "expr": column_sql,
                "table": state.names[table.full_name],
            }


async def _dated(state: _Draft, table: Table, column: Column) -> bool:
    """Whether a column's values are dates that the engine reads."""
    name = _sql(column.name)
    if state.database.dialect != "sqlite":
        return True
    found = await _row(state, f"SELECT COUNT({name}), COUNT(STRFTIME('%Y', {name})) FROM {_path(table)}")  # noqa: S608 - quoted
    return bool(found) and found[0] > 0 and found[0] == found[1]


def _words(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[_\s]+", " ", name).strip().casefold()
