"""Parser of English and Chinese numbers."""

import re

from opposable.domain.language import NUMBER_WORDS

ENGLISH_NUMBERS = {word: number for number, word in enumerate(NUMBER_WORDS) if number}
ENGLISH_NUMBERS |= {"fifteen": 15, "twenty": 20, "thirty": 30}
CHINESE_DIGITS = {char: index for index, char in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_CHINESE_UNITS = {"十": 10, "百": 100, "千": 1_000, "万": 10_000, "亿": 10**8}
_SCALE_FACTORS = _CHINESE_UNITS | {"k": 1_000, "thousand": 1_000, "million": 10**6, "billion": 10**9}
_ENGLISH_NUMBER_PATTERN = "|".join(sorted(ENGLISH_NUMBERS, key=len, reverse=True))
_CHINESE_CHARACTERS = "".join((*CHINESE_DIGITS, *_CHINESE_UNITS))
_DIGITS_PATTERN = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?"
_SCALE_PATTERN = f"(?:{'|'.join(_SCALE_FACTORS)})(?![a-z])"
NUMBER_PATTERN = (
    rf"(?:(?>{_DIGITS_PATTERN}(?: ?{_SCALE_PATTERN})?)(?!,?\d|[{_CHINESE_CHARACTERS}])"
    rf"|[{_CHINESE_CHARACTERS}]+|\b(?:{_ENGLISH_NUMBER_PATTERN})\b)"
)
"""A regular expression of a number in lowercase text; 1,5 and 1万5 have several readings."""


def parse_number(text: str) -> int | float | None:
    """Parse a lowercase number, such as 1,000, 1.5k, 100万, 二十三 or twelve.

    Returns:
        The number, or None if `text` is not one.
    """
    text = text.strip()
    if text in ENGLISH_NUMBERS:
        return ENGLISH_NUMBERS[text]
    match = re.fullmatch(rf"({_DIGITS_PATTERN}) ?({_SCALE_PATTERN})?", text)
    if match is None:
        return parse_chinese_number(text)
    value = float(match[1].replace(",", "")) * _SCALE_FACTORS.get(match[2] or "", 1)
    return int(value) if value.is_integer() else value


def parse_chinese_number(text: str) -> int | None:
    """Parse a number in Chinese characters, such as 二十三 or 一千五 (1,500).

    Returns:
        The number, or None if `text` is not one; 两三 is "two or three".
    """
    total, digit, last_unit = 0, 0, 10
    for char in text:
        unit = _CHINESE_UNITS.get(char, 0)
        if char in CHINESE_DIGITS and not digit:
            digit = CHINESE_DIGITS[char]
            last_unit = last_unit if digit else 10
        elif not unit or (unit >= 10_000 and not 0 < total + digit < 10_000):
            return None
        else:
            total = (total + digit) * unit if unit >= 10_000 else total + (digit or 1) * unit
            digit, last_unit = 0, unit
    return total + digit * last_unit // 10 if text else None
