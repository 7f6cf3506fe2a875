"""Which tables a table reaches by joins that do not multiply its rows, and the FROM clause that goes there."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from opposable.ask.semantics.model import Join, SemanticModel
from opposable.domain.errors import BadInput
from opposable.sql.schema import quoted


@dataclass(frozen=True, slots=True)
class Reach:
    """The tables that `root` reaches from many to one, each with the joins to it; `ambiguous` ones have two ways."""

    root: str
    ways: dict[str, tuple[Join, ...]]
    ambiguous: dict[str, tuple[tuple[Join, ...], ...]]

    def refusal(self, tables: Iterable[str]) -> str:
        """Why `tables` cannot be joined to the root without counting rows twice; "" when they can."""
        for table in tables:
            if table not in self.ways:
                return f"joining {table} to {self.root} would multiply the rows of {self.root}, or no join leads there"
            if table in self.ambiguous:
                ways = " or ".join(f"by {', then '.join(j.text for j in way)}" for way in self.ambiguous[table])
                return f"{table} can be reached from {self.root} {ways}: give each role its own table in the model"
        return ""


def reach(model: SemanticModel, root: str) -> Reach:
    """What `root` reaches, by the shortest ways; two ways of one length make a table ambiguous."""
    ways: dict[str, tuple[Join, ...]] = {root: ()}
    ambiguous: dict[str, tuple[tuple[Join, ...], ...]] = {}
    edge = [root]
    while edge:
        found: dict[str, list[tuple[Join, ...]]] = {}
        for table in edge:
            for join in _from(model, table):
                one = table_id(model, join.one)
                if one not in ways:
                    found.setdefault(one, []).append((*ways[table], join))
        for table, candidates in found.items():
            ways[table] = candidates[0]
            if len(candidates) > 1:
                ambiguous[table] = tuple(candidates)
        edge = list(found)
    for table, way in ways.items():
        passed = next((t for join in way if (t := table_id(model, join.one)) in ambiguous), None)
        if passed is not None and table not in ambiguous:
            ambiguous[table] = ambiguous[passed]
    return Reach(root, ways, ambiguous)


def root_of(model: SemanticModel, tables: Iterable[str]) -> str | None:
    """The one of `tables` that reaches all the others from many to one, or None."""
    wanted = list(dict.fromkeys(tables))
    return next((table for table in wanted if not reach(model, table).refusal(wanted)), None)


def nearest_root(model: SemanticModel, tables: Iterable[str]) -> str | None:
    """The table of the model that reaches all of `tables` with the fewest joins, or None."""
    wanted = list(dict.fromkeys(tables))
    ways = [way for ref in model.tables if not (way := reach(model, ref)).refusal(wanted)]
    return min(ways, key=lambda way: sum(len(way.ways[table]) for table in wanted)).root if ways else None


def table_id(model: SemanticModel, name: str) -> str:
    """The id of the table called `name`, in any case.

    Raises:
        BadInput: the model has no such table.
    """
    found = model.find_table(name)
    if found is None:
        raise BadInput(f"there is no table {name} in the semantic model.")
    return found.id


def joined(model: SemanticModel, way: Reach, tables: Iterable[str]) -> Any:
    """A sqlglot SELECT of nothing yet, FROM the root with LEFT JOINs to `tables`, which `way` must reach."""
    from sqlglot import exp

    query = exp.select().from_(_source(model, way.root))
    done: set[str] = set()
    for table in tables:
        for join in way.ways[table]:
            one = table_id(model, join.one)
            if one in done:
                continue
            done.add(one)
            query = query.join(_source(model, one), on=condition(model, join), join_type="left")
    return query


def condition(model: SemanticModel, join: Join) -> Any:
    """The ON of a join as a sqlglot tree."""
    from sqlglot import exp

    many, one = table_id(model, join.many), table_id(model, join.one)
    return exp.and_(*(exp.EQ(this=_column(many, a), expression=_column(one, b)) for a, b in join.on))


def _source(model: SemanticModel, ref: str) -> Any:
    from sqlglot import exp

    parts = source_parts(model.tables[ref].source)
    db = identifier(parts[-2]) if len(parts) > 1 else None
    table = exp.Table(this=identifier(parts[-1]), db=db)
    return table if parts == [ref] else exp.alias_(table, identifier(ref), table=True)


def source_parts(source: str) -> list[str]:
    """Schema and table of a source; a database's name before them is left out, since the open database is the one."""
    parts = re.findall(r'"(?:[^"]|"")+"|[^."]+', source)
    return [part[1:-1].replace('""', '"') if part[0] == '"' else part for part in parts][-2:] or [source]


def _column(table: str, name: str) -> Any:
    from sqlglot import exp

    return exp.column(identifier(name), table=identifier(table))


def identifier(name: str) -> Any:
    """A name as sqlglot's identifier: quoted unless every engine reads it as it stands without quotes."""
    from sqlglot import exp

    plain = name.isascii() and name == name.lower() and quoted(name) == name
    return exp.to_identifier(name, quoted=not plain)


def _from(model: SemanticModel, table: str) -> list[Join]:
    return [join for join in model.joins if table_id(model, join.many) == table]
