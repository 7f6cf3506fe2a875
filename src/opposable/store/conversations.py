"""Conversations: what was said, in order, whole turns at a time."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import Row, bindparam, delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from opposable.domain.errors import BadInput, StoreConflict
from opposable.domain.messages import Message
from opposable.domain.records import Conversation, Page, Turn, now
from opposable.store.database import Database
from opposable.store.messages import message_as_json, message_from_json
from opposable.store.pages import newest_first
from opposable.store.tables import conversations, messages


class Conversations(Protocol):
    """Conversations, wherever they are kept. Every method raises `StoreUnavailable` when that place is away."""

    async def add(self, conversation: Conversation) -> Conversation:
        """Begin a conversation. Raises: `BadInput` when its id is taken."""
        ...

    async def get(self, conversation_id: str) -> Conversation | None:
        """The conversation of that id."""
        ...

    async def messages(self, conversation_id: str, *, start: int = 0) -> tuple[Message, ...]:
        """What was said, in order, from message number `start` on (counted from 0)."""
        ...

    async def append(self, conversation_id: str, said: Sequence[Message], *, expected: int | None = None) -> int:
        """Add messages at the end, all or none, and give the new number of messages.

        Raises: `StoreConflict` when `expected` is given and is not the number of messages there were; `BadInput` when
        there is no such conversation.
        """
        ...

    async def keep(self, turns: Sequence[Turn], *, again: bool = False) -> frozenset[str]:
        """Add turns at the end of their conversations, all or none, each conversation begun where it is not there.

        `again` is for turns that may be there already: those are passed over. Returns the ids of the turns refused
        because the conversation is another owner's.
        """
        ...

    async def list(self, owner: str | None = None, *, after: str = "", limit: int = 100) -> Page[Conversation]:
        """Conversations of an owner (None: of all), the last continued first; `after` is the last part's cursor."""
        ...

    async def delete(self, conversation_id: str) -> bool:
        """Forget a conversation and what was said. Returns whether there was one."""
        ...


