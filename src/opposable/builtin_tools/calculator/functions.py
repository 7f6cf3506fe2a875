"""Functions of the calculator: exact where possible, and bounded.

Every function takes and returns finite `Decimal`s and must run inside `use_bounded_context()`.
"""

import math
import operator
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import (
    ROUND_CEILING,
    ROUND_FLOOR,
    ROUND_HALF_UP,
    Context,
    Decimal,
    DivisionByZero,
    Inexact,
    InvalidOperation,
    Overflow,
    Underflow,
    getcontext,
    localcontext,
)
from functools import reduce
from statistics import median, multimode

from opposable.domain.errors import ToolFailed, ToolRefused

MAX_DIGITS = 500
"""Digits of the longest integer."""

_ROOT_DIGITS = 60  # digits of results that never end: roots, logarithms, fractional powers
_GUARD_DIGITS = 50  # the last digits of an inexact number, which rounding may have changed
_MAX_EXPONENT = 10**12
_MAX_FACTORIAL = 250

Decimals = list[Decimal]


@contextmanager
def use_bounded_context() -> Generator[Context]:
    """Use a decimal context that rejects values that are too large or undefined.

    Raises:
        ToolRefused: A value has more than `MAX_DIGITS` digits, or is that close to zero.
        ToolFailed: Division by zero, or an undefined result.
    """
    traps = [Overflow, Underflow, DivisionByZero, InvalidOperation]
    context = Context(prec=MAX_DIGITS, Emax=MAX_DIGITS, Emin=-MAX_DIGITS, traps=traps)
    try:
        with localcontext(context) as bounded_context:
            yield bounded_context
    except Overflow as error:
        raise ToolRefused(f"The result is too large: numbers may have at most {MAX_DIGITS} digits.") from error
    except Underflow as error:
        raise ToolRefused(f"The result is too close to zero: the limit is 1e-{MAX_DIGITS}.") from error
    except DivisionByZero as error:
        raise ToolFailed("Division by zero: there is no result.") from error
    except (InvalidOperation, ValueError, OverflowError) as error:
        message = "This has no real result (such as 0/0, the root or logarithm of a negative number)."
        raise ToolFailed(message) from error


def add(left: Decimal, right: Decimal) -> Decimal:
    """Return a sum. What only the rounding of earlier steps leaves, as in 1/3*3 - 1, is 0."""
    total = left + right
    if left and right and total and getcontext().flags[Inexact]:
        lost_digits = max(left.adjusted(), right.adjusted()) - total.adjusted()
        return total if lost_digits < MAX_DIGITS - _GUARD_DIGITS else Decimal(0)
    return total


def power(base: Decimal, exponent: Decimal) -> Decimal:
    """Return `base` to the power of `exponent`. Integer exponents are exact, and 0**0 is 1."""
    if exponent == 0:
        return Decimal(1)
    if base == 0 and exponent < 0:
        raise ToolFailed("Division by zero: 0 cannot be raised to a negative power.")
    if abs(exponent) > _MAX_EXPONENT and abs(base) != 1:
        raise ToolRefused(f"The exponent is too large: the limit is {_MAX_EXPONENT}.")
    if exponent == exponent.to_integral_value():
        return base**exponent
    return _compute_rounded(lambda: base**exponent)


def modulo(left: Decimal, right: Decimal) -> Decimal:
    """Return the remainder of a division, with the sign of the divisor."""
    if right == 0:
        raise ToolFailed("Division by zero: there is no remainder.")
    rest = left % right
    return rest + right if rest and (rest < 0) != (right < 0) else rest


def floor_divide(left: Decimal, right: Decimal) -> Decimal:
    """Return the quotient of a division, rounded down to an integer."""
    return (left - modulo(left, right)) / right


def mean(numbers: Decimals) -> Decimal:
    """Return the average."""
    return _sum(numbers) / len(numbers)


def _sum(numbers: Decimals) -> Decimal:
    return sum(numbers, Decimal(0))


def _sum_squared_deviations(numbers: Decimals) -> Decimal:
    average = mean(numbers)
    return _sum([(number - average) ** 2 for number in numbers])


def _variance(numbers: Decimals) -> Decimal:
    return _sum_squared_deviations(numbers) / (len(numbers) - 1)


