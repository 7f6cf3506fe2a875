"""A cache for the results of idempotent tools."""

import json
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeAlias
from uuid import uuid4

import orjson

from opposable.domain.content import DictWithMedia
from opposable.domain.json_text import dump_json, parse_json

CacheKey: TypeAlias = tuple[int, str, str, str]
"""The serial number of a registration, a tool's id, the variant of its binding and context, and the arguments as `canonicalize_arguments` writes them."""

MAX_CACHED_CHARACTERS = 10_000_000


class ResultCache:
    """Results by key. Beyond `max_characters` in all, the least recently used ones are removed."""

    def __init__(self, clock: Callable[[], float], max_characters: int = MAX_CACHED_CHARACTERS) -> None:
        self._clock = clock
        self._max_characters = max_characters
        self._entries: OrderedDict[CacheKey, tuple[float, str, str | None]] = OrderedDict()
        self._total_characters = 0

    def get(self, key: CacheKey) -> tuple[str, Any] | None:
        """Return the text and a new copy of the value of a result, None if it is missing or expired."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        expires_at, text, value_json = entry
        if expires_at <= self._clock():
            self._remove(key)
            return None
        self._entries.move_to_end(key)
        return text, text if value_json is None else parse_json(value_json)

    def put(self, key: CacheKey, text: str, data: Any, seconds: float) -> None:
        """Store a result for `seconds`."""
        if key in self._entries:
            self._remove(key)
        value_json = None if isinstance(data, str) or not _is_json(text) else text
        if isinstance(data, DictWithMedia) and data.text:
            value_json = dump_json(data).decode()
        self._entries[key] = (self._clock() + seconds, text, value_json)
        self._total_characters += len(text) + len(key[-1])
        while self._total_characters > self._max_characters:
            self._remove(next(iter(self._entries)))

    def _remove(self, key: CacheKey) -> None:
        self._total_characters -= len(self._entries.pop(key)[1]) + len(key[-1])


def _is_json(text: str) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def canonicalize_arguments(arguments: dict[str, Any]) -> str:
    """Return a text that is equal for equal arguments in any order, and only for those.

    Arguments that are nested too deeply, some 900 lists deep, are equal to no others.
    """
    try:
        return json.dumps(arguments, sort_keys=True, default=repr)
    except (RecursionError, ValueError):  # ValueError: a number of more than 4,300 digits
        return uuid4().hex
