"""Lint checks of the terms of a semantic model."""

from typing import Any

from opposable.ask.semantics.expressions import bind_expression, get_input_metrics, resolve_base_metrics
from opposable.ask.semantics.join_graph import (
    ReachableTables,
    build_join_query,
    find_reachable_tables,
    find_root_table,
)
from opposable.ask.semantics.lint_state import LintState, Severity
from opposable.ask.semantics.metric_fanout import find_metric_root
from opposable.ask.semantics.model import Metric, Term
from opposable.domain.errors import BadInput

_TEXT_TYPE_NAMES = ("CHAR", "TEXT", "STRING")


async def check_terms(state: LintState) -> None:
    """Bind and run every expression, and check the names of all terms."""
    for section, term in state.model.iter_terms():
        path = f"{section}.{term.id}.expr"
        try:
            if isinstance(term, Metric):
                await _check_metric(state, term, path)
            else:
                await _check_row_expression(state, section, term, path)
        except BadInput as error:
            state.add_finding("error", path, str(error))
    _check_duplicate_names(state)
    _check_unreachable_dimensions(state)


async def _check_row_expression(state: LintState, section: str, term: Term, path: str) -> None:
    bound = bind_expression(term.expr, term.table, state.model, state.database.dialect)
    if bound.has_aggregate:
        hint = "write an expression over the columns of one row"
        state.add_finding("error", path, "it aggregates: only metrics may", hint)
        return
    root = find_root_table(state.model, bound.tables)
    if root is None:
        problem = f"no join puts {', '.join(bound.tables) or 'its columns'} together"
        state.add_finding("error", path, problem, "add a join, or a table")
        return
    query = build_join_query(state.model, find_reachable_tables(state.model, root), bound.tables)
    if section == "dimensions":
        await state.fetch_rows(query.select(bound.tree.copy()).limit(1), path)
    else:
        await _check_condition(state, query, bound.tree, section, path)


async def _check_condition(state: LintState, query: Any, tree: Any, section: str, path: str) -> None:
    """Count the rows for which a filter or an exclusion is true."""
    from sqlglot import exp

    case = exp.If(this=tree.copy(), true=exp.Literal.number(1))
    true_count = exp.Sum(this=exp.Case(ifs=[case], default=exp.Literal.number(0)))
    rows = await state.fetch_rows(query.select(exp.Count(this=exp.Star()), true_count), path)
    if not rows or not rows[0][0]:
        return
    total, matching = rows[0][0], rows[0][1] or 0
    if not matching:
        hint = "compare it with the values in the database"
        state.add_finding("warning", path, f"it is true for none of {total} rows", hint)
    elif matching == total and section == "exclusions":
        hint = "an exclusion is true for the rows that are left out"
        state.add_finding("error", path, f"it leaves out all {total} rows", hint)


async def _check_metric(state: LintState, metric: Metric, path: str) -> None:
    dialect = state.database.dialect
    if get_input_metrics(metric, state.model, dialect):
        resolve_base_metrics(metric.id, state.model, dialect)
        return
    root = find_metric_root(metric, state.model, dialect)
    reachable = find_reachable_tables(state.model, root)
    bound = bind_expression(metric.expr, metric.table, state.model, dialect)
    _check_aggregated_types(state, bound.tree, path)
    query = build_join_query(state.model, reachable, bound.tables)
    await state.fetch_rows(query.select(bound.tree.copy()), path)
    await _check_time(state, metric, reachable, path)
    await _check_default_filters(state, metric, reachable)


def _check_aggregated_types(state: LintState, tree: Any, path: str) -> None:
    """Check for sums of text, which SQLite evaluates as 0."""
    from sqlglot import exp

    for aggregate in tree.find_all(exp.Sum, exp.Avg):
        argument = aggregate.this
        model_table = state.model.find_table(argument.table) if isinstance(argument, exp.Column) else None
        table = state.find_database_table(model_table) if model_table else None
        column = table.find_column(argument.name) if table else None
        if column is not None and any(name in column.type.upper() for name in _TEXT_TYPE_NAMES):
            problem = f"{aggregate.sql()} adds up the text column {column.name} ({column.type})"
            state.add_finding("warning", path, problem, "cast it to a number")


