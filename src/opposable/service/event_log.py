"""The event log of a run, with live readers."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any

from opposable.domain.records import RunEvent, get_utc_now

DELTA_MERGE_SECONDS = 0.05
"""Seconds within which deltas of one text are merged into one event; the first delta is sent at once."""

DELTA_FIELDS = {"text": "content", "thinking": "thinking", "tool_delta": "delta"}
"""Kinds of event that carry a delta of a text, and the field of the delta."""


class RunEventLog:
    """The events of one run, numbered from 1.

    Deltas that arrive faster than `DELTA_MERGE_SECONDS` are merged before they are numbered, so that live readers and
    later readers see the same events.

    Args:
        run_id: The id of the run.
        on_append: Called with each new event, to record it. It must not block.
    """

    def __init__(self, run_id: str, on_append: Callable[[RunEvent], None]) -> None:
        self.run_id = run_id
        self.events: list[RunEvent] = []
        self.is_closed = False
        self._on_append = on_append
        self._update_signal = asyncio.Event()
        self._pending_delta: tuple[str, dict[str, Any]] | None = None
        self._merge_timer: asyncio.TimerHandle | None = None

    def append(self, kind: str, data: dict[str, Any]) -> None:
        """Add an event."""
        if kind not in DELTA_FIELDS:
            self._flush_pending_delta()
            self._append_event(kind, data)
            return
        if self._pending_delta is not None:
            pending_kind, pending_data = self._pending_delta
            if pending_kind == kind and pending_data.get("call_id") == data.get("call_id"):
                pending_data[DELTA_FIELDS[kind]] += data[DELTA_FIELDS[kind]]
                return
        self._flush_pending_delta()
        if self._merge_timer is None:
            self._append_event(kind, data)
            self._merge_timer = asyncio.get_running_loop().call_later(DELTA_MERGE_SECONDS, self._on_merge_timer)
        else:
            self._pending_delta = (kind, dict(data))

    def close(self) -> None:
        """Flush the pending delta and end every `follow`."""
        self._flush_pending_delta()
        if self._merge_timer is not None:
            self._merge_timer.cancel()
        self.is_closed = True
        self._notify_followers()

    async def follow(self, after: int = 0) -> AsyncGenerator[RunEvent, None]:
        """Yield the events after number `after`, past and future, until the log is closed."""
        last_sequence = after
        while True:
            update_signal = self._update_signal
            for event in self.events[last_sequence:]:
                last_sequence = event.sequence
                yield event
            if self.is_closed and last_sequence >= len(self.events):
                return
            if last_sequence >= len(self.events):
                await update_signal.wait()

    def _append_event(self, kind: str, data: dict[str, Any]) -> None:
        event = RunEvent(self.run_id, len(self.events) + 1, kind, data, get_utc_now())
        self.events.append(event)
        self._on_append(event)
        self._notify_followers()

    def _flush_pending_delta(self) -> None:
        if self._pending_delta is not None:
            pending_delta, self._pending_delta = self._pending_delta, None
            self._append_event(*pending_delta)

    def _on_merge_timer(self) -> None:
        self._merge_timer = None
        if self._pending_delta is not None:
            self._flush_pending_delta()
            self._merge_timer = asyncio.get_running_loop().call_later(DELTA_MERGE_SECONDS, self._on_merge_timer)

    def _notify_followers(self) -> None:
        update_signal, self._update_signal = self._update_signal, asyncio.Event()
        update_signal.set()
