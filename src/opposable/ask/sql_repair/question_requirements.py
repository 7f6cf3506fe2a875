"""What a question's words call for in the SQL: a count, an average, the first of an order, what is not."""

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from opposable.ask.sql_repair.sql_tree import find_selects, get_where_conditions, parse_sql, resolve_source_tables
from opposable.domain.text_normalization import extract_index_words, has_cjk, normalize_text, split_identifier
from opposable.sql.function_allowlist import Dialect
from opposable.sql.schema import DatabaseSchema

_STEM_CHARACTERS = 4
_MIN_VALUE_CHARACTERS = 3


@dataclass(frozen=True, slots=True)
class QuestionRequirement:
    """Words that call for something, how it is seen in a tree, and what is said where it is missing."""

    words: re.Pattern[str]
    is_met: Callable[[Any], bool]
    message: str


def _compile_words(english: str, chinese: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{english})\b|{chinese}", re.IGNORECASE)


def _contains_node(*names: str) -> Callable[[Any], bool]:
    def met(tree: Any) -> bool:
        from sqlglot import exp

        return tree.find(*(getattr(exp, name) for name in names)) is not None

    return met


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
        "the question asks for each, and the SQL groups by nothing",
    ),
    QuestionRequirement(
        _compile_words("average", "平均"),
        _contains_node("Avg", "Div"),
        "the question asks for an average, and the SQL has no AVG",
    ),
    QuestionRequirement(
        _compile_words("how many", "多少(?:[个名位张条家种门次辆人]|订单)|几[个名位张条家种门次辆]|[人个次]数"),
        _contains_node("Count", "Sum"),
        "the question asks how many there are, and the SQL counts nothing",
    ),
    QuestionRequirement(
        _compile_words("total", "总(?![部店公监统经裁是会行])"),
        _contains_node("Sum", "Count"),
        "the question asks for a total, and the SQL has no SUM",
    ),
    QuestionRequirement(
        _compile_words(
            "(?<!at )most(?! of)|highest|largest|biggest|oldest|youngest|lowest|(?<!at )least|smallest|earliest|cheapest"
            "|longest|shortest|fewest|top \\d+|top (?:two|three|five|ten)",
            "最[多少高低大小早晚新长短贵]|前[0-9一二三四五六七八九十]+",
        ),
        _has_ordering,
        "the question asks for the first of an order, and the SQL neither sorts nor takes MAX or MIN of all rows",
    ),
    QuestionRequirement(
        _compile_words(
            "never|not|without|n't|neither",
            "没有|没|不(?![同含计等]|包|重复|少于|超过|低于|高于|大于|小于|足)|从未|从不|未曾",
        ),
        _has_exclusion,
        "the question asks for what is not, and the SQL excludes nothing: use NOT IN with a subquery",
    ),
    QuestionRequirement(
        _compile_words(
            "more than|less than|fewer than|greater than|older than|higher than|lower than|exceed\\w*",
            "超过|多于|少于|大于|小于|高于|低于|以上|以下",
        ),
        _contains_node("GT", "GTE", "LT", "LTE", "Between"),
        "the question compares with a bound, and the SQL does not",
    ),
)


def find_unmet_requirement(question: str, sql: str, dialect: Dialect, named_values: Sequence[str] = ()) -> str:
    """What the question's words call for and the SQL lacks, in words; "" for nothing, or where it cannot be read.

    `named` are the real values that the question names, however it spells them.
    """
    tree = parse_sql(sql, dialect)
    if tree is None:
        return ""
    missing = [call.message for call in REQUIREMENTS if call.words.search(question) and not call.is_met(tree)]
    return missing[0] if missing else _find_repetition(tree) or _find_unasked_value(question, tree, named_values)


def find_outer_column(sql: str, schema: DatabaseSchema) -> str:
    """A column that a subquery selects and that none of its tables has, in words, or "": it is the outer query's own.

    Engines read it so without a word, and then every row fits.
    """
    tree = parse_sql(sql, schema.dialect)
    for select in find_selects(tree) if tree is not None else ():
        tables = resolve_source_tables(select, schema) if select.parent_select is not None else None
        for one in select.selects if tables else ():
            lacks = not any(table.find_column(one.name) for table in (tables or {}).values())
            if type(one).__name__ == "Column" and not one.table and lacks:
                return f"{' and '.join(table.name for table in (tables or {}).values())} has no column {one.name}"
    return ""


def find_fixed_items(select: Any) -> list[Any]:
    """What a SELECT selects of which its WHERE says what it is."""
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
    """That a text is looked for of which the question says no word, nor of its column; codes are not judged."""
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
            return f"the question does not say {node.sql()}"
    return ""


def _find_repetition(tree: Any) -> str:
    from sqlglot import exp

    if not isinstance(tree, exp.Select) or not tree.selects or len(find_fixed_items(tree)) < len(tree.selects):
        return ""
    return "the SQL selects only what the question says already, not what it asks for"
