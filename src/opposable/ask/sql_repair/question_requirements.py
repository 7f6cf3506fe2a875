"""Checks that a query has what the question's words require: a count, an average, an order."""

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from opposable.ask.sql_repair import messages
from opposable.ask.sql_repair.sql_tree import find_selects, get_where_conditions, parse_sql, resolve_source_tables
from opposable.domain.localized_text import LocalizedText
from opposable.domain.text_normalization import extract_index_words, has_cjk, normalize_text, split_identifier
from opposable.sql.function_allowlist import Dialect
from opposable.sql.schema import DatabaseSchema

_STEM_CHARACTERS = 4
_MIN_VALUE_CHARACTERS = 3


@dataclass(frozen=True, slots=True)
class QuestionRequirement:
    """Words of a question, what they require of the SQL tree, and the message if it is missing."""

    words: re.Pattern[str]
    is_met: Callable[[Any], bool]
    message: LocalizedText


def _compile_words(english: str, chinese: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{english})\b|{chinese}", re.IGNORECASE)


def _contains_node(*names: str) -> Callable[[Any], bool]:
    def has_node(tree: Any) -> bool:
        from sqlglot import exp

        return tree.find(*(getattr(exp, name) for name in names)) is not None

    return has_node


def _has_exclusion(tree: Any) -> bool:
    from sqlglot import exp

    if tree.find(exp.Not, exp.Except, exp.NEQ, exp.LT, exp.LTE) is not None:
        return True
    return any(isinstance(node.expression, exp.Null) for node in tree.find_all(exp.Is)) or any(
        node.expression.name in ("0", "N", "No", "F", "False", "false", "no") for node in tree.find_all(exp.EQ)
    )


def _has_ordering(tree: Any) -> bool:
    from sqlglot import exp

    if tree.find(exp.Order) is not None:
        return True
    keyed = [one.find_ancestor(exp.Select) for one in tree.find_all(exp.Max, exp.Min)]
    return any(select is tree or not select.args.get("group") for select in keyed if select is not None)


def _has_grouping(tree: Any) -> bool:
    from sqlglot import exp

    counting = any(one.find(exp.Count, exp.Sum, exp.Max, exp.Min) for one in getattr(tree, "selects", ()))
    return tree.find(exp.Group) is not None or tree.find(exp.Window) is not None or not counting


REQUIREMENTS = (
    QuestionRequirement(
        _compile_words("each|every|respectively", "每|各"),
        _has_grouping,
        messages.groups_missing(),
    ),
    QuestionRequirement(
        _compile_words("average", "平均"),
        _contains_node("Avg", "Div"),
        messages.average_missing(),
    ),
    QuestionRequirement(
        _compile_words("how many", "多少(?:[个名位张条家种门次辆人]|订单)|几[个名位张条家种门次辆]|[人个次]数"),
        _contains_node("Count", "Sum"),
        messages.count_missing(),
    ),
    QuestionRequirement(
        _compile_words("total", "总(?![部店公监统经裁是会行])"),
        _contains_node("Sum", "Count"),
        messages.total_missing(),
    ),
    QuestionRequirement(
        _compile_words(
            "(?<!at )most(?! of)|highest|largest|biggest|oldest|youngest|lowest|(?<!at )least|smallest|earliest|cheapest"
            "|longest|shortest|fewest|top \\d+|top (?:two|three|five|ten)",
            "最[多少高低大小早晚新长短贵]|前[0-9一二三四五六七八九十]+",
        ),
        _has_ordering,
        messages.order_missing(),
    ),
    QuestionRequirement(
        _compile_words(
            "never|not|without|n't|neither",
            "没有|没|不(?![同含计等]|包|重复|少于|超过|低于|高于|大于|小于|足)|从未|从不|未曾",
        ),
        _has_exclusion,
        messages.exclusion_missing(),
    ),
    QuestionRequirement(
        _compile_words(
            "more than|less than|fewer than|greater than|older than|higher than|lower than|exceed\\w*",
            "超过|多于|少于|大于|小于|高于|低于|以上|以下",
        ),
        _contains_node("GT", "GTE", "LT", "LTE", "Between"),
        messages.comparison_missing(),
    ),
)


def find_unmet_requirement(question: str, sql: str, dialect: Dialect, named_values: Sequence[str] = ()) -> str:
    """Return a message about what the question requires and the SQL lacks; "" for nothing.

    Args:
        question: The question that the query answers.
        sql: The query. If it cannot be parsed, the result is "".
        dialect: The SQL dialect.
        named_values: The values of the database that the question names, in any spelling.
    """
    tree = parse_sql(sql, dialect)
    if tree is None:
        return ""
    missing = [
        requirement.message
        for requirement in REQUIREMENTS
        if requirement.words.search(question) and not requirement.is_met(tree)
    ]
    return missing[0] if missing else _find_repetition(tree) or _find_unasked_value(question, tree, named_values)


def find_outer_column(sql: str, schema: DatabaseSchema) -> str:
    """Return a message about a subquery that selects a column of the outer query; "" for none.

    Engines accept such a column silently, and then every row matches.
    """
    tree = parse_sql(sql, schema.dialect)
    for select in find_selects(tree) if tree is not None else ():
        tables = resolve_source_tables(select, schema) if select.parent_select is not None else None
        for one in select.selects if tables else ():
            lacks = not any(table.find_column(one.name) for table in (tables or {}).values())
            if type(one).__name__ == "Column" and not one.table and lacks:
                return messages.column_of_outer_query([table.name for table in (tables or {}).values()], one.name)
    return ""


def find_fixed_items(select: Any) -> list[Any]:
    """Return the selected items that WHERE fixes to one value."""
    from sqlglot import exp

    fixed = {
        condition.this.sql().casefold()
        for condition in get_where_conditions(select)
        if isinstance(condition, exp.EQ)
        and isinstance(condition.this, exp.Column)
        and isinstance(condition.expression, exp.Literal)
    }
    return [one for one in select.selects if one.unalias().sql().casefold() in fixed]


def _find_unasked_value(question: str, tree: Any, named_values: Sequence[str]) -> str:
    """Return a message about a text value that the question does not mention; "" for none."""
    from sqlglot import exp

    said = {word[:_STEM_CHARACTERS] for word in extract_index_words(normalize_text(question))}
    for node in tree.find_all(exp.EQ):
        column, literal = node.this, node.expression
        if not (isinstance(column, exp.Column) and isinstance(literal, exp.Literal) and literal.is_string):
            continue
        value = literal.name
        if value in named_values or difflib.get_close_matches(
            normalize_text(value), extract_index_words(normalize_text(question)), 1
        ):
            continue
        if has_cjk(value) != has_cjk(question) or (len(value) < _MIN_VALUE_CHARACTERS and not has_cjk(value)):
            continue
        words = {
            word[:_STEM_CHARACTERS]
            for word in [*extract_index_words(normalize_text(value)), *split_identifier(column.name)]
        }
        if not words & said and not (has_cjk(value) and set(value) & set(question)):
            return messages.value_not_in_question(node.sql())
    return ""


def _find_repetition(tree: Any) -> str:
    from sqlglot import exp

    if not isinstance(tree, exp.Select) or not tree.selects or len(find_fixed_items(tree)) < len(tree.selects):
        return ""
    return messages.question_repeated()
