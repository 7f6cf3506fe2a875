"""Lints a semantic model against the live database: every expression bound and run, every join counted."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from opposable.ask.semantics.expressions import base_metrics, bind, inputs_of
from opposable.ask.semantics.join_graph import Reach, identifier, joined, reach, root_of, source_parts, table_id
from opposable.ask.semantics.metric_fanout import metric_root
from opposable.ask.semantics.model import Join, Metric, ModelTable, SemanticModel, Term
from opposable.domain.errors import BadInput, ToolError
from opposable.sql.database import Database, Limits
from opposable.sql.name_checker import check_names
from opposable.sql.schema import Schema, Table
from opposable.sql.statement_guard import guard

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing about a model: "error" gives wrong answers or none, "warning" may, "info" is good to know.

    `where` says file, line and path; `hint` says what would be right.
    """

    severity: Severity
    where: str
    problem: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.severity}: {self.where}: {self.problem}{f' → {self.hint}' if self.hint else ''}"


@dataclass(slots=True)
class _Linting:
    model: SemanticModel
    database: Database
    schema: Schema
    findings: list[Finding] = field(default_factory=list)

    def tell(self, severity: Severity, path: str, problem: str, hint: str = "") -> None:
        self.findings.append(Finding(severity, self.model.place(path), problem, hint))

    async def rows(self, query: Any, path: str) -> Sequence[tuple[Any, ...]] | None:
        """What `query` brings; None, with a finding, when it fails."""
        sql = query if isinstance(query, str) else query.sql(dialect=self.database.dialect)
        try:
            problems = check_names(guard(sql, self.database.dialect, self.schema), self.schema)
            for problem in problems:
                self.tell("error", path, problem.sentence)
            if problems:
                return None
            await self.database.explain(sql)
            return (await self.database.run(sql, limits=Limits(rows=5))).rows
        except ToolError as error:
            self.tell("error", path, str(error))
            return None


async def lint(model: SemanticModel, database: Database) -> tuple[Finding, ...]:
    """Everything found, errors first; () for a model that fits its database. Nothing is ever written."""
    state = _Linting(model, database, await database.schema())
    present = {table.id for table in model.tables.values() if _table(state, table)}
    for join in model.joins:
        if _both(model, join, present):
            await _join(state, join)
    for section, term in model.terms():
        await _term(state, section, term)
    _names(state)
    _reached(state)
    for text in model.unread:
        state.tell("info", "", text)
    rank = {"error": 0, "warning": 1, "info": 2}
    return tuple(sorted(dict.fromkeys(state.findings), key=lambda finding: rank[finding.severity]))


def _both(model: SemanticModel, join: Join, present: set[str]) -> bool:
    tables = (model.find_table(join.many), model.find_table(join.one))
    return all(table is not None and table.id in present for table in tables)


def _real(state: _Linting, table: ModelTable) -> Table | None:
    parts = source_parts(table.source)
    return state.schema.find_named(parts[-1], parts[-2] if len(parts) > 1 else "")


def _table(state: _Linting, table: ModelTable) -> bool:
    if _real(state, table) is not None:
        return True
    near = state.schema.similar_tables(table.source)
    hint = (
        f"did you mean {near[0]}?"
        if near
        else f"the tables are {', '.join(t.full_name for t in state.schema.tables[:20])}"
    )
    state.tell("error", f"tables.{table.id}", f"the database has no table {table.source}", hint)
    return False


