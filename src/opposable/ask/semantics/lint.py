"""Lints a semantic model against the live database: every expression bound and run, every join counted."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from opposable.ask.semantics.expressions import bind_expression, get_input_metrics, resolve_base_metrics
from opposable.ask.semantics.join_graph import (
    ReachableTables,
    build_identifier,
    build_join_query,
    find_reachable_tables,
    find_root_table,
    resolve_table_id,
    split_source,
)
from opposable.ask.semantics.metric_fanout import find_metric_root
from opposable.ask.semantics.model import Join, Metric, ModelTable, SemanticModel, Term
from opposable.domain.errors import BadInput, ToolError
from opposable.sql.database import Database, QueryLimits
from opposable.sql.name_checker import check_names
from opposable.sql.schema import DatabaseSchema, Table
from opposable.sql.statement_guard import parse_safe_query

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing about a model: "error" gives wrong answers or none, "warning" may, "info" is good to know.

    `where` says file, line and path; `hint` says what would be right.
    """

    severity: Severity
    location: str
    problem: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.severity}: {self.location}: {self.problem}{f' → {self.hint}' if self.hint else ''}"


@dataclass(slots=True)
class _LintState:
    model: SemanticModel
    database: Database
    schema: DatabaseSchema
    findings: list[Finding] = field(default_factory=list)

    def add_finding(self, severity: Severity, path: str, problem: str, hint: str = "") -> None:
        self.findings.append(Finding(severity, self.model.describe_location(path), problem, hint))

    async def fetch_rows(self, query: Any, path: str) -> Sequence[tuple[Any, ...]] | None:
        """What `query` brings; None, with a finding, when it fails."""
        sql = query if isinstance(query, str) else query.sql(dialect=self.database.dialect)
        try:
            problems = check_names(parse_safe_query(sql, self.database.dialect, self.schema), self.schema)
            for problem in problems:
                self.add_finding("error", path, problem.message)
            if problems:
                return None
            await self.database.explain(sql)
            return (await self.database.run(sql, limits=QueryLimits(max_rows=5))).rows
        except ToolError as error:
            self.add_finding("error", path, str(error))
            return None


async def lint_semantic_model(model: SemanticModel, database: Database) -> tuple[Finding, ...]:
    """Everything found, errors first; () for a model that fits its database. Nothing is ever written."""
    state = _LintState(model, database, await database.get_schema())
    present = {table.id for table in model.tables.values() if _check_table(state, table)}
    for join in model.joins:
        if _has_both_tables(model, join, present):
            await _check_join(state, join)
    for section, term in model.iter_terms():
        await _check_term(state, section, term)
    _check_duplicate_names(state)
    _check_unreachable_dimensions(state)
    for text in model.unsupported:
        state.add_finding("info", "", text)
    rank = {"error": 0, "warning": 1, "info": 2}
    return tuple(sorted(dict.fromkeys(state.findings), key=lambda finding: rank[finding.severity]))


def _has_both_tables(model: SemanticModel, join: Join, present: set[str]) -> bool:
    tables = (model.find_table(join.many), model.find_table(join.one))
    return all(table is not None and table.id in present for table in tables)


def _find_database_table(state: _LintState, table: ModelTable) -> Table | None:
    parts = split_source(table.source)
    return state.schema.find_table_by_identifier(parts[-1], parts[-2] if len(parts) > 1 else "")


def _check_table(state: _LintState, table: ModelTable) -> bool:
    if _find_database_table(state, table) is not None:
        return True
    near = state.schema.similar_tables(table.source)
    hint = (
        f"did you mean {near[0]}?"
        if near
        else f"the tables are {', '.join(t.full_name for t in state.schema.tables[:20])}"
    )
    state.add_finding("error", f"tables.{table.id}", f"the database has no table {table.source}", hint)
    return False


