"""Conversations in Valkey or Redis, shared by several processes."""

from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, cast

from valkey.asyncio import Valkey
from valkey.exceptions import ResponseError, ValkeyError

from opposable.domain.errors import StoreUnavailable
from opposable.domain.json_forms import message_from_json, message_to_json
from opposable.domain.messages import Message
from opposable.domain.records import Conversation, ConversationTurn, Page, get_utc_now
from opposable.store.column_types import from_json, to_json
from opposable.store.pagination import decode_cursor, encode_cursor, validate_limit

KEY_NAMESPACE = "opposable"
"""Prefix of all keys."""

_APPEND_TURN_SCRIPT = """
local fields = {'owner', ARGV[2], 'agent_id', ARGV[3], 'title', ARGV[4], 'created_at', ARGV[5], 'updated_at', ARGV[5]}
local owner = redis.call('HGET', KEYS[1], 'owner')
if owner and owner ~= ARGV[2] then return 0 end
if not redis.call('SET', KEYS[5], 1, 'NX', 'EX', ARGV[6]) then return 1 end
if not owner then redis.call('HSET', KEYS[1], unpack(fields)) end
for i = 7, #ARGV do redis.call('RPUSH', KEYS[2], ARGV[i]) end
redis.call('HSET', KEYS[1], 'updated_at', ARGV[5])
redis.call('ZADD', KEYS[3], ARGV[5], ARGV[1])
redis.call('ZADD', KEYS[4], ARGV[5], ARGV[1])
return 1
"""
_RENAME_SCRIPT = """
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], 'title', ARGV[1])
return 1
"""
TURN_ID_TTL_SECONDS = 3600
"""How long the id of a turn is remembered. Retries of a turn end earlier."""


class ValkeyConversationRepository:
    """Conversations in Valkey. Implements `ConversationRepository`.

    A conversation is a hash and a list of messages. One sorted set per owner and one for all owners order
    the conversations by their last change.
    """

    def __init__(self, client: Valkey) -> None:
        self._client = client
        self._rename_script = client.register_script(_RENAME_SCRIPT)
        self._append_turn_script = client.register_script(_APPEND_TURN_SCRIPT)

    async def get(self, conversation_id: str) -> Conversation | None:
        """Return the conversation with this id."""
        return (await self._fetch_conversations([conversation_id]))[0]

    async def list_messages(self, conversation_id: str, *, start: int = 0) -> tuple[Message, ...]:
        """Return the messages in order, from number `start` (counted from 0)."""
        with translate_valkey_errors():
            bodies = await cast(
                "Awaitable[list[bytes]]", self._client.lrange(_get_messages_key(conversation_id), start, -1)
            )
        return tuple(message_from_json(from_json(body)) for body in bodies)

    async def append_turns(self, turns: Sequence[ConversationTurn], *, skip_existing: bool = False) -> frozenset[str]:
        """Append turns, each on its own and only once. Return the ids of rejected turns."""
        return frozenset([turn.turn_id for turn in turns if not await self._append_turn(turn)])

    async def _append_turn(self, turn: ConversationTurn) -> bool:
        conversation = turn.conversation
        conversation_id, owner = conversation.conversation_id, conversation.owner
        turn_key = f"{KEY_NAMESPACE}:turn:{turn.turn_id}"
        keys = [*_get_conversation_keys(conversation_id), *_get_index_keys(owner), turn_key]
        values: list[str | int] = [
            conversation_id,
            owner,
            conversation.agent_id,
            conversation.title,
            _to_microseconds(get_utc_now()),
            TURN_ID_TTL_SECONDS,
            *_to_bodies(turn.messages),
        ]
        with translate_valkey_errors():
            return bool(await self._append_turn_script(keys=keys, args=values))

    async def list(self, owner: str | None = None, *, after: str = "", limit: int = 100) -> Page[Conversation]:
        """Return a page of conversations, the last changed first."""
        page_size = validate_limit(limit)
        scored_ids = await self._list_ids_newest_first(_get_index_key(owner), after, page_size + 1)
        conversations = await self._fetch_conversations(
            [conversation_id for conversation_id, _ in scored_ids[:page_size]]
        )
        items = tuple(conversation for conversation in conversations if conversation is not None)
        if len(scored_ids) <= page_size:
            return Page(items)
        last_id, last_score = scored_ids[page_size - 1]
        return Page(items, encode_cursor(_from_microseconds(int(last_score)), last_id))

    async def rename(self, conversation_id: str, title: str) -> bool:
        """Change the title of a conversation. Return whether it exists."""
        with translate_valkey_errors():
            return bool(await self._rename_script(keys=[_get_conversation_key(conversation_id)], args=[title]))

    async def delete(self, conversation_id: str) -> bool:
        """Delete a conversation and its messages. Return whether it existed."""
        conversation = await self.get(conversation_id)
        if conversation is None:
            return False
        with translate_valkey_errors():
            async with self._client.pipeline(transaction=True) as pipeline:
                for key in _get_conversation_keys(conversation_id):
                    pipeline.delete(key)
                for key in _get_index_keys(conversation.owner):
                    pipeline.zrem(key, conversation_id)
                deleted_counts = await pipeline.execute()
        return bool(deleted_counts[0])

    async def _list_ids_newest_first(self, index_key: str, after: str, limit: int) -> Sequence[tuple[str, float]]:
        """Return ids with their last change in microseconds from a sorted set, after a cursor."""
        scored_ids: Sequence[tuple[str, float]] = ()
        max_score, last_id = (float("inf"), "") if not after else _decode_cursor_score(after)
        start = 0
        while len(scored_ids) < limit:
            with translate_valkey_errors():
                entries = await self._client.zrevrangebyscore(
                    index_key, max_score, "-inf", start=start, num=limit, withscores=True
                )
            start += limit
            pairs = [(entry_id.decode(), score) for entry_id, score in entries]
            new_pairs = [pair for pair in pairs if not after or pair[1] < max_score or pair[0] < last_id]
            scored_ids = [*scored_ids, *new_pairs]
            if len(entries) < limit:
                break
        return scored_ids[:limit]

    async def _fetch_conversations(self, conversation_ids: Sequence[str]) -> tuple[Conversation | None, ...]:
        with translate_valkey_errors():
            async with self._client.pipeline(transaction=False) as pipeline:
                for conversation_id in conversation_ids:
                    pipeline.hgetall(_get_conversation_key(conversation_id))
                    pipeline.llen(_get_messages_key(conversation_id))
                replies = await pipeline.execute()
        return tuple(
            _to_conversation(conversation_id, fields, message_count)
            for conversation_id, fields, message_count in zip(
                conversation_ids, replies[::2], replies[1::2], strict=True
            )
        )


