"""Tool that evaluates expressions and computes statistics of numbers."""

import json
import re
from decimal import Decimal, Inexact
from difflib import get_close_matches
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from opposable.builtin_tools.calculator.expression_parser import describe_arity, evaluate
from opposable.builtin_tools.calculator.functions import FUNCTION_ALIASES, FUNCTIONS, STATISTICS, use_bounded_context
from opposable.domain.errors import FieldProblem, InvalidArguments, ToolRefused

JsonNumber = int | float | str
"""A number, or its digits as text if it does not fit into 64 bits."""

_MAX_NUMBERS = 10_000
_DEFAULT_STATISTICS = ("count", "sum", "mean", "median", "min", "max", "std")
_FUNCTION_NOTES = {
    "std": "std is of a sample (n - 1); pstd is of the whole population",
    "variance": "variance is of a sample (n - 1); pvariance is of the whole population",
    "log": "log is the natural logarithm; log10 is to base 10",
}
_IGNORED_OPERATIONS = frozenset(
    {"evaluate", "eval", "calculate", "compute", "expression", "arithmetic", "计算", "none"}
)
_CONJUNCTIONS = frozenset({"and", "以及", "与", "及", "和", "的"})
_CHINESE_NAME_PATTERN = re.compile(
    "|".join(sorted((n for n in FUNCTION_ALIASES if n > "一" and len(n) > 1), key=len, reverse=True))
)
_LONG_NAME_PATTERNS = (
    (re.compile(r"population[\s_]+"), "p"),
    (re.compile(r"standard[\s_]+deviation"), "std"),
    (re.compile(r"square[\s_]+root"), "sqrt"),
    (re.compile(r"cube[\s_]+root"), "cbrt"),
)


