"""What a question's words call for in the SQL: a count, an average, the first of an order, what is not."""

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from opposable.ask.catalog.text_normalization import folded, index_words, is_cjk, name_words
from opposable.ask.sql_repair.sql_tree import in_where, parsed, plain_tables, selects
from opposable.sql.function_allowlist import Dialect
from opposable.sql.schema import Schema

_STEM = 4
_SHORTEST = 3


@dataclass(frozen=True, slots=True)
class Call:
    """Words that call for something, how it is seen in a tree, and what is said where it is missing."""

    words: re.Pattern[str]
    met: Callable[[Any], bool]
    told: str


def _words(english: str, chinese: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{english})\b|{chinese}", re.IGNORECASE)


def _has(*names: str) -> Callable[[Any], bool]:
    def met(tree: Any) -> bool:
        from sqlglot import exp

        return tree.find(*(getattr(exp, name) for name in names)) is not None

    return met


def _excludes(tree: Any) -> bool:
    from sqlglot import exp

    if tree.find(exp.Not, exp.Except, exp.NEQ, exp.LT, exp.LTE) is not None:
        return True
    return any(isinstance(node.expression, exp.Null) for node in tree.find_all(exp.Is)) or any(
        node.expression.name in ("0", "N", "No", "F", "False", "false", "no") for node in tree.find_all(exp.EQ)
    )


def _ordered(tree: Any) -> bool:
    from sqlglot import exp

    if tree.find(exp.Order) is not None:
        return True
    keyed = [one.find_ancestor(exp.Select) for one in tree.find_all(exp.Max, exp.Min)]
    return any(select is tree or not select.args.get("group") for select in keyed if select is not None)


def _grouped(tree: Any) -> bool:
    from sqlglot import exp

    counting = any(one.find(exp.Count, exp.Sum, exp.Max, exp.Min) for one in getattr(tree, "selects", ()))
    return tree.find(exp.Group) is not None or tree.find(exp.Window) is not None or not counting


CALLS = (
    Call(
        _words("each|every|respectively", "每|各"),
        _grouped,
        "the question asks for each, and the SQL groups by nothing",
    ),
    Call(_words("average", "平均"), _has("Avg", "Div"), "the question asks for an average, and the SQL has no AVG"),
    Call(
        _words("how many", "多少(?:[个名位张条家种门次辆人]|订单)|几[个名位张条家种门次辆]|[人个次]数"),
        _has("Count", "Sum"),
        "the question asks how many there are, and the SQL counts nothing",
    ),
    Call(
        _words("total", "总(?![部店公监统经裁是会行])"),
        _has("Sum", "Count"),
        "the question asks for a total, and the SQL has no SUM",
    ),
    Call(
        _words(
            "(?<!at )most(?! of)|highest|largest|biggest|oldest|youngest|lowest|(?<!at )least|smallest|earliest|cheapest"
            "|longest|shortest|fewest|top \\d+|top (?:two|three|five|ten)",
            "最[多少高低大小早晚新长短贵]|前[0-9一二三四五六七八九十]+",
        ),
        _ordered,
        "the question asks for the first of an order, and the SQL neither sorts nor takes MAX or MIN of all rows",
    ),
    Call(
        _words(
            "never|not|without|n't|neither",
            "没有|没|不(?![同含计等]|包|重复|少于|超过|低于|高于|大于|小于|足)|从未|从不|未曾",
        ),
        _excludes,
        "the question asks for what is not, and the SQL excludes nothing: use NOT IN with a subquery",
    ),
    Call(
        _words(
            "more than|less than|fewer than|greater than|older than|higher than|lower than|exceed\\w*",
            "超过|多于|少于|大于|小于|高于|低于|以上|以下",
        ),
        _has("GT", "GTE", "LT", "LTE", "Between"),
        "the question compares with a bound, and the SQL does not",
    ),
)


def unmet(question: str, sql: str, dialect: Dialect, named: Sequence[str] = ()) -> str:
    """What the question's words call for and the SQL lacks, in words; "" for nothing, or where it cannot be read.

    `named` are the real values that the question names, however it spells them.
    """
    tree = parsed(sql, dialect)
    if tree is None:
        return ""
    missing = [call.told for call in CALLS if call.words.search(question) and not call.met(tree)]
    return missing[0] if missing else _only_repeats(tree) or _unasked_value(question, tree, named)


def borrowed(sql: str, schema: Schema) -> str:
    """A column that a subquery selects and that none of its tables has, in words, or "": it is the outer query's own.

    Engines read it so without a word, and then every row fits.
    """
    tree = parsed(sql, schema.dialect)
    for select in selects(tree) if tree is not None else ():
        tables = plain_tables(select, schema) if select.parent_select is not None else None
        for one in select.selects if tables else ():
            lacks = not any(table.find_column(one.name) for table in (tables or {}).values())
            if type(one).__name__ == "Column" and not one.table and lacks:
                return f"{' and '.join(table.name for table in (tables or {}).values())} has no column {one.name}"
    return ""


def pinned(select: Any) -> list[Any]:
    """What a SELECT selects of which its WHERE says what it is."""
    from sqlglot import exp

    fixed = {
        condition.this.sql().casefold()
        for condition in in_where(select)
        if isinstance(condition, exp.EQ)
        and isinstance(condition.this, exp.Column)
        and isinstance(condition.expression, exp.Literal)
    }
    return [one for one in select.selects if one.unalias().sql().casefold() in fixed]


def _unasked_value(question: str, tree: Any, named: Sequence[str]) -> str:
    """That a text is looked for of which the question says no word, nor of its column; codes are not judged."""
    from sqlglot import exp

    said = {word[:_STEM] for word in index_words(folded(question))}
    for node in tree.find_all(exp.EQ):
        column, literal = node.this, node.expression
        if not (isinstance(column, exp.Column) and isinstance(literal, exp.Literal) and literal.is_string):
            continue
        value = literal.name
        if value in named or difflib.get_close_matches(folded(value), index_words(folded(question)), 1):
            continue
        if is_cjk(value) != is_cjk(question) or (len(value) < _SHORTEST and not is_cjk(value)):
            continue
        words = {word[:_STEM] for word in [*index_words(folded(value)), *name_words(column.name)]}
        if not words & said and not (is_cjk(value) and set(value) & set(question)):
            return f"the question does not say {node.sql()}"
    return ""


def _only_repeats(tree: Any) -> str:
    from sqlglot import exp

    if not isinstance(tree, exp.Select) or not tree.selects or len(pinned(tree)) < len(tree.selects):
        return ""
    return "the SQL selects only what the question says already, not what it asks for"
