"""Conversations and rate limits in Valkey or Redis, for several processes."""

import math
import time
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from limits import RateLimitItem, RateLimitItemPerSecond
from limits.aio.storage import RedisStorage
from limits.aio.strategies import MovingWindowRateLimiter
from valkey.asyncio import Valkey
from valkey.exceptions import ResponseError, ValkeyError

from opposable.domain.errors import BadInput, StoreUnavailable
from opposable.domain.messages import Message
from opposable.domain.rate_limits import RateLimitResult
from opposable.domain.records import Conversation, ConversationTurn, Page, get_utc_now
from opposable.domain.specs import RateLimit
from opposable.store.column_types import from_json, to_json
from opposable.store.conversations import (
    build_conversation_conflict_error,
    build_conversation_exists_error,
    build_conversation_missing_error,
)
from opposable.store.message_json import message_from_json, message_to_json
from opposable.store.pagination import decode_cursor, encode_cursor, validate_limit

KEY_NAMESPACE = "opposable"
SOCKET_TIMEOUT_SECONDS = 5.0
"""Seconds to wait for an answer."""

_ADD_SCRIPT = """
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('HSET', KEYS[1], 'owner', ARGV[2], 'agent_id', ARGV[3], 'title', ARGV[4], 'created_at', ARGV[5], 'updated_at', ARGV[5])
redis.call('ZADD', KEYS[2], ARGV[5], ARGV[1])
redis.call('ZADD', KEYS[3], ARGV[5], ARGV[1])
return 1
"""
_APPEND_MESSAGES_SCRIPT = """
local owner = redis.call('HGET', KEYS[1], 'owner')
if not owner then return {-1, 0} end
local there = redis.call('LLEN', KEYS[2])
if ARGV[3] ~= '' and tonumber(ARGV[3]) ~= there then return {-2, there} end
for i = 4, #ARGV do redis.call('RPUSH', KEYS[2], ARGV[i]) end
redis.call('HSET', KEYS[1], 'updated_at', ARGV[2])
redis.call('ZADD', KEYS[3], ARGV[2], ARGV[1])
redis.call('ZADD', KEYS[4], ARGV[2], ARGV[1])
return {there + #ARGV - 3, there}
"""
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
TURN_ID_TTL_SECONDS = 3600
"""How long a turn is known by its id: nobody tries to keep one longer than that."""


