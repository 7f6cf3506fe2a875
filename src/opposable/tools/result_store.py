"""Results too long to be told at once, put aside for the run that they belong to."""

from collections import OrderedDict

MAX_STORED_CHARACTERS = 32_000_000


class ResultStore:
    """Texts by run and handle, the oldest going first beyond `most` characters in all."""

    def __init__(self, max_characters: int = MAX_STORED_CHARACTERS) -> None:
        self._max_characters = max_characters
        self._texts: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._total_characters = 0
        self._handle_count = 0

    def put(self, run_id: str, text: str) -> str:
        """Put a text aside; gives its handle, "" where it is longer than the whole shelf."""
        if len(text) > self._max_characters:
            return ""
        self._handle_count += 1
        handle = f"result_{self._handle_count}"
        self._texts[run_id, handle] = text
        self._total_characters += len(text)
        while self._total_characters > self._max_characters:
            _, dropped = self._texts.popitem(last=False)
            self._total_characters -= len(dropped)
        return handle

    def get(self, run_id: str, handle: str) -> str | None:
        """The whole text, for the run it belongs to; None for any other, and where it had to make room."""
        return self._texts.get((run_id, handle)) if run_id else None