async def _check_join(state: _LintState, join: Join) -> None:
    """Columns, uniqueness of the one side, and rows of the many side that find nothing."""
    from sqlglot import exp

    path = f"joins.{join.text}"
    for name, columns in ((join.many, [a for a, _ in join.on]), (join.one, [b for _, b in join.on])):
        table = state.model.find_table(name)
        real = _find_database_table(state, table) if table else None
        for column in columns:
            if real is not None and real.find_column(column) is None:
                near = real.similar_columns(column)
                hint = (
                    f"did you mean {near[0]}?"
                    if near
                    else f"its columns are {', '.join(c.name for c in real.columns[:20])}"
                )
                state.add_finding("error", path, f"{name} has no column {column}", hint)
                return
    one, many = state.model.find_table(join.one), state.model.find_table(join.many)
    assert one is not None
    assert many is not None
    keys = [exp.column(build_identifier(b), table=build_identifier(one.id)) for _, b in join.on]
    doubled = build_join_query(state.model, find_reachable_tables(state.model, one.id), ()).select(
        exp.Count(this=exp.Star())
    )
    doubled = doubled.where(*(exp.not_(exp.Is(this=k.copy(), expression=exp.null())) for k in keys)).group_by(*keys)
    found = await state.fetch_rows(doubled.having("COUNT(*) > 1").limit(1), path)
    if found:
        columns_text = ", ".join(b for _, b in join.on)
        told = f"the join fans out: {join.one}.{columns_text} is not unique, so rows of {join.many} would count twice or more"
        state.add_finding("error", path, told, "turn the join round, or join to a table that has the column once")
    if found is None:
        return
    theirs = [exp.column(build_identifier(a), table=build_identifier(many.id)) for a, _ in join.on]
    orphans = build_join_query(state.model, _reach_by_single_join(state.model, join), [one.id]).select(
        exp.Count(this=exp.Star())
    )
    given = [exp.not_(exp.Is(this=k.copy(), expression=exp.null())) for k in theirs]
    lost = await state.fetch_rows(orphans.where(*given, exp.Is(this=keys[0].copy(), expression=exp.null())), path)
    if lost and lost[0][0]:
        state.add_finding(
            "warning",
            path,
            f"{lost[0][0]} rows of {join.many} find no row of {join.one}",
            "they are shown with an empty value",
        )


def _reach_by_single_join(model: SemanticModel, join: Join) -> ReachableTables:
    """A way of this one join."""
    many, one = resolve_table_id(model, join.many), resolve_table_id(model, join.one)
    return ReachableTables(many, {many: (), one: (join,)}, {})


async def _check_term(state: _LintState, section: str, term: Term) -> None:
    path = f"{section}.{term.id}.expr"
    try:
        if isinstance(term, Metric):
            await _check_metric(state, term, path)
            return
        bound = bind_expression(term.expr, term.table, state.model, state.database.dialect)
        if bound.has_aggregate:
            state.add_finding(
                "error", path, "it aggregates: only metrics may", "write an expression over the columns of one row"
            )
            return
        root = find_root_table(state.model, bound.tables)
        if root is None:
            state.add_finding(
                "error",
                path,
                f"no join puts {', '.join(bound.tables) or 'its columns'} together",
                "add a join, or a table",
            )
            return
        query = build_join_query(state.model, find_reachable_tables(state.model, root), bound.tables)
    except BadInput as error:
        state.add_finding("error", path, str(error))
        return
    if section == "dimensions":
        await state.fetch_rows(query.select(bound.tree.copy()).limit(1), path)
        return
    await _check_condition(state, query, bound.tree, section, path)


async def _check_condition(state: _LintState, query: Any, tree: Any, section: str, path: str) -> None:
    """Counts the rows for which a filter or an exclusion is true."""
    from sqlglot import exp

    hits = exp.Sum(
        this=exp.Case(ifs=[exp.If(this=tree.copy(), true=exp.Literal.number(1))], default=exp.Literal.number(0))
    )
    found = await state.fetch_rows(query.select(exp.Count(this=exp.Star()), hits), path)
    if not found or not found[0][0]:
        return
    rows, true = found[0][0], found[0][1] or 0
    if not true:
        state.add_finding(
            "warning", path, f"it is true for none of {rows} rows", "compare it with the values in the database"
        )
    elif true == rows and section == "exclusions":
        state.add_finding(
            "error", path, f"it leaves out all {rows} rows", "an exclusion is true for the rows that are left out"
        )


async def _check_metric(state: _LintState, metric: Metric, path: str) -> None:
    dialect = state.database.dialect
    if get_input_metrics(metric, state.model, dialect):
        resolve_base_metrics(metric.id, state.model, dialect)
        return
    root = find_metric_root(metric, state.model, dialect)
    way = find_reachable_tables(state.model, root)
    bound = bind_expression(metric.expr, metric.table, state.model, dialect)
    _check_aggregated_types(state, metric, bound.tree, path)
    await state.fetch_rows(build_join_query(state.model, way, bound.tables).select(bound.tree.copy()), path)
    await _check_time(state, metric, root, path)
    await _check_default_filters(state, metric, root)


