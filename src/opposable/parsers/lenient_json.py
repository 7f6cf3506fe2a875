"""Parsing of JSON as models write it: repairs the notation, never guesses."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from opposable.domain.json_text import parse_json
from opposable.domain.localized_text import LocalizedText

MAX_DEPTH = 100

_SPACE = re.compile(r"(?:[\s\u3000\ufeff\u200b]+|//[^\n]*|#[^\n]*|/\*.{0,2000}?\*/)*", re.DOTALL)
_WHITESPACE = re.compile(r"\s*")
_NUMBER = re.compile(r"[+-]?(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_WORD = re.compile(r"[^\W\d][\w.$-]*")
_LITERALS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_CLOSING_QUOTE = {'"': '"', "'": "'", "“": "”", "”": "”", "‘": "’", "’": "’", "`": "`", "＂": "＂", "「": "」"}
_STRING_MARKS = ("<escape>", '<|"|>')
_COMMAS = ",，、"
_COLONS = ":：="
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "'": "'", "\n": ""}
_HEX4 = re.compile(r"[0-9a-fA-F]{4}")
_PLAIN_CHARACTERS = {quote: re.compile(rf"[^\\{re.escape(end)}]+") for quote, end in _CLOSING_QUOTE.items()}


class UnreadableText(Exception):
    """The text cannot be parsed without guessing.

    `problem` says why, in Chinese only roughly unless it was given so. `is_cut_off` means that the text only ends too
    early.
    """

    def __init__(self, problem: str, is_cut_off: bool = False) -> None:
        super().__init__(problem)
        chinese = "内容不完整，中途结束" if is_cut_off else "不是有效的 JSON 对象"
        self.problem = problem if isinstance(problem, LocalizedText) else LocalizedText(problem, chinese)
        self.is_cut_off = is_cut_off


@dataclass(slots=True)
class Repairs:
    """The repairs made while parsing one text, each listed once, in order."""

    entries: dict[str, None] = field(default_factory=dict)
    is_unfinished: bool = False
    missing_brackets: int = 0

    def add(self, repair: str) -> None:
        """Record a repair."""
        self.entries[repair] = None

    def __iter__(self) -> Any:
        return iter(self.entries)


def parse_lenient(text: str, repairs: Repairs) -> Any:
    """Parse the one value in `text`, repairing and recording errors of notation.

    Raises:
        UnreadableText: The text cannot be parsed without guessing.
    """
    try:
        return parse_json(text)
    except ValueError:
        pass
    value, end = LenientJsonParser(text, repairs).parse_value(0)
    end = skip_space(text, end)
    while end < len(text) and text[end] in "}])":
        repairs.add("extra closing bracket dropped")
        end = skip_space(text, end + 1)
    if end < len(text):
        raise UnreadableText(f"there is text after the JSON value: {text[end : end + 40]!r}")
    return value


def skip_space(text: str, at: int) -> int:
    """Return the first position at or after `at` outside white space and comments."""
    return skip_pattern(_SPACE, text, at)


def skip_whitespace(text: str, at: int) -> int:
    """Return the first position at or after `at` that is not white space."""
    return skip_pattern(_WHITESPACE, text, at)


def skip_pattern(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Return where a match of `pattern` at `at` ends; `at` itself without one."""
    match = pattern.match(text, at)
    return match.end() if match else at


