"""Turns kept together, each once; runs of dead processes ended."""

from datetime import timedelta

import pytest

from opposable.domain.messages import assistant_message, user_message
from opposable.domain.records import Conversation, ConversationTurn, Run, get_utc_now
from opposable.store.factory import open_store

pytestmark = pytest.mark.anyio


def make_turn(turn_id: str, conversation_id: str = "v1", owner: str = "ann") -> ConversationTurn:
    return ConversationTurn(
        turn_id, Conversation(conversation_id, owner, "a", "hi"), (user_message(turn_id), assistant_message("好"))
    )


async def test_turns_of_several_conversations_are_kept_together(tmp_path):
    async with open_store(f"sqlite:///{tmp_path}/s.sqlite") as store:
        assert (
            await store.conversations.append_turns([make_turn("t1"), make_turn("t2", "v2"), make_turn("t3")])
            == frozenset()
        )
        assert [m.content for m in await store.conversations.list_messages("v1")] == ["t1", "好", "t3", "好"]
        assert (await store.conversations.get("v2")).messages == 2


async def test_a_turn_tried_again_is_kept_once(tmp_path):
    async with open_store(f"sqlite:///{tmp_path}/s.sqlite") as store:
        await store.conversations.append_turns([make_turn("t1")])
        await store.conversations.append_turns([make_turn("t1"), make_turn("t2")], skip_existing=True)
        assert [m.content for m in await store.conversations.list_messages("v1")] == ["t1", "好", "t2", "好"]
        assert (await store.conversations.get("v1")).messages == 4


async def test_a_turn_for_anothers_conversation_is_refused(tmp_path):
    async with open_store(f"sqlite:///{tmp_path}/s.sqlite") as store:
        await store.conversations.append_turns([make_turn("t1")])
        assert await store.conversations.append_turns([make_turn("t2", owner="bob"), make_turn("t3")]) == {"t2"}
        assert [m.content for m in await store.conversations.list_messages("v1")] == ["t1", "好", "t3", "好"]


async def test_runs_of_the_dead_are_ended_and_those_of_the_living_are_not(tmp_path):
    async with open_store(f"sqlite:///{tmp_path}/s.sqlite") as store:
        await store.workers.record_heartbeat("alive")
        runs = [
            Run("r1", get_utc_now(), worker="dead"),
            Run("r2", get_utc_now(), worker="alive"),
            Run("r3", get_utc_now(), "finished", worker="dead"),
        ]
        await store.runs.save(*runs)
        assert list(await store.workers.fail_lost_runs(timedelta(seconds=10))) == ["r1"]
        assert [(await store.runs.get(one)).status for one in ("r1", "r2", "r3")] == ["failed", "running", "finished"]
        assert [event.data["kind"] for event in await store.runs.list_events("r1")] == ["Lost"]
        assert not await store.workers.fail_lost_runs(timedelta(seconds=10))