class ValkeyConversationRepository:
    """Conversations with the face of `store.conversations.Conversations`.

    Each is a hash and a list; a sorted set for each owner, and one for all, order them by their last change.
    """

    def __init__(self, client: Valkey) -> None:
        self._client = client
        self._add_script = client.register_script(_ADD_SCRIPT)
        self._append_messages_script = client.register_script(_APPEND_MESSAGES_SCRIPT)
        self._append_turn_script = client.register_script(_APPEND_TURN_SCRIPT)

    async def add(self, conversation: Conversation) -> Conversation:
        """Begin a conversation. Raises: `BadInput` when its id is taken."""
        key, moment = conversation.conversation_id, _to_microseconds(get_utc_now())
        values: list[str | int] = [key, conversation.owner, conversation.agent_id, conversation.title, moment]
        with translate_valkey_errors():
            added = await self._add_script(
                keys=[_get_conversation_key(key), _get_index_key(conversation.owner), _get_index_key(None)], args=values
            )
        if not added:
            raise build_conversation_exists_error(key)
        at = _from_microseconds(moment)
        return Conversation(key, conversation.owner, conversation.agent_id, conversation.title, 0, at, at)

    async def get(self, conversation_id: str) -> Conversation | None:
        """The conversation of that id."""
        return (await self._fetch_conversations([conversation_id]))[0]

    async def list_messages(self, conversation_id: str, *, start: int = 0) -> tuple[Message, ...]:
        """What was said, in order, from message number `start` on (counted from 0)."""
        with translate_valkey_errors():
            said = await cast(
                "Awaitable[list[bytes]]", self._client.lrange(_get_messages_key(conversation_id), start, -1)
            )
        return tuple(message_from_json(from_json(one)) for one in said)

    async def append_messages(
        self, conversation_id: str, new_messages: Sequence[Message], *, expected_count: int | None = None
    ) -> int:
        """Add messages at the end, all or none. Raises: as `Conversations.append`."""
        there = await self.get(conversation_id)
        if there is None:
            raise build_conversation_missing_error(conversation_id)
        keys = [
            _get_conversation_key(conversation_id),
            _get_messages_key(conversation_id),
            _get_index_key(there.owner),
            _get_index_key(None),
        ]
        bodies = [to_json(message_to_json(message)) for message in new_messages]
        values = [
            conversation_id,
            _to_microseconds(get_utc_now()),
            "" if expected_count is None else expected_count,
            *bodies,
        ]
        with translate_valkey_errors():
            total, before = await self._append_messages_script(keys=keys, args=values)
        if total == -1:
            raise build_conversation_missing_error(conversation_id)
        if total == -2:
            raise build_conversation_conflict_error(conversation_id, before, expected_count or 0)
        return int(total)

    async def append_turns(self, turns: Sequence[ConversationTurn], *, skip_existing: bool = False) -> frozenset[str]:
        """Add turns at the end of their conversations, each once. As `Conversations.keep`, but turn by turn."""
        return frozenset([turn.turn_id for turn in turns if not await self._append_turn(turn)])

    async def _append_turn(self, turn: ConversationTurn) -> bool:
        about = turn.conversation
        key, owner = about.conversation_id, about.owner
        keys = [
            _get_conversation_key(key),
            _get_messages_key(key),
            _get_index_key(owner),
            _get_index_key(None),
            f"{KEY_NAMESPACE}:turn:{turn.turn_id}",
        ]
        bodies = [to_json(message_to_json(message)) for message in turn.messages]
        moment = _to_microseconds(get_utc_now())
        values: list[str | int] = [key, owner, about.agent_id, about.title, moment, TURN_ID_TTL_SECONDS, *bodies]
        with translate_valkey_errors():
            return bool(await self._append_turn_script(keys=keys, args=values))

    async def list(self, owner: str | None = None, *, after: str = "", limit: int = 100) -> Page[Conversation]:
        """Conversations of an owner (None: of all), the last continued first; `after` is the last part's cursor."""
        wanted = validate_limit(limit)
        found = await self._list_ids_newest_first(_get_index_key(owner), after, wanted + 1)
        there = await self._fetch_conversations([key for key, _ in found[:wanted]])
        items = tuple(one for one in there if one is not None)
        if len(found) <= wanted:
            return Page(items)
        key, score = found[wanted - 1]
        return Page(items, encode_cursor(_from_microseconds(int(score)), key))

    async def delete(self, conversation_id: str) -> bool:
        """Forget a conversation and what was said. Returns whether there was one."""
        there = await self.get(conversation_id)
        if there is None:
            return False
        with translate_valkey_errors():
            async with self._client.pipeline(transaction=True) as together:
                together.delete(_get_conversation_key(conversation_id))
                together.delete(_get_messages_key(conversation_id))
                together.zrem(_get_index_key(there.owner), conversation_id)
                together.zrem(_get_index_key(None), conversation_id)
                deleted = await together.execute()
        return bool(deleted[0])

    async def _list_ids_newest_first(self, index_key: str, after: str, limit: int) -> Sequence[tuple[str, float]]:
        """Ids and moments from a sorted set, newest first, from behind the cursor on."""
        found: Sequence[tuple[str, float]] = ()
        last, last_key = (float("inf"), "") if not after else _decode_cursor_score(after)
        start = 0
        while len(found) < limit:
            with translate_valkey_errors():
                part = await self._client.zrevrangebyscore(
                    index_key, last, "-inf", start=start, num=limit, withscores=True
                )
            start += limit
            pairs = [(key.decode(), score) for key, score in part]
            fresh = [(key, score) for key, score in pairs if not after or score < last or key < last_key]
            found = [*found, *fresh]
            if len(part) < limit:
                break
        return found[:limit]

    async def _fetch_conversations(self, conversation_ids: Sequence[str]) -> tuple[Conversation | None, ...]:
        with translate_valkey_errors():
            async with self._client.pipeline(transaction=False) as together:
                for key in conversation_ids:
                    together.hgetall(_get_conversation_key(key))
                    together.llen(_get_messages_key(key))
                answers = await together.execute()
        return tuple(
            _to_conversation(key, answers[2 * i], answers[2 * i + 1]) for i, key in enumerate(conversation_ids)
        )