async def _join(state: _Linting, join: Join) -> None:
    """Columns, uniqueness of the one side, and rows of the many side that find nothing."""
    from sqlglot import exp

    path = f"joins.{join.text}"
    for name, columns in ((join.many, [a for a, _ in join.on]), (join.one, [b for _, b in join.on])):
        table = state.model.find_table(name)
        real = _real(state, table) if table else None
        for column in columns:
            if real is not None and real.find_column(column) is None:
                near = real.similar_columns(column)
                hint = (
                    f"did you mean {near[0]}?"
                    if near
                    else f"its columns are {', '.join(c.name for c in real.columns[:20])}"
                )
                state.tell("error", path, f"{name} has no column {column}", hint)
                return
    one, many = state.model.find_table(join.one), state.model.find_table(join.many)
    assert one is not None
    assert many is not None
    keys = [exp.column(identifier(b), table=identifier(one.id)) for _, b in join.on]
    doubled = joined(state.model, reach(state.model, one.id), ()).select(exp.Count(this=exp.Star()))
    doubled = doubled.where(*(exp.not_(exp.Is(this=k.copy(), expression=exp.null())) for k in keys)).group_by(*keys)
    found = await state.rows(doubled.having("COUNT(*) > 1").limit(1), path)
    if found:
        columns_text = ", ".join(b for _, b in join.on)
        told = f"the join fans out: {join.one}.{columns_text} is not unique, so rows of {join.many} would count twice or more"
        state.tell("error", path, told, "turn the join round, or join to a table that has the column once")
    if found is None:
        return
    theirs = [exp.column(identifier(a), table=identifier(many.id)) for a, _ in join.on]
    orphans = joined(state.model, _only(state.model, join), [one.id]).select(exp.Count(this=exp.Star()))
    given = [exp.not_(exp.Is(this=k.copy(), expression=exp.null())) for k in theirs]
    lost = await state.rows(orphans.where(*given, exp.Is(this=keys[0].copy(), expression=exp.null())), path)
    if lost and lost[0][0]:
        state.tell(
            "warning",
            path,
            f"{lost[0][0]} rows of {join.many} find no row of {join.one}",
            "they are shown with an empty value",
        )


def _only(model: SemanticModel, join: Join) -> Reach:
    """A way of this one join."""
    many, one = table_id(model, join.many), table_id(model, join.one)
    return Reach(many, {many: (), one: (join,)}, {})


async def _term(state: _Linting, section: str, term: Term) -> None:
    path = f"{section}.{term.id}.expr"
    try:
        if isinstance(term, Metric):
            await _metric(state, term, path)
            return
        bound = bind(term.expr, term.table, state.model, state.database.dialect)
        if bound.aggregates:
            state.tell(
                "error", path, "it aggregates: only metrics may", "write an expression over the columns of one row"
            )
            return
        root = root_of(state.model, bound.tables)
        if root is None:
            state.tell(
                "error",
                path,
                f"no join puts {', '.join(bound.tables) or 'its columns'} together",
                "add a join, or a table",
            )
            return
        query = joined(state.model, reach(state.model, root), bound.tables)
    except BadInput as error:
        state.tell("error", path, str(error))
        return
    if section == "dimensions":
        await state.rows(query.select(bound.tree.copy()).limit(1), path)
        return
    await _holds(state, query, bound.tree, section, path)


async def _holds(state: _Linting, query: Any, tree: Any, section: str, path: str) -> None:
    """Counts the rows for which a filter or an exclusion is true."""
    from sqlglot import exp

    hits = exp.Sum(
        this=exp.Case(ifs=[exp.If(this=tree.copy(), true=exp.Literal.number(1))], default=exp.Literal.number(0))
    )
    found = await state.rows(query.select(exp.Count(this=exp.Star()), hits), path)
    if not found or not found[0][0]:
        return
    rows, true = found[0][0], found[0][1] or 0
    if not true:
        state.tell("warning", path, f"it is true for none of {rows} rows", "compare it with the values in the database")
    elif true == rows and section == "exclusions":
        state.tell(
            "error", path, f"it leaves out all {rows} rows", "an exclusion is true for the rows that are left out"
        )


async def _metric(state: _Linting, metric: Metric, path: str) -> None:
    dialect = state.database.dialect
    if inputs_of(metric, state.model, dialect):
        base_metrics(metric.id, state.model, dialect)
        return
    root = metric_root(metric, state.model, dialect)
    way = reach(state.model, root)
    bound = bind(metric.expr, metric.table, state.model, dialect)
    _types(state, metric, bound.tree, path)
    await state.rows(joined(state.model, way, bound.tables).select(bound.tree.copy()), path)
    await _time(state, metric, root, path)
    await _defaults(state, metric, root)


