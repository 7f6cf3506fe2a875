"""Parser and evaluator of arithmetic in human notation ("25 × 4", "15% of 80", "mean([1,2,3])").

It does not use `eval`. The parser knows numbers, operators and functions, and evaluates bounded decimals as it parses.
"""

from dataclasses import dataclass
from decimal import Decimal, Inexact, getcontext
from difflib import get_close_matches

from opposable.builtin_tools.calculator.functions import (
    CONSTANTS,
    FUNCTION_ALIASES,
    FUNCTIONS,
    STATISTICS,
    floor_divide,
    modulo,
    power,
    use_bounded_context,
)
from opposable.builtin_tools.calculator.tokenizer import ExpressionToken, build_syntax_error, tokenize_expression
from opposable.domain.errors import InvalidArguments, ToolRefused

_MAX_EXPRESSION_CHARACTERS = 2000
_MAX_DEPTH = 40
_MAX_FUNCTION_NUMBERS = 50_000  # limits the work of long lists in long expressions


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    """Value of an expression.

    Attributes:
        value: One number, or several.
        is_exact: Whether no digits were rounded away.
        functions: The names of the functions used.
    """

    value: Decimal | list[Decimal]
    is_exact: bool
    functions: frozenset[str]


def evaluate(expression: str, numbers: list[Decimal] | None = None, is_list: bool = False) -> EvaluationResult:
    """Evaluate an expression.

    Args:
        expression: The expression. The names `numbers`, `data` and `values` refer to `numbers`.
        numbers: Numbers that the expression may use.
        is_list: Whether a comma always separates numbers. Otherwise it may separate thousands ("1,234 + 1").

    Raises:
        InvalidArguments: The expression is not valid.
        ToolRefused: It is too long, too deep or too large.
        ToolFailed: It has no result.
    """
    if len(expression) > _MAX_EXPRESSION_CHARACTERS:
        raise ToolRefused(
            f"The expression is too long: at most {_MAX_EXPRESSION_CHARACTERS} characters; give long lists as numbers."
        )
    with use_bounded_context() as context:
        parser = _ExpressionParser(expression, tokenize_expression(expression, is_list=is_list), numbers or [])
        value = parser.parse()
        return EvaluationResult(value, not context.flags[Inexact], frozenset(parser.functions))


class _Percent(Decimal):
    """A percentage as written. Arithmetic on it returns a plain number."""


_Value = Decimal | list[Decimal]