def _population_variance(numbers: Decimals) -> Decimal:
    return _sum_squared_deviations(numbers) / len(numbers)


def _round(numbers: Decimals) -> Decimal:
    places = _require_integer(numbers[1], 100) if len(numbers) > 1 else 0
    return numbers[0].quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP)


def _root(number: Decimal) -> Decimal:
    return _compute_rounded(number.sqrt)


def _cube_root(number: Decimal) -> Decimal:
    size = _compute_rounded(lambda: abs(number) ** (Decimal(1) / 3)) if number else number
    return size.copy_sign(number)


def _log(numbers: Decimals) -> Decimal:
    if len(numbers) == 1:
        return _compute_rounded(numbers[0].ln)
    return _compute_rounded(lambda: numbers[0].ln() / numbers[1].ln())


def _count_combinations(numbers: Decimals) -> Decimal:
    return Decimal(math.comb(_require_integer(numbers[0], 1000, 0), _require_integer(numbers[1], 1000, 0))) + 0


def _count_permutations(numbers: Decimals) -> Decimal:
    return Decimal(math.perm(_require_integer(numbers[0], 1000, 0), _require_integer(numbers[-1], 1000, 0))) + 0


def _fold_integers(combine: Callable[..., int]) -> Callable[[Decimals], Decimal]:
    def compute(numbers: Decimals) -> Decimal:
        result = 1 if combine is math.lcm else 0
        for number in numbers:
            result = combine(result, _require_integer(number, None))
            if result.bit_length() > MAX_DIGITS * 4:
                raise ToolRefused(f"The result is too large: numbers may have at most {MAX_DIGITS} digits.")
        return Decimal(result) + 0

    return compute


def _require_integer(number: Decimal, limit: int | None, minimum: int | None = None) -> int:
    if number != number.to_integral_value():
        raise ToolFailed(f"A whole number is needed here, not {number:f}.")
    if limit is not None and abs(number) > limit:
        raise ToolRefused(f"The number is too large here: the limit is {limit}.")
    if minimum is not None and number < minimum:
        raise ToolFailed(f"A number of at least {minimum} is needed here.")
    return int(number)


def _compute_rounded(compute: Callable[[], Decimal]) -> Decimal:
    """Compute a result without a last digit at limited precision, and flag the outer context as inexact."""
    outer = getcontext()
    with localcontext(prec=_ROOT_DIGITS) as inner:
        inner.clear_flags()
        value = compute()
        if inner.flags[Inexact]:
            outer.flags[Inexact] = True
    if not value.is_finite():
        raise ToolFailed("This has no finite result (such as the logarithm of zero).")
    return value


def _wrap_float_function(function: Callable[[float], float]) -> Callable[[Decimals], Decimal]:
    def compute(numbers: Decimals) -> Decimal:
        getcontext().flags[Inexact] = True
        # 15 places, so that sin(pi) is 0
        return Decimal(repr(round(function(float(numbers[0])), 15)))

    return compute


@dataclass(frozen=True, slots=True)
class MathFunction:
    """A function of `min_arguments` to `max_arguments` numbers. None means any number of them."""

    compute: Callable[[Decimals], Decimal]
    min_arguments: int = 1
    max_arguments: int | None = 1


STATISTICS = {
    "mean": MathFunction(mean, 1, None),
    "median": MathFunction(median, 1, None),
    "sum": MathFunction(_sum, 1, None),
    "min": MathFunction(min, 1, None),
    "max": MathFunction(max, 1, None),
    "count": MathFunction(lambda n: Decimal(len(n)), 1, None),
    "std": MathFunction(lambda n: _root(_variance(n)), 2, None),
    "variance": MathFunction(_variance, 2, None),
    "pstd": MathFunction(lambda n: _root(_population_variance(n)), 1, None),
    "pvariance": MathFunction(_population_variance, 1, None),
    "range": MathFunction(lambda n: max(n) - min(n), 1, None),
    "mode": MathFunction(lambda n: min(multimode(n)), 1, None),
    "product": MathFunction(lambda n: math.prod(n, start=Decimal(1)), 1, None),
}
"""Functions of many numbers, by result name. `std` and `variance` are those of a sample (n - 1)."""

