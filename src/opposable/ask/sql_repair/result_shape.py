"""Adapts the shape of a query's result to the question where that is certain."""

import re
from collections.abc import Sequence
from typing import Any

from opposable.ask.sql_repair import messages
from opposable.ask.sql_repair.question_requirements import find_fixed_items
from opposable.ask.sql_repair.sql_tree import get_where_conditions, parse_sql, set_where
from opposable.domain.text_normalization import normalize_text
from opposable.sql.function_allowlist import Dialect

_DISTINCT_WORDS = re.compile(r"\b(?:different|distinct|unique)\b|不同|不重复|去重|互不相同", re.IGNORECASE)
_NUMBER_WORDS = re.compile(
    r"\bhow (?:many|much|often|long|old|big|large)\b|\b(?:numbers?|counts?|totals?|amounts?|sum|average|mean|frequen\w*"
    r"|times|quantity|percent\w*|share|ratio|rate|values?|maximum|minimum|together with|along with|as well as)\b"
    r"|多少|数量|个数|人数|次数|总|合计|平均|比例|占比|频|几",
    re.IGNORECASE,
)
_SORT_KEY_WORDS = re.compile(
    r"\b(?:most|highest|largest|biggest|lowest|fewest|least|smallest|maximum|minimum)\s+(?:(?:total|average)\s+)?"
    r"(?:numbers?|counts?|totals?|amounts?|sum|average|quantity|values?)\b"
    r"|(?:总|平均)?\w{0,4}?(?:数|数量|额|金额|量|费|价|率|值|总\w{1,3}|平均\w{1,3})最[多少高低大小]",
    re.IGNORECASE,
)
"""Words that name a number only as the sort key."""

_ONE_NUMBER_WORDS = re.compile(
    r"\s*(?:how many|what is the (?:total )?number of|count the)\b|.*(?:一共)?有多少|.*共有几", re.IGNORECASE
)
_GROUPING_WORDS = re.compile(
    r"\b(?:each|every|per|by|respectively|and|different \w+ have|for all)\b|每|各|分别|以及|和|按", re.IGNORECASE
)

_EACH_WORDS = re.compile(r"\b(?:each|every|per|respectively)\b|每|各", re.IGNORECASE)


def asks_for_each(question: str) -> bool:
    """Return whether the question asks for a figure of each group."""
    return _EACH_WORDS.search(question) is not None


def asks_for_one_number(question: str) -> bool:
    """Return whether the question asks for one count and nothing else."""
    return _ONE_NUMBER_WORDS.match(question) is not None and not _GROUPING_WORDS.search(question)


def repair_result_shape(sql: str, question: str, dialect: Dialect) -> tuple[str, tuple[str, ...]]:
    """Add DISTINCT where the question says "different", and drop columns it does not ask for.

    Two values required of one column become an INTERSECT. Returns the SQL and the corrections. SQL that cannot be parsed
    is unchanged.
    """
    from sqlglot import exp

    tree = parse_sql(sql, dialect)
    if not isinstance(tree, exp.Select):
        return sql, ()
    corrections = [*_add_distinct(tree, question), *_drop_sort_key(tree, question), *_drop_fixed_items(tree)]
    both = _build_intersection(tree)
    if both is not None:
        tree, corrections = both, [*corrections, messages.intersection_built()]
    return (tree.sql(dialect=dialect), tuple(corrections)) if corrections else (sql, ())


def _add_distinct(tree: Any, question: str) -> list[str]:
    from sqlglot import exp

    if not _DISTINCT_WORDS.search(question) or tree.find(exp.Distinct) or tree.args.get("group"):
        return []
    aggregates = [one for one in tree.selects if one.find(exp.AggFunc)]
    if not aggregates:
        tree.set("distinct", exp.Distinct())
        return ["SELECT → SELECT DISTINCT"]
    counted = [one.unalias() for one in tree.selects if isinstance(one.unalias(), exp.Count)]
    if len(tree.selects) == 1 and counted and isinstance(counted[0].this, exp.Column):
        counted[0].set("this", exp.Distinct(expressions=[counted[0].this]))
        return ["count → count(DISTINCT)"]
    return []


def _build_intersection(tree: Any) -> Any:
    """Build an INTERSECT if WHERE requires two values of one column; else return None."""
    from sqlglot import exp

    if any(tree.args.get(part) for part in ("group", "order", "limit", "having")):
        return None
    if any(one.find(exp.AggFunc) for one in tree.selects):
        return None
    conditions = [
        one for one in get_where_conditions(tree) if isinstance(one, exp.EQ) and isinstance(one.expression, exp.Literal)
    ]
    for at, first in enumerate(conditions):
        for second in conditions[at + 1 :]:
            if first.this.name.casefold() == second.this.name.casefold() and first.expression != second.expression:
                one, other = tree.copy(), tree.copy()
                set_where(one, [condition for condition in get_where_conditions(tree) if condition is not second])
                set_where(other, [condition for condition in get_where_conditions(tree) if condition is not first])
                return exp.Intersect(this=one, expression=other, distinct=True)
    return None


def _drop_sort_key(tree: Any, question: str) -> list[str]:
    """Drop an aggregate that only ORDER BY needs, if the question asks for no number."""
    from sqlglot import exp

    order, limit = tree.args.get("order"), tree.args.get("limit")
    if (
        order is None
        or limit is None
        or len(tree.selects) < 2
        or _NUMBER_WORDS.search(_SORT_KEY_WORDS.sub("", question))
    ):
        return []
    for one in tree.selects:
        bare = one.unalias()
        for key in (ordered.this for ordered in order.expressions):
            named = isinstance(key, exp.Column) and not key.table and key.name == one.alias
            if isinstance(bare, exp.AggFunc) and (key == bare or named):
                if named:
                    key.replace(bare.copy())
                tree.set("expressions", [other for other in tree.selects if other is not one])
                return [messages.part_removed(one.sql()[:60])]
    return []


def _drop_fixed_items(tree: Any) -> list[str]:
    """Drop columns that WHERE fixes to one value: the question states it and does not ask for it."""
    out = find_fixed_items(tree)
    if not out or len(out) == len(tree.selects) or tree.args.get("group"):
        return []
    tree.set("expressions", [one for one in tree.selects if not any(one is other for other in out)])
    return [messages.part_removed(one.sql()[:60]) for one in out]


def find_shape_mismatch(question: str, sql: str, column_count: int, row_count: int, named_values: Sequence[str]) -> str:
    """Return a message if the result cannot answer the question; "" otherwise.

    Args:
        question: The question that the query answers.
        sql: The query.
        column_count: The number of columns of the result.
        row_count: The number of rows of the result.
        named_values: The values of the database that the question names.
    """
    if asks_for_one_number(question) and (row_count > 1 or column_count > 1):
        return messages.several_numbers(row_count, column_count)
    written = normalize_text(sql)
    missing = [
        value
        for value in dict.fromkeys(named_values)
        if not any(word in written for word in normalize_text(value).split())
    ]
    if missing:
        return messages.values_not_used(missing[:3])
    return ""
