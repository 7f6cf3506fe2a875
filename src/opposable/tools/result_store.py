"""Results too long to be told at once, put aside for the run that they belong to."""

from collections import OrderedDict

MOST_CHARACTERS = 32_000_000


class Shelf:
    """Texts by run and handle, the oldest going first beyond `most` characters in all."""

    def __init__(self, most: int = MOST_CHARACTERS) -> None:
        self._most = most
        self._kept: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._size = 0
        self._count = 0

    def put(self, run_id: str, text: str) -> str:
        """Put a text aside; gives its handle, "" where it is longer than the whole shelf."""
        if len(text) > self._most:
            return ""
        self._count += 1
        handle = f"result_{self._count}"
        self._kept[run_id, handle] = text
        self._size += len(text)
        while self._size > self._most:
            _, dropped = self._kept.popitem(last=False)
            self._size -= len(dropped)
        return handle

    def get(self, run_id: str, handle: str) -> str | None:
        """The whole text, for the run it belongs to; None for any other, and where it had to make room."""
        return self._kept.get((run_id, handle)) if run_id else None
