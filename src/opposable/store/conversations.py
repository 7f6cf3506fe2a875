"""Conversations: what was said, in order, whole turns at a time."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import Row, delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from opposable.domain.errors import BadInput, StoreConflict
from opposable.domain.messages import Message
from opposable.domain.records import Conversation, Page, Turn, now
from opposable.store.database import Database
from opposable.store.message_json import message_as_json, message_from_json
from opposable.store.pagination import newest_first
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
        async with self._database.looking() as connection:
            row = (await connection.execute(query)).one_or_none()
        return None if row is None else _conversation(row)

    async def messages(self, conversation_id: str, *, start: int = 0) -> tuple[Message, ...]:
        """What was said, in order, from message number `start` on (counted from 0)."""
        query = select(messages.c.body).where(
            messages.c.conversation_id == conversation_id, messages.c.position >= start
        )
        async with self._database.looking() as connection:
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
        owners: dict[str, str] = {}
        ours = [
            t
            for t in turns
            if owners.setdefault(t.conversation.conversation_id, t.conversation.owner) == t.conversation.owner
        ]
        refused = await self._kept(ours, again=again) if ours else frozenset()
        if len(ours) == len(turns):
            return refused
        return refused | await self.keep([turn for turn in turns if turn not in ours], again=again)

    async def _kept(self, turns: Sequence[Turn], *, again: bool) -> frozenset[str]:
        """Add turns of which no two name one conversation and different owners."""
        moment = now()
        insert = self._database.insert(conversations)
        grown = conversations.c.messages + insert.excluded.messages
        change = insert.on_conflict_do_update(
            index_elements=["id"],
            set_={"messages": grown, "updated_at": moment},
            where=conversations.c.owner == insert.excluded.owner,
        ).returning(conversations.c.id, conversations.c.messages.label("total"))
        async with self._database.writing() as connection:
            known = await self._known(connection, turns) if again else frozenset()
            added = _by_conversation([turn for turn in turns if turn.turn_id not in known])
            if not added:
                return frozenset()
            rows = [_begun(one[0].conversation, moment, sum(len(turn.messages) for turn in one)) for one in added]
            totals = {row.id: row.total for row in (await connection.execute(change, rows)).all()}
            said: list[dict[str, Any]] = []
            for row, one in zip(rows, added, strict=True):
                first = totals.get(row["id"], 0) - row["messages"]
                for turn in one if row["id"] in totals else ():
                    said += _rows(row["id"], first, turn.messages, moment, turn.turn_id)
                    first += len(turn.messages)
            if said:
                await connection.execute(messages.insert(), said)
        refused = [one for one in added if one[0].conversation.conversation_id not in totals]
        return frozenset(turn.turn_id for one in refused for turn in one)

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


def _by_conversation(turns: Sequence[Turn]) -> list[list[Turn]]:
    """The turns of each conversation, in one order everywhere: no two processes wait for each other."""
    groups: dict[str, list[Turn]] = {}
    for turn in turns:
        groups.setdefault(turn.conversation.conversation_id, []).append(turn)
    return [groups[key] for key in sorted(groups)]


def _begun(conversation: Conversation, moment: datetime, said: int = 0) -> dict[str, Any]:
    return {
        "id": conversation.conversation_id,
        "owner": conversation.owner,
        "agent_id": conversation.agent_id,
        "title": conversation.title,
        "messages": said,
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
