"""A replay adds no event twice."""

import pytest

from opposable.domain.records import RunEvent, get_utc_now
from opposable.durable.run_events import DurableEventLog

pytestmark = pytest.mark.anyio

CALL = {"call_id": "c1", "name": "add"}


class Recorded:
    def __init__(self):
        self.events = []

    def record(self, event):
        self.events.append(event)


def create_events(*kinds_and_data):
    return tuple(RunEvent("r", n, kind, data, get_utc_now()) for n, (kind, data) in enumerate(kinds_and_data, 1))


async def test_a_replay_continues_after_the_recorded_events():
    recorder = Recorded()
    stored = create_events(
        ("run_started", {}), ("text", {"content": "par"}), ("model_replied", {"turn": 1}), ("tool_started", CALL)
    )
    log = DurableEventLog("r", recorder, stored)
    log.append("run_started", {})
    log.append("model_replied", {"turn": 1})
    log.append("tool_started", CALL)
    log.append("tool_finished", CALL)
    log.append("tool_started", CALL)  # the same id in a later turn
    log.close()
    new = [(event.sequence, event.kind) for event in recorder.events]
    assert new == [(5, "resumed"), (6, "tool_finished"), (7, "tool_started")]


async def test_takeovers_count_while_no_step_is_finished():
    resumed = ("resumed", {})
    for events, expected in (
        ([("run_started", {}), resumed, resumed], 2),
        ([("run_started", {}), resumed, ("model_replied", {"turn": 1}), resumed], 1),
        ([("run_started", {}), resumed, ("tool_finished", CALL)], 0),
    ):
        assert DurableEventLog("r", Recorded(), create_events(*events)).fruitless_takeovers == expected


async def test_the_text_is_known_by_reply_and_commentary_is_not_a_repetition():
    said = ("commentary", {"text": "Let me check."})
    text = ("text", {"content": "Par"})
    replied = ("model_replied", {"turn": 1})
    log = DurableEventLog("r", Recorded(), create_events(replied, said, text, ("resumed", {}), text))
    assert log.published_texts == ["", "ParPar"]
    log.append(*said)
    assert (log.events[-1].kind, log.events[-1].data) == said
