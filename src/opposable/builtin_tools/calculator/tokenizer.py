"""Tokenizer of arithmetic in human notation ("25 × 4", "15% of 80")."""

import re
from dataclasses import dataclass

from opposable.builtin_tools.calculator.functions import FUNCTION_ALIASES
from opposable.domain.errors import FieldProblem, InvalidArguments

_CHARACTER_REPLACEMENTS = str.maketrans(
    {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
    | {"，": ", ", "、": ", ", "；": ", ", ";": ", ", "\u3000": " ", "\u00a0": " ", "【": "[", "】": "]"}
    | {"×": "*", "✕": "*", "·": "*", "⋅": "*", "∗": "*", "÷": "/", "∕": "/", "⁄": "/", "−": "-", "–": "-", "—": "-"}
    | {"²": "**2", "³": "**3", "π": "pi", "{": "[", "}": "]", "$": "", "¥": "", "€": "", "£": "", "￥": ""}
)
_WIDE_THOUSANDS_PATTERN = re.compile(r"(?<![\d.,，])[1-9１-９]\d{0,2}(?:，\d{3})*?，[0０]\d{2}(?:，\d{3})*(?!\d)")
"""A number such as 12，000: no item of a list is written 000."""
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
_OPERATOR_WORDS = (
    {"plus": "+", "minus": "-", "times": "*", "x": "*", "of": "of", "and": ",", "mod": "mod", "modulo": "mod"}
    | {"加上": "+", "加": "+", "减去": "-", "减": "-", "乘以": "*", "乘": "*", "除以": "/"}
    | {"的": "of", "和": ","}
)
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
class ExpressionToken:
    """A number, word or operator of an expression."""

    kind: str
    text: str
    has_leading_space: bool

    @property
    def starts_operand(self) -> bool:
        """Whether a value may begin here."""
        return self.kind != "operator" or self.text in ("(", "[", "√")


def build_syntax_error(expression: str, problem: str) -> InvalidArguments:
    """Build the error for an expression that cannot be parsed."""
    return InvalidArguments((FieldProblem("expression", problem, repr(expression[:100])),))


def tokenize_expression(expression: str, *, is_list: bool) -> list[ExpressionToken]:
    """Split an expression in human notation into tokens.

    Args:
        expression: The expression.
        is_list: Whether a comma always separates numbers. Otherwise it may separate thousands.

    Raises:
        InvalidArguments: A character is not part of any token.
    """
    text = _normalize_notation(expression)
    tokens: list[ExpressionToken] = []
    # Whether commas separate numbers: in the whole expression, and in each open bracket.
    comma_separates = [is_list or _has_bare_function(text)]
    position = 0
    while position < len(text):
        match = _TOKEN_PATTERN.match(text, position)
        if match is None:
            sample = text[position:].strip()[:1]
            raise build_syntax_error(
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


def _normalize_notation(expression: str) -> str:
    """Replace Chinese and typographic characters, the frame of a question, and phrases."""
    text = _WIDE_THOUSANDS_PATTERN.sub(lambda match: match[0].replace("，", ","), expression)
    text = _QUESTION_FRAME_PATTERN.sub("", text.translate(_CHARACTER_REPLACEMENTS))
    for pattern, replacement in _PHRASE_REPLACEMENTS:
        text = pattern.sub(replacement, text)
    return text.strip()


def _has_bare_function(text: str) -> bool:
    """Return whether a function is used without brackets ("average of 100,200,300").

    Commas then separate numbers.
    """
    return any(match[1].lower() in FUNCTION_ALIASES for match in _BARE_WORD_PATTERN.finditer(text))


def _make_token(kind: str, text: str, has_leading_space: bool) -> ExpressionToken:
    if kind in ("thousands", "number"):
        return ExpressionToken("number", text.replace(",", ""), has_leading_space)
    word = text.lower()
    if kind == "word" and word in _OPERATOR_WORDS:
        return ExpressionToken("operator", _OPERATOR_WORDS[word], has_leading_space)
    return ExpressionToken(kind, {"^": "**"}.get(word, word), has_leading_space)
