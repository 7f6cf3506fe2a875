"""Writes the events of a run to its event log."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from opposable.domain.events import Event, ModelReplied, RunFinished, RunStarted, TextDelta, ToolFinished
from opposable.domain.json_forms import event_to_json
from opposable.domain.records import Run, get_public_conversation_id
from opposable.service.answer_text import MAX_HELD_CHARACTERS, AnswerText


class EventWriter:
    """Writes the events of one run as JSON: the deltas of its answer as `text`, what comes before calls as `commentary`.

    Args:
        run: The run.
        append: Adds an event to the log, by its kind and data.
        holds_text: Whether the beginning of each reply is held until it is known to be no commentary.
        includes_data: Whether results have the values of tools too (`data`), where their texts are not the same.
        published: See `AnswerText`.
    """

    def __init__(
        self,
        run: Run,
        append: Callable[[str, dict[str, Any]], object],
        *,
        holds_text: bool = True,
        includes_data: bool = False,
        published: Iterable[str] = (),
    ) -> None:
        self._run = run
        self._append = append
        self._includes_data = includes_data
        self._answer_text = AnswerText(MAX_HELD_CHARACTERS if holds_text else 0, published)
        self._has_reply_ended = False  # the last event was a complete reply, which is the answer if the run ends now

    def write(self, event: Event) -> Event:
        """Write an event. Return it; the end of the run is returned with the whole published text."""
        if self._has_reply_ended and not isinstance(event, RunFinished):
            self._append_text("commentary", "text", self._answer_text.end_reply())
        self._has_reply_ended = isinstance(event, ModelReplied)
        if type(event) is TextDelta:
            self._append_text("text", "content", self._answer_text.add_delta(event.text))
            return event
        if type(event) is RunStarted:
            conversation_id = get_public_conversation_id(self._run.conversation_id)
            self._append("run_started", get_run_ids(self._run) | {"conversation_id": conversation_id})
            return event
        if type(event) is RunFinished:
            rest, text = self._answer_text.finish(event.text)
            self._append_text("text", "content", rest)
            event = replace(event, text=text)
        if (kind_and_data := event_to_json(event)) is not None:
            kind, data = kind_and_data
            if self._includes_data and type(event) is ToolFinished and event.result.data not in (None, data["result"]):
                data["data"] = event.result.data
            self._append(kind, data)
        return event

    def _append_text(self, kind: str, field: str, text: str) -> None:
        if text:
            self._append(kind, {field: text})


def get_run_ids(run: Run) -> dict[str, str]:
    """Return the ids of a run that its events and calls have."""
    return {
        "run_id": run.run_id,
        "conversation_id": run.conversation_id,
        "trace_id": run.trace_id,
        "agent_id": run.agent_id,
    }
