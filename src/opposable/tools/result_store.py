"""Long results: truncated for the model, and stored so that the rest can be read on."""

from collections import OrderedDict
from secrets import token_hex

from opposable.domain.call_context import ResultScope
from opposable.domain.language import Language
from opposable.tools import failure_messages
from opposable.tools.disclosure import DEFAULT_CONTEXT_TOKENS

MAX_STORED_CHARACTERS = 32_000_000
MIN_RESULT_CHARACTERS, MAX_RESULT_BYTES = 20_000, 100_000
"""The smallest and the largest default limit of a result. In UTF-8, 4 bytes are about a token in most languages."""


class ResultStore:
    """Texts by scope and handle. Beyond `max_characters` in all, the oldest are removed."""

    def __init__(self, max_characters: int = MAX_STORED_CHARACTERS) -> None:
        self._max_characters = max_characters
        self._texts: OrderedDict[tuple[ResultScope, str], str] = OrderedDict()
        self._total_characters = 0

    def put(self, scope: ResultScope, text: str) -> str:
        """Store a text and return its handle; "" if the text alone is longer than `max_characters`.

        The handle is random: after a restart, one in the history of a conversation must not mean another text.
        """
        if len(text) > self._max_characters:
            return ""
        handle = f"result_{token_hex(4)}"
        self._texts[scope, handle] = text
        self._total_characters += len(text)
        while self._total_characters > self._max_characters:
            _, removed = self._texts.popitem(last=False)
            self._total_characters -= len(removed)
        return handle

    def get(self, scope: ResultScope, handle: str) -> str | None:
        """Return the whole text to the scope that stored it; None to any other, and after its removal."""
        return self._texts.get((scope, handle)) if scope else None


def get_max_characters(text: str, context_window: int | None) -> int:
    """Return how many characters of a result a model gets at once, with a context window of this many tokens."""
    if len(text) <= MIN_RESULT_CHARACTERS:
        return MIN_RESULT_CHARACTERS
    max_bytes = min(context_window or DEFAULT_CONTEXT_TOKENS, MAX_RESULT_BYTES)
    return max(MIN_RESULT_CHARACTERS, max_bytes * len(text) // len(text.encode("utf-8", "replace")))


def truncate_result(text: str, max_characters: int, language: Language, handle: str = "") -> tuple[str, int]:
    """Replace the middle of a text that is longer than `max_characters` by a note.

    The note has the handle under which the whole text is stored, if it is.

    Returns:
        The text, and the number of characters that were omitted.
    """
    head = max_characters * 3 // 4
    tail = max_characters - head
    omitted = len(text) - max_characters
    note = failure_messages.truncation_note(omitted, len(text), language, handle, head)
    return f"{text[:head]}\n{note}\n{text[-tail:]}", omitted