class LenientJsonParser:
    """A recursive-descent parser of JSON with errors of notation.

    Every method takes a position and returns a value with the position after it.
    """

    def __init__(self, text: str, repairs: Repairs, allows_bare_words: bool = False) -> None:
        self.text = text
        self.repairs = repairs
        self.allows_bare_words = allows_bare_words
        self.depth = 0

    def parse_value(self, at: int) -> tuple[Any, int]:
        """Parse the value at `at`."""
        at = skip_space(self.text, at)
        if at >= len(self.text):
            raise UnreadableText("the JSON ends where a value should stand", is_cut_off=True)
        char = self.text[at]
        if char == "{":
            return self._parse_nested(self._parse_object, at)
        if char in "[(":
            return self._parse_nested(self._parse_array, at)
        if char in _CLOSING_QUOTE or char == "<":
            return self.parse_string(at)
        return self._parse_scalar(at)

    def _parse_nested(self, parse: Callable[[int], tuple[Any, int]], at: int) -> tuple[Any, int]:
        if self.depth >= MAX_DEPTH:
            raise UnreadableText(f"nested more than {MAX_DEPTH} deep")
        self.depth += 1
        result = parse(at)
        self.depth -= 1
        return result

    def _parse_object(self, at: int) -> tuple[dict[str, Any], int]:
        at += 1
        inner = skip_space(self.text, at)
        has_double_braces = self.text.startswith("{", inner)
        if has_double_braces:
            self.repairs.add("doubled braces")
            at = inner + 1
        result: dict[str, Any] = {}
        while not self._is_at_close(at, "}"):
            key, at = self._parse_key(at)
            result[key], at = self.parse_value(at)
            at = self._skip_comma(at, "}")
        at = self._skip_close(at)
        if has_double_braces and (end := skip_space(self.text, at)) < len(self.text) and self.text[end] == "}":
            at = end + 1
        return result, at

    def _parse_array(self, at: int) -> tuple[list[Any], int]:
        closing = "]" if self.text[at] == "[" else ")"
        if closing == ")":
            self.repairs.add("Python tuple")
        at += 1
        result: list[Any] = []
        while not self._is_at_close(at, closing):
            item, at = self.parse_value(at)
            result.append(item)
            at = self._skip_comma(at, closing)
        return result, self._skip_close(at)

    def _is_at_close(self, at: int, closing: str) -> bool:
        at = skip_space(self.text, at)
        if at >= len(self.text):
            self.repairs.is_unfinished = True
            self.repairs.missing_brackets += 1
            self.repairs.add("missing closing bracket added")
            return True
        if self.text[at] == closing:
            return True
        if self.text[at] in "}])":
            raise UnreadableText(f"{self.text[at]!r} appears where {closing!r} should")
        return False

    def _skip_close(self, at: int) -> int:
        return min(skip_space(self.text, at) + 1, len(self.text))

    def _skip_comma(self, at: int, closing: str) -> int:
        at = skip_space(self.text, at)
        if at >= len(self.text) or self.text[at] == closing:
            return at
        if self.text[at] not in _COMMAS:
            if self.text[at] in _CLOSING_QUOTE:
                self.repairs.add("missing comma added")
                return at
            raise UnreadableText(f"a comma should stand before {self.text[at : at + 30]!r}")
        if self.text[at] != ",":
            self.repairs.add("full-width punctuation")
        after = skip_space(self.text, at + 1)
        if after >= len(self.text):
            raise UnreadableText("the JSON ends after a comma", is_cut_off=True)
        if self.text[after] == closing:
            self.repairs.add("trailing comma dropped")
        return after

    def _parse_key(self, at: int) -> tuple[str, int]:
        at = skip_space(self.text, at)
        if self.text[at] in _CLOSING_QUOTE or self.text.startswith(_STRING_MARKS, at):
            key, at = self.parse_string(at, is_key=True)
        elif word := _WORD.match(self.text, at):
            self.repairs.add("unquoted key")
            key, at = word[0], word.end()
        else:
            raise UnreadableText(f"a key should stand at {self.text[at : at + 30]!r}")
        at = skip_space(self.text, at)
        if at >= len(self.text):
            raise UnreadableText("the JSON ends after a key", is_cut_off=True)
        if self.text[at] not in _COLONS:
            raise UnreadableText(f"a colon should stand after the key {key!r}")
        if self.text[at] != ":":
            self.repairs.add("full-width punctuation" if self.text[at] == "：" else "equals sign for colon")
        return key, at + 1

    def _parse_scalar(self, at: int) -> tuple[Any, int]:
        text = self.text
        if (number := _NUMBER.match(text, at)) and not _word_continues(text, number.end()):
            return self._parse_number(number[0]), self._check_text_end(number.end())
        word = _WORD.match(text, at)
        if word and word[0] in _LITERALS and not _word_continues(text, word.end()):
            if word[0][0].isupper():
                self.repairs.add("Python literal")
            return _LITERALS[word[0]], self._check_text_end(word.end())
        if self.allows_bare_words and (end := _find_bare_word_end(text, at)) > at:
            return text[at:end].strip(), end
        if word and word.end() >= len(text):
            raise UnreadableText("the JSON ends in the middle of a word", is_cut_off=True)
        raise UnreadableText(f"{text[at : at + 30]!r} is not a JSON value")

    def _check_text_end(self, end: int) -> int:
        if end >= len(self.text):
            self.repairs.is_unfinished = True
        return end

    def _parse_number(self, text: str) -> int | float | str:
        """Parse a number.

        Return it as text if it has leading zeros, as account numbers do. The schema decides its type.
        """
        try:
            return parse_json(text)  # type: ignore[no-any-return]
        except ValueError:
            digits = text.replace("_", "")
        if digits[0] == "0" and digits.isdigit():
            return digits
        self.repairs.add("number rewritten")
        value = float(digits)
        if not math.isfinite(value):
            raise UnreadableText(f"{text} is too large a number")
        return int(digits) if digits.lstrip("+-").isdigit() and len(digits) < 300 else value

    def parse_string(self, at: int, is_key: bool = False) -> tuple[str, int]:
        """Parse the string at `at`, in any kind of quotation marks."""
        for mark in _STRING_MARKS:
            if self.text.startswith(mark, at):
                return self._parse_marked_string(at + len(mark), mark)
        quote = self.text[at]
        if quote not in _CLOSING_QUOTE:
            raise UnreadableText(f"{self.text[at : at + 30]!r} is not a JSON value")
        if quote in "\"'" and self.text.startswith(quote * 3, at):
            value, at = self._parse_marked_string(at + 3, quote * 3)
            self.repairs.add("triple quotes")
            return value, at
        if quote != '"':
            self.repairs.add("single quotes" if quote == "'" else "other quotation marks")
        return self._parse_quoted(at + 1, quote, is_key)

    def _parse_marked_string(self, at: int, mark: str) -> tuple[str, int]:
        end = self.text.find(mark, at)
        if end < 0:
            raise UnreadableText("the text ends in the middle of a string", is_cut_off=True)
        return self.text[at:end], end + len(mark)

    def _parse_quoted(self, at: int, quote: str, is_key: bool) -> tuple[str, int]:
        text, closing, plain = self.text, _CLOSING_QUOTE[quote], _PLAIN_CHARACTERS[quote]
        parts: list[str] = []
        while at < len(text):
            if match := plain.match(text, at):
                parts.append(match[0])
                at = match.end()
                continue
            if text[at] == "\\":
                character, at = self._parse_escape(at)
                parts.append(character)
                continue
            if _string_may_end(text, at + 1, is_key):
                return self._note_line_breaks("".join(parts)), at + 1
            self.repairs.add("unescaped quotation mark")
            parts.append(closing)
            at += 1
        raise UnreadableText("the text ends in the middle of a string", is_cut_off=True)

    def _note_line_breaks(self, value: str) -> str:
        if "\n" in value:
            self.repairs.add("raw line break in a string")
        return value

    def _parse_escape(self, at: int) -> tuple[str, int]:
        text = self.text
        if at + 1 >= len(text):
            raise UnreadableText("the text ends in the middle of a string", is_cut_off=True)
        char = text[at + 1]
        if char == "u" and (digits := _HEX4.match(text, at + 2)):
            return self._parse_unicode_escape(int(digits[0], 16), digits.end())
        if char in _ESCAPES:
            return _ESCAPES[char], at + 2
        self.repairs.add("unknown escape left unchanged")
        return "\\" + char, at + 2

    def _parse_unicode_escape(self, code: int, at: int) -> tuple[str, int]:
        if 0xD800 <= code < 0xDC00 and self.text.startswith("\\u", at) and (low := _HEX4.match(self.text, at + 2)):
            second = int(low[0], 16)
            if 0xDC00 <= second < 0xE000:
                return chr(0x10000 + ((code - 0xD800) << 10) + second - 0xDC00), low.end()
        if 0xD800 <= code < 0xE000:
            self.repairs.add("lone surrogate replaced")
            return "\ufffd", at
        return chr(code), at


def _word_continues(text: str, at: int) -> bool:
    return at < len(text) and (text[at].isalnum() or text[at] in "_.-+%$")


def _find_bare_word_end(text: str, at: int) -> int:
    end = at
    while end < len(text) and text[end] not in ",{}[]()\n":
        end += 1
    return end


def _string_may_end(text: str, at: int, is_key: bool) -> bool:
    """Return whether a quotation mark before `at` can end a string."""
    return (_AFTER_KEY if is_key else _AFTER_STRING).match(text, at) is not None


_AFTER_KEY = re.compile(r"\s*(?:[:：=]|\Z)")
_AFTER_STRING = re.compile(r"""\s*(?:[}\])]|[,，、]\s*(?![,，、\s])|\Z)|[^\S\n]*\n\s*["'][\w .$-]{1,64}["']\s*:""")
"""What may follow a string: a bracket, a comma, the end, or (if a comma is missing) a key on the next line."""
