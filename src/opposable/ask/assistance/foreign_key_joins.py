"""Rebuilds joins from foreign keys where a join condition is invalid."""

from collections import deque
from typing import Any

from opposable.ask.assistance.sql_tree import (
    RepairedSql,
    find_columns_in_select,
    find_keys_between,
    get_source_identifier,
    get_sources,
    get_where_conditions,
    repair_each_select,
    set_where,
    split_conjuncts,
)
from opposable.sql.function_allowlist import Dialect
from opposable.sql.schema import DatabaseSchema, Table, quote_name, quote_table_path

JoinEdge = tuple[str, str, str, str]
"""An alias and its column, another alias and its column."""


def rebuild_joins(sql: str, dialect: Dialect, schema: DatabaseSchema) -> RepairedSql:
    """Rebuild the joins of a SELECT if one uses a column that its table lacks, or has no condition.

    Valid joins stay. Unconnected tables are joined by foreign keys, through other tables if there is one shortest path.
    A table used only by an invalid join is removed. Ambiguous SQL is unchanged.
    """
    return repair_each_select(sql, dialect, lambda select: _repair_select(select, dialect, schema))


def _repair_select(select: Any, dialect: Dialect, schema: DatabaseSchema) -> list[str]:
    from sqlglot import exp

    joins = select.args.get("joins") or []
    plain = all(join.kind in ("", "INNER", "CROSS") and not (join.side or join.args.get("using")) for join in joins)
    items = get_sources(select) if joins and plain and select.args.get("from_") else []
    if not items or not all(isinstance(item, exp.Table) for item in items):
        return []
    return _JoinRebuilder(select, items, dialect, schema).rebuild()


