"""The linter of semantic models: checks them against a database."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from opposable.ask.semantics.expressions import BoundExpression, BoundModel
from opposable.ask.semantics.join_graph import ReachableTables, build_join_query, find_metric_tables, find_root_table
from opposable.ask.semantics.model import Join, Metric, SemanticModel, Term
from opposable.ask.semantics.yaml_reader import YamlPath
from opposable.ask.sql_trees import build_column, build_is_not_null, exp, fill_template
from opposable.domain.errors import BadInput, ToolError
from opposable.sql.database import Database, QueryLimits
from opposable.sql.name_checker import check_names
from opposable.sql.schema import DatabaseSchema
from opposable.sql.statement_guard import parse_safe_query

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem of a semantic model at a file, line and path, with a hint what to do.

    `severity` is "error" for wrong or missing answers, "warning" for possibly wrong ones, else "info".
    """

    severity: Severity
    location: str
    problem: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.severity}: {self.location}: {self.problem}{f' → {self.hint}' if self.hint else ''}"


@dataclass(slots=True)
class LintState:
    """A semantic model, the database it is checked against, and the findings, tables and times of metrics so far."""

    model: SemanticModel
    database: Database
    schema: DatabaseSchema
    findings: list[Finding] = field(default_factory=list)
    metric_tables: list[ReachableTables] = field(default_factory=list)
    checked_times: dict[tuple[str, str], str] = field(default_factory=dict)

    @property
    def semantics(self) -> BoundModel:
        """The model in the dialect of the database."""
        return BoundModel(self.model, self.database.dialect)

    def add_finding(self, severity: Severity, path: YamlPath, problem: str, hint: str = "") -> None:
        """Add a finding about the entry of the model at `path`."""
        self.findings.append(Finding(severity, self.describe_location(*path), problem, hint))

    def describe_location(self, *path: str | int) -> str:
        """Describe the location of an entry in the file of the model."""
        document = self.model.document
        return document.describe_location(path) if document else ".".join(map(str, path))

    async def count_rows(self, root: str, conditions: list[BoundExpression], path: YamlPath) -> tuple[int, int]:
        """Return the number of rows of a table, and of those that fulfil conditions; zeros after a failure."""
        condition = exp.and_(*(condition.tree for condition in conditions))
        matching = fill_template("SUM(CASE WHEN c THEN 1 ELSE 0 END)", "duckdb", c=condition)
        query = build_join_query(self.model, root, [table for bound in conditions for table in bound.tables])
        rows = await self.fetch_rows(query.select(exp.Count(this=exp.Star()), matching), path)
        total, matching_count = rows[0] if rows else (0, 0)
        return total, matching_count or 0

    async def fetch_rows(self, query: Any, path: YamlPath) -> Sequence[tuple[Any, ...]] | None:
        """Run a sqlglot query and return up to five rows. A failure adds a finding and returns None."""
        sql = query.sql(dialect=self.database.dialect)
        try:
            checked = check_names(parse_safe_query(sql, self.database.dialect, self.schema), self.schema)
            problems = [problem.message for problem in checked]
            if not problems:
                return (await self.database.run(sql, limits=QueryLimits(max_rows=5))).rows
        except ToolError as error:
            problems = [str(error)]
        for problem in problems:
            self.add_finding("error", path, problem)
        return None


async def lint_semantic_model(model: SemanticModel, database: Database) -> tuple[Finding, ...]:
    """Check a semantic model against a database, with read-only queries.

    Returns:
        The findings, errors first; () for a model without problems.
    """
    state = LintState(model, database, await database.get_schema())
    first_rows = {ref: build_join_query(model, ref).select("1").limit(1) for ref in model.tables}
    missing = {ref for ref, query in first_rows.items() if await state.fetch_rows(query, ("tables", ref)) is None}
    for join in model.joins:
        if missing.isdisjoint(model.get_join_tables(join)):
            await check_join(state, join)
    for section, term in model.iter_terms():
        path = (section, term.id, "expr")
        try:
            if isinstance(term, Metric):
                await _check_metric(state, term, path)
            else:
                await _check_row_expression(state, section, term, path)
        except BadInput as error:
            state.add_finding("error", path, str(error))
    _check_duplicate_names(state)
    for text in model.unsupported:
        state.add_finding("info", (), text)
    return tuple(sorted(dict.fromkeys(state.findings), key=lambda finding: get_args(Severity).index(finding.severity)))