class ValkeyRateLimiter:
    """A rate limiter that all processes share through one Valkey server."""

    def __init__(self, client: Valkey) -> None:
        # The storage uses the client's connection pool; the URL only names the kind of server.
        options: Any = {"connection_pool": client.connection_pool, "key_prefix": f"{KEY_NAMESPACE}:limits"}
        storage = RedisStorage("async+valkey://", **options)
        self._window = MovingWindowRateLimiter(storage)

    async def hit(self, key: str, limit: RateLimit, cost: int = 1) -> RateLimitResult:
        """Count a call, unless it exceeds the limit. Raises: `StoreUnavailable`."""
        item = _to_rate_limit_item(limit)
        with translate_valkey_errors():
            allowed = await self._window.hit(item, key, cost=cost)
            reset, remaining = await self._window.get_window_stats(item, key)
        retry_after = 0.0 if allowed else max(0.0, reset - time.time())
        return RateLimitResult(allowed, max(0, remaining), retry_after)


def _to_rate_limit_item(limit: RateLimit) -> RateLimitItem:
    """Round the window up to whole seconds and the calls down, so that the rate is never exceeded."""
    seconds = math.ceil(limit.seconds)
    return RateLimitItemPerSecond(max(1, math.floor(limit.calls * seconds / limit.seconds)), seconds)


@dataclass(frozen=True, slots=True)
class ValkeyStore:
    """What several processes share in one Valkey server."""

    conversations: ValkeyConversationRepository
    limiter: ValkeyRateLimiter
    client: Valkey

    async def ping(self) -> None:
        """Ask the server for a sign of life. Raises: `StoreUnavailable`."""
        with translate_valkey_errors():
            await self.client.ping()


@asynccontextmanager
async def open_valkey(url: str) -> AsyncIterator[ValkeyStore]:
    """Conversations and a limiter at a `redis://` or `valkey://` URL, closed at the end.

    Raises: `BadInput` for another URL, `StoreUnavailable` when nothing answers there.
    """
    if not url.startswith(("redis://", "rediss://", "valkey://", "valkeys://")):
        raise BadInput("This is no URL of a Valkey or Redis server. Give valkey://HOST:PORT/NUMBER or redis://….")
    try:
        client = Valkey.from_url(
            _to_valkey_url(url), socket_timeout=SOCKET_TIMEOUT_SECONDS, socket_connect_timeout=SOCKET_TIMEOUT_SECONDS
        )
    except ValueError as error:
        raise BadInput("This Valkey URL cannot be read. Give valkey://HOST:PORT/NUMBER or redis://….") from error
    shared = ValkeyStore(ValkeyConversationRepository(client), ValkeyRateLimiter(client), client)
    try:
        await shared.ping()
        yield shared
    finally:
        await client.aclose()


@contextmanager
def translate_valkey_errors() -> Iterator[None]:
    """The client's errors in our words."""
    try:
        yield
    except ResponseError as error:
        raise StoreUnavailable(f"The Valkey server refused: {error}") from error
    except (ValkeyError, OSError, TimeoutError) as error:
        raise StoreUnavailable(f"The Valkey server does not answer: {type(error).__name__}") from error


def _to_valkey_url(url: str) -> str:
    kind, _, rest = url.partition("://")
    return f"{kind.replace('redis', 'valkey')}://{rest}"


def _get_conversation_key(conversation_id: str) -> str:
    return f"{KEY_NAMESPACE}:conversation:{conversation_id}"


def _get_messages_key(conversation_id: str) -> str:
    return f"{KEY_NAMESPACE}:messages:{conversation_id}"


def _get_index_key(owner: str | None) -> str:
    return f"{KEY_NAMESPACE}:conversations" if owner is None else f"{KEY_NAMESPACE}:conversations:of:{owner}"


def _to_microseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000_000)


def _from_microseconds(microseconds: int) -> datetime:
    return datetime.fromtimestamp(microseconds / 1_000_000, UTC)


def _decode_cursor_score(after: str) -> tuple[float, str]:
    moment, key = decode_cursor(after)
    return round(moment.timestamp() * 1_000_000), key


def _to_conversation(
    conversation_id: str, stored_fields: dict[bytes, bytes], message_count: int
) -> Conversation | None:
    if not stored_fields:
        return None
    told: dict[str, Any] = {name.decode(): value.decode() for name, value in stored_fields.items()}
    created, updated = _from_microseconds(int(told["created_at"])), _from_microseconds(int(told["updated_at"]))
    return Conversation(
        conversation_id, told["owner"], told["agent_id"], told["title"], message_count, created, updated
    )
