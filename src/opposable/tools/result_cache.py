"""Results of idempotent tools, kept for a while."""

import json
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeAlias

import orjson

CacheKey: TypeAlias = tuple[str, str, str]
"""A tool's id, what tells a binding apart, and the arguments as `canonical` writes them."""

MAX_CACHED_CHARACTERS = 10_000_000


class ResultCache:
    """Texts by key, the least recently used going first beyond `most` characters in all."""

    def __init__(self, clock: Callable[[], float], max_characters: int = MAX_CACHED_CHARACTERS) -> None:
        self._clock = clock
        self._max_characters = max_characters
        self._entries: OrderedDict[CacheKey, tuple[float, str, bool]] = OrderedDict()
        self._total_characters = 0

    def get(self, key: CacheKey) -> tuple[str, Any] | None:
        """The text and the value of a result, the value made anew; None where there is none or its time is over."""
        kept = self._entries.get(key)
        if kept is None:
            return None
        until, text, is_json = kept
        if until <= self._clock():
            self._drop(key)
            return None
        self._entries.move_to_end(key)
        return text, orjson.loads(text) if is_json else text

    def put(self, key: CacheKey, text: str, data: Any, seconds: float) -> None:
        """Keep a result for `seconds`."""
        if key in self._entries:
            self._drop(key)
        self._entries[key] = (self._clock() + seconds, text, not isinstance(data, str) and _is_json(text))
        self._total_characters += len(text) + len(key[2])
        while self._total_characters > self._max_characters:
            self._drop(next(iter(self._entries)))

    def _drop(self, key: CacheKey) -> None:
        self._total_characters -= len(self._entries.pop(key)[1]) + len(key[2])


def _is_json(text: str) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def canonicalize_arguments(arguments: dict[str, Any]) -> str:
    """Arguments as text that is the same for the same arguments in any order, and for no others."""
    return json.dumps(arguments, sort_keys=True, default=repr)
