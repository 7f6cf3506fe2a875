"""Lint checks of the tables and joins of a semantic model."""

from typing import Any

from opposable.ask.semantics.join_graph import (
    ReachableTables,
    build_identifier,
    build_join_query,
    find_reachable_tables,
    resolve_table_id,
)
from opposable.ask.semantics.lint_state import LintState, build_similar_hint
from opposable.ask.semantics.model import Join, ModelTable, SemanticModel


async def check_joins(state: LintState) -> None:
    """Check that every table exists, and that every join fits the data."""
    existing = {table.id for table in state.model.tables.values() if _check_table(state, table)}
    for join in state.model.joins:
        tables = (state.model.find_table(join.many), state.model.find_table(join.one))
        if all(table is not None and table.id in existing for table in tables) and _check_join_columns(state, join):
            await _check_join_rows(state, join)


def _check_table(state: LintState, table: ModelTable) -> bool:
    if state.find_database_table(table) is not None:
        return True
    similar = state.schema.similar_tables(table.source)
    hint = build_similar_hint(similar, "the tables", [t.full_name for t in state.schema.tables])
    state.add_finding("error", f"tables.{table.id}", f"the database has no table {table.source}", hint)
    return False


def _check_join_columns(state: LintState, join: Join) -> bool:
    sides = ((join.many, [many for many, _ in join.on]), (join.one, [one for _, one in join.on]))
    for name, columns in sides:
        model_table = state.model.find_table(name)
        table = state.find_database_table(model_table) if model_table else None
        for column in columns:
            if table is not None and table.find_column(column) is None:
                hint = build_similar_hint(table.similar_columns(column), "its columns", [c.name for c in table.columns])
                state.add_finding("error", f"joins.{join.text}", f"{name} has no column {column}", hint)
                return False
    return True


async def _check_join_rows(state: LintState, join: Join) -> None:
    """Check that the one side is unique and that every row has a match."""
    from sqlglot import exp

    path = f"joins.{join.text}"
    many, one = resolve_table_id(state.model, join.many), resolve_table_id(state.model, join.one)
    one_keys = [exp.column(build_identifier(column), table=build_identifier(one)) for _, column in join.on]
    many_keys = [exp.column(build_identifier(column), table=build_identifier(many)) for column, _ in join.on]
    count = exp.Count(this=exp.Star())
    duplicates = build_join_query(state.model, find_reachable_tables(state.model, one), ()).select(count)
    duplicates = duplicates.where(*(_is_not_null(key) for key in one_keys)).group_by(*one_keys)
    rows = await state.fetch_rows(duplicates.having("COUNT(*) > 1").limit(1), path)
    if rows is None:
        return
    if rows:
        columns = ", ".join(column for _, column in join.on)
        problem = (
            f"the join fans out: {join.one}.{columns} is not unique, so rows of {join.many} would count twice or more"
        )
        state.add_finding("error", path, problem, "turn the join round, or join to a table that has the column once")
    orphans = build_join_query(state.model, _reach_by_single_join(state.model, join), [one]).select(count.copy())
    orphans = orphans.where(
        *(_is_not_null(key) for key in many_keys), exp.Is(this=one_keys[0].copy(), expression=exp.null())
    )
    orphan_counts = await state.fetch_rows(orphans, path)
    if orphan_counts and orphan_counts[0][0]:
        problem = f"{orphan_counts[0][0]} rows of {join.many} find no row of {join.one}"
        state.add_finding("warning", path, problem, "they are shown with an empty value")


def _is_not_null(column: Any) -> Any:
    from sqlglot import exp

    return exp.not_(exp.Is(this=column.copy(), expression=exp.null()))


def _reach_by_single_join(model: SemanticModel, join: Join) -> ReachableTables:
    many, one = resolve_table_id(model, join.many), resolve_table_id(model, join.one)
    return ReachableTables(many, {many: (), one: (join,)}, {})
