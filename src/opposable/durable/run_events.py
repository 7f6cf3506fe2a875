"""The events of a run that several processes may execute one after another."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from opposable.domain.records import RunEvent
from opposable.service.event_log import DELTA_FIELDS, RunEventLog
from opposable.store.recorder import Recorder

RESUMED_KIND = "resumed"
"""Kind of the event that a takeover adds: an unfinished reply before it is streamed again."""

COMMENTARY_KIND = "commentary"
"""Kind of the event with what a model writes before its calls."""

PROGRESS_KINDS = ("model_replied", "tool_finished", "approval_decided")
"""Kinds of events that show progress."""


class DurableEventLog:
    """Numbers the events of a run and records them.

    A replay yields the events of the finished steps again. Those that an earlier process recorded are skipped.

    Args:
        run_id: The id of the run.
        recorder: Writes the events.
        recorded: The events that are stored already, in order.

    Attributes:
        fruitless_takeovers: How many processes in a row have taken over the run without finishing a step.
        published_texts: The text of the answer that is recorded, by the number of replies that had ended.
    """

    def __init__(self, run_id: str, recorder: Recorder, recorded: Sequence[RunEvent]) -> None:
        self._log = RunEventLog(run_id, recorder.record)
        self._log.events.extend(recorded)
        self._recorded = Counter(
            _get_key(event.kind, event.data)
            for event in recorded
            if event.kind not in (*DELTA_FIELDS, COMMENTARY_KIND)  # a replay has no deltas, hence no commentary
        )
        self.published_texts = _get_published_texts(recorded)
        self.fruitless_takeovers = _count_fruitless_takeovers(recorded)
        if recorded:
            self._log.append(RESUMED_KIND, {})

    @property
    def events(self) -> Sequence[RunEvent]:
        """The events so far, those of earlier processes included."""
        return self._log.events

    def append(self, kind: str, data: dict[str, Any]) -> None:
        """Add an event, unless an earlier process recorded it."""
        key = _get_key(kind, data)
        if self._recorded[key] > 0:
            self._recorded[key] -= 1
        else:
            self._log.append(kind, data)

    def close(self) -> None:
        """Record the pending delta."""
        self._log.close()


def _count_fruitless_takeovers(recorded: Sequence[RunEvent]) -> int:
    """Return how many processes in a row have taken over the run without finishing a step."""
    count = 0
    for event in reversed(recorded):
        if event.kind in PROGRESS_KINDS:
            break
        count += event.kind == RESUMED_KIND
    return count


def _get_published_texts(recorded: Sequence[RunEvent]) -> list[str]:
    """Return the text deltas before the end of the first reply, of the second one, … and after the last one."""
    texts = [""]
    for event in recorded:
        if event.kind == "model_replied":
            texts.append("")
        elif event.kind == "text":
            texts[-1] += event.data["content"]
    return texts


def _get_key(kind: str, data: dict[str, Any]) -> tuple[str, str]:
    """Return what identifies an event of a run, except for its repetition."""
    return kind, str(data.get("approval_id") or data.get("call_id") or data.get("turn") or "")
