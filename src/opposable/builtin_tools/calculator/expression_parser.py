"""Parser and evaluator of arithmetic in human notation ("25 × 4", "15% of 80", "mean([1,2,3])").

It does not use `eval`. The parser knows numbers, operators and functions, and evaluates bounded decimals as it parses.
"""

import re
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
from opposable.domain.errors import FieldProblem, InvalidArguments, ToolRefused

_MAX_EXPRESSION_CHARACTERS = 2000
_MAX_DEPTH = 40
_MAX_FUNCTION_NUMBERS = 50_000  # limits the work of long lists in long expressions

_CHARACTER_REPLACEMENTS = str.maketrans(
    {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
    | {"，": ", ", "、": ", ", "；": ", ", ";": ", ", "\u3000": " ", "\u00a0": " ", "【": "[", "】": "]"}
    | {"×": "*", "✕": "*", "·": "*", "⋅": "*", "∗": "*", "÷": "/", "∕": "/", "⁄": "/", "−": "-", "–": "-", "—": "-"}
    | {"²": "**2", "³": "**3", "π": "pi", "{": "[", "}": "]", "$": "", "¥": "", "€": "", "£": "", "￥": ""}
)
_QUESTION_FRAME_PATTERN = re.compile(
    r"^\s*(?:what\s+is|what's|calculate|compute|evaluate|请?计算|求|算一下)\s*[:：]?\s+?|"
    r"^\s*(?:请?计算|求)\s*|[\s=?。.]*(?:等于多少|等于几|是多少|等于)?[\s=?。]*$",
    re.IGNORECASE,
)
_PHRASE_REPLACEMENTS = [
    (re.compile(pattern, re.IGNORECASE), text)
    for pattern, text in (
        (r"\bdivided\s+by\b", " / "),
        (r"\bmultiplied\s+by\b", " * "),
        (r"\bto\s+the\s+power\s+of\b", " ** "),
        (r"\bsquared\b", " **2 "),
        (r"\bcubed\b", " **3 "),
        (r"\bper\s?cent\b", "%"),
        (r"\bsquare\s+root\b", "sqrt"),
        (r"\bcube\s+root\b", "cbrt"),
        (r"\bstandard\s+deviation\b", "std"),
        (r"\b(?:math|numpy|np|statistics)\.", ""),
        (r"百分之\s*([0-9.]+)", r"\1%"),
        (r"(?<=[0-9])_(?=[0-9])", ""),
        (r"\bthe\b", " "),
        (r"^([-0-9.,、\s]*(?:,|和)[-0-9.,和\s]*)的", r"[\1]的"),
    )
]
_OPERATOR_WORDS = {
    "plus": "+",
    "minus": "-",
    "times": "*",
    "x": "*",
    "of": "of",
    "and": ",",
    "mod": "mod",
    "modulo": "mod",
} | {
    "加上": "+",
    "加": "+",
    "减去": "-",
    "减": "-",
    "乘以": "*",
    "乘": "*",
    "除以": "/",
    "的": "of",
    "和": ",",
}
_CHINESE_WORDS_PATTERN = "|".join(
    sorted((w for w in _OPERATOR_WORDS.keys() | FUNCTION_ALIASES.keys() if w[0] > "一"), key=len, reverse=True)
)
_BARE_WORD_PATTERN = re.compile(rf"([A-Za-z][A-Za-z0-9_]*|{_CHINESE_WORDS_PATTERN})(?!\s*\()")
_DIGITS_PATTERN = r"[0-9]+\.?[0-9]*|\.[0-9]+"
_TOKEN_PATTERN = re.compile(
    rf"(?P<space>\s*)(?:(?P<thousands>[0-9]{{1,3}}(?:,[0-9]{{3}})+(?![0-9])(?:\.[0-9]+)?)|"
    rf"(?P<number>(?:{_DIGITS_PATTERN})(?:[eE][+-]?[0-9]+)?)|(?P<word>[A-Za-z][A-Za-z0-9_]*|{_CHINESE_WORDS_PATTERN})|"
    r"(?P<operator>\*\*|//|[-+*/^%!(),\[\]√]))"
)


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
    text = expression.translate(_CHARACTER_REPLACEMENTS)
    text = _QUESTION_FRAME_PATTERN.sub("", text)
    for pattern, replacement in _PHRASE_REPLACEMENTS:
        text = pattern.sub(replacement, text)
    with use_bounded_context() as context:
        parser = _ExpressionParser(
            expression, _tokenize(expression, text, is_list or _has_bare_function(text)), numbers or []
        )
        value = parser.parse()
        return EvaluationResult(value, not context.flags[Inexact], frozenset(parser.functions))


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    has_leading_space: bool


class _Percent(Decimal):
    """A percentage as written. Arithmetic on it returns a plain number."""


_Value = Decimal | list[Decimal]


def _build_syntax_error(expression: str, problem: str) -> InvalidArguments:
    return InvalidArguments((FieldProblem("expression", problem, repr(expression[:100])),))


def _has_bare_function(text: str) -> bool:
    """Return whether a function is used without brackets ("average of 100,200,300").

    Commas then separate numbers.
    """
    return any(match[1].lower() in FUNCTION_ALIASES for match in _BARE_WORD_PATTERN.finditer(text))


def _tokenize(expression: str, text: str, is_list: bool) -> list[_Token]:
    tokens: list[_Token] = []
    comma_separates = [is_list]  # per open bracket and for the whole: do commas separate numbers there?
    text = text.strip()
    position = 0
    while position < len(text):
        match = _TOKEN_PATTERN.match(text, position)
        if match is None:
            sample = text[position:].strip()[:1]
            raise _build_syntax_error(
                expression, f"{sample!r} cannot be read; use numbers, + - * / ** % ( ) and functions such as sqrt, mean"
            )
        kind = match.lastgroup or ""
        part = match[kind]
        if kind == "thousands" and any(comma_separates):
            part = part.split(",", 1)[0]
        position = match.start(kind) + len(part)
        if part in ("(", "["):
            comma_separates.append(
                part == "[" or bool(tokens and tokens[-1].kind == "word" and tokens[-1].text in FUNCTION_ALIASES)
            )
        elif part in (")", "]") and len(comma_separates) > 1:
            comma_separates.pop()
        tokens.append(_make_token(kind, part, bool(match["space"])))
    return tokens


def _make_token(kind: str, text: str, has_leading_space: bool) -> _Token:
    if kind in ("thousands", "number"):
        return _Token("number", text.replace(",", ""), has_leading_space)
    word = text.lower()
    if kind == "word" and word in _OPERATOR_WORDS:
        return _Token("operator", _OPERATOR_WORDS[word], has_leading_space)
    return _Token(kind, {"^": "**"}.get(word, word), has_leading_space)


class _ExpressionParser:
    """Recursive-descent parser that evaluates tokens in one pass."""

    def __init__(self, expression: str, tokens: list[_Token], numbers: list[Decimal]) -> None:
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
        return _build_syntax_error(self._expression, problem)

    def _peek(self, ahead: int = 0) -> _Token | None:
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
