"""Arithmetic as people and models write it ("25 × 4", "15% of 80", "mean([1,2,3])"), read and worked out.

There is no `eval`: a reader of numbers, operators and known functions works out bounded decimals as it goes.
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
_MAX_FUNCTION_NUMBERS = 50_000  # numbers read by functions, so that a long list in a long expression stays quick

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
    """What an expression comes to: one number or several. `exact` is false when digits were rounded away."""

    value: Decimal | list[Decimal]
    is_exact: bool
    functions: frozenset[str]


def evaluate(expression: str, numbers: list[Decimal] | None = None, is_list: bool = False) -> EvaluationResult:
    """Work out `expression`, in which the names `numbers`, `data` and `values` stand for `numbers`.

    A comma may part thousands ("1,234 + 1") where it cannot part numbers; with `listed` it always parts numbers.

    Raises:
        InvalidArguments: the expression cannot be read.
        ToolRefused: it is too long, too deep or too large.
        ToolFailed: it has no result.
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
        reader = _ExpressionParser(
            expression, _tokenize(expression, text, is_list or _has_bare_function(text)), numbers or []
        )
        value = reader.parse()
        return EvaluationResult(value, not context.flags[Inexact], frozenset(reader.functions))


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    has_leading_space: bool


class _Percent(Decimal):
    """A percentage as written; any arithmetic on it gives a plain number."""


_Value = Decimal | list[Decimal]


def _build_syntax_error(expression: str, problem: str) -> InvalidArguments:
    return InvalidArguments((FieldProblem("expression", problem, repr(expression[:100])),))


def _has_bare_function(text: str) -> bool:
    """Is a function used without brackets, as in "average of 100,200,300"? Commas then part numbers."""
    return any(match[1].lower() in FUNCTION_ALIASES for match in _BARE_WORD_PATTERN.finditer(text))


def _tokenize(expression: str, text: str, is_list: bool) -> list[_Token]:
    tokens: list[_Token] = []
    lists = [is_list]  # for the whole and every open bracket: do commas part numbers there?
    text = text.strip()
    at = 0
    while at < len(text):
        match = _TOKEN_PATTERN.match(text, at)
        if match is None:
            sample = text[at:].strip()[:1]
            raise _build_syntax_error(
                expression, f"{sample!r} cannot be read; use numbers, + - * / ** % ( ) and functions such as sqrt, mean"
            )
        kind = match.lastgroup or ""
        piece = match[kind]
        if kind == "thousands" and any(lists):
            piece = piece.split(",", 1)[0]
        at = match.start(kind) + len(piece)
        if piece in ("(", "["):
            lists.append(
                piece == "[" or bool(tokens and tokens[-1].kind == "word" and tokens[-1].text in FUNCTION_ALIASES)
            )
        elif piece in (")", "]") and len(lists) > 1:
            lists.pop()
        tokens.append(_make_token(kind, piece, bool(match["space"])))
    return tokens


def _make_token(kind: str, text: str, has_leading_space: bool) -> _Token:
    if kind in ("thousands", "number"):
        return _Token("number", text.replace(",", ""), has_leading_space)
    word = text.lower()
    if kind == "word" and word in _OPERATOR_WORDS:
        return _Token("operator", _OPERATOR_WORDS[word], has_leading_space)
    return _Token(kind, {"^": "**"}.get(word, word), has_leading_space)


class _ExpressionParser:
    """Reads tokens once from left to right, working out values as it goes."""

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
        """Values parted by commas up to `closing` ("" for the end)."""
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
            if isinstance(right, _Percent):  # 200 + 10% is 220, as on every pocket calculator
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
        """What follows "of": a factor (15% of 80), or in the Chinese order a function ([1, 2, 3] 的平均值)."""
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
        """A % is a percentage unless an operand follows: "15% of 80" and "7 % 3" are both common."""
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
            raise self._build_error("a list stands where one number is needed; use mean, sum, max, min … of the list")
        return value

    def _enter_level(self) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise ToolRefused(f"The expression is nested too deeply: at most {_MAX_DEPTH} levels.")


def describe_arity(name: str) -> str:
    """How many numbers the function `name` takes, in words."""
    function = FUNCTIONS[name]
    if function.max_arguments is None:
        return f"at least {function.min_arguments} number{'s' * (function.min_arguments > 1)}"
    if function.min_arguments == function.max_arguments:
        return f"{function.min_arguments} number{'s' * (function.min_arguments > 1)}"
    return f"{function.min_arguments} to {function.max_arguments} numbers"


def _describe_unknown_name(word: str) -> str:
    near = get_close_matches(word, [*FUNCTION_ALIASES, *CONSTANTS], n=3)
    usable = ", ".join(near or [*STATISTICS, "sqrt", "round", "log"])
    return f"{word!r} is not known; {'did you mean' if near else 'use'} {usable}"