def _types(state: _Linting, metric: Metric, tree: Any, path: str) -> None:
    """Sums of text, which SQLite takes for 0 without a word."""
    from sqlglot import exp

    for aggregate in tree.find_all(exp.Sum, exp.Avg):
        column = aggregate.this
        table = state.model.find_table(column.table) if isinstance(column, exp.Column) else None
        real = _real(state, table) if table else None
        found = real.find_column(column.name) if real else None
        if found is not None and any(word in found.type.upper() for word in ("CHAR", "TEXT", "STRING")):
            state.tell(
                "warning",
                path,
                f"{aggregate.sql()} adds up the text column {found.name} ({found.type})",
                "cast it to a number",
            )


async def _time(state: _Linting, metric: Metric, root: str, path: str) -> None:
    """Whether what dates a metric is a date."""
    time = metric.time or state.model.tables[root].time or state.model.time
    if not time:
        return
    bound = bind(time, root, state.model, state.database.dialect)
    way = reach(state.model, root)
    if way.refusal(bound.tables):
        if metric.time:
            state.tell(
                "error", path, f"time: {time} is not reached from {root}", "name a column of a table that it joins"
            )
        return
    sqlite = state.database.dialect == "sqlite"
    year = "STRFTIME('%Y', t)" if sqlite else "EXTRACT(YEAR FROM t)"
    text = bound.tree.sql(dialect=state.database.dialect)
    query = joined(state.model, way, bound.tables).select(
        year.replace("t)", f"{text})"), text, dialect=state.database.dialect
    )
    found = await state.rows(query.where(f"NOT {text} IS NULL", dialect=state.database.dialect).limit(1), path)
    if found and found[0][0] is None:
        state.tell(
            "error",
            path,
            f"time: {time} holds {found[0][1]!r}, which is no ISO date",
            "give an expression that makes it YYYY-MM-DD",
        )


async def _defaults(state: _Linting, metric: Metric, root: str) -> None:
    """Whether any row is left by a metric's default filters."""
    from sqlglot import exp

    if not metric.default_filters:
        return
    path = f"metrics.{metric.id}.default_filters"
    needed: list[str] = []
    trees: list[Any] = []
    for text in metric.default_filters:
        term = state.model.filters.get(text) or state.model.exclusions.get(text)
        bound = bind(term.expr if term else text, term.table if term else root, state.model, state.database.dialect)
        needed += bound.tables
        trees.append(exp.not_(exp.paren(bound.tree)) if text in state.model.exclusions else bound.tree)
    way = reach(state.model, root)
    if reason := way.refusal(needed):
        state.tell("error", path, reason)
        return
    query = joined(state.model, way, needed).select(exp.Count(this=exp.Star()))
    left, whole = await state.rows(query.where(*trees), path), await state.rows(query, path)
    if left and whole and whole[0][0] and not left[0][0]:
        state.tell(
            "error",
            path,
            f"they exclude every one of {whole[0][0]} rows",
            "compare them with the values in the database",
        )


def _names(state: _Linting) -> None:
    """Names that stand for two things."""
    seen: dict[str, tuple[str, str]] = {}
    for section, term in state.model.terms():
        for name in (term.id, *term.synonyms):
            key = " ".join(name.replace("_", " ").casefold().split())
            other = seen.setdefault(key, (section, term.id))
            if other[1] == term.id:
                continue
            severity: Severity = "warning" if other[0] == section else "info"
            told = f"{name!r} also stands for {other[1]} ({other[0]}, {state.model.place(f'{other[0]}.{other[1]}').partition(':')[0]})"
            state.tell(severity, f"{section}.{term.id}.synonyms", told, "keep it in one of them")


def _reached(state: _Linting) -> None:
    """Dimensions that go with no metric."""
    ways = [way for metric in state.model.metrics.values() if (way := _way(state, metric)) is not None]
    for dimension in state.model.dimensions.values():
        try:
            tables = bind(dimension.expr, dimension.table, state.model, state.database.dialect).tables
        except BadInput:
            continue
        reasons = [way.refusal(tables) for way in ways]
        if reasons and all(reasons):
            told = f"it goes with no metric: {reasons[0]}"
            state.tell("warning", f"dimensions.{dimension.id}", told, "add a join from many to one")


def _way(state: _Linting, metric: Metric) -> Reach | None:
    """What a metric reaches; None for a derived or a wrong one, which is told elsewhere."""
    try:
        return reach(state.model, metric_root(metric, state.model, state.database.dialect))
    except BadInput:
        return None
