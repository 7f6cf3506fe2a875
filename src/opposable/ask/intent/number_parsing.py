"""Numbers as people write them in English and Chinese."""

import re

_ENGLISH_NUMBER_WORDS = (
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)
ENGLISH_NUMBERS = {word: index for index, word in enumerate(_ENGLISH_NUMBER_WORDS, 1)} | {
    "fifteen": 15,
    "twenty": 20,
    "thirty": 30,
}
_CHINESE_DIGITS = {char: index for index, char in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_CHINESE_UNITS = {"十": 10, "百": 100, "千": 1_000}
_SCALE_FACTORS = {
    "万": 10_000,
    "亿": 100_000_000,
    "k": 1_000,
    "million": 1_000_000,
    "thousand": 1_000,
    "billion": 10**9,
}
_ENGLISH_NUMBER_PATTERN = "|".join(sorted(ENGLISH_NUMBERS, key=len, reverse=True))
_SCALE_PATTERN = "|".join(sorted(_SCALE_FACTORS, key=len, reverse=True))
NUMBER_PATTERN = (
    rf"(?:\d[\d,]*(?:\.\d+)?(?: ?(?:{_SCALE_PATTERN})(?![a-z]))?%?"
    rf"|[零〇一二两三四五六七八九十百千]+[万亿]?|\b(?:{_ENGLISH_NUMBER_PATTERN})\b)"
)
"""A regular expression of a number in a text in lower case."""


def parse_number(text: str) -> int | float | None:
    """The number that `text` (in lower case) says: 1,000 · 1.5k · 20% (0.2) · 100万 · 二十三 · twelve; or None."""
    text = text.strip()
    if text in ENGLISH_NUMBERS:
        return ENGLISH_NUMBERS[text]
    found = re.fullmatch(rf"([\d,]+(?:\.\d+)?) ?({_SCALE_PATTERN})?(%)?", text)
    if found is None or not found[1].strip(","):
        return parse_chinese_number(text)
    value = float(found[1].replace(",", "")) * _SCALE_FACTORS.get(found[2] or "", 1)
    value = value / 100 if found[3] else value
    return int(value) if value.is_integer() else value


def parse_chinese_number(text: str) -> int | None:
    """The number that Chinese characters say (十二, 二十三, 三百, 一万); or None."""
    scale = _SCALE_FACTORS[text[-1]] if len(text) > 1 and text[-1] in "万亿" else 1
    total, digit = 0, 0
    for char in text[:-1] if scale > 1 else text:
        if char in _CHINESE_DIGITS:
            digit = digit * 10 + _CHINESE_DIGITS[char]
        elif char in _CHINESE_UNITS:
            total += (digit or 1) * _CHINESE_UNITS[char]
            digit = 0
        else:
            return None
    return (total + digit) * scale if text else None
