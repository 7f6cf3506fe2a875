"""The catalog of a database: its schema with samples, and the part of it that a question needs."""

import asyncio
import math
import time
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Collection, Mapping, Sequence

from opposable.ask.catalog.schema_view import SchemaView, TableView, estimate_tokens
from opposable.ask.catalog.table_samples import read_samples
from opposable.domain.text_normalization import extract_index_words, normalize_text, singularize, split_identifier
from opposable.sql.database import Database
from opposable.sql.schema import Column, DatabaseSchema, Table

MAX_READING_SECONDS = 20.0
"""The time for reading samples; later tables have none."""

_TABLE_NAME_WEIGHT, _COLUMN_NAME_WEIGHT, _COMMENT_WEIGHT, _SAMPLE_WEIGHT = 4.0, 2.0, 1.0, 0.7
_NEIGHBOR_WEIGHT = 0.25
_MAX_JOIN_DISTANCE = 3
_MAX_TABLE_BUDGET_SHARE = 0.35
"""The largest share of the budget for one table, after the first."""
_MIN_COLUMNS = 4

Samples = Mapping[str, Mapping[str, Sequence[str]]]
"""A few values of each column, by the full name of the table and the name of the column."""

WordWeights = dict[str, float]


class Catalog:
    """The schema of a database with samples, of which it selects the part that a question needs.

    `synonyms` are other names of tables ("orders") and columns ("orders.amount").
    """

    def __init__(self, schema: DatabaseSchema, samples: Samples, synonyms: Mapping[str, Sequence[str]]) -> None:
        self.schema = schema
        self.samples = samples
        self._tables = {table.full_name: table for table in schema.tables}
        self._joinable_tables = _find_joinable_tables(schema)
        self._column_weights: dict[tuple[str, str], WordWeights] = {}
        self._table_weights: dict[str, WordWeights] = {}
        for name, table in self._tables.items():
            merged = self._table_weights[name] = _weigh_words(table, (), synonyms.get(name, ()), _TABLE_NAME_WEIGHT)
            for column in table.columns:
                values = samples.get(name, {}).get(column.name, ())
                names = synonyms.get(f"{name}.{column.name}", ())
                weights = _weigh_words(column, values, names, _COLUMN_NAME_WEIGHT)
                self._column_weights[name, column.name] = weights
                merged |= {word: max(weight, merged.get(word, 0)) for word, weight in weights.items()}
        counts = Counter(word for weights in self._table_weights.values() for word in weights)
        self._rarity = {word: math.log(1 + len(self._tables) / count) for word, count in counts.items()}
        complete = [tuple(_view_table(one, one.columns, shown) for one in schema.tables) for shown in (samples, {})]
        self._complete_views = [(views, sum(map(self._count_tokens, views))) for views in complete]

    async def select_schema(self, question: str, budget_tokens: int = 3_000) -> SchemaView:
        """Return the tables and columns for a question, with at least one table and about `budget_tokens` of DDL.

        A schema that fits the budget is shown whole.
        """
        return await asyncio.to_thread(self._select, question, budget_tokens)

    def _select(self, question: str, budget_tokens: int) -> SchemaView:
        for views, tokens in self._complete_views:
            if tokens <= budget_tokens:
                return SchemaView(self.schema.dialect, views)
        words = {singularize(word) for word in extract_index_words(normalize_text(question))} & self._rarity.keys()
        scores = {name: self._score_table(weights, words) for name, weights in self._table_weights.items()}
        selected: dict[str, TableView] = {}
        remaining = budget_tokens
        for name in self._rank_tables(scores):
            is_unrelated = scores[name] <= 0 and remaining < budget_tokens // 4
            names = sorted((column.name for column in self._tables[name].columns), key=estimate_tokens)[:_MIN_COLUMNS]
            if selected and (is_unrelated or estimate_tokens("".join(names)) > remaining):  # no view is shorter
                continue
            limit = min(remaining, int(budget_tokens * _MAX_TABLE_BUDGET_SHARE)) if selected else remaining
            view = self._fit_table(self._tables[name], words, limit)
            tokens = self._count_tokens(view)
            if not selected or tokens <= remaining:
                selected[name] = view
                remaining -= tokens
        shown = tuple(selected[name] for name in self._tables if name in selected)
        return SchemaView(self.schema.dialect, shown, len(self._tables) - len(selected))

    def _score_table(self, weights: WordWeights, words: set[str]) -> float:
        """Sum the weights of the words; a table whose whole name occurs scores more."""
        name_words = {word for word, weight in weights.items() if weight == _TABLE_NAME_WEIGHT}
        is_named = bool(name_words) and name_words <= words
        return self._sum_weights(weights, words) + (2 * _TABLE_NAME_WEIGHT if is_named else 0)

    def _sum_weights(self, weights: WordWeights, words: set[str]) -> float:
        return math.fsum(weights[word] * self._rarity[word] for word in words if word in weights)

    def _rank_tables(self, scores: Mapping[str, float]) -> list[str]:
        """Rank all tables, best first; the tables that join a table to those before it precede it."""
        totals = {
            name: score + _NEIGHBOR_WEIGHT * max((scores[other] for other in self._joinable_tables[name]), default=0)
            for name, score in scores.items()
        }
        ranked: dict[str, None] = {}
        for name in sorted(totals, key=lambda name: (-totals[name], -len(self._joinable_tables[name]), name)):
            if scores[name] > 0:
                ranked |= dict.fromkeys(self._find_join_path(name, ranked))
            ranked[name] = None
        return list(ranked)

    def _find_join_path(self, start: str, ranked_tables: Mapping[str, None]) -> list[str]:
        """Return the tables between `start` and the nearest ranked table, or []."""
        queue: deque[list[str]] = deque([[start]])
        seen = {start}
        while ranked_tables and start not in ranked_tables and queue:
            path = queue.popleft()
            if path[-1] in ranked_tables:
                return path[:0:-1]
            if len(path) <= _MAX_JOIN_DISTANCE:
                others = [other for other in self._joinable_tables[path[-1]] if other not in seen]
                seen.update(others)
                queue += [[*path, other] for other in others]
        return []

    def _fit_table(self, table: Table, words: set[str], budget_tokens: int) -> TableView:
        """Return a view of a table that fits the budget: without samples, then without the columns that score least."""
        view = _view_table(table, table.columns, self.samples)
        if self._count_tokens(view) <= budget_tokens:
            return view
        weights = {column.name: self._column_weights[table.full_name, column.name] for column in table.columns}
        scores = {name: self._sum_weights(one, words) / math.sqrt(max(len(one), 1)) for name, one in weights.items()}
        ranked = sorted(table.columns, key=lambda column: (not column.is_key, -scores[column.name]))
        fewest = max(sum(column.is_key for column in ranked), min(len(ranked), _MIN_COLUMNS))
        counts = range(fewest, len(ranked) + 1)
        fit = bisect_right(counts, budget_tokens, key=lambda n: self._count_tokens(_view_table(table, ranked[:n], {})))
        return _view_table(table, ranked[: counts[max(0, fit - 1)]], {})

    def _count_tokens(self, view: TableView) -> int:
        return estimate_tokens(view.to_ddl(self.schema.dialect))


