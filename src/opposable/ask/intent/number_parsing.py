"""Parser of English and Chinese numbers."""

import re

from opposable.domain.language import NUMBER_WORDS

ENGLISH_NUMBERS = {word: number for number, word in enumerate(NUMBER_WORDS) if number}
ENGLISH_NUMBERS |= {"fifteen": 15, "twenty": 20, "thirty": 30}
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
"""A regular expression of a number in lowercase text."""


def parse_number(text: str) -> int | float | None:
    """Parse a lowercase number, such as 1,000, 1.5k, 20% (0.2), 100万, 二十三 or twelve.

    Returns:
        The number, or None if `text` is not one.
    """
    text = text.strip()
    if text in ENGLISH_NUMBERS:
        return ENGLISH_NUMBERS[text]
    match = re.fullmatch(rf"([\d,]+(?:\.\d+)?) ?({_SCALE_PATTERN})?(%)?", text)
    if match is None or not match[1].strip(","):
        return parse_chinese_number(text)
    value = float(match[1].replace(",", "")) * _SCALE_FACTORS.get(match[2] or "", 1)
    value = value / 100 if match[3] else value
    return int(value) if value.is_integer() else value


def parse_chinese_number(text: str) -> int | None:
    """Parse a number in Chinese characters, such as 二十三.

    Returns:
        The number, or None if `text` is not one.
    """
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
