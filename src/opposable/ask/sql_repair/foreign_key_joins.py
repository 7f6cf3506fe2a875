"""Joins that no foreign key and no common column bears out, made again by the foreign keys."""

from collections import deque
from typing import Any

from opposable.ask.sql_repair.sql_tree import (
    Mended,
    conjuncts,
    goes_by,
    in_each_select,
    in_where,
    keys_between,
    own_columns,
    read_by,
    set_where,
)
from opposable.sql.function_allowlist import Dialect
from opposable.sql.schema import Schema, Table, quoted, quoted_path

Edge = tuple[str, str, str, str]
"""An alias and its column, another alias and its column."""


def by_keys(sql: str, dialect: Dialect, schema: Schema) -> Mended:
    """The SQL with its joins made again where one stands on a column that its table lacks, or on nothing.

    Joins that hold stay; what they leave apart is joined by foreign keys, by way of other tables where there is just
    one shortest way. A table that only served a wrong join goes. Unchanged where that is not certain.
    """
    return in_each_select(sql, dialect, lambda select: _joined(select, dialect, schema))


def _joined(select: Any, dialect: Dialect, schema: Schema) -> list[str]:
    from sqlglot import exp

    joins = select.args.get("joins") or []
    plain = all(join.kind in ("", "INNER", "CROSS") and not (join.side or join.args.get("using")) for join in joins)
    items = read_by(select) if joins and plain and select.args.get("from_") else []
    if not items or not all(isinstance(item, exp.Table) for item in items):
        return []
    return _Joining(select, items, dialect, schema).made()


