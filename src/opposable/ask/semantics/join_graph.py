"""Which tables a table reaches by joins that do not multiply its rows, and the FROM clause that goes there."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from opposable.ask.semantics.model import Join, SemanticModel
from opposable.domain.errors import BadInput
from opposable.sql.schema import quote_name


@dataclass(frozen=True, slots=True)
class ReachableTables:
    """The tables that `root` reaches from many to one, each with the joins to it; `ambiguous` ones have two ways."""

    root_table: str
    paths: dict[str, tuple[Join, ...]]
    ambiguous_paths: dict[str, tuple[tuple[Join, ...], ...]]

    def explain_unreachable(self, tables: Iterable[str]) -> str:
        """Why `tables` cannot be joined to the root without counting rows twice; "" when they can."""
        for table in tables:
            if table not in self.paths:
                return f"joining {table} to {self.root_table} would multiply the rows of {self.root_table}, or no join leads there"
            if table in self.ambiguous_paths:
                ways = " or ".join(f"by {', then '.join(j.text for j in way)}" for way in self.ambiguous_paths[table])
                return (
                    f"{table} can be reached from {self.root_table} {ways}: give each role its own table in the model"
                )
        return ""


def find_reachable_tables(model: SemanticModel, root: str) -> ReachableTables:
    """What `root` reaches, by the shortest ways; two ways of one length make a table ambiguous."""
    ways: dict[str, tuple[Join, ...]] = {root: ()}
    ambiguous: dict[str, tuple[tuple[Join, ...], ...]] = {}
    edge = [root]
    while edge:
        found: dict[str, list[tuple[Join, ...]]] = {}
        for table in edge:
            for join in _get_joins_from(model, table):
                one = resolve_table_id(model, join.one)
                if one not in ways:
                    found.setdefault(one, []).append((*ways[table], join))
        for table, candidates in found.items():
            ways[table] = candidates[0]
            if len(candidates) > 1:
                ambiguous[table] = tuple(candidates)
        edge = list(found)
    for table, way in ways.items():
        passed = next((t for join in way if (t := resolve_table_id(model, join.one)) in ambiguous), None)
        if passed is not None and table not in ambiguous:
            ambiguous[table] = ambiguous[passed]
    return ReachableTables(root, ways, ambiguous)


def find_root_table(model: SemanticModel, tables: Iterable[str]) -> str | None:
    """The one of `tables` that reaches all the others from many to one, or None."""
    wanted = list(dict.fromkeys(tables))
    return next(
        (table for table in wanted if not find_reachable_tables(model, table).explain_unreachable(wanted)), None
    )


def find_nearest_root(model: SemanticModel, tables: Iterable[str]) -> str | None:
    """The table of the model that reaches all of `tables` with the fewest joins, or None."""
    wanted = list(dict.fromkeys(tables))
    ways = [way for ref in model.tables if not (way := find_reachable_tables(model, ref)).explain_unreachable(wanted)]
    return min(ways, key=lambda way: sum(len(way.paths[table]) for table in wanted)).root_table if ways else None


def resolve_table_id(model: SemanticModel, name: str) -> str:
    """The id of the table called `name`, in any case.

    Raises:
        BadInput: the model has no such table.
    """
    found = model.find_table(name)
    if found is None:
        raise BadInput(f"there is no table {name} in the semantic model.")
    return found.id


def build_join_query(model: SemanticModel, reachable: ReachableTables, tables: Iterable[str]) -> Any:
    """A sqlglot SELECT of nothing yet, FROM the root with LEFT JOINs to `tables`, which `way` must reach."""
    from sqlglot import exp

    query = exp.select().from_(_build_source_table(model, reachable.root_table))
    done: set[str] = set()
    for table in tables:
        for join in reachable.paths[table]:
            one = resolve_table_id(model, join.one)
            if one in done:
                continue
            done.add(one)
            query = query.join(_build_source_table(model, one), on=build_join_condition(model, join), join_type="left")
    return query


def build_join_condition(model: SemanticModel, join: Join) -> Any:
    """The ON of a join as a sqlglot tree."""
    from sqlglot import exp

    many, one = resolve_table_id(model, join.many), resolve_table_id(model, join.one)
    return exp.and_(*(exp.EQ(this=_build_column(many, a), expression=_build_column(one, b)) for a, b in join.on))


def _build_source_table(model: SemanticModel, ref: str) -> Any:
    from sqlglot import exp

    parts = split_source(model.tables[ref].source)
    db = build_identifier(parts[-2]) if len(parts) > 1 else None
    table = exp.Table(this=build_identifier(parts[-1]), db=db)
    return table if parts == [ref] else exp.alias_(table, build_identifier(ref), table=True)


def split_source(source: str) -> list[str]:
    """Schema and table of a source; a database's name before them is left out, since the open database is the one."""
    parts = re.findall(r'"(?:[^"]|"")+"|[^."]+', source)
    return [part[1:-1].replace('""', '"') if part[0] == '"' else part for part in parts][-2:] or [source]


def _build_column(table: str, name: str) -> Any:
    from sqlglot import exp

    return exp.column(build_identifier(name), table=build_identifier(table))


def build_identifier(name: str) -> Any:
    """A name as sqlglot's identifier: quoted unless every engine reads it as it stands without quotes."""
    from sqlglot import exp

    plain = name.isascii() and name == name.lower() and quote_name(name) == name
    return exp.to_identifier(name, quoted=not plain)


def _get_joins_from(model: SemanticModel, table: str) -> list[Join]:
    return [join for join in model.joins if resolve_table_id(model, join.many) == table]
