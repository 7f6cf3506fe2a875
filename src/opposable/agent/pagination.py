"""What a result says of how it goes on: a list's next page, the next of a chain; and whether a request wants it all."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from opposable.domain.language import NUMBER_WORDS

_WHOLE = re.compile(
    r"\b(?:all|every|everything|each|whole|entire|complete|total|sum|count|average|how many|how much|until|last|latest|"
    r"final|most|least|highest|lowest|largest|smallest|biggest|oldest|newest|cheapest)\b|"
    r"全部|所有|每|最后|最[大小高低新旧早晚多少贵长短近远]|一共|总|多少|统计|平均|逐|直到",
    re.IGNORECASE,
)
"""Words of a request that is about the whole of something, or about one that only the whole tells."""

_DIGITS = "两二三四五六七八九十"
_COUNT = re.compile(
    rf"\b({'|'.join(NUMBER_WORDS[2:])}|\d{{1,3}}) (?:[a-z]+ )?[a-z]+s\b|(十?[{_DIGITS}]|\d{{1,3}}) ?[个条次页张份间扇封件项]",
    re.IGNORECASE,
)
"""How many of something."""

_NEXT = r"(?:\bnext\b|下一[个页步条项扇]?)[^.。\n]{0,40}?"
_READ = 2_000
"""Characters of a request or result that are looked at."""
_INNER = ("pagination", "paging", "page_info", "pageinfo", "meta", "metadata", "links")
"""Where a result may keep how it goes on."""


def wants_all(request: str) -> bool:
    """Whether a request is about the whole of something, or about one that only the whole tells."""
    return _WHOLE.search(request[:_READ]) is not None


def wanted(request: str) -> int:
    """How many of something a request is about, at most; 1 where it does not say."""
    return max((_count(english or chinese) for english, chinese in _COUNT.findall(request[:_READ])), default=1)


def next_page(arguments: Mapping[str, Any], parameters: Mapping[str, Any], data: Any) -> dict[str, Any] | None:
    """The arguments with which a call goes on where its result `data` names the next page; None where it names none.

    `parameters` is the tool's JSON Schema: a result's `next_page`, `nextCursor`, `next_page_token` is the next value of
    its parameter `page`, `cursor`, `page_token`, and `has_more` says that there is one more `page` or `offset`.
    """
    if not isinstance(data, dict):
        return None
    names = {_plain(name): name for name in parameters.get("properties") or {}}
    for field, value in _fields(data):
        name = names.get(_plain(field).removeprefix("next")) if _plain(field).startswith("next") else None
        if name is not None and isinstance(value, str | int) and not isinstance(value, bool) and value != "":
            return None if arguments.get(name) == value else {**arguments, name: value}
    page = names.get("page")
    if page is None or not any(_plain(field) == "hasmore" and value is True for field, value in _fields(data)):
        return None
    now = arguments.get(page, 1)
    return {**arguments, page: now + 1} if type(now) is int else None


def next_named(arguments: Mapping[str, Any], said: str) -> dict[str, str]:
    """The argument that a result names as the next one, alike but for its numbers: door-14 behind door-7."""
    for name, value in arguments.items():
        if not isinstance(value, str) or not any(character.isdigit() for character in value) or len(value) > 100:
            continue
        alike = r"\d+".join(re.escape(part) for part in re.split(r"\d+", value))
        found = re.search(rf"{_NEXT}(?<![A-Za-z0-9_-])({alike})(?![A-Za-z0-9_-])", said[:_READ], re.IGNORECASE)
        if found and found[1] != value:
            return {name: found[1]}
    return {}


def _count(said: str) -> int:
    if said.isdigit():
        return int(said)
    if said.lower() in NUMBER_WORDS:
        return NUMBER_WORDS.index(said.lower())
    value = max(_DIGITS.index(said[-1]) + 1, 2)
    return value + 10 if len(said) == 2 else value


def _fields(data: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    yield from data.items()
    for name in data:
        if _plain(name) in map(_plain, _INNER) and isinstance(data[name], dict):
            yield from data[name].items()


def _plain(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.lower())
