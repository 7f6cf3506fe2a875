"""The second check of a query: every table, alias and column against the schema."""

from collections.abc import Iterable
from typing import Any

from opposable.sql import name_problems
from opposable.sql.name_problems import NameProblem
from opposable.sql.name_scopes import (
    ColumnNames,
    Ctes,
    FromSource,
    Scope,
    get_alias_columns,
    get_bound_names,
    get_output_name,
    get_select_aliases,
    rename_columns,
    resolve_identifier,
)
from opposable.sql.name_similarity import SAME_NAME_SIMILARITY, compute_similarity
from opposable.sql.schema import DatabaseSchema, Table, fold_name
from opposable.sql.statement_guard import Query, is_pseudo_table

_CASE_SENSITIVE_DIALECTS = frozenset({"postgres", "clickhouse"})


def check_names(query: Query, schema: DatabaseSchema) -> tuple[NameProblem, ...]:
    """Return every wrong name in `query` once, in no particular order."""
    checker = _NameChecker(query, schema)
    checker.check_query(query.tree, {}, None)
    return tuple({(p.name, p.repair.start if p.repair else p.message): p for p in checker.problems}.values())


class _NameChecker:
    """A walk over the tree of a query that collects problems."""

    def __init__(self, query: Query, schema: DatabaseSchema) -> None:
        self.dialect = query.dialect
        self.schema = schema
        self.problems: list[NameProblem] = []

    def check_query(self, node: Any, ctes: Ctes, outer: Scope | None) -> ColumnNames:
        """Check a query and return its column names, None where they are unknown."""
        from sqlglot import exp

        ctes = self._add_ctes(node, ctes, outer)
        if isinstance(node, exp.Subquery):
            return self._check_subquery(node, ctes, outer)
        if isinstance(node, exp.SetOperation):
            return self._check_set_operation(node, ctes, outer)
        if isinstance(node, exp.Select):
            return self._check_select(node, ctes, outer)
        if isinstance(node, exp.Values):
            scope = Scope({}, frozenset(), outer)
            self._check_expressions(node.expressions, scope, ctes)
            return get_alias_columns(node) or None
        if isinstance(node, exp.Pivot):
            scope = Scope({}, frozenset(), outer)
            self._add_source(node.this, scope, ctes)
            self._check_expressions([v for key, v in node.args.items() if key not in ("this", "into")], scope, ctes)
        return None

    def _add_ctes(self, node: Any, ctes: Ctes, outer: Scope | None) -> Ctes:
        with_ = node.args.get("with_")
        if with_ is None:
            return ctes
        visible = dict(ctes)
        for cte in with_.expressions:
            name, key = cte.alias, fold_name(cte.alias)
            alias_columns = get_alias_columns(cte)
            if with_.recursive or self.dialect == "sqlite":
                visible[key] = FromSource(name, alias_columns or self._find_anchor_columns(cte.this))
            columns = self.check_query(cte.this, visible, outer)
            visible[key] = FromSource(name, rename_columns(columns, alias_columns))
        return visible

    def _find_anchor_columns(self, node: Any) -> ColumnNames:
        """Return the column names of the first part of a recursive query.

        The result is None where a column has no plain name.
        """
        from sqlglot import exp

        while isinstance(node, exp.SetOperation):
            node = node.this
        names = (
            [get_output_name(item, self.dialect) for item in node.expressions] if isinstance(node, exp.Select) else []
        )
        return tuple(name for name in names if name) if names and all(names) else None

    def _check_subquery(self, node: Any, ctes: Ctes, outer: Scope | None) -> ColumnNames:
        columns = self.check_query(node.this, ctes, outer)
        scope = Scope({"": FromSource("the query", columns)}, frozenset(columns or ()), outer)
        self._check_expressions([node.args.get(key) for key in ("order", "limit", "offset")], scope, ctes)
        return None if node.args.get("pivots") else rename_columns(columns, get_alias_columns(node))

    def _check_set_operation(self, node: Any, ctes: Ctes, outer: Scope | None) -> ColumnNames:
        left = self.check_query(node.this, ctes, outer)
        right = self.check_query(node.expression, ctes, outer)
        columns = None if left is None or right is None else (*left, *right)
        scope = Scope({"": FromSource("the first SELECT", columns)}, frozenset(), outer)
        self._check_expressions([node.args.get(key) for key in ("order", "limit", "offset")], scope, ctes)
        return left

    def _check_select(self, node: Any, ctes: Ctes, outer: Scope | None) -> ColumnNames:
        from sqlglot import exp

        scope = Scope({}, get_select_aliases(node), outer)
        joins = list(node.args.get("joins") or ())
        items = [node.args["from_"].this] if node.args.get("from_") else []
        for item in [*items, *(join.this for join in joins), *(node.args.get("laterals") or ())]:
            self._add_source(item, scope, ctes)
        for join in joins:
            self._check_join(join, scope, ctes)
        skipped = {"with_", "from_", "joins", "laterals"}
        self._check_expressions([value for key, value in node.args.items() if key not in skipped], scope, ctes)
        outputs: list[str] = []
        for item in node.expressions or [exp.Star()]:
            names = self._get_output_names(item, scope)
            if names is None:
                return None
            outputs += names
        return tuple(outputs)

    def _add_source(self, item: Any, scope: Scope, ctes: Ctes) -> None:
        """Add one item of FROM, and the joins written inside it, to the scope."""
        from sqlglot import exp

        if isinstance(item, exp.Subquery) and isinstance(item.this, exp.Table):  # FROM (a JOIN b ON …)
            self._add_source(item.this, scope, ctes)
            if item.alias:
                scope.sources[fold_name(item.alias)] = FromSource(item.alias, None)
            return
        source = self._resolve_source(item, scope, ctes)
        if item.args.get("pivots"):
            source = FromSource(source.label, None)
        function = item.this.name if isinstance(item.this, exp.Anonymous) else ""
        name = item.alias_or_name or function or f"#{len(scope.sources)}"
        scope.sources[fold_name(name)] = source
        for join in item.args.get("joins") or ():
            self._add_source(join.this, scope, ctes)
            self._check_join(join, scope, ctes)
        for lateral in item.args.get("laterals") or ():
            self._add_source(lateral, scope, ctes)

    def _resolve_source(self, item: Any, scope: Scope, ctes: Ctes) -> FromSource:
        from sqlglot import exp

        label = item.alias_or_name
        if isinstance(item, exp.Table) and isinstance(item.this, exp.Identifier):
            return self._resolve_table(item, ctes)
        is_lateral = isinstance(item, exp.Lateral)
        item = item.this if is_lateral else item
        if isinstance(item, exp.Subquery) and isinstance(item.this, exp.Query):
            outer = scope if is_lateral or self.dialect == "duckdb" else scope.outer
            return FromSource(label, self.check_query(item, ctes, outer))
        if isinstance(item, exp.Values):
            return FromSource(label, self.check_query(item, ctes, scope.outer))
        self._check_expressions(
            [value for key, value in item.args.items() if key not in {"alias", "joins"}], scope, ctes
        )
        return FromSource(label, None)

    def _resolve_table(self, item: Any, ctes: Ctes) -> FromSource:
        label, key = item.alias_or_name, fold_name(item.name)
        alias_columns = get_alias_columns(item)
        if not item.db and key in ctes:
            return FromSource(label, rename_columns(ctes[key].columns, alias_columns))
        table = self.schema.find_table_by_identifier(item.name, item.db)
        if table is None and is_pseudo_table(item, self.schema):
            return FromSource(label, None)
        if table is None:
            self.problems.append(name_problems.unknown_table(item, ctes, self.schema, self.dialect))
            return FromSource(label, None)
        if self.schema.has_table_case or self.dialect in _CASE_SENSITIVE_DIALECTS:
            table = self._resolve_exact_table(item, table)
        columns = tuple(column.name for column in table.columns) or None
        return FromSource(label, rename_columns(columns, alias_columns), table)

    def _resolve_exact_table(self, item: Any, table: Table) -> Table:
        """Return the table of exactly the name that the engine reads.

        Without such a table, report a problem and return `table`.
        """
        name, schema = resolve_identifier(item.this, self.dialect), item.args.get("db")
        exact = self.schema.find_exact_table(name, resolve_identifier(schema, self.dialect) if schema else "")
        if exact is not None:
            return exact
        self.problems.append(name_problems.miswritten_table(item, self.schema, self.dialect))
        return table

    def _check_column_case(self, name: Any, sources: Iterable[FromSource]) -> None:
        """Report a column whose letter case the engine reads as another name."""
        wanted = resolve_identifier(name, self.dialect)
        sources = list(sources)
        columns = [column for source in sources for column in source.columns or ()]
        if wanted in columns:
            return
        same_letters = list(dict.fromkeys(column for column in columns if fold_name(column) == fold_name(wanted)))
        if len(same_letters) == 1:
            self.problems.append(name_problems.miswritten_column(name, same_letters[0], sources, self.dialect))

    def _check_join(self, join: Any, scope: Scope, ctes: Ctes) -> None:
        self._check_expressions([join.args.get("on"), join.args.get("match_condition")], scope, ctes)
        for name in join.args.get("using") or ():
            if not any(source.has_column(name.name) for source in scope.sources.values()):
                self._report_unknown_column(name, scope)

    def _report_unknown_column(self, name: Any, scope: Scope) -> None:
        self.problems.append(name_problems.unknown_column(name, scope, self.schema, self.dialect))

    def _check_expressions(self, values: Iterable[Any], scope: Scope, ctes: Ctes) -> None:
        """Check every column under `values`; a query within them has its own scope."""
        from sqlglot import exp

        stack = [(value, frozenset[str]()) for value in values]
        while stack:
            node, bound = stack.pop()
            if isinstance(node, list):
                stack += [(item, bound) for item in node]
            elif isinstance(node, exp.Query) or (isinstance(node, exp.Pivot) and node.this):
                self.check_query(node, ctes, scope)
            elif isinstance(node, exp.Column):
                self._check_column(node, scope, bound)
            elif isinstance(node, exp.Expression):
                bound |= get_bound_names(node)
                skipped = {"this"} if isinstance(node, exp.PropertyEQ | exp.Kwarg) else set()
                stack += [(value, bound) for key, value in node.args.items() if key not in skipped]

    def _check_column(self, node: Any, scope: Scope, bound: frozenset[str]) -> None:
        from sqlglot import exp

        parts = node.parts
        if fold_name(parts[0].name) in bound:
            return
        if len(parts) == 1:
            if not isinstance(parts[0], exp.Star):
                self._check_unqualified_column(parts[0], scope)
            return
        source = scope.find_source(parts[0].name)
        column = parts[1]
        if source is None and len(parts) > 2:
            source, column = scope.find_source(parts[1].name), parts[2]
        if source is None:
            if not (self.dialect == "duckdb" and scope.has_column(parts[0].name)):
                self.problems.append(name_problems.unknown_alias(parts[0], parts[1], scope))
            return
        if isinstance(column, exp.Star):
            return
        if not source.has_column(column.name):
            self.problems.append(name_problems.misplaced_column(column, source, scope, self.schema, self.dialect))
        elif self.dialect in _CASE_SENSITIVE_DIALECTS:
            self._check_column_case(column, [source])

    def _check_unqualified_column(self, name: Any, scope: Scope) -> None:
        if not self._is_known_name(name, scope):
            self._report_unknown_column(name, scope)
        elif self.dialect in _CASE_SENSITIVE_DIALECTS and fold_name(name.name) not in scope.aliases:
            self._check_column_case(name, (source for each in scope.iter_scopes() for source in each.sources.values()))

    def _is_known_name(self, name: Any, scope: Scope) -> bool:
        """Whether an unqualified name has a meaning.

        It may be a column, an alias, a row, or text in SQLite's double quotes.
        """
        if scope.has_column(name.name):
            return True
        if self.dialect == "sqlite":
            return bool(name.args.get("quoted")) and (
                _is_comparison_operand(name) or not self._is_near_column_name(name.name, scope)
            )
        return scope.find_source(name.name) is not None

    def _is_near_column_name(self, name: str, scope: Scope) -> bool:
        """Whether a name is nearly that of a column.

        SQLite would read such a name in double quotes as text, without an error.
        """
        sources = (source for each in scope.iter_scopes() for source in each.sources.values())
        return any(
            compute_similarity(name, column) >= SAME_NAME_SIMILARITY
            for source in sources
            for column in source.columns or ()
        )

    def _get_output_names(self, item: Any, scope: Scope) -> list[str] | None:
        """Return the column names of an item of a SELECT list, None if unknown."""
        from sqlglot import exp

        star = item.this if isinstance(item, exp.Column) and isinstance(item.this, exp.Star) else item
        if not isinstance(star, exp.Star):
            if isinstance(item, exp.Columns | exp.Explode | exp.Unnest):
                return None
            return [get_output_name(item, self.dialect) or _write_expression(item, self.dialect)]
        owner = item.table if isinstance(item, exp.Column) else ""
        owner_source = scope.find_source(owner) if owner else None
        sources = [owner_source] if owner_source else list(scope.sources.values())
        if any(source is None or source.columns is None for source in sources) or star.args.get("rename"):
            return None
        return [column for source in sources for column in source.columns or ()]


def _write_expression(item: Any, dialect: str) -> str:
    """Return the SQL of an expression, which names its column; "" where sqlglot can read it but not write it."""
    try:
        return str(item.sql(dialect=dialect))
    except (TypeError, ValueError):
        return ""


def _is_comparison_operand(name: Any) -> bool:
    """Whether a name is an operand of a comparison, IN or BETWEEN."""
    from sqlglot import exp

    comparison = name.parent.parent if isinstance(name.parent, exp.Column) else None
    return isinstance(comparison, exp.Binary | exp.In | exp.Between) and comparison.this is not name.parent
