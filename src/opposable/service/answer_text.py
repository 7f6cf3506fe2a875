"""The text of a run's answer, separated from what the model writes before its calls."""

MAX_HELD_CHARACTERS = 200
"""Characters of a reply that are held until it is known whether calls follow. Longer text is published at once."""

SEPARATOR = "\n\n"


class AnswerText:
    """Decides which text deltas of a run belong to its answer.

    The published deltas, concatenated, always equal the text of the run. Text before calls ("Let me check.") is
    commentary, unless it is so long that it had to be published.
    """

    def __init__(self) -> None:
        self._earlier = ""  # published of earlier replies
        self._current = ""  # published of the current reply
        self._held = ""

    def add_delta(self, text: str) -> str:
        """Add a delta of the current reply, and return the text to publish now, or ""."""
        if self._current:
            self._current += text
            return text
        self._held += text
        return self._publish(self._held) if len(self._held) > MAX_HELD_CHARACTERS else ""

    def end_reply(self) -> str:
        """End a reply that is not the answer, and return its commentary, or ""."""
        commentary = self._held
        self._earlier += (SEPARATOR if self._earlier and self._current else "") + self._current
        self._held = self._current = ""
        return commentary

    def finish(self, text: str) -> tuple[str, str]:
        """End the run with the answer `text`. Return the rest to publish, and the text of the run."""
        if self._current:
            rest = text.removeprefix(self._current) if text.startswith(self._current) else ""
            self._current += rest
        else:
            rest = self._publish(text)
        return rest, self._earlier + (SEPARATOR if self._earlier else "") + self._current

    def _publish(self, text: str) -> str:
        self._held, self._current = "", text
        return SEPARATOR + text if self._earlier else text
