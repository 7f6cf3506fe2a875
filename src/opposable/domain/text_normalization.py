"""Text normalization: case and width folding, word splitting, singular forms and similarity."""

import re
import unicodedata
from collections.abc import Callable, Iterable

CHINESE_CHARACTERS = "\u3400-\u9fff\uf900-\ufaff"
"""Chinese characters, as ranges for a regular expression's character class."""

CJK_CHARACTERS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
"""Chinese, Japanese and Korean characters, as ranges for a character class."""

_CAMEL_CASE_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NAME_BOUNDARY = re.compile(_CAMEL_CASE_BOUNDARY.pattern + r"|(?<=[A-Za-z])(?=\d)")
_CJK_RUN = re.compile(rf"[{CJK_CHARACTERS}]+")
_WORD_OR_CJK_RUN = re.compile(rf"[{CJK_CHARACTERS}]+|[^\W_{CJK_CHARACTERS}]+")
_SEPARATORS = re.compile(r"[\W_]+")
_EMPTY_LINES = re.compile(r"\n\s*\n")
_STRUCTURED_LINE = re.compile(r"^(?: {4}|\t|[ \t]*(?:[-*+•>|`~#<]|\d+[.)][ \t]))", re.MULTILINE)
"""A line that is more than a part of a paragraph: of a list, a table, a quotation, a heading or code."""


def fold_text(text: str) -> str:
    """Fold case and width: NFKC, then `str.casefold`."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()


def normalize_text(text: str) -> str:
    """Fold `text` and replace each run of characters other than letters and digits by one space."""
    return " ".join(_SEPARATORS.sub(" ", fold_text(text)).split())


def unwrap_lines(text: str) -> str:
    """Join the lines of each paragraph of plain text. Lists, tables and code keep their lines."""
    text = text.strip()
    if "\n" not in text:
        return " ".join(text.split())
    if "```" in text:
        return text
    paragraphs = (part.strip("\n") for part in _EMPTY_LINES.split(text))
    return "\n\n".join(part if _STRUCTURED_LINE.search(part) else " ".join(part.split()) for part in paragraphs)


def shorten_text(text: str, max_characters: int) -> str:
    """Return the text, or its beginning and "…"."""
    return text if len(text) <= max_characters else f"{text[:max_characters]}…"


def remove_separators(text: str) -> str:
    """Return the letters and digits of `text`, casefolded."""
    return _SEPARATORS.sub("", text.casefold())


def lowercase_halfwidth(text: str) -> str:
    """Lowercase `text` and make full-width signs half-width, keeping the position of every character."""
    return "".join(_lowercase_character(char) for char in text)


def _lowercase_character(char: str) -> str:
    if "！" <= char <= "～":
        return chr(ord(char) - 0xFEE0).lower()
    lower = char.lower()
    return lower if len(lower) == 1 else char


def singularize(word: str) -> str:
    """Remove the plural ending of a lowercase English word."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("ches", "shes", "sses", "xes", "zes")):
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def split_camel_case(text: str) -> str:
    """Insert a space at each camelCase boundary: `HTTPStatus` becomes `HTTP Status`."""
    return _CAMEL_CASE_BOUNDARY.sub(" ", text)


def split_identifier(name: str) -> list[str]:
    """Split an identifier into singular lowercase words, at separators, digits and camelCase boundaries."""
    parts = _NAME_BOUNDARY.split(name)
    return [singularize(word) for part in parts for word in extract_index_words(normalize_text(part))]


def split_bigrams(text: str) -> list[str]:
    """Split `text` into overlapping pairs of characters; a single character is returned alone."""
    return [text[i : i + 2] for i in range(len(text) - 1)] or [text]


def extract_index_words(text: str) -> list[str]:
    """Return the words of normalized text, with runs of CJK characters as bigrams."""
    words: list[str] = []
    for word in _WORD_OR_CJK_RUN.findall(text):
        if _CJK_RUN.match(word):
            words += split_bigrams(word)
        else:
            words.append(word)
    return words


def compute_edit_distance(first: str, second: str) -> int:
    """Count the insertions, deletions, replacements and swaps of neighbors that turn `first` into `second`."""
    row_before_last: list[int] = []
    last_row = list(range(len(second) + 1))
    for i, char in enumerate(first, 1):
        row = [i]
        for j, other in enumerate(second, 1):
            cost = min(row[j - 1] + 1, last_row[j] + 1, last_row[j - 1] + (char != other))
            if i > 1 and j > 1 and char == second[j - 2] and first[i - 2] == other:
                cost = min(cost, row_before_last[j - 2] + 1)
            row.append(cost)
        row_before_last, last_row = last_row, row
    return last_row[-1]


def find_close_names(name: str, candidates: Iterable[str], normalize: Callable[[str], str]) -> list[str]:
    """Return at most three candidates that are similar to `name` in the form of `normalize`, best first."""
    import difflib  # lazy: start-up time

    by_form = {normalize(candidate): candidate for candidate in candidates}
    return [by_form[form] for form in difflib.get_close_matches(normalize(name), by_form, n=3, cutoff=0.5)]