FUNCTIONS = STATISTICS | {
    "subtract": MathFunction(lambda n: n[0] - _sum(n[1:]), 2, None),
    "divide": MathFunction(lambda n: reduce(operator.truediv, n), 2, None),
    "power": MathFunction(lambda n: power(n[0], n[1]), 2, 2),
    "mod": MathFunction(lambda n: modulo(n[0], n[1]), 2, 2),
    "sqrt": MathFunction(lambda n: _root(n[0])),
    "cbrt": MathFunction(lambda n: _cube_root(n[0])),
    "abs": MathFunction(lambda n: abs(n[0])),
    "round": MathFunction(_round, 1, 2),
    "floor": MathFunction(lambda n: n[0].to_integral_value(ROUND_FLOOR)),
    "ceil": MathFunction(lambda n: n[0].to_integral_value(ROUND_CEILING)),
    "exp": MathFunction(lambda n: _compute_rounded(n[0].exp)),
    "log": MathFunction(_log, 1, 2),
    "ln": MathFunction(_log),
    "log10": MathFunction(lambda n: _compute_rounded(n[0].log10)),
    "log2": MathFunction(lambda n: _compute_rounded(lambda: n[0].ln() / Decimal(2).ln())),
    "sin": MathFunction(_wrap_float_function(math.sin)),
    "cos": MathFunction(_wrap_float_function(math.cos)),
    "tan": MathFunction(_wrap_float_function(math.tan)),
    "asin": MathFunction(_wrap_float_function(math.asin)),
    "acos": MathFunction(_wrap_float_function(math.acos)),
    "atan": MathFunction(_wrap_float_function(math.atan)),
    "radians": MathFunction(_wrap_float_function(math.radians)),
    "degrees": MathFunction(_wrap_float_function(math.degrees)),
    "factorial": MathFunction(lambda n: Decimal(math.factorial(_require_integer(n[0], _MAX_FACTORIAL, 0)))),
    "comb": MathFunction(_count_combinations, 2, 2),
    "perm": MathFunction(_count_permutations, 1, 2),
    "gcd": MathFunction(_fold_integers(math.gcd), 1, None),
    "lcm": MathFunction(_fold_integers(math.lcm), 1, None),
}
"""All functions, by name."""

CONSTANTS = {
    "pi": Decimal("3.14159265358979323846264338327950288419716939937510582097494459"),
    "e": Decimal("2.71828182845904523536028747135266249775724709369995957496696763"),
    "tau": Decimal("6.28318530717958647692528676655900576839433879875021164194988918"),
}
"""Constants, with more digits than any result has."""

_ALIASES_BY_FUNCTION = {
    "mean": "average avg 平均值 平均数 平均 均值",
    "median": "med 中位数 中值",
    "sum": "total add addition plus 总和 求和 合计 总计 加 加法 和 +",
    "min": "minimum smallest lowest 最小值 最小",
    "max": "maximum largest highest 最大值 最大",
    "count": "len length size n 个数 计数 数量",
    "std": "stdev stddev standard_deviation sd 标准差",
    "variance": "var 方差",
    "pstd": "pstdev population_std population_standard_deviation 总体标准差",
    "pvariance": "pvar population_variance 总体方差",
    "range": "spread 极差",
    "mode": "众数",
    "product": "prod multiply multiplication times mul 乘积 乘 乘法 * ×",
    "subtract": "subtraction minus sub difference 减 减法 -",
    "divide": "division div quotient 除 除法 / ÷",
    "power": "pow 幂 ^ **",
    "mod": "modulo remainder 取余 余数 %",
    "sqrt": "square_root 平方根 开方 √",
    "cbrt": "cube_root 立方根",
    "abs": "absolute fabs 绝对值",
    "round": "四舍五入",
    "ceil": "ceiling",
    "factorial": "fact 阶乘 !",
    "comb": "choose ncr",
    "perm": "npr",
}

FUNCTION_ALIASES = {other: name for name, others in _ALIASES_BY_FUNCTION.items() for other in others.split()} | {
    n: n for n in FUNCTIONS
}
"""Function names by alias (lower case)."""