async def check_join(state: LintState, join: Join) -> None:
    """Check that the one side of a join is unique, and that every row of the many side has a match."""
    path = ("joins", join.text)
    model = state.model.model_copy(update={"joins": (join,)})
    many, one = model.get_join_tables(join)
    many_keys = [build_column(column, many) for column, _ in join.on]
    one_keys = [build_column(column, one) for _, column in join.on]
    count = exp.Count(this=exp.Star())
    duplicates = build_join_query(model, one).select(count).group_by(*one_keys).having("COUNT(*) > 1").limit(1)
    rows = await state.fetch_rows(duplicates.where(*map(build_is_not_null, one_keys)), path)
    if rows is None:
        return
    if rows:
        key = f"{join.one}.{', '.join(column for _, column in join.on)}"
        problem = f"the join fans out: {key} is not unique, so rows of {join.many} would count twice or more"
        state.add_finding("error", path, problem, "turn the join round, or join to a table that has the column once")
    orphans = build_join_query(model, many, [one]).select(count.copy()).where(one_keys[0].is_(exp.null()))
    orphan_counts = await state.fetch_rows(orphans.where(*map(build_is_not_null, many_keys)), path)
    if orphan_counts and orphan_counts[0][0]:
        problem = f"{orphan_counts[0][0]} rows of {join.many} find no row of {join.one}"
        state.add_finding("warning", path, problem, "they are shown with an empty value")


async def check_time(state: LintState, time: str, reachable: ReachableTables, path: YamlPath) -> None:
    """Check that every value of the expression that dates the rows of a table is a date."""
    root, dialect = reachable.root_table, state.database.dialect
    bound = state.semantics.bind_expression(time, root)
    template = "STRFTIME('%Y', t)" if dialect == "sqlite" else "EXTRACT(YEAR FROM t)"
    is_undated = fill_template(template, dialect, t=bound.tree).is_(exp.null())
    query = build_join_query(state.model, root, bound.tables).select(bound.tree.copy()).limit(1)
    rows = await state.fetch_rows(query.where(build_is_not_null(bound.tree), is_undated), path)
    if rows:
        problem = f"{time} holds {rows[0][0]!r}, which is not an ISO date"
        state.add_finding("error", path, problem, "give an expression that makes it YYYY-MM-DD")


async def _check_row_expression(state: LintState, section: str, term: Term, path: YamlPath) -> None:
    """Run the expression of a dimension, or count the rows for which a filter or an exclusion is true.

    A dimension must go with a metric, all of which have been checked.
    """
    bound = state.semantics.bind_term(term)
    reasons = [reachable.explain_unreachable(bound.tables) for reachable in state.metric_tables]
    if section == "dimensions" and reasons and all(reasons):
        state.add_finding("warning", path[:2], f"it goes with no metric: {reasons[0]}", "add a join from many to one")
    root = find_root_table(state.model, bound.tables)
    if root is None:
        problem = f"no join puts {', '.join(bound.tables) or 'its columns'} together"
        state.add_finding("error", path, problem, "add a join, or a table")
        return
    if section == "dimensions":
        query = build_join_query(state.model, root, bound.tables).select(bound.tree.copy())
        await state.fetch_rows(query.limit(1), path)
        return
    total, matching = await state.count_rows(root, [bound], path)
    if total and not matching:
        problem = f"it is true for none of {total} rows"
        state.add_finding("warning", path, problem, "compare it with the values in the database")
    elif total and matching == total and section == "exclusions":
        problem = f"it leaves out all {total} rows"
        state.add_finding("error", path, problem, "an exclusion is true for the rows that are left out")


async def _check_metric(state: LintState, metric: Metric, path: YamlPath) -> None:
    model, semantics = state.model, state.semantics
    if semantics.resolve_base_metrics(metric.id) != (metric.id,):
        return
    bound = semantics.bind_term(metric)
    reachable = find_metric_tables(metric, semantics)
    state.metric_tables.append(reachable)
    root = reachable.root_table
    await state.fetch_rows(build_join_query(model, root, bound.tables).select(bound.tree.copy()), path)
    time = metric.time or model.tables[root].time or model.time
    if time and not reachable.explain_unreachable(semantics.bind_expression(time, root).tables):
        section = ("metrics", metric.id) if metric.time else ("tables", root) if model.tables[root].time else ()
        if state.checked_times.setdefault((root, time), metric.id) == metric.id:
            await check_time(state, time, reachable, (*section, "time"))
    elif metric.time:
        hint = "name a column of a table that it joins"
        state.add_finding("error", path, f"time: {time} is not reached from {root}", hint)
    if metric.default_filters:
        await _check_default_filters(state, metric, reachable)


async def _check_default_filters(state: LintState, metric: Metric, reachable: ReachableTables) -> None:
    """Check that the default filters of a metric let rows through."""
    path = ("metrics", metric.id, "default_filters")
    bound = [state.semantics.bind_condition(text, reachable.root_table) for text in metric.default_filters]
    tables = [table for condition in bound for table in condition.tables]
    if reason := reachable.explain_unreachable(tables):
        state.add_finding("error", path, reason)
        return
    total, included = await state.count_rows(reachable.root_table, bound, path)
    if total and not included:
        problem = f"they exclude every one of {total} rows"
        state.add_finding("error", path, problem, "compare them with the values in the database")


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
            location = state.describe_location(other_section, other_id).partition(":")[0]
            problem = f"{name!r} is also a name of {other_id} ({other_section}, {location})"
            state.add_finding(severity, (section, term.id, "synonyms"), problem, "keep it in one of them")