@contextmanager
def translate_valkey_errors() -> Iterator[None]:
    """Translate errors of the client to `StoreUnavailable`."""
    try:
        yield
    except ResponseError as error:
        raise StoreUnavailable(f"The Valkey server rejected a command: {error}") from error
    except (ValkeyError, OSError, TimeoutError) as error:
        raise StoreUnavailable(f"The Valkey server does not answer: {str(error) or type(error).__name__}") from error


def _get_conversation_key(conversation_id: str) -> str:
    return f"{KEY_NAMESPACE}:conversation:{conversation_id}"


def _get_messages_key(conversation_id: str) -> str:
    return f"{KEY_NAMESPACE}:messages:{conversation_id}"


def _get_index_key(owner: str | None) -> str:
    return f"{KEY_NAMESPACE}:conversations" if owner is None else f"{KEY_NAMESPACE}:conversations:of:{owner}"


def _get_conversation_keys(conversation_id: str) -> tuple[str, str]:
    """Return the keys of the fields and of the messages."""
    return _get_conversation_key(conversation_id), _get_messages_key(conversation_id)


def _get_index_keys(owner: str) -> tuple[str, str]:
    """Return the keys of the conversations of an owner and of those of all owners."""
    return _get_index_key(owner), _get_index_key(None)


def _to_bodies(messages: Sequence[Message]) -> list[str]:
    return [to_json(message_to_json(message, include_parsing=True)) for message in messages]


def _to_microseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000_000)


def _from_microseconds(microseconds: int) -> datetime:
    return datetime.fromtimestamp(microseconds / 1_000_000, UTC)


def _decode_cursor_score(after: str) -> tuple[float, str]:
    last_change, conversation_id = decode_cursor(after)
    return _to_microseconds(last_change), conversation_id


def _to_conversation(
    conversation_id: str, stored_fields: dict[bytes, bytes], message_count: int
) -> Conversation | None:
    if not stored_fields:
        return None
    fields: dict[str, Any] = {name.decode(): value.decode() for name, value in stored_fields.items()}
    created_at, updated_at = (
        _from_microseconds(int(fields["created_at"])),
        _from_microseconds(int(fields["updated_at"])),
    )
    return Conversation(
        conversation_id, fields["owner"], fields["agent_id"], fields["title"], message_count, created_at, updated_at
    )
