"""Pagination of results: next pages, chains, and requests that need a whole list."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from opposable.domain.language import NUMBER_WORDS

_WHOLE_LIST_PATTERN = re.compile(
    r"\b(?:all|every|everything|each|whole|entire|complete|total|sum|count|average|how many|how much|until|last|latest|"
    r"final|most|least|highest|lowest|largest|smallest|biggest|oldest|newest|cheapest)\b|"
    r"全部|所有|每|最后|最[大小高低新旧早晚多少贵长短近远]|一共|总|多少|统计|平均|逐|直到",
    re.IGNORECASE,
)
"""Words of a request that needs a whole list."""

_CHINESE_DIGITS = "两二三四五六七八九十"
_COUNT_PATTERN = re.compile(
    rf"\b({'|'.join(NUMBER_WORDS[2:])}|\d{{1,3}}) (?:[a-z]+ )?[a-z]+s\b|(十?[{_CHINESE_DIGITS}]|\d{{1,3}}) ?[个条次页张份间扇封件项]",
    re.IGNORECASE,
)
"""A number of items."""

_NEXT_PATTERN = r"(?:\bnext\b|下一[个页步条项扇]?)[^.。\n]{0,40}?"
_MAX_CHARACTERS_READ = 2_000
"""Characters of a request or a result that are read."""
_NESTED_FIELDS = ("pagination", "paging", "page_info", "pageinfo", "meta", "metadata", "links")
"""Objects of a result that can contain the next page."""


def is_about_whole_list(request: str) -> bool:
    """Return whether a request needs a whole list."""
    return _WHOLE_LIST_PATTERN.search(request[:_MAX_CHARACTERS_READ]) is not None


def count_requested_items(request: str) -> int:
    """Return how many items a request names; 1 if it names no number."""
    return max(
        (
            _parse_count(english or chinese)
            for english, chinese in _COUNT_PATTERN.findall(request[:_MAX_CHARACTERS_READ])
        ),
        default=1,
    )


def get_next_page_arguments(
    arguments: Mapping[str, Any], parameters: Mapping[str, Any], data: Any
) -> dict[str, Any] | None:
    """Return the arguments for the next page that a result names.

    None if it names none. `parameters` is the JSON Schema of the tool. Fields such as `next_page`, `nextCursor` and
    `has_more` are recognized.
    """
    if not isinstance(data, dict):
        return None
    names = {_normalize_name(name): name for name in parameters.get("properties") or {}}
    for field, value in _iter_fields(data):
        name = (
            names.get(_normalize_name(field).removeprefix("next"))
            if _normalize_name(field).startswith("next")
            else None
        )
        if name is not None and isinstance(value, str | int) and not isinstance(value, bool) and value != "":
            return None if arguments.get(name) == value else {**arguments, name: value}
    page = names.get("page")
    if page is None or not any(
        _normalize_name(field) == "hasmore" and value is True for field, value in _iter_fields(data)
    ):
        return None
    now = arguments.get(page, 1)
    return {**arguments, page: now + 1} if type(now) is int else None


def find_next_value(arguments: Mapping[str, Any], result_text: str) -> dict[str, str]:
    """Return the argument that a result names next, such as door-14 after door-7."""
    for name, value in arguments.items():
        if not isinstance(value, str) or not any(character.isdigit() for character in value) or len(value) > 100:
            continue
        alike = r"\d+".join(re.escape(part) for part in re.split(r"\d+", value))
        found = re.search(
            rf"{_NEXT_PATTERN}(?<![A-Za-z0-9_-])({alike})(?![A-Za-z0-9_-])",
            result_text[:_MAX_CHARACTERS_READ],
            re.IGNORECASE,
        )
        if found and found[1] != value:
            return {name: found[1]}
    return {}


def _parse_count(number_text: str) -> int:
    if number_text.isdigit():
        return int(number_text)
    if number_text.lower() in NUMBER_WORDS:
        return NUMBER_WORDS.index(number_text.lower())
    value = max(_CHINESE_DIGITS.index(number_text[-1]) + 1, 2)
    return value + 10 if len(number_text) == 2 else value


def _iter_fields(data: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    yield from data.items()
    for name in data:
        if _normalize_name(name) in map(_normalize_name, _NESTED_FIELDS) and isinstance(data[name], dict):
            yield from data[name].items()


def _normalize_name(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.lower())
