"""Long results: truncated for the model, and stored so that the rest can be read on."""

from collections import OrderedDict

from opposable.domain.language import Language
from opposable.tools import failure_messages

MAX_STORED_CHARACTERS = 32_000_000


class ResultStore:
    """Texts by scope (see `CallContext.result_scope`) and handle. Beyond `max_characters` in all, the oldest are removed."""

    def __init__(self, max_characters: int = MAX_STORED_CHARACTERS) -> None:
        self._max_characters = max_characters
        self._texts: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._total_characters = 0
        self._handle_count = 0

    def put(self, scope: str, text: str) -> str:
        """Store a text and return its handle; "" if the text alone is longer than `max_characters`."""
        if len(text) > self._max_characters:
            return ""
        self._handle_count += 1
        handle = f"result_{self._handle_count}"
        self._texts[scope, handle] = text
        self._total_characters += len(text)
        while self._total_characters > self._max_characters:
            _, removed = self._texts.popitem(last=False)
            self._total_characters -= len(removed)
        return handle

    def get(self, scope: str, handle: str) -> str | None:
        """Return the whole text to the scope that stored it; None to any other, and after its removal."""
        return self._texts.get((scope, handle)) if scope else None


def truncate_result(text: str, max_characters: int, language: Language, handle: str = "") -> tuple[str, int]:
    """Replace the middle of a long text by a note.

    Args:
        text: The whole text.
        max_characters: The number of characters to keep.
        language: The language of the note.
        handle: The handle under which the whole text is stored, if it is.

    Returns:
        The text, and the number of characters that were omitted.
    """
    if len(text) <= max_characters:
        return text, 0
    head = max_characters * 3 // 4
    tail = max_characters - head
    omitted = len(text) - max_characters
    note = failure_messages.truncation_note(omitted, len(text), language, handle, head)
    return f"{text[:head]}\n{note}\n{text[-tail:]}", omitted