def split_numbers(value: Any) -> Any:
    """Convert text such as "1, 2, 3" or one number to a list. Return other values unchanged."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return [value]
    if not isinstance(value, str):
        return value
    return re.findall(r"[^\s,;，、；\[\]()]+", value)


def join_operations(value: Any) -> Any:
    """Convert a list of operation names to text. Return other values unchanged."""
    if isinstance(value, (list, tuple)):
        return ", ".join(str(name) for name in value)
    return value


Numbers = Annotated[
    list[int | float],
    BeforeValidator(split_numbers),
    WithJsonSchema({"type": "array", "items": {"type": "number"}}),
]
Operation = Annotated[str, BeforeValidator(join_operations)]


def calculator(
    expression: str | None = None, numbers: Numbers | None = None, operation: Operation | None = None
) -> dict[str, JsonNumber]:
    """Calculate an expression, or statistics such as mean, max, min, sum of numbers.

    Args:
        expression: arithmetic to work out, for example "25 * 4", "sqrt(2)", "15% of 80".
        numbers: numbers to work on, for example [1, 2, 3].
        operation: what to do with the numbers: mean, median, sum, min, max, count, std, variance; several with commas.

    Raises:
        InvalidArguments: something is missing or cannot be read.
        ToolRefused: the calculation is too large.
        ToolFailed: it has no result, such as a division by zero.
    """
    names = _parse_operations(operation)
    decimals = _to_decimals(numbers or [])
    text = (expression or "").strip()
    if text.lower() in FUNCTION_ALIASES and decimals:  # the operation is repeated, or in the wrong argument
        names, text = names or _parse_operations(text), ""
    if text:
        return _evaluate_expression(text, decimals, names)
    if decimals:
        return _compute_statistics(decimals, names)
    problem = 'give an expression such as "25 * 4", or numbers such as [1, 2, 3] with an operation such as mean'
    raise InvalidArguments((FieldProblem("numbers" if names else "expression", problem),))


def _evaluate_expression(text: str, numbers: list[Decimal], operations: list[str]) -> dict[str, JsonNumber]:
    evaluation = evaluate(text, numbers, is_list=bool(operations))
    if isinstance(evaluation.value, list):
        if not evaluation.value:
            raise InvalidArguments((FieldProblem("expression", "there are no numbers in it", json.dumps(text[:100])),))
        return _compute_statistics(evaluation.value, operations)
    if not numbers and operations and all(FUNCTIONS[name].max_arguments == 1 for name in operations):
        return _compute_statistics([evaluation.value], operations)
    result: dict[str, JsonNumber] = {
        "expression": text[:200],
        "result": to_json_number(evaluation.value, evaluation.is_exact),
    }
    if evaluation.is_exact and (digits := _get_exact_digits(evaluation.value)):
        result["exact"] = digits
    notes = [_FUNCTION_NOTES[name] for name in sorted(evaluation.functions & _FUNCTION_NOTES.keys())]
    return result | ({"note": "; ".join(notes)} if notes else {})


def _compute_statistics(numbers: list[Decimal], operations: list[str]) -> dict[str, JsonNumber]:
    chosen = operations or [name for name in _DEFAULT_STATISTICS if len(numbers) >= FUNCTIONS[name].min_arguments]
    result: dict[str, JsonNumber] = {}
    for name in chosen:
        function = FUNCTIONS[name]
        if not function.min_arguments <= len(numbers) <= (function.max_arguments or len(numbers)):
            raise InvalidArguments(
                (FieldProblem("numbers", f"{name} needs {describe_arity(name)}, {len(numbers)} given"),)
            )
        with use_bounded_context() as context:
            value = function.compute(numbers)
            result[name] = to_json_number(value, not context.flags[Inexact])
    notes = [_FUNCTION_NOTES[name] for name in chosen if name in _FUNCTION_NOTES]
    return result | ({"note": "; ".join(notes)} if notes else {})


def to_json_number(value: Decimal, is_exact: bool) -> JsonNumber:
    """Convert a decimal to a JSON number, or to text if neither 64 bits nor a float hold it.

    Inexact values are rounded to 30 digits.
    """
    if is_exact and value == value.to_integral_value():
        whole = int(value)
        return whole if abs(whole) < 2**63 else str(whole)
    with use_bounded_context() as context:
        context.prec = 30
        rounded = +value
    if rounded == rounded.to_integral_value() and abs(rounded) < 2**53 and not is_exact:
        return int(rounded)
    number = float(value)
    if number == 0 or number in (float("inf"), float("-inf")):
        return f"{rounded:.15e}"
    return number


def _get_exact_digits(value: Decimal) -> str:
    """Return all digits of a value that a float cannot hold, "" when a float can."""
    if value == value.to_integral_value() or Decimal(repr(float(value))) == value:
        return ""
    digits = f"{value:f}"
    return digits if len(digits) <= 100 else ""


def _to_decimals(numbers: list[int | float]) -> list[Decimal]:
    if len(numbers) > _MAX_NUMBERS:
        raise ToolRefused(f"Too many numbers: at most {_MAX_NUMBERS}.")
    values = [Decimal(number) if isinstance(number, int) else Decimal(repr(number)) for number in numbers]
    if not all(value.is_finite() for value in values):
        raise InvalidArguments((FieldProblem("numbers", "every number must be finite, not NaN or infinity"),))
    with use_bounded_context():
        return [+value for value in values]


def _parse_operations(operation: str | None) -> list[str]:
    text = (operation or "").strip().lower()
    for pattern, short in _LONG_NAME_PATTERNS:
        text = pattern.sub(short, text)
    names: list[str] = []
    for word in re.findall(r"[^\s,;|，、；\[\]\"'&]+", _CHINESE_NAME_PATTERN.sub(r" \g<0> ", text)):
        if (word in _CONJUNCTIONS and word != text) or word in _IGNORED_OPERATIONS:
            continue
        name = FUNCTION_ALIASES.get(word)
        if name is None:
            raise _build_unknown_operation_error(word)
        if name not in names:
            names.append(name)
    return names


def _build_unknown_operation_error(word: str) -> InvalidArguments:
    similar_names = get_close_matches(word, FUNCTION_ALIASES, n=3)
    suggestions = ", ".join(dict.fromkeys(FUNCTION_ALIASES[name] for name in similar_names)) or ", ".join(STATISTICS)
    problem = f"not known; {'did you mean' if similar_names else 'use one of'} {suggestions}"
    return InvalidArguments((FieldProblem("operation", problem, json.dumps(word[:50], ensure_ascii=False)),))