async def _check_time(state: LintState, metric: Metric, reachable: ReachableTables, path: str) -> None:
    """Check that the expression that dates a metric is a date."""
    root, dialect = reachable.root_table, state.database.dialect
    time = metric.time or state.model.tables[root].time or state.model.time
    if not time:
        return
    bound = bind_expression(time, root, state.model, dialect)
    if reachable.explain_unreachable(bound.tables):
        if metric.time:
            hint = "name a column of a table that it joins"
            state.add_finding("error", path, f"time: {time} is not reached from {root}", hint)
        return
    time_sql = bound.tree.sql(dialect=dialect)
    year_sql = f"STRFTIME('%Y', {time_sql})" if dialect == "sqlite" else f"EXTRACT(YEAR FROM {time_sql})"
    query = build_join_query(state.model, reachable, bound.tables).select(year_sql, time_sql, dialect=dialect)
    rows = await state.fetch_rows(query.where(f"NOT {time_sql} IS NULL", dialect=dialect).limit(1), path)
    if rows and rows[0][0] is None:
        problem = f"time: {time} holds {rows[0][1]!r}, which is not an ISO date"
        state.add_finding("error", path, problem, "give an expression that makes it YYYY-MM-DD")


async def _check_default_filters(state: LintState, metric: Metric, reachable: ReachableTables) -> None:
    """Check that the default filters of a metric let rows through."""
    from sqlglot import exp

    if not metric.default_filters:
        return
    path = f"metrics.{metric.id}.default_filters"
    tables: list[str] = []
    conditions: list[Any] = []
    for text in metric.default_filters:
        term = state.model.filters.get(text) or state.model.exclusions.get(text)
        expr, table = (term.expr, term.table) if term else (text, reachable.root_table)
        bound = bind_expression(expr, table, state.model, state.database.dialect)
        tables += bound.tables
        conditions.append(exp.not_(exp.paren(bound.tree)) if text in state.model.exclusions else bound.tree)
    if reason := reachable.explain_unreachable(tables):
        state.add_finding("error", path, reason)
        return
    query = build_join_query(state.model, reachable, tables).select(exp.Count(this=exp.Star()))
    included = await state.fetch_rows(query.where(*conditions), path)
    total = await state.fetch_rows(query, path)
    if included and total and total[0][0] and not included[0][0]:
        hint = "compare them with the values in the database"
        state.add_finding("error", path, f"they exclude every one of {total[0][0]} rows", hint)


def _check_duplicate_names(state: LintState) -> None:
    """Check for names that two terms share."""
    term_by_name: dict[str, tuple[str, str]] = {}
    for section, term in state.model.iter_terms():
        for name in (term.id, *term.synonyms):
            key = " ".join(name.replace("_", " ").casefold().split())
            other_section, other_id = term_by_name.setdefault(key, (section, term.id))
            if other_id == term.id:
                continue
            severity: Severity = "warning" if other_section == section else "info"
            location = state.model.describe_location(f"{other_section}.{other_id}").partition(":")[0]
            problem = f"{name!r} is also a name of {other_id} ({other_section}, {location})"
            state.add_finding(severity, f"{section}.{term.id}.synonyms", problem, "keep it in one of them")


def _check_unreachable_dimensions(state: LintState) -> None:
    """Check for dimensions that no metric can be grouped by."""
    metric_reaches = [reachable for m in state.model.metrics.values() if (reachable := _find_metric_reach(state, m))]
    for dimension in state.model.dimensions.values():
        try:
            bound = bind_expression(dimension.expr, dimension.table, state.model, state.database.dialect)
        except BadInput:
            continue
        reasons = [reachable.explain_unreachable(bound.tables) for reachable in metric_reaches]
        if reasons and all(reasons):
            problem = f"it goes with no metric: {reasons[0]}"
            state.add_finding("warning", f"dimensions.{dimension.id}", problem, "add a join from many to one")


def _find_metric_reach(state: LintState, metric: Metric) -> ReachableTables | None:
    """Return the tables that a metric reaches; None for a derived or an invalid one."""
    try:
        return find_reachable_tables(state.model, find_metric_root(metric, state.model, state.database.dialect))
    except BadInput:
        return None
