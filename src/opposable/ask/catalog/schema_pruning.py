"""Makes a schema fit a number of tokens: the likeliest tables first, and of wide ones the likeliest columns."""

from collections.abc import Mapping, Sequence

from opposable.ask.catalog.prompt_text import estimate_tokens
from opposable.ask.catalog.schema_linking import SchemaLinker, index_tables_by_name
from opposable.ask.catalog.schema_view import SchemaView, TableView
from opposable.ask.catalog.value_matching import ValueMatch
from opposable.sql.schema import Column, DatabaseSchema, Table

_MAX_TABLE_BUDGET_SHARE = 0.35
"""The most of the budget that one table may take."""
_MIN_COLUMNS = 4


def prune_schema(
    schema: DatabaseSchema,
    linker: SchemaLinker,
    samples: Mapping[str, Mapping[str, Sequence[str]]],
    question: str,
    matches: Sequence[ValueMatch],
    budget_tokens: int,
) -> SchemaView:
    """The view of `schema` for `question` in about `budget` tokens; one table at least, however small the budget."""
    for shown in (samples, {}):
        views = _view_all_tables(schema, shown, matches, budget_tokens)
        if views is not None:
            return SchemaView(schema.dialect, tuple(views), tuple(matches))
    scores, columns = linker.compute_scores(question, matches)
    named = index_tables_by_name(schema)
    kept: dict[str, TableView] = {}
    left = budget_tokens
    for name in linker.rank_tables(scores):
        share = max(left, 0) if not kept else min(left, int(budget_tokens * _MAX_TABLE_BUDGET_SHARE))
        view = _fit_table(named[name], samples, matches, columns, share)
        cost = _estimate_view_tokens(view, schema)
        if kept and (cost > left or (scores[name] <= 0 < len(kept) and left < budget_tokens // 4)):
            continue
        kept[name] = view
        left -= cost
    shown_tables = tuple(kept[table.full_name] for table in schema.tables if table.full_name in kept)
    return SchemaView(schema.dialect, shown_tables, tuple(matches), len(schema.tables) - len(kept))


def _view_all_tables(
    schema: DatabaseSchema,
    samples: Mapping[str, Mapping[str, Sequence[str]]],
    matches: Sequence[ValueMatch],
    budget_tokens: int,
) -> list[TableView] | None:
    """Every table whole, or None as soon as that is too much."""
    views: list[TableView] = []
    for table in schema.tables:
        views.append(_build_table_view(table, table.columns, samples, matches))
        budget_tokens -= _estimate_view_tokens(views[-1], schema)
        if budget_tokens < 0:
            return None
    return views


def _fit_table(
    table: Table,
    samples: Mapping[str, Mapping[str, Sequence[str]]],
    matches: Sequence[ValueMatch],
    scores: Mapping[tuple[str, str], float],
    budget_tokens: int,
) -> TableView:
    """The table with samples, else without, else with its keys and likeliest columns only."""
    for shown in (samples, {}):
        view = _build_table_view(table, table.columns, shown, matches)
        if estimate_tokens(view.to_ddl("duckdb")) <= budget_tokens:
            return view
    ranked = sorted(
        range(len(table.columns)),
        key=lambda i: (not _is_key(table.columns[i]), -scores.get((table.full_name, table.columns[i].name), 0), i),
    )
    keys = sum(_is_key(column) for column in table.columns)
    count = max(keys, min(len(ranked), _MIN_COLUMNS))
    for more in range(count, len(ranked) + 1):
        view = _build_table_view(table, [table.columns[i] for i in sorted(ranked[:more])], {}, matches)
        if more > count and estimate_tokens(view.to_ddl("duckdb")) > budget_tokens:
            break
        fitting = view
    return fitting


def _is_key(column: Column) -> bool:
    return column.primary_key or column.references is not None


def _build_table_view(
    table: Table,
    columns: Sequence[Column],
    samples: Mapping[str, Mapping[str, Sequence[str]]],
    matches: Sequence[ValueMatch],
) -> TableView:
    shown = {name: tuple(values) for name, values in samples.get(table.full_name, {}).items()}
    own = tuple(match for match in matches if match.table == table.full_name)
    return TableView(table, tuple(columns), shown, own, len(table.columns) - len(columns))


def _estimate_view_tokens(view: TableView, schema: DatabaseSchema) -> int:
    return estimate_tokens(view.to_ddl(schema.dialect))
