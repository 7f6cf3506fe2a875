"""Conversations and rate limits in Valkey or Redis, for several processes."""

from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from limits.aio.storage import RedisStorage
from limits.aio.strategies import MovingWindowRateLimiter
from valkey.asyncio import Valkey
from valkey.exceptions import ResponseError, ValkeyError

from opposable.domain.errors import BadInput, StoreUnavailable
from opposable.domain.messages import Message
from opposable.domain.records import Conversation, Page, Turn, now
from opposable.domain.specs import RateLimit
from opposable.store.column_types import from_json, to_json
from opposable.store.conversations import already, continued, unknown
from opposable.store.message_json import message_as_json, message_from_json
from opposable.store.pagination import cursor, place, size
from opposable.store.rate_limits import Allowance, counted

PREFIX = "opposable"
PATIENCE = 5.0
"""Seconds to wait for an answer."""

_ADD = """
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('HSET', KEYS[1], 'owner', ARGV[2], 'agent_id', ARGV[3], 'title', ARGV[4], 'created_at', ARGV[5], 'updated_at', ARGV[5])
redis.call('ZADD', KEYS[2], ARGV[5], ARGV[1])
redis.call('ZADD', KEYS[3], ARGV[5], ARGV[1])
return 1
"""
_APPEND = """
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
_KEEP = """
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
TURN_SECONDS = 3600
"""How long a turn is known by its id: nobody tries to keep one longer than that."""


class ValkeyConversations:
    """Conversations with the face of `store.conversations.Conversations`.

    Each is a hash and a list; a sorted set for each owner, and one for all, order them by their last change.
    """

    def __init__(self, client: Valkey) -> None:
        self._client = client
        self._add = client.register_script(_ADD)
        self._append = client.register_script(_APPEND)
        self._keep = client.register_script(_KEEP)

    async def add(self, conversation: Conversation) -> Conversation:
        """Begin a conversation. Raises: `BadInput` when its id is taken."""
        key, moment = conversation.conversation_id, _microseconds(now())
        values: list[str | int] = [key, conversation.owner, conversation.agent_id, conversation.title, moment]
        with told():
            added = await self._add(keys=[_about(key), _order(conversation.owner), _order(None)], args=values)
        if not added:
            raise already(key)
        at = _moment(moment)
        return Conversation(key, conversation.owner, conversation.agent_id, conversation.title, 0, at, at)

    async def get(self, conversation_id: str) -> Conversation | None:
        """The conversation of that id."""
        return (await self._many([conversation_id]))[0]

    async def messages(self, conversation_id: str, *, start: int = 0) -> tuple[Message, ...]:
        """What was said, in order, from message number `start` on (counted from 0)."""
        with told():
            said = await cast("Awaitable[list[bytes]]", self._client.lrange(_said(conversation_id), start, -1))
        return tuple(message_from_json(from_json(one)) for one in said)

    async def append(self, conversation_id: str, said: Sequence[Message], *, expected: int | None = None) -> int:
        """Add messages at the end, all or none. Raises: as `Conversations.append`."""
        there = await self.get(conversation_id)
        if there is None:
            raise unknown(conversation_id)
        keys = [_about(conversation_id), _said(conversation_id), _order(there.owner), _order(None)]
        bodies = [to_json(message_as_json(message)) for message in said]
        values = [conversation_id, _microseconds(now()), "" if expected is None else expected, *bodies]
        with told():
            total, before = await self._append(keys=keys, args=values)
        if total == -1:
            raise unknown(conversation_id)
        if total == -2:
            raise continued(conversation_id, before, expected or 0)
        return int(total)

    async def keep(self, turns: Sequence[Turn], *, again: bool = False) -> frozenset[str]:
        """Add turns at the end of their conversations, each once. As `Conversations.keep`, but turn by turn."""
        return frozenset([turn.turn_id for turn in turns if not await self._kept(turn)])

    async def _kept(self, turn: Turn) -> bool:
        about = turn.conversation
        key, owner = about.conversation_id, about.owner
        keys = [_about(key), _said(key), _order(owner), _order(None), f"{PREFIX}:turn:{turn.turn_id}"]
        bodies = [to_json(message_as_json(message)) for message in turn.messages]
        moment = _microseconds(now())
        values: list[str | int] = [key, owner, about.agent_id, about.title, moment, TURN_SECONDS, *bodies]
        with told():
            return bool(await self._keep(keys=keys, args=values))

    async def list(self, owner: str | None = None, *, after: str = "", limit: int = 100) -> Page[Conversation]:
        """Conversations of an owner (None: of all), the last continued first; `after` is the last part's cursor."""
        wanted = size(limit)
        found = await self._ordered(_order(owner), after, wanted + 1)
        there = await self._many([key for key, _ in found[:wanted]])
        items = tuple(one for one in there if one is not None)
        if len(found) <= wanted:
            return Page(items)
        key, score = found[wanted - 1]
        return Page(items, cursor(_moment(int(score)), key))

    async def delete(self, conversation_id: str) -> bool:
        """Forget a conversation and what was said. Returns whether there was one."""
        there = await self.get(conversation_id)
        if there is None:
            return False
        with told():
            async with self._client.pipeline(transaction=True) as together:
                together.delete(_about(conversation_id))
                together.delete(_said(conversation_id))
                together.zrem(_order(there.owner), conversation_id)
                together.zrem(_order(None), conversation_id)
                deleted = await together.execute()
        return bool(deleted[0])

    async def _ordered(self, order: str, after: str, wanted: int) -> Sequence[tuple[str, float]]:
        """Ids and moments from a sorted set, newest first, from behind the cursor on."""
        found: Sequence[tuple[str, float]] = ()
        last, last_key = (float("inf"), "") if not after else _split(after)
        start = 0
        while len(found) < wanted:
            with told():
                part = await self._client.zrevrangebyscore(
                    order, last, "-inf", start=start, num=wanted, withscores=True
                )
            start += wanted
            pairs = [(key.decode(), score) for key, score in part]
            fresh = [(key, score) for key, score in pairs if not after or score < last or key < last_key]
            found = [*found, *fresh]
            if len(part) < wanted:
                break
        return found[:wanted]

    async def _many(self, keys: Sequence[str]) -> tuple[Conversation | None, ...]:
        with told():
            async with self._client.pipeline(transaction=False) as together:
                for key in keys:
                    together.hgetall(_about(key))
                    together.llen(_said(key))
                answers = await together.execute()
        return tuple(_conversation(key, answers[2 * i], answers[2 * i + 1]) for i, key in enumerate(keys))


