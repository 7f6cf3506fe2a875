"""Conversations and limits mean the same in SQLite, PostgreSQL and Valkey."""

import asyncio

import pytest

from opposable.domain.errors import BadInput, StoreConflict, StoreUnavailable
from opposable.domain.messages import assistant_message, system_message, tool_message, user_message
from opposable.domain.records import Conversation
from opposable.domain.specs import RateLimit
from opposable.domain.tools import ToolCall
from opposable.store import open_store

pytestmark = pytest.mark.anyio

MESSAGES = (
    system_message("Be short."),
    user_message("巴黎的天气？'; --"),
    assistant_message(
        "",
        (ToolCall.from_json("c1", "weather", '{"city": "巴黎"', dialect="hermes", repairs=("brace",), truncated=True),),
        thinking="嗯",
    ),
    tool_message("c1", "weather", "晴 🎉"),
    assistant_message("晴"),
)


async def test_messages_come_back_in_order(anywhere):
    conversations = anywhere.conversations
    begun = await conversations.add(Conversation("c", "owner", "agent", "标题"))
    assert (begun.owner, begun.agent_id, begun.title, begun.messages) == ("owner", "agent", "标题", 0)
    assert await conversations.append_messages("c", MESSAGES[:2], expected_count=0) == 2
    assert await conversations.append_messages("c", MESSAGES[2:]) == 5
    assert await conversations.append_messages("c", ()) == 5
    assert await conversations.list_messages("c") == MESSAGES
    assert await conversations.list_messages("c", start=3) == MESSAGES[3:]
    there = await conversations.get("c")
    assert (there.messages, there.created_at) == (5, begun.created_at)
    assert there.updated_at >= begun.updated_at


async def test_what_cannot_be_is_told(anywhere):
    conversations = anywhere.conversations
    await conversations.add(Conversation("c"))
    with pytest.raises(BadInput, match="There is a conversation 'c' already"):
        await conversations.add(Conversation("c", "other"))
    with pytest.raises(BadInput, match="There is no conversation 'd'; begin it first"):
        await conversations.append_messages("d", MESSAGES)
    await conversations.append_messages("c", MESSAGES[:1])
    with pytest.raises(StoreConflict, match="has 1 messages, not 0: it went on elsewhere"):
        await conversations.append_messages("c", MESSAGES, expected_count=0)
    assert await conversations.list_messages("c") == MESSAGES[:1]
    assert await conversations.get("d") is None
    assert await conversations.list_messages("d") == ()


async def test_turns_told_at_once_stay_whole(anywhere):
    await anywhere.conversations.add(Conversation("c"))
    turns = [tuple(user_message(f"{number}.{part}") for part in range(3)) for number in range(12)]
    totals = await asyncio.gather(*(anywhere.conversations.append_messages("c", turn) for turn in turns))
    assert sorted(totals) == list(range(3, 37, 3))
    said = await anywhere.conversations.list_messages("c")
    assert {said[at : at + 3] for at in range(0, 36, 3)} == set(turns)


async def test_of_two_that_answer_the_same_turn_one_is_told(anywhere):
    await anywhere.conversations.add(Conversation("c"))
    answers = [
        anywhere.conversations.append_messages("c", (assistant_message(f"{n}"),), expected_count=0) for n in range(4)
    ]
    outcomes = await asyncio.gather(*answers, return_exceptions=True)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["StoreConflict"] * 3 + ["int"]


async def test_conversations_are_listed_by_owner_the_last_continued_first(anywhere):
    conversations = anywhere.conversations
    for number in range(7):
        await conversations.add(Conversation(f"c{number}", "一" if number % 2 else "two"))
    await conversations.append_messages("c0", MESSAGES)
    expected = ["c0", "c6", "c5", "c4", "c3", "c2", "c1"]
    after, found = "", []
    while True:
        page = await conversations.list(after=after, limit=3)
        found.append([one.conversation_id for one in page.items])
        after = page.next_cursor
        if not after:
            break
    assert found == [expected[:3], expected[3:6], expected[6:]]
    assert [one.conversation_id for one in (await conversations.list("一")).items] == ["c5", "c3", "c1"]
    assert (await conversations.list("nobody")).items == ()
    with pytest.raises(BadInput, match="This cursor"):
        await conversations.list(after="x")


async def test_a_deleted_conversation_is_gone(anywhere):
    conversations = anywhere.conversations
    await conversations.add(Conversation("c", "o"))
    await conversations.append_messages("c", MESSAGES)
    assert await conversations.delete("c")
    assert not await conversations.delete("c")
    assert await conversations.get("c") is None
    assert await conversations.list_messages("c") == ()
    assert (await conversations.list("o")).items == (await conversations.list()).items == ()
    await conversations.add(Conversation("c"))
    assert await conversations.list_messages("c") == ()


async def test_a_limit_counts_each_key_apart(anywhere):
    limit = RateLimit(calls=3, seconds=60)
    answers = [await anywhere.limiter.hit("钥匙", limit) for _ in range(4)]
    assert [(one.allowed, one.remaining) for one in answers] == [(True, 2), (True, 1), (True, 0), (False, 0)]
    assert answers[2].retry_after == 0
    assert 0 < answers[3].retry_after <= 61
    assert (await anywhere.limiter.hit("other", limit, cost=3)).remaining == 0
    assert not (await anywhere.limiter.hit("third", limit, cost=4)).allowed


async def test_a_limit_of_a_fraction_of_a_second_keeps_its_rate(anywhere, request):
    answers = [await anywhere.limiter.hit("k", RateLimit(calls=2, seconds=0.5)) for _ in range(5)]
    # Valkey counts in whole seconds: 4 calls in 1 s have the rate of 2 calls in 0.5 s.
    allowed = 4 if request.node.callspec.params["anywhere"] == "valkey" else 2
    assert [answer.allowed for answer in answers[:allowed]] == [True] * allowed


async def test_two_processes_share_one_conversation_and_one_limit(valkey_url, tmp_path):
    first = open_store(f"sqlite:///{tmp_path}/a.db", valkey_url=valkey_url)
    second = open_store(f"sqlite:///{tmp_path}/b.db", valkey_url=valkey_url.replace("valkey:", "redis:"))
    async with first as one, second as two:
        await one.conversations.add(Conversation("c"))
        await two.conversations.append_messages("c", MESSAGES)
        assert await one.conversations.list_messages("c") == MESSAGES
        limit = RateLimit(calls=5)
        hits = await asyncio.gather(*((one, two)[n % 2].limiter.hit("k", limit) for n in range(12)))
        assert sum(hit.allowed for hit in hits) == 5
        assert await one.check_health() == {"database": "", "valkey": ""}


@pytest.mark.parametrize("url", ["http://127.0.0.1", "valkey", "redis://127.0.0.1:port"])
async def test_a_wrong_valkey_url_is_told(url, tmp_path):
    with pytest.raises(BadInput, match="valkey://HOST:PORT/NUMBER"):
        async with open_store(f"sqlite:///{tmp_path}/a.db", valkey_url=url):
            pytest.fail("opened")


async def test_a_valkey_server_that_is_not_there_is_told(tmp_path):
    with pytest.raises(StoreUnavailable, match="The Valkey server does not answer"):
        async with open_store(f"sqlite:///{tmp_path}/a.db", valkey_url="redis://:hunter2@127.0.0.1:9"):
            pytest.fail("opened")