class _Joining:
    """The joins of one SELECT, of plain tables only."""

    def __init__(self, select: Any, items: list[Any], dialect: Dialect, schema: Schema) -> None:
        self._select, self._items, self._dialect, self._schema = select, items, dialect, schema
        self._tables = {item.alias_or_name.casefold(): schema.find_table(item.name, item.db) for item in items}
        self._added: dict[str, Table] = {}

    def made(self) -> list[str]:
        """Joins the tables by keys where that is called for; what was done."""
        if None in self._tables.values() or len(self._tables) < len(self._items):
            return []
        good, others, wrong = self._conditions()
        apart = self._components(good)
        if len(apart) == 1 or not self._all_known(wrong) or any(self._joins(one) for one in others):
            return []
        before = list(good)
        while len(apart) > 1:
            edges = self._link(apart)
            if not edges:
                return []
            good += edges
            apart = self._components(good)
        good = self._without_bridges(good, wrong)
        self._write(good, others)
        return [f"{a}.{x} = {b}.{y}" for a, x, b, y in good if (a, x, b, y) not in before]

    def _conditions(self) -> tuple[list[Edge], list[Any], list[Edge]]:
        """The conditions that join two tables and hold, those that are none, and those on columns that are not there."""
        asked = [
            one for join in self._select.args["joins"] if join.args.get("on") for one in conjuncts(join.args["on"])
        ]
        good: list[Edge] = []
        wrong: list[Edge] = []
        others: list[Any] = []
        for one in asked:
            edge = self._edge(one)
            if edge is None:
                others.append(one)
            else:
                (good if self._holds(edge) else wrong).append(edge)
        told = [self._edge(one) for one in in_where(self._select)]
        return [*good, *(edge for edge in told if edge and self._holds(edge))], others, wrong

    def _edge(self, condition: Any) -> Edge | None:
        """The condition where it compares the columns of two tables."""
        from sqlglot import exp

        sides = [condition.this, condition.expression] if isinstance(condition, exp.EQ) else []
        if not sides or not all(isinstance(side, exp.Column) for side in sides):
            return None
        (a, x), (b, y) = [(self._owner(side), side.name) for side in sides]
        return (a, x, b, y) if a and b and a != b else None

    def _joins(self, condition: Any) -> bool:
        """Whether a condition is on columns of more than one table."""
        from sqlglot import exp

        return len({self._owner(column) for column in condition.find_all(exp.Column)}) > 1

    def _owner(self, column: Any) -> str:
        """The alias of the table a column belongs to, "" where that is not said."""
        having = [alias for alias, table in self._tables.items() if table and table.find_column(column.name)]
        return column.table.casefold() or (having[0] if len(having) == 1 else "")

    def _holds(self, edge: Edge) -> bool:
        first, second = self._tables.get(edge[0]), self._tables.get(edge[2])
        return bool(first and second and first.find_column(edge[1]) and second.find_column(edge[3]))

    def _all_known(self, wrong: list[Edge]) -> bool:
        """Whether every wrong condition is of tables that are read."""
        return all(edge[0] in self._tables and edge[2] in self._tables for edge in wrong)

    def _components(self, edges: list[Edge]) -> list[set[str]]:
        """The groups of aliases that conditions hold together."""
        groups = [{alias} for alias in [*self._tables, *self._added]]
        for a, _, b, _ in edges:
            one = next(group for group in groups if a in group)
            other = next(group for group in groups if b in group)
            if one is not other:
                one |= other
                groups.remove(other)
        return groups

    def _link(self, apart: list[set[str]]) -> list[Edge]:
        """The conditions that join the first group to another: by one key, else by the one shortest way of keys."""
        first, rest = apart[0], set().union(*apart[1:])
        direct = [edge for a in first for b in rest for edge in self._between(a, b)]
        if len(direct) == 1:
            return direct
        return [] if direct else self._way(first, rest)

    def _between(self, a: str, b: str) -> list[Edge]:
        one, other = self._table(a), self._table(b)
        return [(a, x, b, y) for x, y in keys_between(one, other)]

    def _table(self, alias: str) -> Table:
        table = self._tables.get(alias) or self._added.get(alias)
        assert table is not None
        return table

    def _way(self, first: set[str], rest: set[str]) -> list[Edge]:
        """The conditions along the one shortest way by tables that are not read yet; [] where there is none or more."""
        read = {self._table(alias).full_name for alias in first | rest}
        free = [table for table in self._schema.tables if table.full_name not in read and table.kind == "table"]
        queue: deque[list[tuple[str, Table]]] = deque([(alias, self._table(alias))] for alias in first)
        found: list[list[tuple[str, Table]]] = []
        while queue:
            way = queue.popleft()
            if len(way) > 3 or (found and len(way) >= len(found[0])):
                break
            last = way[-1][1]
            found += [[*way, (b, self._table(b))] for b in rest if len(way) > 1 and keys_between(last, self._table(b))]
            queue += [
                [*way, ("", table)]
                for table in free
                if keys_between(last, table) and all(table.full_name != step.full_name for _, step in way)
            ]
        if not found or sum(len(way) == len(found[0]) for way in found) > 1:
            return []
        return self._along(found[0])

    def _along(self, way: list[tuple[str, Table]]) -> list[Edge]:
        edges: list[Edge] = []
        before, table = way[0]
        for alias, step in way[1:]:
            pairs = keys_between(table, step)
            if len(pairs) != 1:
                return []
            if not alias:
                alias = next(f"k{n}" for n in range(1, 99) if f"k{n}" not in {*self._tables, *self._added})
                self._added[alias] = step
            edges.append((before, pairs[0][0], alias, pairs[0][1]))
            before, table = alias, step
        return edges

    def _without_bridges(self, edges: list[Edge], wrong: list[Edge]) -> list[Edge]:
        """Leaves out tables that only served a wrong join: of which nothing else is used."""
        from sqlglot import exp

        used = [
            column
            for column in own_columns(self._select)
            if column.find_ancestor(exp.Join) is None and not isinstance(column.this, exp.Star)
        ]
        for alias in {one for edge in wrong for one in (edge[0], edge[2])}:
            within = [edge for edge in edges if alias in (edge[0], edge[2])]
            idle = all(column.table and column.table.casefold() != alias for column in used)
            if len(within) == 1 and idle and len(self._tables) > 1 and not self._select.find(exp.Star):
                edges = [edge for edge in edges if edge is not within[0]]
                self._items = [item for item in self._items if item.alias_or_name.casefold() != alias]
                del self._tables[alias]
        return edges

    def _write(self, edges: list[Edge], others: list[Any]) -> None:
        """Writes FROM and JOINs anew, each table after one that it is joined to."""
        from sqlglot import exp

        first = self._items[0]
        written = {first.alias_or_name.casefold()}
        self._select.set("from_", exp.From(this=first.copy()))
        self._select.set("joins", [])
        left = {item.alias_or_name.casefold(): item.copy() for item in self._items[1:]}
        left |= {alias: self._new(table, alias) for alias, table in self._added.items()}
        while left:
            alias = next(
                a for a in left if any(a in (e[0], e[2]) and (e[0] in written or e[2] in written) for e in edges)
            )
            mine = [e for e in edges if alias in (e[0], e[2]) and ({e[0], e[2]} - {alias}) <= written]
            on = exp.and_(*(self._condition(edge) for edge in mine))
            self._select.join(left.pop(alias), on=on, copy=False)
            written.add(alias)
        kept = [*in_where(self._select), *others]
        set_where(self._select, [one for at, one in enumerate(kept) if one not in kept[:at]])

    def _new(self, table: Table, alias: str) -> Any:
        import sqlglot

        text = f"SELECT 1 FROM {quoted_path(table, self._dialect)} AS {alias}"  # noqa: S608 - parsed, not run
        return sqlglot.parse_one(text, dialect=self._dialect).args["from_"].this

    def _condition(self, edge: Edge) -> Any:
        import sqlglot

        a, x, b, y = edge
        written = {item.alias_or_name.casefold(): item for item in self._items}
        names = [self._as_written(written[alias]) if alias in written else alias for alias in (a, b)]
        text = f"{names[0]}.{quoted(x, self._dialect)} = {names[1]}.{quoted(y, self._dialect)}"
        return sqlglot.parse_one(text, dialect=self._dialect)

    def _as_written(self, item: Any) -> str:
        return str(goes_by(item).sql(dialect=self._dialect))
