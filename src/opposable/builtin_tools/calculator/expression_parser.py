"""Arithmetic as people and models write it ("25 × 4", "15% of 80", "mean([1,2,3])"), read and worked out.

There is no `eval`: a reader of numbers, operators and known functions works out bounded decimals as it goes.
"""

import re
from dataclasses import dataclass
from decimal import Decimal, Inexact, getcontext
from difflib import get_close_matches

from opposable.builtin_tools.calculator.functions import (
    CONSTANTS,
    FUNCTIONS,
    NAMES,
    STATISTICS,
    bounded,
    floor_divide,
    modulo,
    power,
)
from opposable.domain.errors import FieldProblem, InvalidArguments, ToolRefused

_LONGEST = 2000
_DEEPEST = 40
_MOST_STEPS = 50_000  # numbers read by functions, so that a long list in a long expression stays quick

_CHARACTERS = str.maketrans(
    {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
    | {"，": ", ", "、": ", ", "；": ", ", ";": ", ", "\u3000": " ", "\u00a0": " ", "【": "[", "】": "]"}
    | {"×": "*", "✕": "*", "·": "*", "⋅": "*", "∗": "*", "÷": "/", "∕": "/", "⁄": "/", "−": "-", "–": "-", "—": "-"}
    | {"²": "**2", "³": "**3", "π": "pi", "{": "[", "}": "]", "$": "", "¥": "", "€": "", "£": "", "￥": ""}
)
_FRAME = re.compile(
    r"^\s*(?:what\s+is|what's|calculate|compute|evaluate|请?计算|求|算一下)\s*[:：]?\s+?|"
    r"^\s*(?:请?计算|求)\s*|[\s=?。.]*(?:等于多少|等于几|是多少|等于)?[\s=?。]*$",
    re.IGNORECASE,
)
_PHRASES = [
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
_WORDS = {"plus": "+", "minus": "-", "times": "*", "x": "*", "of": "of", "and": ",", "mod": "mod", "modulo": "mod"} | {
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
_CHINESE = "|".join(sorted((w for w in _WORDS.keys() | NAMES.keys() if w[0] > "一"), key=len, reverse=True))
_BARE_WORD = re.compile(rf"([A-Za-z][A-Za-z0-9_]*|{_CHINESE})(?!\s*\()")
_DIGITS = r"[0-9]+\.?[0-9]*|\.[0-9]+"
_TOKEN = re.compile(
    rf"(?P<space>\s*)(?:(?P<thousands>[0-9]{{1,3}}(?:,[0-9]{{3}})+(?![0-9])(?:\.[0-9]+)?)|"
    rf"(?P<number>(?:{_DIGITS})(?:[eE][+-]?[0-9]+)?)|(?P<word>[A-Za-z][A-Za-z0-9_]*|{_CHINESE})|"
    r"(?P<operator>\*\*|//|[-+*/^%!(),\[\]√]))"
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an expression comes to: one number or several. `exact` is false when digits were rounded away."""

    value: Decimal | list[Decimal]
    exact: bool
    functions: frozenset[str]


def evaluate(expression: str, numbers: list[Decimal] | None = None, listed: bool = False) -> Outcome:
    """Work out `expression`, in which the names `numbers`, `data` and `values` stand for `numbers`.

    A comma may part thousands ("1,234 + 1") where it cannot part numbers; with `listed` it always parts numbers.

    Raises:
        InvalidArguments: the expression cannot be read.
        ToolRefused: it is too long, too deep or too large.
        ToolFailed: it has no result.
    """
    if len(expression) > _LONGEST:
        raise ToolRefused(f"The expression is too long: at most {_LONGEST} characters; give long lists as numbers.")
    text = expression.translate(_CHARACTERS)
    text = _FRAME.sub("", text)
    for pattern, replacement in _PHRASES:
        text = pattern.sub(replacement, text)
    with bounded() as context:
        reader = _Reader(expression, _tokens(expression, text, listed or _names_a_list(text)), numbers or [])
        value = reader.read()
        return Outcome(value, not context.flags[Inexact], frozenset(reader.functions))


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    spaced: bool


class _Percent(Decimal):
    """A percentage as written; any arithmetic on it gives a plain number."""


_Value = Decimal | list[Decimal]


def _unreadable(expression: str, problem: str) -> InvalidArguments:
    return InvalidArguments((FieldProblem("expression", problem, repr(expression[:100])),))


def _names_a_list(text: str) -> bool:
    """Is a function used without brackets, as in "average of 100,200,300"? Commas then part numbers."""
    return any(match[1].lower() in NAMES for match in _BARE_WORD.finditer(text))


def _tokens(expression: str, text: str, listed: bool) -> list[_Token]:
    tokens: list[_Token] = []
    lists = [listed]  # for the whole and every open bracket: do commas part numbers there?
    text = text.strip()
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            sample = text[at:].strip()[:1]
            raise _unreadable(
                expression, f"{sample!r} cannot be read; use numbers, + - * / ** % ( ) and functions such as sqrt, mean"
            )
        kind = match.lastgroup or ""
        piece = match[kind]
        if kind == "thousands" and any(lists):
            piece = piece.split(",", 1)[0]
        at = match.start(kind) + len(piece)
        if piece in ("(", "["):
            lists.append(piece == "[" or bool(tokens and tokens[-1].kind == "word" and tokens[-1].text in NAMES))
        elif piece in (")", "]") and len(lists) > 1:
            lists.pop()
        tokens.append(_token(kind, piece, bool(match["space"])))
    return tokens


def _token(kind: str, piece: str, spaced: bool) -> _Token:
    if kind in ("thousands", "number"):
        return _Token("number", piece.replace(",", ""), spaced)
    word = piece.lower()
    if kind == "word" and word in _WORDS:
        return _Token("operator", _WORDS[word], spaced)
    return _Token(kind, {"^": "**"}.get(word, word), spaced)


class _Reader:
    """Reads tokens once from left to right, working out values as it goes."""

    def __init__(self, expression: str, tokens: list[_Token], numbers: list[Decimal]) -> None:
        self.functions: set[str] = set()
        self._expression = expression
        self._tokens = tokens
        self._numbers = numbers
        self._at = 0
        self._depth = 0
        self._steps = 0

    def read(self) -> _Value:
        if not self._tokens:
            raise self._wrong("it is empty; give something like 25 * 4")
        items = self._items("")
        return items[0] if len(items) == 1 else self._flat(items)

    def _wrong(self, problem: str) -> InvalidArguments:
        return _unreadable(self._expression, problem)

    def _peek(self, ahead: int = 0) -> _Token | None:
        place = self._at + ahead
        return self._tokens[place] if place < len(self._tokens) else None

    def _next_is(self, *texts: str, ahead: int = 0) -> bool:
        token = self._peek(ahead)
        return token is not None and token.kind == "operator" and token.text in texts

    def _take(self, *texts: str) -> str:
        if not self._next_is(*texts):
            return ""
        self._at += 1
        return self._tokens[self._at - 1].text

    def _starts_operand(self, ahead: int = 0) -> bool:
        token = self._peek(ahead)
        return token is not None and (token.kind in ("number", "word") or token.text in ("(", "[", "√"))

    def _items(self, closing: str) -> list[_Value]:
        """Values parted by commas up to `closing` ("" for the end)."""
        self._deeper()
        items: list[_Value] = []
        while self._peek() is not None and not (closing and self._next_is(closing)):
            items.append(self._expression_value())
            if not self._take(","):
                break
            while self._take(","):
                pass
        token = self._peek()
        if closing and not self._take(closing):
            raise self._wrong(f"a {closing!r} is missing")
        if not closing and token is not None:
            raise self._wrong(f"{token.text!r} is not expected here")
        self._depth -= 1
        return items

    def _expression_value(self) -> _Value:
        value = self._term()
        while sign := self._take("+", "-"):
            right = self._number(self._term())
            left = self._number(value)
            if isinstance(right, _Percent):  # 200 + 10% is 220, as on every pocket calculator
                right = left * right
            value = left + right if sign == "+" else left - right
        return value

    def _term(self) -> _Value:
        value = self._factor()
        while True:
            if operator := self._take("*", "/", "//", "mod", "%"):
                value = self._times(self._number(value), operator, self._number(self._factor()))
            elif self._take("of"):
                value = self._of(value)
            elif self._starts_operand() and (token := self._peek()) and token.kind != "number":
                value = self._number(value) * self._number(self._factor())  # 2(3 + 4), 2 pi
            else:
                return value

    def _times(self, left: Decimal, operator: str, right: Decimal) -> Decimal:
        if operator == "*":
            return left * right
        if operator == "/":
            return left / right
        return floor_divide(left, right) if operator == "//" else modulo(left, right)

    def _of(self, value: _Value) -> _Value:
        """What follows "of": a factor (15% of 80), or in the Chinese order a function ([1, 2, 3] 的平均值)."""
        token = self._peek()
        if token and token.kind == "word" and token.text in NAMES and not self._next_is("(", "of", ahead=1):
            self._at += 1
            return self._call(NAMES[token.text], [value])
        return self._number(value) * self._number(self._factor())

    def _factor(self) -> _Value:
        self._deeper()
        try:
            if sign := self._take("+", "-"):
                signed = self._number(self._factor())
                return -signed if sign == "-" else signed
            value = self._postfix()
            if self._take("**"):
                return power(self._number(value), self._number(self._factor()))
            return value
        finally:
            self._depth -= 1

    def _postfix(self) -> _Value:
        value = self._atom()
        while True:
            if self._next_is("!"):
                self._at += 1
                value = self._call("factorial", [value])
            elif self._next_is("%") and self._is_percent():
                self._at += 1
                value = _Percent(self._number(value) / 100)
            else:
                return value

    def _is_percent(self) -> bool:
        """A % is a percentage unless an operand follows: "15% of 80" and "7 % 3" are both common."""
        sign = self._peek()
        spaced = sign is not None and sign.spaced
        return not self._starts_operand(1) and not (spaced and self._next_is("-", ahead=1))

    def _atom(self) -> _Value:
        token = self._peek()
        if token is None:
            raise self._wrong("it ends too early; a number is missing")
        self._at += 1
        if token.kind == "number":
            return +Decimal(token.text)
        if token.kind == "word":
            return self._named(token.text)
        if token.text == "(":
            items = self._items(")")
            return items[0] if len(items) == 1 else self._flat(items)
        if token.text == "[":
            return self._flat(self._items("]"))
        if token.text == "√":
            self._deeper()
            root = self._call("sqrt", [self._atom()])
            self._depth -= 1
            return root
        raise self._wrong(f"a number is missing before {token.text!r}")

    def _named(self, word: str) -> _Value:
        if word in CONSTANTS and not self._next_is("("):
            getcontext().flags[Inexact] = True
            return CONSTANTS[word]
        if word in ("numbers", "data", "values", "list") and self._numbers:
            return list(self._numbers)
        name = NAMES.get(word)
        if name is None:
            raise self._wrong(_unknown(word))
        if self._take("("):
            return self._call(name, self._items(")"))
        self._take("of")
        if not self._starts_operand() and not self._next_is("-"):
            raise self._wrong(f"{word} needs numbers, such as {word}(16)")
        values = [self._factor()]
        while FUNCTIONS[name].most != 1 and self._take(","):
            while self._take(","):
                pass
            values.append(self._factor())
        return self._call(name, values)

    def _call(self, name: str, values: list[_Value]) -> Decimal:
        function = FUNCTIONS[name]
        numbers = self._flat(values)
        self._steps += len(numbers)
        if self._steps > _MOST_STEPS:
            raise ToolRefused("The expression is too long: too many numbers.")
        most = function.most or len(numbers)
        if not function.least <= len(numbers) <= most:
            raise self._wrong(f"{name} needs {needs(name)}, {len(numbers)} given")
        self.functions.add(name)
        return function.compute(numbers)

    def _flat(self, values: list[_Value]) -> list[Decimal]:
        return [number for value in values for number in (value if isinstance(value, list) else [value])]

    def _number(self, value: _Value) -> Decimal:
        if isinstance(value, list):
            raise self._wrong("a list stands where one number is needed; use mean, sum, max, min … of the list")
        return value

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ToolRefused(f"The expression is nested too deeply: at most {_DEEPEST} levels.")


def needs(name: str) -> str:
    """How many numbers the function `name` takes, in words."""
    function = FUNCTIONS[name]
    if function.most is None:
        return f"at least {function.least} number{'s' * (function.least > 1)}"
    if function.least == function.most:
        return f"{function.least} number{'s' * (function.least > 1)}"
    return f"{function.least} to {function.most} numbers"


def _unknown(word: str) -> str:
    near = get_close_matches(word, [*NAMES, *CONSTANTS], n=3)
    usable = ", ".join(near or [*STATISTICS, "sqrt", "round", "log"])
    return f"{word!r} is not known; {'did you mean' if near else 'use'} {usable}"