class ValkeyLimiter:
    """A limiter that all processes share."""

    def __init__(self, client: Valkey) -> None:
        # the client comes as its pool; the URL only names the kind of server
        options: Any = {"connection_pool": client.connection_pool, "key_prefix": f"{PREFIX}:limits"}
        storage = RedisStorage("async+valkey://", **options)
        self._window = MovingWindowRateLimiter(storage)

    async def hit(self, key: str, limit: RateLimit, cost: int = 1) -> Allowance:
        """Count a call, unless that goes over the limit. Raises: `StoreUnavailable`."""
        with told():
            return await counted(self._window, key, limit, cost)


@dataclass(frozen=True, slots=True)
class Shared:
    """What several processes share in one Valkey server."""

    conversations: ValkeyConversations
    limiter: ValkeyLimiter
    client: Valkey

    async def check(self) -> None:
        """Ask the server for a sign of life. Raises: `StoreUnavailable`."""
        with told():
            await self.client.ping()


@asynccontextmanager
async def open_valkey(url: str) -> AsyncIterator[Shared]:
    """Conversations and a limiter at a `redis://` or `valkey://` URL, closed at the end.

    Raises: `BadInput` for another URL, `StoreUnavailable` when nothing answers there.
    """
    if not url.startswith(("redis://", "rediss://", "valkey://", "valkeys://")):
        raise BadInput("This is no URL of a Valkey or Redis server. Give valkey://HOST:PORT/NUMBER or redis://….")
    try:
        client = Valkey.from_url(_as_valkey(url), socket_timeout=PATIENCE, socket_connect_timeout=PATIENCE)
    except ValueError as error:
        raise BadInput("This Valkey URL cannot be read. Give valkey://HOST:PORT/NUMBER or redis://….") from error
    shared = Shared(ValkeyConversations(client), ValkeyLimiter(client), client)
    try:
        await shared.check()
        yield shared
    finally:
        await client.aclose()


@contextmanager
def told() -> Iterator[None]:
    """The client's errors in our words."""
    try:
        yield
    except ResponseError as error:
        raise StoreUnavailable(f"The Valkey server refused: {error}") from error
    except (ValkeyError, OSError, TimeoutError) as error:
        raise StoreUnavailable(f"The Valkey server does not answer: {type(error).__name__}") from error


def _as_valkey(url: str) -> str:
    kind, _, rest = url.partition("://")
    return f"{kind.replace('redis', 'valkey')}://{rest}"


def _about(key: str) -> str:
    return f"{PREFIX}:conversation:{key}"


def _said(key: str) -> str:
    return f"{PREFIX}:messages:{key}"


def _order(owner: str | None) -> str:
    return f"{PREFIX}:conversations" if owner is None else f"{PREFIX}:conversations:of:{owner}"


def _microseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000_000)


def _moment(microseconds: int) -> datetime:
    return datetime.fromtimestamp(microseconds / 1_000_000, UTC)


def _split(after: str) -> tuple[float, str]:
    moment, key = place(after)
    return round(moment.timestamp() * 1_000_000), key


def _conversation(key: str, about: dict[bytes, bytes], messages: int) -> Conversation | None:
    if not about:
        return None
    told: dict[str, Any] = {name.decode(): value.decode() for name, value in about.items()}
    created, updated = _moment(int(told["created_at"])), _moment(int(told["updated_at"]))
    return Conversation(key, told["owner"], told["agent_id"], told["title"], messages, created, updated)
