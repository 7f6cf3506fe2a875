"""Conversations and rate limits behave the same in SQLite, PostgreSQL and Valkey."""

import asyncio
from uuid import uuid4

import pytest
from tests.store.records import MESSAGES

from opposable.domain.errors import BadInput
from opposable.domain.messages import assistant_message, user_message
from opposable.domain.records import Conversation, ConversationTurn
from opposable.domain.specs import (
    RateLimit,
)
from opposable.store import open_store

pytestmark = pytest.mark.anyio


async def append(conversations, conversation, messages=()):
    """Append a turn; each call is a turn of its own."""
    turn = ConversationTurn(str(uuid4()), conversation, tuple(messages))
    return await conversations.append_turns([turn])


async def test_messages_are_returned_in_order(any_store):
    conversations = any_store.conversations
    conversation = Conversation("c", "owner", "agent", "标题")
    await append(conversations, conversation)
    created = await conversations.get("c")
    assert (created.owner, created.agent_id, created.title, created.messages) == ("owner", "agent", "标题", 0)
    assert created.created_at == created.updated_at
    await append(conversations, conversation, MESSAGES[:2])
    await append(conversations, conversation, MESSAGES[2:])
    assert await conversations.list_messages("c") == MESSAGES
    assert await conversations.list_messages("c", start=3) == MESSAGES[3:]
    stored = await conversations.get("c")
    assert (stored.messages, stored.created_at) == (5, created.created_at)
    assert stored.updated_at >= created.updated_at


async def test_unknown_conversation_has_no_messages(any_store):
    assert await any_store.conversations.get("d") is None
    assert await any_store.conversations.list_messages("d") == ()


async def test_concurrent_turns_keep_their_messages_together(any_store):
    turns = [tuple(user_message(f"{number}.{part}") for part in range(3)) for number in range(12)]
    await asyncio.gather(*(append(any_store.conversations, Conversation("c"), turn) for turn in turns))
    stored_messages = await any_store.conversations.list_messages("c")
    assert len(stored_messages) == 36
    assert {stored_messages[at : at + 3] for at in range(0, 36, 3)} == set(turns)


async def test_conversations_are_listed_by_owner_last_changed_first(any_store):
    conversations = any_store.conversations
    for number in range(7):
        await append(conversations, Conversation(f"c{number}", "一" if number % 2 else "two"))
    await append(conversations, Conversation("c0", "two"), MESSAGES)
    expected = ["c0", "c6", "c5", "c4", "c3", "c2", "c1"]
    after, pages = "", []
    while True:
        page = await conversations.list(after=after, limit=3)
        pages.append([conversation.conversation_id for conversation in page.items])
        after = page.next_cursor
        if not after:
            break
    assert pages == [expected[:3], expected[3:6], expected[6:]]
    assert [conversation.conversation_id for conversation in (await conversations.list("一")).items] == [
        "c5",
        "c3",
        "c1",
    ]
    assert (await conversations.list("other")).items == ()
    with pytest.raises(BadInput, match="The cursor"):
        await conversations.list(after="x")


async def test_deleted_conversation_has_no_messages(any_store):
    conversations = any_store.conversations
    await append(conversations, Conversation("c", "o"), MESSAGES)
    assert await conversations.delete("c")
    assert not await conversations.delete("c")
    assert await conversations.get("c") is None
    assert await conversations.list_messages("c") == ()
    assert (await conversations.list("o")).items == (await conversations.list()).items == ()
    await append(conversations, Conversation("c"))
    assert await conversations.list_messages("c") == ()


async def test_rate_limit_counts_each_key_separately(any_store):
    limit = RateLimit(calls=3, seconds=60)
    answers = [await any_store.limiter.hit("钥匙", limit) for _ in range(4)]
    assert [answer.allowed for answer in answers] == [True, True, True, False]
    assert answers[2].retry_after == 0
    assert 0 < answers[3].retry_after <= 61
    assert (await any_store.limiter.hit("other", limit, cost=3)).allowed
    assert not (await any_store.limiter.hit("other", limit)).allowed
    assert not (await any_store.limiter.hit("third", limit, cost=4)).allowed


async def test_rate_limit_of_a_fraction_of_a_second_keeps_its_rate(any_store, request):
    answers = [await any_store.limiter.hit("k", RateLimit(calls=2, seconds=0.5)) for _ in range(5)]
    # Valkey counts in whole seconds: 4 calls in 1 s have the rate of 2 calls in 0.5 s.
    allowed = 4 if request.node.callspec.params["any_store"] == "valkey" else 2
    assert [answer.allowed for answer in answers[:allowed]] == [True] * allowed


def make_turn(turn_id: str, conversation_id: str = "v1", owner: str = "ann") -> ConversationTurn:
    return ConversationTurn(
        turn_id, Conversation(conversation_id, owner, "a", "hi"), (user_message(turn_id), assistant_message("好"))
    )


async def test_turns_of_several_conversations_are_appended_together(tmp_path):
    async with open_store(f"sqlite:///{tmp_path}/s.sqlite") as store:
        assert (
            await store.conversations.append_turns([make_turn("t1"), make_turn("t2", "v2"), make_turn("t3")])
            == frozenset()
        )
        assert [m.content for m in await store.conversations.list_messages("v1")] == ["t1", "好", "t3", "好"]
        assert (await store.conversations.get("v2")).messages == 2


async def test_retried_turn_is_appended_once(tmp_path):
    async with open_store(f"sqlite:///{tmp_path}/s.sqlite") as store:
        await store.conversations.append_turns([make_turn("t1")])
        await store.conversations.append_turns([make_turn("t1"), make_turn("t2")], skip_existing=True)
        assert [m.content for m in await store.conversations.list_messages("v1")] == ["t1", "好", "t2", "好"]
        assert (await store.conversations.get("v1")).messages == 4


async def test_turn_for_the_conversation_of_another_owner_is_rejected(tmp_path):
    async with open_store(f"sqlite:///{tmp_path}/s.sqlite") as store:
        await store.conversations.append_turns([make_turn("t1")])
        assert await store.conversations.append_turns([make_turn("t2", owner="bob"), make_turn("t3")]) == {"t2"}
        assert [m.content for m in await store.conversations.list_messages("v1")] == ["t1", "好", "t3", "好"]


async def test_a_conversation_is_renamed(any_store):
    await append(any_store.conversations, Conversation("c", "owner", title="old"))
    assert await any_store.conversations.rename("c", "标题")
    assert (await any_store.conversations.get("c")).title == "标题"
    assert not await any_store.conversations.rename("d", "x")
