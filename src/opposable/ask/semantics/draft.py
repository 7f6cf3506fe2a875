"""Drafts a semantic model of a database, with joins that fit its data."""

import re
from dataclasses import replace
from typing import Any

from opposable.ask.catalog.table_samples import get_column_kind
from opposable.ask.semantics.join_graph import build_join_query, find_reachable_tables, split_source
from opposable.ask.semantics.lint import LintState, check_join, check_time
from opposable.ask.semantics.model import Join, ModelTable, SemanticModel
from opposable.ask.sql_trees import build_column, build_identifier, exp
from opposable.domain.text_normalization import split_camel_case
from opposable.sql.database import Database
from opposable.sql.schema import Column, Table

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
    schema = await database.get_schema()
    tables: dict[str, Table] = {}
    for table in [table for table in schema.tables if table.kind == "table"][:_MAX_TABLES]:
        tables[_choose_table_id(table, {other.name for other in schema.tables} | tables.keys())] = table
    models = {ref: ModelTable(id=ref, source=_format_source(table)) for ref, table in tables.items()}
    drafter = _Drafter(LintState(SemanticModel(tables=models), database, schema), tables)
    await drafter.draft()
    return drafter.to_yaml()


class _Drafter:
    """Collects the joins, metrics and dimensions of a draft.

    `state` has a semantic model of the tables alone, and the checks of the linter. `tables` has their ids in the model.
    """

    def __init__(self, state: LintState, tables: dict[str, Table]) -> None:
        self._state = state
        self._tables = tables
        self._used_ids: set[str] = set()
        self._joins: list[Join] = []
        self._table_entries: dict[str, dict[str, str]] = {
            ref: {"source": table.source} if table.source != ref else {} for ref, table in state.model.tables.items()
        }
        self._metrics: dict[str, Any] = {}
        self._dimensions: dict[str, Any] = {}

    async def draft(self) -> None:
        """Collect the joins, then the terms of the other columns."""
        for ref, table in self._tables.items():
            for column in table.columns:
                await self._add_join(ref, column)
        join_columns = {(join.many, join.on[0][0]) for join in self._joins}
        for ref, table in self._tables.items():
            words = _name_to_words(ref)
            self._metrics[self._allocate_id(f"{ref}_count")] = _build_term("COUNT(*)", ref, f"number of {words}")
            for column in table.columns:
                if not column.primary_key and (ref, column.name) not in join_columns:
                    await self._add_column_terms(ref, column)

    def to_yaml(self) -> str:
        """Return the draft as YAML."""
        import yaml

        data: dict[str, Any] = {
            "name": re.sub(r"\.\w+$", "", self._state.database.name),
            "tables": {ref: entry for ref, entry in self._table_entries.items() if entry},
            "joins": [join.text for join in self._joins],
        }
        data = {k: v for k, v in data.items() if v} | {"metrics": self._metrics, "dimensions": self._dimensions}
        return str(yaml.safe_dump(data, allow_unicode=True, sort_keys=False, width=120))

    def _quote(self, name: str) -> str:
        return str(build_identifier(name).sql(dialect=self._state.database.dialect))

    def _allocate_id(self, *candidates: str) -> str:
        """Return the first unused candidate, as an id."""
        chosen = _choose_unused([_to_id(name) or "term" for name in candidates], self._used_ids)
        self._used_ids.add(chosen.casefold())
        return chosen

    async def _add_join(self, ref: str, column: Column) -> None:
        """Add the first join of a column that the linter accepts."""
        for other, key in self._find_join_candidates(ref, column):
            join = Join(many=ref, one=other, on=((column.name, key),))
            await check_join(checks := replace(self._state, findings=[]), join)
            if not checks.findings:
                self._joins.append(join)
                return

    def _find_join_candidates(self, ref: str, column: Column) -> list[tuple[str, str]]:
        """Return the tables, with their keys, that a column may refer to: none for the primary key of its table."""
        if self._tables[ref].primary_key == (column.name,):
            return []
        others = {other: table for other, table in self._tables.items() if other != ref}
        if column.references:
            name, _, key = column.references.rpartition(".")
            referenced = self._state.schema.find_table(name)
            return [(other, key) for other, table in others.items() if table is referenced]
        if not _KEY_NAME_PATTERN.search(column.name):
            return []
        candidates: list[tuple[str, str]] = []
        for other, table in others.items():
            keys = table.primary_key or tuple(c.name for c in table.columns[:1] if _KEY_NAME_PATTERN.search(c.name))
            key = keys[0] if len(keys) == 1 else ""
            stem = _strip_key_suffix(table.name)
            is_named = _strip_key_suffix(column.name) in (stem, stem.rstrip("s"))
            names = {re.sub(r"^[a-z]{1,3}_", "", name.casefold()) for name in (column.name, key)}
            is_same = len(names) == 1 and key.casefold() not in ("id", "key")
            if key and (is_named or is_same):
                candidates.append((other, key))
        return candidates

    async def _add_column_terms(self, ref: str, column: Column) -> None:
        """Add the time, the dimension, or the sum and average of a column, by its type."""
        match get_column_kind(column):
            case "date" if "time" not in self._table_entries[ref]:
                time, reachable = self._quote(column.name), find_reachable_tables(self._state.model, ref)
                await check_time(checks := replace(self._state, findings=[]), time, reachable, ())
                if not checks.findings:
                    self._table_entries[ref]["time"] = time
            case "number" if "bool" not in column.type.casefold():
                if not _KEY_NAME_PATTERN.search(column.name) and not column.references:
                    await self._add_sum_and_average(ref, column)
            case "number" | "text":
                await self._add_dimension(ref, column)

    async def _add_sum_and_average(self, ref: str, column: Column) -> None:
        """Add the sum and the average of a column, if its type has them: intervals and bits may have neither."""
        for function, word in (("SUM", "total"), ("AVG", "average")):
            query = build_join_query(self._state.model, ref).select(exp.func(function, build_column(column.name, ref)))
            if await self._state.fetch_rows(query.where(exp.false()), ()) is None:
                continue
            name = f"{word}_{column.name}"
            metric_id = self._allocate_id(name, f"{word}_{self._tables[ref].name}_{column.name}")
            is_short = metric_id.casefold() == re.sub(r"\W+", "_", name).casefold()
            synonyms = [f"{word} {_name_to_words(column.name)}"] if is_short else []
            self._metrics[metric_id] = _build_term(f"{function}({self._quote(column.name)})", ref, *synonyms)

    async def _add_dimension(self, ref: str, column: Column) -> None:
        tree = build_column(column.name, ref)
        query = build_join_query(self._state.model, ref).select(exp.Count(this=exp.Star()))
        rows = await self._state.fetch_rows(query.select(exp.Count(this=exp.Distinct(expressions=[tree]))), ())
        if not rows or not rows[0][1]:
            return
        row_count, value_count = rows[0]
        has_few_values = value_count <= min(_MAX_DIMENSION_VALUES, max(row_count - 1, 1))
        if has_few_values or _LABEL_NAME_PATTERN.search(column.name):
            dimension_id = self._allocate_id(column.name, f"{self._tables[ref].name}_{column.name}")
            self._dimensions[dimension_id] = _build_term(self._quote(column.name), ref)


