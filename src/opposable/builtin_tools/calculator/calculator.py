"""The calculator: expressions, and statistics over a list of numbers."""

import json
import re
from decimal import Decimal, Inexact
from difflib import get_close_matches
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from opposable.builtin_tools.calculator.expression_parser import evaluate, needs
from opposable.builtin_tools.calculator.functions import FUNCTIONS, NAMES, STATISTICS, bounded
from opposable.domain.errors import FieldProblem, InvalidArguments, ToolRefused

Result = int | float | str
"""A number; text of its digits where it does not fit into 64 bits."""

_MOST_NUMBERS = 10_000
_ALL = ("count", "sum", "mean", "median", "min", "max", "std")
_NOTES = {
    "std": "std is of a sample (n - 1); pstd is of the whole population",
    "variance": "variance is of a sample (n - 1); pvariance is of the whole population",
    "log": "log is the natural logarithm; log10 is to base 10",
}
_NO_OPERATION = frozenset({"evaluate", "eval", "calculate", "compute", "expression", "arithmetic", "计算", "none"})
_BETWEEN = frozenset({"and", "以及", "与", "及", "和", "的"})
_CHINESE_NAMES = re.compile("|".join(sorted((n for n in NAMES if n > "一" and len(n) > 1), key=len, reverse=True)))
_LONG_NAMES = (
    (re.compile(r"population[\s_]+"), "p"),
    (re.compile(r"standard[\s_]+deviation"), "std"),
    (re.compile(r"square[\s_]+root"), "sqrt"),
    (re.compile(r"cube[\s_]+root"), "cbrt"),
)


def numbers_of_text(given: Any) -> Any:
    """Numbers that came as text ("1, 2, 3" or "[1, 2, 3]") as a list, one number as a list; the rest as it is."""
    if isinstance(given, (int, float)) and not isinstance(given, bool):
        return [given]
    if not isinstance(given, str):
        return given
    return re.findall(r"[^\s,;，、；\[\]()]+", given)


def operations_of_list(given: Any) -> Any:
    """A list of operation names as text; the rest as it is."""
    if isinstance(given, (list, tuple)):
        return ", ".join(str(name) for name in given)
    return given


Numbers = Annotated[
    list[int | float],
    BeforeValidator(numbers_of_text),
    WithJsonSchema({"type": "array", "items": {"type": "number"}}),
]
Operation = Annotated[str, BeforeValidator(operations_of_list)]


def calculator(
    expression: str | None = None, numbers: Numbers | None = None, operation: Operation | None = None
) -> dict[str, Result]:
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
    names = _operations(operation)
    given = _decimals(numbers or [])
    text = (expression or "").strip()
    if text.lower() in NAMES and given:  # the operation said twice, or in the wrong place
        names, text = names or _operations(text), ""
    if text:
        return _expression(text, given, names)
    if given:
        return _statistics(given, names)
    problem = 'give an expression such as "25 * 4", or numbers such as [1, 2, 3] with an operation such as mean'
    raise InvalidArguments((FieldProblem("numbers" if names else "expression", problem),))


def _expression(text: str, given: list[Decimal], names: list[str]) -> dict[str, Result]:
    outcome = evaluate(text, given, listed=bool(names))
    if isinstance(outcome.value, list):
        if not outcome.value:
            raise InvalidArguments((FieldProblem("expression", "there are no numbers in it", json.dumps(text[:100])),))
        return _statistics(outcome.value, names)
    if not given and names and all(FUNCTIONS[name].most == 1 for name in names):
        return _statistics([outcome.value], names)
    result: dict[str, Result] = {"expression": text[:200], "result": as_number(outcome.value, outcome.exact)}
    if outcome.exact and (digits := _digits_lost(outcome.value)):
        result["exact"] = digits
    notes = [_NOTES[name] for name in sorted(outcome.functions & _NOTES.keys())]
    return result | ({"note": "; ".join(notes)} if notes else {})


def _statistics(numbers: list[Decimal], names: list[str]) -> dict[str, Result]:
    chosen = names or [name for name in _ALL if len(numbers) >= FUNCTIONS[name].least]
    result: dict[str, Result] = {}
    for name in chosen:
        function = FUNCTIONS[name]
        if not function.least <= len(numbers) <= (function.most or len(numbers)):
            raise InvalidArguments((FieldProblem("numbers", f"{name} needs {needs(name)}, {len(numbers)} given"),))
        with bounded() as context:
            value = function.compute(numbers)
            result[name] = as_number(value, not context.flags[Inexact])
    notes = [_NOTES[name] for name in chosen if name in _NOTES]
    return result | ({"note": "; ".join(notes)} if notes else {})


def as_number(value: Decimal, exact: bool) -> Result:
    """`value` as a JSON number; text where neither 64 bits nor a float hold it. Rounded values lose their noise."""
    if exact and value == value.to_integral_value():
        whole = int(value)
        return whole if abs(whole) < 2**63 else str(whole)
    with bounded() as context:
        context.prec = 30
        rounded = +value
    if rounded == rounded.to_integral_value() and abs(rounded) < 2**53 and not exact:
        return int(rounded)
    number = float(value)
    if number == 0 or number in (float("inf"), float("-inf")):
        return f"{rounded:.15e}"
    return number


def _digits_lost(value: Decimal) -> str:
    """All digits of a value that a float cannot hold, or "" when it can."""
    if value == value.to_integral_value() or Decimal(repr(float(value))) == value:
        return ""
    digits = f"{value:f}"
    return digits if len(digits) <= 100 else ""


def _decimals(numbers: list[int | float]) -> list[Decimal]:
    if len(numbers) > _MOST_NUMBERS:
        raise ToolRefused(f"Too many numbers: at most {_MOST_NUMBERS}.")
    values = [Decimal(number) if isinstance(number, int) else Decimal(repr(number)) for number in numbers]
    if not all(value.is_finite() for value in values):
        raise InvalidArguments((FieldProblem("numbers", "every number must be finite, not NaN or infinity"),))
    with bounded():
        return [+value for value in values]


def _operations(operation: str | None) -> list[str]:
    text = (operation or "").strip().lower()
    for pattern, short in _LONG_NAMES:
        text = pattern.sub(short, text)
    names: list[str] = []
    for word in re.findall(r"[^\s,;|，、；\[\]\"'&]+", _CHINESE_NAMES.sub(r" \g<0> ", text)):
        if (word in _BETWEEN and word != text) or word in _NO_OPERATION:
            continue
        name = NAMES.get(word)
        if name is None:
            raise _unknown_operation(word)
        if name not in names:
            names.append(name)
    return names


def _unknown_operation(word: str) -> InvalidArguments:
    near = get_close_matches(word, NAMES, n=3)
    usable = ", ".join(dict.fromkeys(NAMES[name] for name in near)) or ", ".join(STATISTICS)
    problem = f"not known; {'did you mean' if near else 'use one of'} {usable}"
    return InvalidArguments((FieldProblem("operation", problem, json.dumps(word[:50], ensure_ascii=False)),))