class _ExpressionParser:
    """Recursive-descent parser that evaluates tokens in one pass."""

    def __init__(self, expression: str, tokens: list[ExpressionToken], numbers: list[Decimal]) -> None:
        self.functions: set[str] = set()
        self._expression = expression
        self._tokens = tokens
        self._numbers = numbers
        self._position = 0
        self._depth = 0
        self._function_numbers = 0

    def parse(self) -> _Value:
        if not self._tokens:
            raise self._build_error("it is empty; give something like 25 * 4")
        items = self._parse_items("")
        return items[0] if len(items) == 1 else self._flatten(items)

    def _build_error(self, problem: str) -> InvalidArguments:
        return build_syntax_error(self._expression, problem)

    def _peek(self, ahead: int = 0) -> ExpressionToken | None:
        place = self._position + ahead
        return self._tokens[place] if place < len(self._tokens) else None

    def _next_is(self, *texts: str, ahead: int = 0) -> bool:
        token = self._peek(ahead)
        return token is not None and token.kind == "operator" and token.text in texts

    def _take(self, *texts: str) -> str:
        if not self._next_is(*texts):
            return ""
        self._position += 1
        return self._tokens[self._position - 1].text

    def _starts_operand(self, ahead: int = 0) -> bool:
        token = self._peek(ahead)
        return token is not None and (token.kind in ("number", "word") or token.text in ("(", "[", "√"))

    def _parse_items(self, closing_bracket: str) -> list[_Value]:
        """Parse values separated by commas up to a closing bracket ("" for the end)."""
        self._enter_level()
        items: list[_Value] = []
        while self._peek() is not None and not (closing_bracket and self._next_is(closing_bracket)):
            items.append(self._parse_sum())
            if not self._take(","):
                break
            while self._take(","):
                pass
        token = self._peek()
        if closing_bracket and not self._take(closing_bracket):
            raise self._build_error(f"a {closing_bracket!r} is missing")
        if not closing_bracket and token is not None:
            raise self._build_error(f"{token.text!r} is not expected here")
        self._depth -= 1
        return items

    def _parse_sum(self) -> _Value:
        value = self._parse_term()
        while sign := self._take("+", "-"):
            right = self._require_number(self._parse_term())
            left = self._require_number(value)
            if isinstance(right, _Percent):  # 200 + 10% is 220, as on pocket calculators
                right = left * right
            value = left + right if sign == "+" else left - right
        return value

    def _parse_term(self) -> _Value:
        value = self._parse_factor()
        while True:
            if operator := self._take("*", "/", "//", "mod", "%"):
                value = self._apply_operator(
                    self._require_number(value), operator, self._require_number(self._parse_factor())
                )
            elif self._take("of"):
                value = self._parse_of(value)
            elif self._starts_operand() and (token := self._peek()) and token.kind != "number":
                value = self._require_number(value) * self._require_number(self._parse_factor())  # 2(3 + 4), 2 pi
            else:
                return value

    def _apply_operator(self, left: Decimal, operator: str, right: Decimal) -> Decimal:
        if operator == "*":
            return left * right
        if operator == "/":
            return left / right
        return floor_divide(left, right) if operator == "//" else modulo(left, right)

    def _parse_of(self, value: _Value) -> _Value:
        """Parse what follows "of": a factor (15% of 80), or a function in Chinese order ([1, 2, 3] 的平均值)."""
        token = self._peek()
        if token and token.kind == "word" and token.text in FUNCTION_ALIASES and not self._next_is("(", "of", ahead=1):
            self._position += 1
            return self._call_function(FUNCTION_ALIASES[token.text], [value])
        return self._require_number(value) * self._require_number(self._parse_factor())

    def _parse_factor(self) -> _Value:
        self._enter_level()
        try:
            if sign := self._take("+", "-"):
                signed = self._require_number(self._parse_factor())
                return -signed if sign == "-" else signed
            value = self._parse_postfix()
            if self._take("**"):
                return power(self._require_number(value), self._require_number(self._parse_factor()))
            return value
        finally:
            self._depth -= 1

    def _parse_postfix(self) -> _Value:
        value = self._parse_atom()
        while True:
            if self._next_is("!"):
                self._position += 1
                value = self._call_function("factorial", [value])
            elif self._next_is("%") and self._is_percent():
                self._position += 1
                value = _Percent(self._require_number(value) / 100)
            else:
                return value

    def _is_percent(self) -> bool:
        """Return whether % is a percentage: "15% of 80" is one, "7 % 3" is not."""
        sign = self._peek()
        spaced = sign is not None and sign.has_leading_space
        return not self._starts_operand(1) and not (spaced and self._next_is("-", ahead=1))

    def _parse_atom(self) -> _Value:
        token = self._peek()
        if token is None:
            raise self._build_error("it ends too early; a number is missing")
        self._position += 1
        if token.kind == "number":
            return +Decimal(token.text)
        if token.kind == "word":
            return self._parse_named(token.text)
        if token.text == "(":
            items = self._parse_items(")")
            return items[0] if len(items) == 1 else self._flatten(items)
        if token.text == "[":
            return self._flatten(self._parse_items("]"))
        if token.text == "√":
            self._enter_level()
            root = self._call_function("sqrt", [self._parse_atom()])
            self._depth -= 1
            return root
        raise self._build_error(f"a number is missing before {token.text!r}")

    def _parse_named(self, word: str) -> _Value:
        if word in CONSTANTS and not self._next_is("("):
            getcontext().flags[Inexact] = True
            return CONSTANTS[word]
        if word in ("numbers", "data", "values", "list") and self._numbers:
            return list(self._numbers)
        name = FUNCTION_ALIASES.get(word)
        if name is None:
            raise self._build_error(_describe_unknown_name(word))
        if self._take("("):
            return self._call_function(name, self._parse_items(")"))
        self._take("of")
        if not self._starts_operand() and not self._next_is("-"):
            raise self._build_error(f"{word} needs numbers, such as {word}(16)")
        values = [self._parse_factor()]
        while FUNCTIONS[name].max_arguments != 1 and self._take(","):
            while self._take(","):
                pass
            values.append(self._parse_factor())
        return self._call_function(name, values)

    def _call_function(self, name: str, values: list[_Value]) -> Decimal:
        function = FUNCTIONS[name]
        numbers = self._flatten(values)
        self._function_numbers += len(numbers)
        if self._function_numbers > _MAX_FUNCTION_NUMBERS:
            raise ToolRefused("The expression is too long: too many numbers.")
        most = function.max_arguments or len(numbers)
        if not function.min_arguments <= len(numbers) <= most:
            raise self._build_error(f"{name} needs {describe_arity(name)}, {len(numbers)} given")
        self.functions.add(name)
        return function.compute(numbers)

    def _flatten(self, values: list[_Value]) -> list[Decimal]:
        return [number for value in values for number in (value if isinstance(value, list) else [value])]

    def _require_number(self, value: _Value) -> Decimal:
        if isinstance(value, list):
            raise self._build_error("a list appears where one number is needed; use mean, sum, max, min … of the list")
        return value

    def _enter_level(self) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise ToolRefused(f"The expression is nested too deeply: at most {_MAX_DEPTH} levels.")


def describe_arity(name: str) -> str:
    """Return how many numbers a function takes, for messages."""
    function = FUNCTIONS[name]
    if function.max_arguments is None:
        return f"at least {function.min_arguments} number{'s' * (function.min_arguments > 1)}"
    if function.min_arguments == function.max_arguments:
        return f"{function.min_arguments} number{'s' * (function.min_arguments > 1)}"
    return f"{function.min_arguments} to {function.max_arguments} numbers"


def _describe_unknown_name(word: str) -> str:
    similar_names = get_close_matches(word, [*FUNCTION_ALIASES, *CONSTANTS], n=3)
    suggestions = ", ".join(similar_names or [*STATISTICS, "sqrt", "round", "log"])
    return f"{word!r} is not known; {'did you mean' if similar_names else 'use'} {suggestions}"