def _build_term(expr: str, table: str, *synonyms: str) -> dict[str, Any]:
    return {"expr": expr, "table": table, **({"synonyms": list(synonyms)} if synonyms else {})}


def _choose_unused(candidates: list[str], used_names: set[str]) -> str:
    """Return the first candidate that is not used, else the last one with a number."""
    numbered = [f"{candidates[-1]}_{number}" for number in range(2, 999)]
    return next(name for name in (*candidates, *numbered) if name.casefold() not in used_names)


def _choose_table_id(table: Table, used_names: set[str]) -> str:
    """Return the name of a table, or another one if a semantic model cannot express it."""
    if not table.schema and split_source(table.name) == [table.name]:
        return table.name
    return _choose_unused([_to_id(table.full_name) or "table"], {name.casefold() for name in used_names})


def _to_id(name: str) -> str:
    return re.sub(r"\W+", "_", name).strip("_")


def _format_source(table: Table) -> str:
    """Format the source of a table; names with separators are quoted."""
    parts = [table.schema, table.name] if table.schema else [table.name]
    return ".".join(part if split_source(part) == [part] else '"' + part.replace('"', '""') + '"' for part in parts)


def _strip_key_suffix(name: str) -> str:
    return re.sub(r"(?:[_\s]?(?:id|key))$", "", name, flags=re.IGNORECASE).replace("_", "").casefold()


def _name_to_words(name: str) -> str:
    return " ".join(re.split(r"[_\s]+", split_camel_case(name))).strip().casefold()
