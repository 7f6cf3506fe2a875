"""Results of idempotent tools, kept for a while."""

import json
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeAlias

import orjson

Key: TypeAlias = tuple[str, str, str]
"""A tool's id, what tells a binding apart, and the arguments as `canonical` writes them."""

MOST_CHARACTERS = 10_000_000


class Cache:
    """Texts by key, the least recently used going first beyond `most` characters in all."""

    def __init__(self, clock: Callable[[], float], most: int = MOST_CHARACTERS) -> None:
        self._clock = clock
        self._most = most
        self._kept: OrderedDict[Key, tuple[float, str, bool]] = OrderedDict()
        self._size = 0

    def get(self, key: Key) -> tuple[str, Any] | None:
        """The text and the value of a result, the value made anew; None where there is none or its time is over."""
        kept = self._kept.get(key)
        if kept is None:
            return None
        until, text, is_json = kept
        if until <= self._clock():
            self._drop(key)
            return None
        self._kept.move_to_end(key)
        return text, orjson.loads(text) if is_json else text

    def put(self, key: Key, text: str, data: Any, seconds: float) -> None:
        """Keep a result for `seconds`."""
        if key in self._kept:
            self._drop(key)
        self._kept[key] = (self._clock() + seconds, text, not isinstance(data, str) and _is_json(text))
        self._size += len(text) + len(key[2])
        while self._size > self._most:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: Key) -> None:
        self._size -= len(self._kept.pop(key)[1]) + len(key[2])


def _is_json(text: str) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def canonical(arguments: dict[str, Any]) -> str:
    """Arguments as text that is the same for the same arguments in any order, and for no others."""
    return json.dumps(arguments, sort_keys=True, default=repr)