async def open_catalog(
    database: Database, synonyms: Mapping[str, Sequence[str]] | None = None, private_columns: Collection[str] = ()
) -> Catalog:
    """Read the schema of a database, and samples from the first rows of its tables.

    `private_columns` have no samples: "email", "customers.email", or "*" for all.
    """
    schema = await database.get_schema()
    deadline = time.monotonic() + MAX_READING_SECONDS
    samples = {
        table.full_name: await read_samples(database, table, private_columns) if time.monotonic() < deadline else {}
        for table in schema.tables
    }
    return await asyncio.to_thread(Catalog, schema, samples, synonyms or {})


def _view_table(table: Table, columns: Sequence[Column], samples: Samples) -> TableView:
    names = {column.name for column in columns}
    shown = tuple(column for column in table.columns if column.name in names)
    return TableView(table, shown, samples.get(table.full_name, {}))


def _weigh_words(item: Table | Column, values: Sequence[str], synonyms: Sequence[str], weight: float) -> WordWeights:
    """Return the words that may name a table or column, with their weights."""
    weights: WordWeights = {}
    for value in values:
        weights |= {singularize(w): _SAMPLE_WEIGHT for w in extract_index_words(normalize_text(value)) if len(w) > 1}
    weights |= {singularize(w): _COMMENT_WEIGHT for w in extract_index_words(normalize_text(item.comment or ""))}
    for name in [*synonyms, item.name]:
        weights |= dict.fromkeys(split_identifier(name), weight)
    return weights


def _find_joinable_tables(schema: DatabaseSchema) -> dict[str, tuple[str, ...]]:
    """Return the tables that each table joins, by full name.

    Tables join by foreign keys, and a column without one joins the table whose primary key it is named after.
    """
    joinable: dict[str, dict[str, None]] = {table.full_name: {} for table in schema.tables}
    tables_by_key_name = _index_tables_by_key_name(schema)
    for table in schema.tables:
        for column in table.columns:
            named = tables_by_key_name.get(column.name.casefold(), [])
            referenced = schema.find_table(column.references.rpartition(".")[0]) if column.references else None
            for other in [referenced] if referenced else named if len(named) <= 3 else []:
                if other is not table:
                    joinable[table.full_name][other.full_name] = None
                    joinable[other.full_name][table.full_name] = None
    return {name: tuple(others) for name, others in joinable.items()}


def _index_tables_by_key_name(schema: DatabaseSchema) -> dict[str, list[Table]]:
    """Return the tables by the names of columns that refer to them (`order_id`)."""
    tables_by_key_name: dict[str, list[Table]] = {}
    for table in schema.tables:
        if len(table.primary_key) == 1:
            key, stem = table.primary_key[0].casefold(), singularize(table.name.casefold())
            for name in {f"{stem}_{key}", f"{stem}{key}", f"{stem}_id"} | ({key} - {"id", "code", "name"}):
                tables_by_key_name.setdefault(name, []).append(table)
    return tables_by_key_name
