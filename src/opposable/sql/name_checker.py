"""Layer 2: checks every table, alias and column of a query against the schema, scope by scope."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from opposable.sql.function_allowlist import Dialect
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
from opposable.sql.name_similarity import SAME_NAME_SIMILARITY, compute_similarity, find_sure_match, suggest_names
from opposable.sql.schema import DatabaseSchema, Table, fold_name, quote_name, quote_table_path
from opposable.sql.statement_guard import Query


@dataclass(frozen=True, slots=True)
class Replacement:
    """Characters `start` to `end` (exclusive) of the SQL become `text`; `told` says so in words."""

    start: int
    end: int
    text: str
    description: str


@dataclass(frozen=True, slots=True)
class NameProblem:
    """A name that the database does not have: what is wrong and what exists, and its repair where that is sure."""

    kind: Literal["table", "alias", "column"]
    name: str
    message: str
    repair: Replacement | None = None


def check_names(query: Query, schema: DatabaseSchema) -> tuple[NameProblem, ...]:
    """Every wrong name in `query`, in no particular order, each told once; () when all names exist."""
    checker = _NameChecker(query, schema)
    checker.check_query(query.tree, {}, None)
    return tuple({(p.name, p.repair.start if p.repair else p.message): p for p in checker.problems}.values())


class _NameChecker:
    """Walks a tree with the scopes it is in and collects problems."""

    def __init__(self, query: Query, schema: DatabaseSchema) -> None:
        self.dialect = query.dialect
        self.schema = schema
        self.problems: list[NameProblem] = []

    def check_query(self, node: Any, ctes: Ctes, outer: Scope | None) -> ColumnNames:
        """Checks a query and returns the names of its columns (None when they cannot be known)."""
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
        return None

    def _add_ctes(self, node: Any, ctes: Ctes, outer: Scope | None) -> Ctes:
        with_ = node.args.get("with_")
        if with_ is None:
            return ctes
        known = dict(ctes)
        for cte in with_.expressions:
            name, key = cte.alias, fold_name(cte.alias)
            named = get_alias_columns(cte)
            if with_.recursive or self.dialect == "sqlite":
                known[key] = FromSource(name, named or self._find_anchor_columns(cte.this))
            columns = self.check_query(cte.this, known, outer)
            known[key] = FromSource(name, rename_columns(columns, named))
        return known

    def _find_anchor_columns(self, node: Any) -> ColumnNames:
        """The columns a recursive query's first part names; None when that needs more than a look."""
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
        known = None if left is None or right is None else (*left, *right)
        scope = Scope({"": FromSource("the first SELECT", known)}, frozenset(), outer)
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
        """Adds one item of FROM, and the joins written inside it, to the scope."""
        from sqlglot import exp

        if isinstance(item, exp.Subquery) and isinstance(item.this, exp.Table):  # FROM (a JOIN b ON …)
            self._add_source(item.this, scope, ctes)
            if item.alias:
                scope.sources[fold_name(item.alias)] = FromSource(item.alias, None)
            return
        source = self._resolve_source(item, scope, ctes)
        if item.args.get("pivots"):
            source = FromSource(source.label, None)
        name = item.alias_or_name or f"#{len(scope.sources)}"
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
        lateral = isinstance(item, exp.Lateral)
        item = item.this if lateral else item
        if isinstance(item, exp.Subquery) and isinstance(item.this, exp.Query):
            around = scope if lateral or self.dialect == "duckdb" else scope.outer
            return FromSource(label, self.check_query(item, ctes, around))
        if isinstance(item, exp.Values):
            return FromSource(label, self.check_query(item, ctes, scope.outer))
        self._check_expressions(
            [value for key, value in item.args.items() if key not in {"alias", "joins"}], scope, ctes
        )
        return FromSource(label, None)

    def _resolve_table(self, item: Any, ctes: Ctes) -> FromSource:
        label, key = item.alias_or_name, fold_name(item.name)
        named = get_alias_columns(item)
        if not item.db and key in ctes:
            return FromSource(label, rename_columns(ctes[key].columns, named))
        found = self.schema.find_table_by_identifier(item.name, item.db)
        if found is None:
            self._report_unknown_table(item, ctes)
            return FromSource(label, None)
        if self.dialect == "postgres":
            found = self._resolve_exact_table(item, found)
        columns = tuple(column.name for column in found.columns) or None
        return FromSource(label, rename_columns(columns, named), found)

    def _resolve_exact_table(self, item: Any, found: Table) -> Table:
        """The table PostgreSQL finds by these very letters; else `found`, told to be written differently."""
        name, db = resolve_identifier(item.this, "postgres"), item.args.get("db")
        exact = self.schema.find_exact_table(name, resolve_identifier(db, "postgres") if db else "")
        if exact is not None:
            return exact
        path = quote_table_path(found, "postgres")
        start = db.meta.get("start", item.this.meta.get("start")) if db else item.this.meta.get("start")
        end = item.this.meta.get("end")
        told = f"{item.name} is no table as PostgreSQL reads it: write {path}."
        repair = (
            None if start is None or end is None else Replacement(start, end + 1, path, f"table {item.name} → {path}")
        )
        self.problems.append(NameProblem("table", item.name, told, repair))
        return found

    def _check_column_case(self, name: Any, sources: Iterable[FromSource]) -> None:
        """Tells a column whose letters PostgreSQL would read in another case than it has."""
        wanted = resolve_identifier(name, "postgres")
        columns = [column for source in sources for column in source.columns or ()]
        if wanted in columns:
            return
        near = list(dict.fromkeys(column for column in columns if fold_name(column) == fold_name(wanted)))
        if len(near) == 1:
            text = quote_name(near[0], "postgres")
            told = f"{name.name} is no column as PostgreSQL reads it: write {text}."
            self.problems.append(NameProblem("column", name.name, told, self._build_replacement(name, text, "column")))

    def _check_join(self, join: Any, scope: Scope, ctes: Ctes) -> None:
        self._check_expressions([join.args.get("on"), join.args.get("match_condition")], scope, ctes)
        for name in join.args.get("using") or ():
            if not any(source.has_column(name.name) for source in scope.sources.values()):
                self._report_unknown_column(name, scope)

    def _check_expressions(self, values: Iterable[Any], scope: Scope, ctes: Ctes) -> None:
        """Checks every column under `values`, and queries within them as scopes of their own."""
        from sqlglot import exp

        stack = [(value, frozenset[str]()) for value in values]
        while stack:
            node, bound = stack.pop()
            if isinstance(node, list):
                stack += [(item, bound) for item in node]
            elif isinstance(node, exp.Query):
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
        first = parts[0].name
        if fold_name(first) in bound:
            return
        if len(parts) == 1:
            if isinstance(parts[0], exp.Star):
                return
            if self._is_known_name(parts[0], scope):
                if self.dialect == "postgres" and fold_name(first) not in scope.aliases:
                    self._check_column_case(
                        parts[0], (s for each in scope.iter_scopes() for s in each.sources.values())
                    )
                return
            self._report_unknown_column(parts[0], scope)
            return
        source = scope.find_source(first)
        owner, column = parts[0], parts[1]
        if source is None and len(parts) > 2:
            source, owner, column = scope.find_source(parts[1].name), parts[1], parts[2]
        if source is None:
            if not (self.dialect == "duckdb" and scope.has_column(first)):
                self._report_unknown_alias(parts[0], parts[1], scope)
            return
        if isinstance(column, exp.Star):
            return
        if not source.has_column(column.name):
            self._report_misplaced_column(owner, column, source, scope)
        elif self.dialect == "postgres":
            self._check_column_case(column, [source])

    def _is_known_name(self, name: Any, scope: Scope) -> bool:
        """Whether an unqualified name means something: a column, an alias, a row, or text in SQLite's double quotes."""
        if scope.has_column(name.name):
            return True
        if self.dialect == "sqlite":
            return bool(name.args.get("quoted")) and (
                _is_comparison_operand(name) or not self._is_near_column_name(name.name, scope)
            )
        return scope.find_source(name.name) is not None

    def _is_near_column_name(self, name: str, scope: Scope) -> bool:
        """Whether a name is a column's but for spaces, signs or a plural: SQLite would take it for text, silently."""
        sources = (source for each in scope.iter_scopes() for source in each.sources.values())
        return any(
            compute_similarity(name, column) >= SAME_NAME_SIMILARITY
            for source in sources
            for column in source.columns or ()
        )

    def _get_output_names(self, item: Any, scope: Scope) -> list[str] | None:
        """The column names one item of a SELECT list brings; None when they cannot be known."""
        from sqlglot import exp

        star = item.this if isinstance(item, exp.Column) and isinstance(item.this, exp.Star) else item
        if not isinstance(star, exp.Star):
            if isinstance(item, exp.Columns | exp.Explode | exp.Unnest):
                return None
            return [get_output_name(item, self.dialect) or item.sql(dialect=self.dialect)]
        owner = item.table if isinstance(item, exp.Column) else ""
        found = scope.find_source(owner) if owner else None
        sources = [found] if found else list(scope.sources.values())
        if any(source is None or source.columns is None for source in sources) or star.args.get("rename"):
            return None
        return [column for source in sources for column in source.columns or ()]

    def _report_unknown_table(self, item: Any, ctes: Ctes) -> None:
        names = [*(table.full_name for table in self.schema.tables), *(source.label for source in ctes.values())]
        told = f"There is no table {item.name}. {self._describe_as_column(item.name)}"
        told += _format_choices("Tables", suggest_names(item.name, names), names)
        match = find_sure_match(item.name, names)
        repair = (
            None
            if match is None
            else self._build_replacement(item.this, _quote_full_name(match, self.schema, self.dialect), "table")
        )
        self.problems.append(NameProblem("table", item.name, told, repair))

    def _describe_as_column(self, name: str) -> str:
        """Where a supposed table is a column: models take a column of codes or names for a table of its own."""
        owners = [table.full_name for table in self.schema.tables if table.find_column(name) is not None]
        if not owners:
            return ""
        listed = ", ".join(owners[:5])
        return f"{name} is a column of {listed}: use it there, without a join. "

    def _report_unknown_alias(self, owner: Any, column: Any, scope: Scope) -> None:
        sources = {name: source for each in scope.iter_scopes() for name, source in each.sources.items()}
        having = [s for s in sources.values() if s.columns is not None and s.has_column(column.name)]
        of_table = [s for s in sources.values() if s.table and fold_name(s.table.name) == fold_name(owner.name)]
        labels = [source.label for source in sources.values()]
        right = of_table if len(of_table) == 1 else having if len(having) == 1 else []
        told = f"{owner.name} in {owner.name}.{column.name} is no table or alias of this FROM, which has "
        told += f"{', '.join(labels) or 'none'}."
        if right:
            told += f" {column.name} is a column of {right[0].label}." if right[0] in having else ""
        repair = self._build_replacement(owner, self._quote(right[0].label), "alias") if right else None
        self.problems.append(NameProblem("alias", owner.name, told, repair))

    def _report_misplaced_column(self, owner: Any, column: Any, source: FromSource, scope: Scope) -> None:
        others = [
            other
            for other in next(s for s in scope.iter_scopes() if source in s.sources.values()).sources.values()
            if other is not source and other.columns is not None and other.has_column(column.name)
        ]
        names = source.columns or ()
        told = f"{_describe_source(source)} has no column {column.name}."
        repair = None
        if others:
            told += f" {' and '.join(_describe_source(other) for other in others)} has it."
            if len(others) == 1:
                repair = self._build_replacement(owner, self._quote(others[0].label), "alias", column.name)
        else:
            told += f" {_format_choices('Its columns', suggest_names(column.name, names), names)}"
            match = find_sure_match(column.name, names)
            repair = self._build_replacement(column, self._quote(match), "column") if match else None
            told += "" if match else self._describe_other_tables(column.name)
        self.problems.append(NameProblem("column", column.name, told, repair))

    def _report_unknown_column(self, name: Any, scope: Scope) -> None:
        sources = [source for each in scope.iter_scopes() for source in each.sources.values()]
        names = [column for source in sources for column in source.columns or ()]
        places = ", ".join(dict.fromkeys(_describe_source(source) for source in sources)) or "this query"
        told = f"There is no column {name.name} in {places}. {_format_choices('Columns', suggest_names(name.name, names), names)}"
        match = find_sure_match(name.name, names)
        repair = None
        if match and sum(source.has_column(match) for source in sources if source.columns is not None) == 1:
            repair = self._build_replacement(name, self._quote(match), "column")
        elif not match:
            told += self._describe_other_tables(name.name)
            if self.dialect == "duckdb" and name.args.get("quoted"):
                told += " Text stands in single quotes, not double quotes."
        self.problems.append(NameProblem("column", name.name, told, repair))

    def _describe_other_tables(self, column: str) -> str:
        tables = [table.full_name for table in self.schema.tables if table.find_column(column)]
        return f" The table {' or '.join(tables[:3])} has a column {column}: join it." if tables else ""

    def _quote(self, name: str) -> str:
        return quote_name(name, self.dialect)

    def _build_replacement(self, name: Any, text: str, kind: str, column: str = "") -> Replacement | None:
        start, end = name.meta.get("start"), name.meta.get("end")
        if start is None or end is None:
            return None
        suffix = f".{column}" if column else ""
        return Replacement(start, end + 1, text, f"{kind} {name.name}{suffix} → {text}{suffix}")


def _is_comparison_operand(name: Any) -> bool:
    """Whether a name stands where text is compared with: after a sign, in a list of values, as a bound."""
    from sqlglot import exp

    around = name.parent.parent if isinstance(name.parent, exp.Column) else None
    return isinstance(around, exp.Binary | exp.In | exp.Between) and around.this is not name.parent


def _describe_source(source: FromSource) -> str:
    if source.table is None or fold_name(source.label) == fold_name(source.table.name):
        return source.label or "the subquery"
    return f"{source.table.full_name} (alias {source.label})"


def _format_choices(label: str, similar_names: tuple[str, ...], names: Iterable[str]) -> str:
    if similar_names:
        return f"Did you mean {' or '.join(similar_names)}?"
    unique = list(dict.fromkeys(names))
    shown = ", ".join(unique[:20]) + (", …" if len(unique) > 20 else "")
    return f"{label}: {shown}." if unique else ""


def _quote_full_name(full_name: str, schema: DatabaseSchema, dialect: Dialect) -> str:
    table = schema.find_table(full_name)
    return quote_name(full_name, dialect) if table is None else quote_table_path(table, dialect)