class _JoinRebuilder:
    """The joins of one SELECT over plain tables."""

    def __init__(self, select: Any, sources: list[Any], dialect: Dialect, schema: DatabaseSchema) -> None:
        self._select, self._sources, self._dialect, self._schema = select, sources, dialect, schema
        self._tables = {item.alias_or_name.casefold(): schema.find_table(item.name, item.db) for item in sources}
        self._added_tables: dict[str, Table] = {}

    def rebuild(self) -> list[str]:
        """Join unconnected tables by foreign keys and return the corrections."""
        if None in self._tables.values() or len(self._tables) < len(self._sources):
            return []
        good, others, wrong = self._classify_conditions()
        apart = self._find_components(good)
        if len(apart) == 1 or not self._are_tables_known(wrong) or any(self._spans_tables(one) for one in others):
            return []
        before = list(good)
        while len(apart) > 1:
            edges = self._find_link(apart)
            if not edges:
                return []
            good += edges
            apart = self._find_components(good)
        good = self._drop_bridge_tables(good, wrong)
        self._write_joins(good, others)
        return [f"{a}.{x} = {b}.{y}" for a, x, b, y in good if (a, x, b, y) not in before]

    def _classify_conditions(self) -> tuple[list[JoinEdge], list[Any], list[JoinEdge]]:
        """Return valid join edges, other conditions, and edges on missing columns."""
        on_conditions = [
            one
            for join in self._select.args["joins"]
            if join.args.get("on")
            for one in split_conjuncts(join.args["on"])
        ]
        good: list[JoinEdge] = []
        wrong: list[JoinEdge] = []
        others: list[Any] = []
        for one in on_conditions:
            edge = self._parse_edge(one)
            if edge is None:
                others.append(one)
            else:
                (good if self._is_valid_edge(edge) else wrong).append(edge)
        where_edges = [self._parse_edge(one) for one in get_where_conditions(self._select)]
        return [*good, *(edge for edge in where_edges if edge and self._is_valid_edge(edge))], others, wrong

    def _parse_edge(self, condition: Any) -> JoinEdge | None:
        """Return the edge of a condition that compares columns of two tables, else None."""
        from sqlglot import exp

        sides = [condition.this, condition.expression] if isinstance(condition, exp.EQ) else []
        if not sides or not all(isinstance(side, exp.Column) for side in sides):
            return None
        (a, x), (b, y) = [(self._find_owner(side), side.name) for side in sides]
        return (a, x, b, y) if a and b and a != b else None

    def _spans_tables(self, condition: Any) -> bool:
        """Return whether a condition uses columns of several tables."""
        from sqlglot import exp

        return len({self._find_owner(column) for column in condition.find_all(exp.Column)}) > 1

    def _find_owner(self, column: Any) -> str:
        """Return the alias of the table a column belongs to, or "" if it is ambiguous."""
        having = [alias for alias, table in self._tables.items() if table and table.find_column(column.name)]
        return column.table.casefold() or (having[0] if len(having) == 1 else "")

    def _is_valid_edge(self, edge: JoinEdge) -> bool:
        first, second = self._tables.get(edge[0]), self._tables.get(edge[2])
        return bool(first and second and first.find_column(edge[1]) and second.find_column(edge[3]))

    def _are_tables_known(self, edges: list[JoinEdge]) -> bool:
        """Return whether the query reads the tables of all edges."""
        return all(edge[0] in self._tables and edge[2] in self._tables for edge in edges)

    def _find_components(self, edges: list[JoinEdge]) -> list[set[str]]:
        """Return the groups of aliases that the edges connect."""
        groups = [{alias} for alias in [*self._tables, *self._added_tables]]
        for a, _, b, _ in edges:
            one = next(group for group in groups if a in group)
            other = next(group for group in groups if b in group)
            if one is not other:
                one |= other
                groups.remove(other)
        return groups

    def _find_link(self, components: list[set[str]]) -> list[JoinEdge]:
        """Return the edges that join the first group to another: one key, else the shortest path."""
        first, rest = components[0], set().union(*components[1:])
        direct = [edge for a in first for b in rest for edge in self._find_key_edges(a, b)]
        if len(direct) == 1:
            return direct
        return [] if direct else self._find_shortest_path(first, rest)

    def _find_key_edges(self, first_alias: str, second_alias: str) -> list[JoinEdge]:
        one, other = self._get_table(first_alias), self._get_table(second_alias)
        return [(first_alias, x, second_alias, y) for x, y in find_keys_between(one, other)]

    def _get_table(self, alias: str) -> Table:
        table = self._tables.get(alias) or self._added_tables.get(alias)
        assert table is not None
        return table

    def _find_shortest_path(self, first: set[str], rest: set[str]) -> list[JoinEdge]:
        """Return the edges of the only shortest path through unread tables; [] for none or several."""
        read = {self._get_table(alias).full_name for alias in first | rest}
        free = [table for table in self._schema.tables if table.full_name not in read and table.kind == "table"]
        queue: deque[list[tuple[str, Table]]] = deque([(alias, self._get_table(alias))] for alias in first)
        found: list[list[tuple[str, Table]]] = []
        while queue:
            way = queue.popleft()
            if len(way) > 3 or (found and len(way) >= len(found[0])):
                break
            last = way[-1][1]
            found += [
                [*way, (b, self._get_table(b))]
                for b in rest
                if len(way) > 1 and find_keys_between(last, self._get_table(b))
            ]
            queue += [
                [*way, ("", table)]
                for table in free
                if find_keys_between(last, table) and all(table.full_name != step.full_name for _, step in way)
            ]
        if not found or sum(len(way) == len(found[0]) for way in found) > 1:
            return []
        return self._build_path_edges(found[0])

    def _build_path_edges(self, path: list[tuple[str, Table]]) -> list[JoinEdge]:
        edges: list[JoinEdge] = []
        before, table = path[0]
        for alias, step in path[1:]:
            pairs = find_keys_between(table, step)
            if len(pairs) != 1:
                return []
            if not alias:
                alias = next(f"k{n}" for n in range(1, 99) if f"k{n}" not in {*self._tables, *self._added_tables})
                self._added_tables[alias] = step
            edges.append((before, pairs[0][0], alias, pairs[0][1]))
            before, table = alias, step
        return edges

    def _drop_bridge_tables(self, edges: list[JoinEdge], invalid_edges: list[JoinEdge]) -> list[JoinEdge]:
        """Remove tables that only an invalid join used."""
        from sqlglot import exp

        used = [
            column
            for column in find_columns_in_select(self._select)
            if column.find_ancestor(exp.Join) is None and not isinstance(column.this, exp.Star)
        ]
        for alias in {one for edge in invalid_edges for one in (edge[0], edge[2])}:
            within = [edge for edge in edges if alias in (edge[0], edge[2])]
            idle = all(column.table and column.table.casefold() != alias for column in used)
            if len(within) == 1 and idle and len(self._tables) > 1 and not self._select.find(exp.Star):
                edges = [edge for edge in edges if edge is not within[0]]
                self._sources = [item for item in self._sources if item.alias_or_name.casefold() != alias]
                del self._tables[alias]
        return edges

    def _write_joins(self, edges: list[JoinEdge], other_conditions: list[Any]) -> None:
        """Rewrite FROM and the joins, each table after one that it joins to."""
        from sqlglot import exp

        first = self._sources[0]
        written = {first.alias_or_name.casefold()}
        self._select.set("from_", exp.From(this=first.copy()))
        self._select.set("joins", [])
        left = {item.alias_or_name.casefold(): item.copy() for item in self._sources[1:]}
        left |= {alias: self._build_table_node(table, alias) for alias, table in self._added_tables.items()}
        while left:
            alias = next(
                a for a in left if any(a in (e[0], e[2]) and (e[0] in written or e[2] in written) for e in edges)
            )
            mine = [e for e in edges if alias in (e[0], e[2]) and ({e[0], e[2]} - {alias}) <= written]
            on = exp.and_(*(self._build_condition(edge) for edge in mine))
            self._select.join(left.pop(alias), on=on, copy=False)
            written.add(alias)
        conditions = [*get_where_conditions(self._select), *other_conditions]
        set_where(self._select, [one for at, one in enumerate(conditions) if one not in conditions[:at]])

    def _build_table_node(self, table: Table, alias: str) -> Any:
        import sqlglot

        text = f"SELECT 1 FROM {quote_table_path(table, self._dialect)} AS {alias}"  # noqa: S608 - parsed, not run
        return sqlglot.parse_one(text, dialect=self._dialect).args["from_"].this

    def _build_condition(self, edge: JoinEdge) -> Any:
        import sqlglot

        a, x, b, y = edge
        written = {item.alias_or_name.casefold(): item for item in self._sources}
        names = [self._format_qualifier(written[alias]) if alias in written else alias for alias in (a, b)]
        text = f"{names[0]}.{quote_name(x, self._dialect)} = {names[1]}.{quote_name(y, self._dialect)}"
        return sqlglot.parse_one(text, dialect=self._dialect)

    def _format_qualifier(self, source: Any) -> str:
        return str(get_source_identifier(source).sql(dialect=self._dialect))
