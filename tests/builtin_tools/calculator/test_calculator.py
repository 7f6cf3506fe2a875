"""The calculator evaluates expressions and statistics, and reports invalid arguments."""

import pytest

from opposable.builtin_tools.calculator.calculator import calculator
from opposable.domain.errors import InvalidArguments, ToolFailed, ToolRefused

SAMPLE = "std is of a sample (n - 1); pstd is of the whole population"


@pytest.mark.parametrize(
    ("numbers", "operation", "expected"),
    [
        ([1, 2, 3, 4, 5], "mean", {"mean": 3}),
        ([1, 2, 3, 4, 5], "Average", {"mean": 3}),
        ([10, 20, 30], "mean,max,min", {"mean": 20, "max": 30, "min": 10}),
        ([10, 20, 30], "mean, max and min", {"mean": 20, "max": 30, "min": 10}),
        ([10, 20, 30], '["mean", "max"]', {"mean": 20, "max": 30}),
        ([10, 20, 30], "平均值、最大值和最小值", {"mean": 20, "max": 30, "min": 10}),
        ([10, 20, 30], "总和", {"sum": 60}),
        ([3, 1, 2, 10], "median", {"median": 2.5}),
        ([3, 1, 2], "count", {"count": 3}),
        ([0.1, 0.2], "sum", {"sum": 0.3}),
        ([9007199254740993, 0], "sum", {"sum": 9007199254740993}),
        ([2, 4, 4, 4, 5, 5, 7, 9], "population standard deviation", {"pstd": 2}),
        ([2, 4, 4, 4, 5, 5, 7, 9], "standard deviation", {"std": 2.138089935299395, "note": SAMPLE}),
        ([1, 2, 3], "range", {"range": 2}),
        ([1, 2, 2, 3], "mode", {"mode": 2}),
        ([25, 4], "multiply", {"product": 100}),
        ([25, 4], "-", {"subtract": 21}),
        ([25, 4], "÷", {"divide": 6.25}),
        ([2, 10], "power", {"power": 1024}),
        ([16], "square root", {"sqrt": 4}),
        ([1e308] * 10, "max", {"max": str(10**308)}),
        ([7], None, {"count": 1, "sum": 7, "mean": 7, "median": 7, "min": 7, "max": 7}),
    ],
)
def test_statistics_of_numbers(numbers, operation, expected):
    assert calculator(numbers=numbers, operation=operation) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("25 * 4", 100),
        ("12，000+1", 12001),
        ("1，234，000.5*2", 2468001),
        ("(1+2)**3/7", 27 / 7),
        ("sqrt(2)", 2**0.5),
        ("sqrt(2)**2", 2),
        ("15% of 80", 12),
        ("80的15%", 12),
        ("百分之15的80", 12),
        ("200 + 10%", 220),
        ("100 - 5%", 95),
        ("50%", 0.5),
        ("7 % 3", 1),
        ("-7 % 3", 2),
        ("7 % -3", -2),
        ("7 // 2", 3),
        ("-7 // 2", -4),
        ("10 mod 4", 2),
        ("mean([1,2,3])", 2),
        ("statistics.mean([1, 2, 3])", 2),
        ("average of 1, 2, and 3", 2),
        ("average of 100,200,300", 200),
        ("[10,20,30]的平均值", 20),
        ("1、2、3的平均值是多少？", 2),
        ("100,200,300的平均值", 200),
        ("平均值(1,2,6)", 3),
        ("（1＋2）×３", 9),
        ("10÷4", 2.5),
        ("计算 25乘以4", 100),
        ("25 x 4 =", 100),
        ("what is 25 times 4?", 100),
        ("100 divided by 8", 12.5),
        ("square root of 16", 4),
        ("√16 + 9", 13),
        ("√50%", 0.5**0.5),
        ("10 + average of 1, 2 and 3", 12),
        ("10 * 平均值(1, 2, 3) + 5", 25),
        ("3²", 9),
        ("2^10", 1024),
        ("2**-1", 0.5),
        ("-2**2", -4),
        ("2**3**2", 512),
        ("2(3 + 4)", 14),
        ("5!", 120),
        ("1,234 + 1", 1235),
        ("$1,234.50 * 2", 2469),
        ("sum(100,200,300)", 600),
        ("max(1, 5, 3) - min(1, 2)", 4),
        ("round(2.5)", 3),
        ("round(3.14159, 2)", 3.14),
        ("0.1+0.2", 0.3),
        ("1/3*3", 1),
        ("1.1*1.1", 1.21),
        ("1_000 * 2", 2000),
        ("2e3", 2000),
        ("sin(pi)", 0),
        ("ln(e)", 1),
        ("log10(1000)", 3),
        ("0**0", 1),
        ("gcd(12, 18) + lcm(4, 6) + comb(5, 2)", 28),
        ("2**62", 2**62),
        ("2**100", str(2**100)),
        ("cbrt(-27)", -3),
        ("floor(-2.5) + ceil(2.1) + abs(-1)", 1),
    ],
)
def test_human_notation_is_evaluated(expression, expected):
    result = calculator(expression)["result"]
    assert result == expected
    assert type(result) is type(expected)


