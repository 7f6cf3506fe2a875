"""Layer 2: checks every table, alias and column of a query against the schema, scope by scope."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from opposable.sql.function_allowlist import Dialect
from opposable.sql.name_scopes import (
    Columns,
    Ctes,
    Scope,
    Source,
    alias_columns,
    bound_names,
    meaning,
    output_name,
    renamed,
    select_aliases,
)
from opposable.sql.name_similarity import HARDLY_ANOTHER, likeness, suggestions, sure_match
from opposable.sql.schema import Schema, Table, folded_name, quoted, quoted_path
from opposable.sql.statement_guard import Query


@dataclass(frozen=True, slots=True)
class Replacement:
    """Characters `start` to `end` (exclusive) of the SQL become `text`; `told` says so in words."""

    start: int
    end: int
    text: str
    told: str


@dataclass(frozen=True, slots=True)
class NameProblem:
    """A name that the database does not have: what is wrong and what exists, and its repair where that is sure."""

    kind: Literal["table", "alias", "column"]
    name: str
    sentence: str
    repair: Replacement | None = None


def check_names(query: Query, schema: Schema) -> tuple[NameProblem, ...]:
    """Every wrong name in `query`, in no particular order, each told once; () when all names exist."""
    checker = _Checker(query, schema)
    checker.query(query.tree, {}, None)
    return tuple({(p.name, p.repair.start if p.repair else p.sentence): p for p in checker.problems}.values())


class _Checker:
    """Walks a tree with the scopes it is in and collects problems."""

    def __init__(self, query: Query, schema: Schema) -> None:
        self.dialect = query.dialect
        self.schema = schema
        self.problems: list[NameProblem] = []

    def query(self, node: Any, ctes: Ctes, outer: Scope | None) -> Columns:
        """Checks a query and returns the names of its columns (None when they cannot be known)."""
        from sqlglot import exp

        ctes = self._with_ctes(node, ctes, outer)
        if isinstance(node, exp.Subquery):
            return self._subquery(node, ctes, outer)
        if isinstance(node, exp.SetOperation):
            return self._set_operation(node, ctes, outer)
        if isinstance(node, exp.Select):
            return self._select(node, ctes, outer)
        if isinstance(node, exp.Values):
            scope = Scope({}, frozenset(), outer)
            self._expressions(node.expressions, scope, ctes)
            return alias_columns(node) or None
        return None

    def _with_ctes(self, node: Any, ctes: Ctes, outer: Scope | None) -> Ctes:
        with_ = node.args.get("with_")
        if with_ is None:
            return ctes
        known = dict(ctes)
        for cte in with_.expressions:
            name, key = cte.alias, folded_name(cte.alias)
            named = alias_columns(cte)
            if with_.recursive or self.dialect == "sqlite":
                known[key] = Source(name, named or self._anchor_columns(cte.this))
            columns = self.query(cte.this, known, outer)
            known[key] = Source(name, renamed(columns, named))
        return known

    def _anchor_columns(self, node: Any) -> Columns:
        """The columns a recursive query's first part names; None when that needs more than a look."""
        from sqlglot import exp

        while isinstance(node, exp.SetOperation):
            node = node.this
        names = [output_name(item, self.dialect) for item in node.expressions] if isinstance(node, exp.Select) else []
        return tuple(name for name in names if name) if names and all(names) else None

    def _subquery(self, node: Any, ctes: Ctes, outer: Scope | None) -> Columns:
        columns = self.query(node.this, ctes, outer)
        scope = Scope({"": Source("the query", columns)}, frozenset(columns or ()), outer)
        self._expressions([node.args.get(key) for key in ("order", "limit", "offset")], scope, ctes)
        return None if node.args.get("pivots") else renamed(columns, alias_columns(node))

    def _set_operation(self, node: Any, ctes: Ctes, outer: Scope | None) -> Columns:
        left = self.query(node.this, ctes, outer)
        right = self.query(node.expression, ctes, outer)
        known = None if left is None or right is None else (*left, *right)
        scope = Scope({"": Source("the first SELECT", known)}, frozenset(), outer)
        self._expressions([node.args.get(key) for key in ("order", "limit", "offset")], scope, ctes)
        return left

    def _select(self, node: Any, ctes: Ctes, outer: Scope | None) -> Columns:
        from sqlglot import exp

        scope = Scope({}, select_aliases(node), outer)
        joins = list(node.args.get("joins") or ())
        items = [node.args["from_"].this] if node.args.get("from_") else []
        for item in [*items, *(join.this for join in joins), *(node.args.get("laterals") or ())]:
            self._source(item, scope, ctes)
        for join in joins:
            self._join(join, scope, ctes)
        skipped = {"with_", "from_", "joins", "laterals"}
        self._expressions([value for key, value in node.args.items() if key not in skipped], scope, ctes)
        outputs: list[str] = []
        for item in node.expressions or [exp.Star()]:
            names = self._outputs(item, scope)
            if names is None:
                return None
            outputs += names
        return tuple(outputs)

    def _source(self, item: Any, scope: Scope, ctes: Ctes) -> None:
        """Adds one item of FROM, and the joins written inside it, to the scope."""
        from sqlglot import exp

        if isinstance(item, exp.Subquery) and isinstance(item.this, exp.Table):  # FROM (a JOIN b ON …)
            self._source(item.this, scope, ctes)
            if item.alias:
                scope.sources[folded_name(item.alias)] = Source(item.alias, None)
            return
        source = self._read_source(item, scope, ctes)
        if item.args.get("pivots"):
            source = Source(source.label, None)
        name = item.alias_or_name or f"#{len(scope.sources)}"
        scope.sources[folded_name(name)] = source
        for join in item.args.get("joins") or ():
            self._source(join.this, scope, ctes)
            self._join(join, scope, ctes)
        for lateral in item.args.get("laterals") or ():
            self._source(lateral, scope, ctes)

    def _read_source(self, item: Any, scope: Scope, ctes: Ctes) -> Source:
        from sqlglot import exp

        label = item.alias_or_name
        if isinstance(item, exp.Table) and isinstance(item.this, exp.Identifier):
            return self._table(item, ctes)
        lateral = isinstance(item, exp.Lateral)
        item = item.this if lateral else item
        if isinstance(item, exp.Subquery) and isinstance(item.this, exp.Query):
            around = scope if lateral or self.dialect == "duckdb" else scope.outer
            return Source(label, self.query(item, ctes, around))
        if isinstance(item, exp.Values):
            return Source(label, self.query(item, ctes, scope.outer))
        self._expressions([value for key, value in item.args.items() if key not in {"alias", "joins"}], scope, ctes)
        return Source(label, None)

    def _table(self, item: Any, ctes: Ctes) -> Source:
        label, key = item.alias_or_name, folded_name(item.name)
        named = alias_columns(item)
        if not item.db and key in ctes:
            return Source(label, renamed(ctes[key].columns, named))
        found = self.schema.find_named(item.name, item.db)
        if found is None:
            self._unknown_table(item, ctes)
            return Source(label, None)
        if self.dialect == "postgres":
            found = self._as_written(item, found)
        columns = tuple(column.name for column in found.columns) or None
        return Source(label, renamed(columns, named), found)

    def _as_written(self, item: Any, found: Table) -> Table:
        """The table PostgreSQL finds by these very letters; else `found`, told to be written differently."""
        name, db = meaning(item.this, "postgres"), item.args.get("db")
        exact = self.schema.find_exactly(name, meaning(db, "postgres") if db else "")
        if exact is not None:
            return exact
        path = quoted_path(found, "postgres")
        start = db.meta.get("start", item.this.meta.get("start")) if db else item.this.meta.get("start")
        end = item.this.meta.get("end")
        told = f"{item.name} is no table as PostgreSQL reads it: write {path}."
        repair = (
            None if start is None or end is None else Replacement(start, end + 1, path, f"table {item.name} → {path}")
        )
        self.problems.append(NameProblem("table", item.name, told, repair))
        return found

    def _in_its_case(self, name: Any, sources: Iterable[Source]) -> None:
        """Tells a column whose letters PostgreSQL would read in another case than it has."""
        wanted = meaning(name, "postgres")
        columns = [column for source in sources for column in source.columns or ()]
        if wanted in columns:
            return
        near = list(dict.fromkeys(column for column in columns if folded_name(column) == folded_name(wanted)))
        if len(near) == 1:
            text = quoted(near[0], "postgres")
            told = f"{name.name} is no column as PostgreSQL reads it: write {text}."
            self.problems.append(NameProblem("column", name.name, told, self._replace(name, text, "column")))

    def _join(self, join: Any, scope: Scope, ctes: Ctes) -> None:
        self._expressions([join.args.get("on"), join.args.get("match_condition")], scope, ctes)
        for name in join.args.get("using") or ():
            if not any(source.has(name.name) for source in scope.sources.values()):
                self._unknown_column(name, scope)

    def _expressions(self, values: Iterable[Any], scope: Scope, ctes: Ctes) -> None:
        """Checks every column under `values`, and queries within them as scopes of their own."""
        from sqlglot import exp

        stack = [(value, frozenset[str]()) for value in values]
        while stack:
            node, bound = stack.pop()
            if isinstance(node, list):
                stack += [(item, bound) for item in node]
            elif isinstance(node, exp.Query):
                self.query(node, ctes, scope)
            elif isinstance(node, exp.Column):
                self._column(node, scope, bound)
            elif isinstance(node, exp.Expression):
                bound |= bound_names(node)
                skipped = {"this"} if isinstance(node, exp.PropertyEQ | exp.Kwarg) else set()
                stack += [(value, bound) for key, value in node.args.items() if key not in skipped]

    def _column(self, node: Any, scope: Scope, bound: frozenset[str]) -> None:
        from sqlglot import exp

        parts = node.parts
        first = parts[0].name
        if folded_name(first) in bound:
            return
        if len(parts) == 1:
            if isinstance(parts[0], exp.Star):
                return
            if self._stands_alone(parts[0], scope):
                if self.dialect == "postgres" and folded_name(first) not in scope.aliases:
                    self._in_its_case(parts[0], (s for each in scope.chain() for s in each.sources.values()))
                return
            self._unknown_column(parts[0], scope)
            return
        source = scope.find_source(first)
        owner, column = parts[0], parts[1]
        if source is None and len(parts) > 2:
            source, owner, column = scope.find_source(parts[1].name), parts[1], parts[2]
        if source is None:
            if not (self.dialect == "duckdb" and scope.has_column(first)):
                self._unknown_alias(parts[0], parts[1], scope)
            return
        if isinstance(column, exp.Star):
            return
        if not source.has(column.name):
            self._misplaced_column(owner, column, source, scope)
        elif self.dialect == "postgres":
            self._in_its_case(column, [source])

    def _stands_alone(self, name: Any, scope: Scope) -> bool:
        """Whether an unqualified name means something: a column, an alias, a row, or text in SQLite's double quotes."""
        if scope.has_column(name.name):
            return True
        if self.dialect == "sqlite":
            return bool(name.args.get("quoted")) and (_compared(name) or not self._hardly_another(name.name, scope))
        return scope.find_source(name.name) is not None

    def _hardly_another(self, name: str, scope: Scope) -> bool:
        """Whether a name is a column's but for spaces, signs or a plural: SQLite would take it for text, silently."""
        sources = (source for each in scope.chain() for source in each.sources.values())
        return any(likeness(name, column) >= HARDLY_ANOTHER for source in sources for column in source.columns or ())

    def _outputs(self, item: Any, scope: Scope) -> list[str] | None:
        """The column names one item of a SELECT list brings; None when they cannot be known."""
        from sqlglot import exp

        star = item.this if isinstance(item, exp.Column) and isinstance(item.this, exp.Star) else item
        if not isinstance(star, exp.Star):
            if isinstance(item, exp.Columns | exp.Explode | exp.Unnest):
                return None
            return [output_name(item, self.dialect) or item.sql(dialect=self.dialect)]
        owner = item.table if isinstance(item, exp.Column) else ""
        found = scope.find_source(owner) if owner else None
        sources = [found] if found else list(scope.sources.values())
        if any(source is None or source.columns is None for source in sources) or star.args.get("rename"):
            return None
        return [column for source in sources for column in source.columns or ()]

    def _unknown_table(self, item: Any, ctes: Ctes) -> None:
        names = [*(table.full_name for table in self.schema.tables), *(source.label for source in ctes.values())]
        told = f"There is no table {item.name}. {self._as_column(item.name)}"
        told += _choices("Tables", suggestions(item.name, names), names)
        match = sure_match(item.name, names)
        repair = (
            None if match is None else self._replace(item.this, _sql_path(match, self.schema, self.dialect), "table")
        )
        self.problems.append(NameProblem("table", item.name, told, repair))

    def _as_column(self, name: str) -> str:
        """Where a supposed table is a column: models take a column of codes or names for a table of its own."""
        owners = [table.full_name for table in self.schema.tables if table.find_column(name) is not None]
        if not owners:
            return ""
        listed = ", ".join(owners[:5])
        return f"{name} is a column of {listed}: use it there, without a join. "

    def _unknown_alias(self, owner: Any, column: Any, scope: Scope) -> None:
        sources = {name: source for each in scope.chain() for name, source in each.sources.items()}
        having = [s for s in sources.values() if s.columns is not None and s.has(column.name)]
        of_table = [s for s in sources.values() if s.table and folded_name(s.table.name) == folded_name(owner.name)]
        labels = [source.label for source in sources.values()]
        right = of_table if len(of_table) == 1 else having if len(having) == 1 else []
        told = f"{owner.name} in {owner.name}.{column.name} is no table or alias of this FROM, which has "
        told += f"{', '.join(labels) or 'none'}."
        if right:
            told += f" {column.name} is a column of {right[0].label}." if right[0] in having else ""
        repair = self._replace(owner, self._quoted(right[0].label), "alias") if right else None
        self.problems.append(NameProblem("alias", owner.name, told, repair))

    def _misplaced_column(self, owner: Any, column: Any, source: Source, scope: Scope) -> None:
        others = [
            other
            for other in next(s for s in scope.chain() if source in s.sources.values()).sources.values()
            if other is not source and other.columns is not None and other.has(column.name)
        ]
        names = source.columns or ()
        told = f"{_described(source)} has no column {column.name}."
        repair = None
        if others:
            told += f" {' and '.join(_described(other) for other in others)} has it."
            if len(others) == 1:
                repair = self._replace(owner, self._quoted(others[0].label), "alias", column.name)
        else:
            told += f" {_choices('Its columns', suggestions(column.name, names), names)}"
            match = sure_match(column.name, names)
            repair = self._replace(column, self._quoted(match), "column") if match else None
            told += "" if match else self._elsewhere(column.name)
        self.problems.append(NameProblem("column", column.name, told, repair))

    def _unknown_column(self, name: Any, scope: Scope) -> None:
        sources = [source for each in scope.chain() for source in each.sources.values()]
        names = [column for source in sources for column in source.columns or ()]
        places = ", ".join(dict.fromkeys(_described(source) for source in sources)) or "this query"
        told = (
            f"There is no column {name.name} in {places}. {_choices('Columns', suggestions(name.name, names), names)}"
        )
        match = sure_match(name.name, names)
        repair = None
        if match and sum(source.has(match) for source in sources if source.columns is not None) == 1:
            repair = self._replace(name, self._quoted(match), "column")
        elif not match:
            told += self._elsewhere(name.name)
            if self.dialect == "duckdb" and name.args.get("quoted"):
                told += " Text stands in single quotes, not double quotes."
        self.problems.append(NameProblem("column", name.name, told, repair))

    def _elsewhere(self, column: str) -> str:
        tables = [table.full_name for table in self.schema.tables if table.find_column(column)]
        return f" The table {' or '.join(tables[:3])} has a column {column}: join it." if tables else ""

    def _quoted(self, name: str) -> str:
        return quoted(name, self.dialect)

    def _replace(self, name: Any, text: str, what: str, column: str = "") -> Replacement | None:
        start, end = name.meta.get("start"), name.meta.get("end")
        if start is None or end is None:
            return None
        suffix = f".{column}" if column else ""
        return Replacement(start, end + 1, text, f"{what} {name.name}{suffix} → {text}{suffix}")


def _compared(name: Any) -> bool:
    """Whether a name stands where text is compared with: after a sign, in a list of values, as a bound."""
    from sqlglot import exp

    around = name.parent.parent if isinstance(name.parent, exp.Column) else None
    return isinstance(around, exp.Binary | exp.In | exp.Between) and around.this is not name.parent


def _described(source: Source) -> str:
    if source.table is None or folded_name(source.label) == folded_name(source.table.name):
        return source.label or "the subquery"
    return f"{source.table.full_name} (alias {source.label})"


def _choices(what: str, nearest: tuple[str, ...], names: Iterable[str]) -> str:
    if nearest:
        return f"Did you mean {' or '.join(nearest)}?"
    unique = list(dict.fromkeys(names))
    shown = ", ".join(unique[:20]) + (", …" if len(unique) > 20 else "")
    return f"{what}: {shown}." if unique else ""


def _sql_path(full_name: str, schema: Schema, dialect: Dialect) -> str:
    table = schema.find_table(full_name)
    return quoted(full_name, dialect) if table is None else quoted_path(table, dialect)
