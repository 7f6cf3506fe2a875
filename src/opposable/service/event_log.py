"""What a run has told so far: numbered, kept, and followed by whoever is listening."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

from opposable.domain.records import RunEvent, now

GAP = 0.05
"""Seconds in which pieces of one text are put together: the first piece is told at once."""

PIECES = {"text": "content", "thinking": "thinking", "tool_delta": "delta"}
"""The kinds of event that are pieces of a text, and where the piece stands."""


class RunLog:
    """The events of one run, numbered from 1 in the order they were told.

    `keep` is handed the events that are new, to be written; it must not block. Pieces of text that come faster than
    `GAP` are told together, so that a number stands for the same piece live and read again.
    """

    def __init__(self, run_id: str, keep: Callable[[Sequence[RunEvent]], None]) -> None:
        self.run_id = run_id
        self.events: list[RunEvent] = []
        self.ended = False
        self._keep = keep
        self._told = asyncio.Event()
        self._held: tuple[str, dict[str, Any]] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def tell(self, kind: str, data: dict[str, Any]) -> None:
        """Add an event."""
        if kind not in PIECES:
            self._release()
            self._add(kind, data)
            return
        if self._held is not None and self._held[0] == kind and self._held[1].get("call_id") == data.get("call_id"):
            self._held[1][PIECES[kind]] += data[PIECES[kind]]
            return
        self._release()
        if self._timer is None:
            self._add(kind, data)
            self._timer = asyncio.get_running_loop().call_later(GAP, self._due)
        else:
            self._held = (kind, dict(data))

    def end(self) -> None:
        """Nothing more will be told."""
        self._release()
        if self._timer is not None:
            self._timer.cancel()
        self.ended = True
        self._wake()

    async def follow(self, after: int = 0) -> AsyncGenerator[RunEvent, None]:
        """The events behind number `after`, as they come, until the run has ended."""
        seen = after
        while True:
            told = self._told
            for event in self.events[seen:]:
                seen = event.sequence
                yield event
            if self.ended and seen >= len(self.events):
                return
            if seen >= len(self.events):
                await told.wait()

    def _add(self, kind: str, data: dict[str, Any]) -> None:
        event = RunEvent(self.run_id, len(self.events) + 1, kind, data, now())
        self.events.append(event)
        self._keep((event,))
        self._wake()

    def _release(self) -> None:
        if self._held is not None:
            held, self._held = self._held, None
            self._add(*held)

    def _due(self) -> None:
        self._timer = None
        if self._held is not None:
            self._release()
            self._timer = asyncio.get_running_loop().call_later(GAP, self._due)

    def _wake(self) -> None:
        told, self._told = self._told, asyncio.Event()
        told.set()
