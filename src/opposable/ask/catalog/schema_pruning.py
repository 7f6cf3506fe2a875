"""Schema pruning: selects the tables and columns that fit a budget of tokens."""

from collections.abc import Mapping, Sequence

from opposable.ask.catalog.prompt_text import estimate_tokens
from opposable.ask.catalog.schema_linking import ColumnKey, SchemaLinker, index_tables_by_name
from opposable.ask.catalog.schema_view import SchemaView, TableView
from opposable.ask.catalog.value_matching import ValueMatch
from opposable.sql.schema import Column, DatabaseSchema, Table

_MAX_TABLE_BUDGET_SHARE = 0.35
"""The largest share of the budget for one table, after the first."""
_MIN_COLUMNS = 4

TableSamples = Mapping[str, Mapping[str, Sequence[str]]]


def prune_schema(
    schema: DatabaseSchema,
    linker: SchemaLinker,
    samples: TableSamples,
    question: str,
    matches: Sequence[ValueMatch],
    budget_tokens: int,
) -> SchemaView:
    """Select the part of a schema that a question needs.

    Args:
        schema: The schema.
        linker: Scores its tables and columns.
        samples: A few values of each column; omitted where they do not fit.
        question: The question.
        matches: The values that the question names.
        budget_tokens: About how many tokens the DDL may have. The view has at least one table.
    """
    for shown_samples in (samples, {}):
        views = _view_all_tables(schema, shown_samples, matches, budget_tokens)
        if views is not None:
            return SchemaView(schema.dialect, tuple(views), tuple(matches))
    table_scores, column_scores = linker.compute_scores(question, matches)
    tables = index_tables_by_name(schema)
    selected: dict[str, TableView] = {}
    remaining = budget_tokens
    for name in linker.rank_tables(table_scores):
        table_budget = min(remaining, int(budget_tokens * _MAX_TABLE_BUDGET_SHARE)) if selected else max(remaining, 0)
        view = _fit_table(tables[name], samples, matches, column_scores, table_budget)
        tokens = _estimate_view_tokens(view, schema)
        is_unrelated = table_scores[name] <= 0 and remaining < budget_tokens // 4
        if selected and (tokens > remaining or is_unrelated):
            continue
        selected[name] = view
        remaining -= tokens
    views_in_order = tuple(selected[table.full_name] for table in schema.tables if table.full_name in selected)
    return SchemaView(schema.dialect, views_in_order, tuple(matches), len(schema.tables) - len(selected))


def _view_all_tables(
    schema: DatabaseSchema, samples: TableSamples, matches: Sequence[ValueMatch], budget_tokens: int
) -> list[TableView] | None:
    """Return views of all tables with all columns, or None if they exceed the budget."""
    views: list[TableView] = []
    remaining = budget_tokens
    for table in schema.tables:
        views.append(_build_table_view(table, table.columns, samples, matches))
        remaining -= _estimate_view_tokens(views[-1], schema)
        if remaining < 0:
            return None
    return views


def _fit_table(
    table: Table,
    samples: TableSamples,
    matches: Sequence[ValueMatch],
    column_scores: Mapping[ColumnKey, float],
    budget_tokens: int,
) -> TableView:
    """Return a view of a table that fits the budget.

    Samples are omitted first, then the columns with the lowest scores. Keys are always included.
    """
    for shown_samples in (samples, {}):
        view = _build_table_view(table, table.columns, shown_samples, matches)
        if estimate_tokens(view.to_ddl("duckdb")) <= budget_tokens:
            return view
    columns = table.columns
    ranked = sorted(
        range(len(columns)),
        key=lambda i: (not _is_key(columns[i]), -column_scores.get((table.full_name, columns[i].name), 0), i),
    )
    min_count = max(sum(_is_key(column) for column in columns), min(len(ranked), _MIN_COLUMNS))
    for count in range(min_count, len(ranked) + 1):
        view = _build_table_view(table, [columns[i] for i in sorted(ranked[:count])], {}, matches)
        if count > min_count and estimate_tokens(view.to_ddl("duckdb")) > budget_tokens:
            break
        fitting_view = view
    return fitting_view


def _is_key(column: Column) -> bool:
    return column.primary_key or column.references is not None


def _build_table_view(
    table: Table, columns: Sequence[Column], samples: TableSamples, matches: Sequence[ValueMatch]
) -> TableView:
    table_samples = {name: tuple(values) for name, values in samples.get(table.full_name, {}).items()}
    table_matches = tuple(match for match in matches if match.table == table.full_name)
    return TableView(table, tuple(columns), table_samples, table_matches, len(table.columns) - len(columns))


def _estimate_view_tokens(view: TableView, schema: DatabaseSchema) -> int:
    return estimate_tokens(view.to_ddl(schema.dialect))
