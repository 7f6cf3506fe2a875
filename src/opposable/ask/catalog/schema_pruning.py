"""Makes a schema fit a number of tokens: the likeliest tables first, and of wide ones the likeliest columns."""

from collections.abc import Mapping, Sequence

from opposable.ask.catalog.schema_linking import Ranking, tables_by_name
from opposable.ask.catalog.schema_view import SchemaView, TableView
from opposable.ask.catalog.text_normalization import token_estimate
from opposable.ask.catalog.value_matching import ValueMatch
from opposable.sql.schema import Column, Schema, Table

_SHARE = 0.35
"""The most of the budget that one table may take."""
_FEWEST = 4


def narrowed(
    schema: Schema,
    ranking: Ranking,
    samples: Mapping[str, Mapping[str, Sequence[str]]],
    question: str,
    matches: Sequence[ValueMatch],
    budget: int,
) -> SchemaView:
    """The view of `schema` for `question` in about `budget` tokens; one table at least, however small the budget."""
    for shown in (samples, {}):
        views = _all_within(schema, shown, matches, budget)
        if views is not None:
            return SchemaView(schema.dialect, tuple(views), tuple(matches))
    scores, columns = ranking.scores(question, matches)
    named = tables_by_name(schema)
    kept: dict[str, TableView] = {}
    left = budget
    for name in ranking.order(scores):
        share = max(left, 0) if not kept else min(left, int(budget * _SHARE))
        view = _fitting(named[name], samples, matches, columns, share)
        cost = _cost(view, schema)
        if kept and (cost > left or (scores[name] <= 0 < len(kept) and left < budget // 4)):
            continue
        kept[name] = view
        left -= cost
    shown_tables = tuple(kept[table.full_name] for table in schema.tables if table.full_name in kept)
    return SchemaView(schema.dialect, shown_tables, tuple(matches), len(schema.tables) - len(kept))


def _all_within(
    schema: Schema, samples: Mapping[str, Mapping[str, Sequence[str]]], matches: Sequence[ValueMatch], budget: int
) -> list[TableView] | None:
    """Every table whole, or None as soon as that is too much."""
    views: list[TableView] = []
    for table in schema.tables:
        views.append(_view(table, table.columns, samples, matches))
        budget -= _cost(views[-1], schema)
        if budget < 0:
            return None
    return views


def _fitting(
    table: Table,
    samples: Mapping[str, Mapping[str, Sequence[str]]],
    matches: Sequence[ValueMatch],
    scores: Mapping[tuple[str, str], float],
    share: int,
) -> TableView:
    """The table with samples, else without, else with its keys and likeliest columns only."""
    for shown in (samples, {}):
        view = _view(table, table.columns, shown, matches)
        if token_estimate(view.ddl("duckdb")) <= share:
            return view
    ranked = sorted(
        range(len(table.columns)),
        key=lambda i: (not _is_key(table.columns[i]), -scores.get((table.full_name, table.columns[i].name), 0), i),
    )
    keys = sum(_is_key(column) for column in table.columns)
    count = max(keys, min(len(ranked), _FEWEST))
    for more in range(count, len(ranked) + 1):
        view = _view(table, [table.columns[i] for i in sorted(ranked[:more])], {}, matches)
        if more > count and token_estimate(view.ddl("duckdb")) > share:
            break
        fitting = view
    return fitting


def _is_key(column: Column) -> bool:
    return column.primary_key or column.references is not None


def _view(
    table: Table,
    columns: Sequence[Column],
    samples: Mapping[str, Mapping[str, Sequence[str]]],
    matches: Sequence[ValueMatch],
) -> TableView:
    shown = {name: tuple(values) for name, values in samples.get(table.full_name, {}).items()}
    own = tuple(match for match in matches if match.table == table.full_name)
    return TableView(table, tuple(columns), shown, own, len(table.columns) - len(columns))


def _cost(view: TableView, schema: Schema) -> int:
    return token_estimate(view.ddl(schema.dialect))