def _check_aggregated_types(state: _LintState, metric: Metric, tree: Any, path: str) -> None:
    """Sums of text, which SQLite takes for 0 without a word."""
    from sqlglot import exp

    for aggregate in tree.find_all(exp.Sum, exp.Avg):
        column = aggregate.this
        table = state.model.find_table(column.table) if isinstance(column, exp.Column) else None
        real = _find_database_table(state, table) if table else None
        found = real.find_column(column.name) if real else None
        if found is not None and any(word in found.type.upper() for word in ("CHAR", "TEXT", "STRING")):
            state.add_finding(
                "warning",
                path,
                f"{aggregate.sql()} adds up the text column {found.name} ({found.type})",
                "cast it to a number",
            )


async def _check_time(state: _LintState, metric: Metric, root: str, path: str) -> None:
    """Whether what dates a metric is a date."""
    time = metric.time or state.model.tables[root].time or state.model.time
    if not time:
        return
    bound = bind_expression(time, root, state.model, state.database.dialect)
    way = find_reachable_tables(state.model, root)
    if way.explain_unreachable(bound.tables):
        if metric.time:
            state.add_finding(
                "error", path, f"time: {time} is not reached from {root}", "name a column of a table that it joins"
            )
        return
    sqlite = state.database.dialect == "sqlite"
    year = "STRFTIME('%Y', t)" if sqlite else "EXTRACT(YEAR FROM t)"
    text = bound.tree.sql(dialect=state.database.dialect)
    query = build_join_query(state.model, way, bound.tables).select(
        year.replace("t)", f"{text})"), text, dialect=state.database.dialect
    )
    found = await state.fetch_rows(query.where(f"NOT {text} IS NULL", dialect=state.database.dialect).limit(1), path)
    if found and found[0][0] is None:
        state.add_finding(
            "error",
            path,
            f"time: {time} holds {found[0][1]!r}, which is no ISO date",
            "give an expression that makes it YYYY-MM-DD",
        )


async def _check_default_filters(state: _LintState, metric: Metric, root: str) -> None:
    """Whether any row is left by a metric's default filters."""
    from sqlglot import exp

    if not metric.default_filters:
        return
    path = f"metrics.{metric.id}.default_filters"
    needed: list[str] = []
    trees: list[Any] = []
    for text in metric.default_filters:
        term = state.model.filters.get(text) or state.model.exclusions.get(text)
        bound = bind_expression(
            term.expr if term else text, term.table if term else root, state.model, state.database.dialect
        )
        needed += bound.tables
        trees.append(exp.not_(exp.paren(bound.tree)) if text in state.model.exclusions else bound.tree)
    way = find_reachable_tables(state.model, root)
    if reason := way.explain_unreachable(needed):
        state.add_finding("error", path, reason)
        return
    query = build_join_query(state.model, way, needed).select(exp.Count(this=exp.Star()))
    left, whole = await state.fetch_rows(query.where(*trees), path), await state.fetch_rows(query, path)
    if left and whole and whole[0][0] and not left[0][0]:
        state.add_finding(
            "error",
            path,
            f"they exclude every one of {whole[0][0]} rows",
            "compare them with the values in the database",
        )


def _check_duplicate_names(state: _LintState) -> None:
    """Names that stand for two things."""
    seen: dict[str, tuple[str, str]] = {}
    for section, term in state.model.iter_terms():
        for name in (term.id, *term.synonyms):
            key = " ".join(name.replace("_", " ").casefold().split())
            other = seen.setdefault(key, (section, term.id))
            if other[1] == term.id:
                continue
            severity: Severity = "warning" if other[0] == section else "info"
            told = f"{name!r} also stands for {other[1]} ({other[0]}, {state.model.describe_location(f'{other[0]}.{other[1]}').partition(':')[0]})"
            state.add_finding(severity, f"{section}.{term.id}.synonyms", told, "keep it in one of them")


def _check_unreachable_dimensions(state: _LintState) -> None:
    """Dimensions that go with no metric."""
    ways = [way for metric in state.model.metrics.values() if (way := _find_metric_reach(state, metric)) is not None]
    for dimension in state.model.dimensions.values():
        try:
            tables = bind_expression(dimension.expr, dimension.table, state.model, state.database.dialect).tables
        except BadInput:
            continue
        reasons = [way.explain_unreachable(tables) for way in ways]
        if reasons and all(reasons):
            told = f"it goes with no metric: {reasons[0]}"
            state.add_finding("warning", f"dimensions.{dimension.id}", told, "add a join from many to one")


def _find_metric_reach(state: _LintState, metric: Metric) -> ReachableTables | None:
    """What a metric reaches; None for a derived or a wrong one, which is told elsewhere."""
    try:
        return find_reachable_tables(state.model, find_metric_root(metric, state.model, state.database.dialect))
    except BadInput:
        return None
