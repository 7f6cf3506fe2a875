"""What a run has told so far: numbered, kept, and followed by whoever is listening."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

from opposable.domain.records import RunEvent, get_utc_now

DELTA_MERGE_SECONDS = 0.05
"""Seconds in which pieces of one text are put together: the first piece is told at once."""

DELTA_FIELDS = {"text": "content", "thinking": "thinking", "tool_delta": "delta"}
"""The kinds of event that are pieces of a text, and where the piece stands."""


class RunEventLog:
    """The events of one run, numbered from 1 in the order they were told.

    `keep` is handed the events that are new, to be written; it must not block. Pieces of text that come faster than
    `GAP` are told together, so that a number stands for the same piece live and read again.
    """

    def __init__(self, run_id: str, on_append: Callable[[Sequence[RunEvent]], None]) -> None:
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
        if (
            self._pending_delta is not None
            and self._pending_delta[0] == kind
            and self._pending_delta[1].get("call_id") == data.get("call_id")
        ):
            self._pending_delta[1][DELTA_FIELDS[kind]] += data[DELTA_FIELDS[kind]]
            return
        self._flush_pending_delta()
        if self._merge_timer is None:
            self._append_event(kind, data)
            self._merge_timer = asyncio.get_running_loop().call_later(DELTA_MERGE_SECONDS, self._on_merge_timer)
        else:
            self._pending_delta = (kind, dict(data))

    def close(self) -> None:
        """Nothing more will be told."""
        self._flush_pending_delta()
        if self._merge_timer is not None:
            self._merge_timer.cancel()
        self.is_closed = True
        self._notify_followers()

    async def follow(self, after: int = 0) -> AsyncGenerator[RunEvent, None]:
        """The events behind number `after`, as they come, until the run has ended."""
        seen = after
        while True:
            told = self._update_signal
            for event in self.events[seen:]:
                seen = event.sequence
                yield event
            if self.is_closed and seen >= len(self.events):
                return
            if seen >= len(self.events):
                await told.wait()

    def _append_event(self, kind: str, data: dict[str, Any]) -> None:
        event = RunEvent(self.run_id, len(self.events) + 1, kind, data, get_utc_now())
        self.events.append(event)
        self._on_append((event,))
        self._notify_followers()

    def _flush_pending_delta(self) -> None:
        if self._pending_delta is not None:
            held, self._pending_delta = self._pending_delta, None
            self._append_event(*held)

    def _on_merge_timer(self) -> None:
        self._merge_timer = None
        if self._pending_delta is not None:
            self._flush_pending_delta()
            self._merge_timer = asyncio.get_running_loop().call_later(DELTA_MERGE_SECONDS, self._on_merge_timer)

    def _notify_followers(self) -> None:
        told, self._update_signal = self._update_signal, asyncio.Event()
        told.set()