class SqlConversations:
    """Conversations in the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, conversation: Conversation) -> Conversation:
        """Begin a conversation. Raises: `BadInput` when its id is taken."""
        row = _begun(conversation, now())
        insert = self._database.insert(conversations).values(**row).on_conflict_do_nothing(index_elements=["id"])
        async with self._database.writing() as connection:
            added = (await connection.execute(insert.returning(conversations))).one_or_none()
        if added is None:
            raise already(conversation.conversation_id)
        return _conversation(added)

    async def get(self, conversation_id: str) -> Conversation | None:
        """The conversation of that id."""
        query = select(conversations).where(conversations.c.id == conversation_id)
        async with self._database.reading() as connection:
            row = (await connection.execute(query)).one_or_none()
        return None if row is None else _conversation(row)

    async def messages(self, conversation_id: str, *, start: int = 0) -> tuple[Message, ...]:
        """What was said, in order, from message number `start` on (counted from 0)."""
        query = select(messages.c.body).where(
            messages.c.conversation_id == conversation_id, messages.c.position >= start
        )
        async with self._database.reading() as connection:
            bodies = (await connection.scalars(query.order_by(messages.c.position))).all()
        return tuple(message_from_json(body) for body in bodies)

    async def append(self, conversation_id: str, said: Sequence[Message], *, expected: int | None = None) -> int:
        """Add messages at the end, all or none. Raises: as `Conversations.append`."""
        moment = now()
        count = conversations.c.messages
        change = (
            update(conversations)
            .where(conversations.c.id == conversation_id)
            .values(messages=count + len(said), updated_at=moment)
            .returning(count)
        )
        async with self._database.writing() as connection:  # the conversation's row is locked: turns queue up
            total = (await connection.execute(change)).scalar_one_or_none()
            if total is None:
                raise unknown(conversation_id)
            first = total - len(said)
            if expected is not None and first != expected:
                raise continued(conversation_id, first, expected)
            rows = _rows(conversation_id, first, said, moment)
            if rows:
                await connection.execute(messages.insert(), rows)
        return int(total)

    async def keep(self, turns: Sequence[Turn], *, again: bool = False) -> frozenset[str]:
        """Add turns at the end of their conversations. As `Conversations.keep`."""
        moment = now()
        begun = {turn.conversation.conversation_id: turn.conversation for turn in turns}
        table = conversations.c
        ids = sorted(begun)  # in one order everywhere, so that no two processes wait for each other
        insert = self._database.insert(conversations)
        locking = insert.on_conflict_do_update(index_elements=["id"], set_={"id": insert.excluded.id})
        locked = select(table.id, table.owner, table.messages.label("said")).where(table.id.in_(ids))
        async with self._database.writing() as connection:
            await connection.execute(locking, [_begun(begun[one], moment) for one in ids])
            there = (await connection.execute(locked)).all()
            known = await self._known(connection, turns) if again else frozenset()
            owners, counts = {row.id: row.owner for row in there}, {row.id: row.said for row in there}
            refused = {t.turn_id for t in turns if owners[t.conversation.conversation_id] != t.conversation.owner}
            rows: list[dict[str, Any]] = []
            for turn in turns:
                if turn.turn_id not in refused | known:
                    one = turn.conversation.conversation_id
                    rows += _rows(one, counts[one], turn.messages, moment, turn.turn_id)
                    counts[one] += len(turn.messages)
            if rows:
                await connection.execute(messages.insert(), rows)
                changed = [{"one": one, "count": counts[one]} for one in {row["conversation_id"] for row in rows}]
                change = update(conversations).where(table.id == bindparam("one"))
                await connection.execute(change.values(messages=bindparam("count"), updated_at=moment), changed)
        return frozenset(refused)

    @staticmethod
    async def _known(connection: AsyncConnection, turns: Sequence[Turn]) -> frozenset[str]:
        """Those of the turns that are kept already."""
        kept = select(messages.c.turn_id).where(
            messages.c.conversation_id.in_({turn.conversation.conversation_id for turn in turns}),
            messages.c.turn_id.in_([turn.turn_id for turn in turns]),
        )
        return frozenset((await connection.scalars(kept)).all())

    async def list(self, owner: str | None = None, *, after: str = "", limit: int = 100) -> Page[Conversation]:
        """Conversations of an owner (None: of all), the last continued first; `after` is the last part's cursor."""
        table = conversations.c
        query = select(conversations) if owner is None else select(conversations).where(table.owner == owner)
        return await newest_first(
            self._database, query, table.updated_at, table.id, _conversation, after=after, limit=limit
        )

    async def delete(self, conversation_id: str) -> bool:
        """Forget a conversation and what was said. Returns whether there was one."""
        async with self._database.writing() as connection:
            done = await connection.execute(delete(conversations).where(conversations.c.id == conversation_id))
        return done.rowcount > 0


def _begun(conversation: Conversation, moment: datetime) -> dict[str, Any]:
    return {
        "id": conversation.conversation_id,
        "owner": conversation.owner,
        "agent_id": conversation.agent_id,
        "title": conversation.title,
        "messages": 0,
        "created_at": moment,
        "updated_at": moment,
    }


def _rows(
    conversation_id: str, first: int, said: Sequence[Message], moment: datetime, turn_id: str = ""
) -> list[dict[str, Any]]:
    return [
        {
            "conversation_id": conversation_id,
            "position": first + offset,
            "role": message.role,
            "body": message_as_json(message),
            "created_at": moment,
            "turn_id": turn_id,
        }
        for offset, message in enumerate(said)
    ]


def already(conversation_id: str) -> BadInput:
    """The error for an id that is taken."""
    return BadInput(f"There is a conversation {conversation_id!r} already; continue it, or choose another id.")


def unknown(conversation_id: str) -> BadInput:
    """The error for an id that no conversation has."""
    return BadInput(f"There is no conversation {conversation_id!r}; begin it first.")


def continued(conversation_id: str, there: int, expected: int) -> StoreConflict:
    """The error for a conversation that went on elsewhere."""
    return StoreConflict(
        f"Conversation {conversation_id!r} has {there} messages, not {expected}: it went on elsewhere meanwhile."
    )


def _conversation(row: Row[Any]) -> Conversation:
    return Conversation(
        row.id,
        row.owner,
        row.agent_id,
        row.title,
        row._mapping["messages"],  # noqa: SLF001 - the documented name; a row may have methods of any name
        row.created_at,
        row.updated_at,
    )
