"""The text of a run's answer, separated from what the model writes before its calls."""

from collections import deque
from collections.abc import Iterable

MAX_HELD_CHARACTERS = 200
"""Characters of a reply that are held until it is known whether calls follow. Longer text is published at once."""

SEPARATOR = "\n\n"


class AnswerText:
    """Decides which text deltas of a run belong to its answer.

    The published deltas, concatenated, always equal the text of the run. Text before calls ("Let me check.") is
    commentary, unless it is so long that it had to be published.

    Args:
        max_held: Characters of a reply that are held. 0 for a run without tools, or of a model that calls natively.
        published: What an earlier process published during each reply of the run, and after the last one. The replies
            follow again: the finished ones without their deltas, an unfinished one from its beginning.
    """

    def __init__(self, max_held: int = MAX_HELD_CHARACTERS, published: Iterable[str] = ()) -> None:
        self._max_held = max_held
        self._published = deque(published)
        self._earlier = ""  # published of earlier replies
        self._current: list[str] = []  # published of the current reply
        self._held = ""

    def add_delta(self, text: str) -> str:
        """Add a delta of the current reply, and return the text to publish now, or ""."""
        if self._current:
            self._current.append(text)
            return text
        self._held += text
        max_held = max(self._max_held, len(self._published[0]) if self._published else 0)
        return self._publish(self._held) if len(self._held) > max_held else ""

    def end_reply(self) -> str:
        """End a reply that is not the answer, and return its commentary, or ""."""
        commentary = self._held
        self._earlier = _join(self._earlier, "".join(self._current) or self._take_published(1))
        self._held, self._current = "", []
        return commentary

    def finish(self, text: str) -> tuple[str, str]:
        """End the run with the answer `text`. Return the rest to publish, and the text of the run."""
        if current := "".join(self._current):
            rest = text.removeprefix(current) if text.startswith(current) else ""
            self._current.append(rest)
        else:
            rest = self._publish(text, replies=len(self._published))
        return rest, _join(self._earlier, "".join(self._current))

    def _publish(self, text: str, replies: int = 1) -> str:
        """Return what is not published yet of the beginning of a reply."""
        self._held = ""
        published = self._take_published(replies)
        if published and text.startswith(published):
            self._current = [text]
            return text.removeprefix(published)
        if published == text or published.endswith(SEPARATOR + text):
            self._current = [published]
            return ""
        self._earlier = _join(self._earlier, published)  # the repeated reply differs
        self._current = [text]
        return SEPARATOR + text if self._earlier else text

    def _take_published(self, replies: int) -> str:
        """Return what an earlier process published during the next replies."""
        published = "".join(self._published.popleft() for _ in range(min(replies, len(self._published))))
        return published.removeprefix(SEPARATOR) if self._earlier else published


def _join(earlier: str, text: str) -> str:
    return earlier + SEPARATOR + text if earlier and text else earlier or text