def test_digits_beyond_a_float_are_returned_as_text():
    assert calculator("0.12345678901234567890123 + 1") == {
        "expression": "0.12345678901234567890123 + 1",
        "result": 1.1234567890123457,
        "exact": "1.12345678901234567890123",
    }


def test_power_with_a_huge_exponent_is_computed_if_it_fits():
    assert calculator("1.0000000001 ** (10**12)")["result"] == pytest.approx(2.6881171e43, rel=1e-7)


def test_base_of_the_logarithm_is_noted():
    assert calculator("log(100)")["note"] == "log is the natural logarithm; log10 is to base 10"
    assert "note" not in calculator("ln(100)")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"expression": "mean", "numbers": [1, 2]}, {"mean": 1.5}),
        ({"expression": "10,20,30", "operation": "平均值"}, {"mean": 20}),
        ({"expression": "[100,200,300]", "operation": "max, min"}, {"max": 300, "min": 100}),
        ({"expression": "25*4", "operation": "multiply"}, {"expression": "25*4", "result": 100}),
        ({"expression": "25*4", "operation": "evaluate"}, {"expression": "25*4", "result": 100}),
        ({"expression": "16", "operation": "sqrt"}, {"sqrt": 4}),
        (
            {"expression": "max(numbers) - min(numbers)", "numbers": [3, 9]},
            {"expression": "max(numbers) - min(numbers)", "result": 6},
        ),
    ],
)
def test_misplaced_arguments_are_understood(arguments, expected):
    assert calculator(**arguments) == expected


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({}, InvalidArguments, "expression: give an expression such as"),
        ({"operation": "mean"}, InvalidArguments, "numbers: give an expression such as"),
        ({"numbers": [1], "operation": "std"}, InvalidArguments, "std needs at least 2 numbers, 1 given"),
        ({"numbers": [1, 2], "operation": "avreage"}, InvalidArguments, "operation: not known; did you mean mean"),
        ({"numbers": [float("nan")], "operation": "mean"}, InvalidArguments, "every number must be finite"),
        ({"numbers": [1] * 10_001, "operation": "mean"}, ToolRefused, "at most 10000"),
        ({"numbers": [1, 0], "operation": "divide"}, ToolFailed, "Division by zero"),
        ({"expression": "1/0"}, ToolFailed, "Division by zero"),
        ({"expression": "sqrt(-1)"}, ToolFailed, "no real result"),
        ({"expression": "log(0)"}, ToolFailed, "no finite result"),
        ({"expression": "sqr(4)"}, InvalidArguments, "did you mean sqrt"),
        ({"expression": "2 +"}, InvalidArguments, "a number is missing"),
        ({"expression": "(2 + 3"}, InvalidArguments, "a ')' is missing"),
        ({"expression": "2 + 3)"}, InvalidArguments, "')' is not expected here"),
        ({"expression": "[1,2] + 1"}, InvalidArguments, "a list appears where one number is needed"),
        ({"expression": "power(2)"}, InvalidArguments, "power needs 2 numbers, 1 given"),
        ({"expression": "sum of 1, 2 + 3"}, InvalidArguments, "put brackets around the numbers"),
        ({"expression": "max(1, *[2])"}, InvalidArguments, "an operator is in the wrong place"),
        ({"expression": "(1, 2]"}, InvalidArguments, "a ')' is missing"),
        ({"expression": "[]"}, InvalidArguments, "there are no numbers in it"),
    ],
)
def test_invalid_arguments_are_reported(arguments, error, sentence):
    with pytest.raises(error) as raised:
        calculator(**arguments)
    assert sentence in str(raised.value)
