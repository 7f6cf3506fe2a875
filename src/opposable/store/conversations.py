"""Conversations: what was said, in order, whole turns at a time."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import Row, delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from opposable.domain.errors import BadInput, StoreConflict
from opposable.domain.messages import Message
from opposable.domain.records import Conversation, ConversationTurn, Page, get_utc_now
from opposable.store.database import StoreDatabase
from opposable.store.message_json import message_from_json, message_to_json
from opposable.store.pagination import fetch_newest_first
from opposable.store.tables import conversations, messages


class ConversationRepository(Protocol):
    """Conversations, wherever they are kept. Every method raises `StoreUnavailable` when that place is away."""

    async def add(self, conversation: Conversation) -> Conversation:
        """Begin a conversation. Raises: `BadInput` when its id is taken."""
        ...

    async def get(self, conversation_id: str) -> Conversation | None:
        """The conversation of that id."""
        ...

    async def list_messages(self, conversation_id: str, *, start: int = 0) -> tuple[Message, ...]:
        """What was said, in order, from message number `start` on (counted from 0)."""
        ...

    async def append_messages(
        self, conversation_id: str, new_messages: Sequence[Message], *, expected_count: int | None = None
    ) -> int:
        """Add messages at the end, all or none, and give the new number of messages.

        Raises: `StoreConflict` when `expected` is given and is not the number of messages there were; `BadInput` when
        there is no such conversation.
        """
        ...

    async def append_turns(self, turns: Sequence[ConversationTurn], *, skip_existing: bool = False) -> frozenset[str]:
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


class SqlConversationRepository:
    """Conversations in the database."""

    def __init__(self, database: StoreDatabase) -> None:
        self._database = database

    async def add(self, conversation: Conversation) -> Conversation:
        """Begin a conversation. Raises: `BadInput` when its id is taken."""
        row = _conversation_to_row(conversation, get_utc_now())
        insert = self._database.build_insert(conversations).values(**row).on_conflict_do_nothing(index_elements=["id"])
        async with self._database.begin_write() as connection:
            added = (await connection.execute(insert.returning(conversations))).one_or_none()
        if added is None:
            raise build_conversation_exists_error(conversation.conversation_id)
        return _to_conversation(added)

    async def get(self, conversation_id: str) -> Conversation | None:
        """The conversation of that id."""
        query = select(conversations).where(conversations.c.id == conversation_id)
        [rows] = await self._database.fetch_inline(query)
        return _to_conversation(rows[0]) if rows else None

    async def list_messages(self, conversation_id: str, *, start: int = 0) -> tuple[Message, ...]:
        """What was said, in order, from message number `start` on (counted from 0)."""
        query = select(messages.c.body).where(
            messages.c.conversation_id == conversation_id, messages.c.position >= start
        )
        [rows] = await self._database.fetch_inline(query.order_by(messages.c.position))
        return tuple(message_from_json(row.body) for row in rows)

    async def append_messages(
        self, conversation_id: str, new_messages: Sequence[Message], *, expected_count: int | None = None
    ) -> int:
        """Add messages at the end, all or none. Raises: as `Conversations.append`."""
        moment = get_utc_now()
        count = conversations.c.messages
        change = (
            update(conversations)
            .where(conversations.c.id == conversation_id)
            .values(messages=count + len(new_messages), updated_at=moment)
            .returning(count)
        )
        async with self._database.begin_write() as connection:  # the conversation's row is locked: turns queue up
            total = (await connection.execute(change)).scalar_one_or_none()
            if total is None:
                raise build_conversation_missing_error(conversation_id)
            first = total - len(new_messages)
            if expected_count is not None and first != expected_count:
                raise build_conversation_conflict_error(conversation_id, first, expected_count)
            rows = _messages_to_rows(conversation_id, first, new_messages, moment)
            if rows:
                await connection.execute(messages.insert(), rows)
        return int(total)

    async def append_turns(self, turns: Sequence[ConversationTurn], *, skip_existing: bool = False) -> frozenset[str]:
        """Add turns at the end of their conversations. As `Conversations.keep`."""
        owners: dict[str, str] = {}
        ours = [
            t
            for t in turns
            if owners.setdefault(t.conversation.conversation_id, t.conversation.owner) == t.conversation.owner
        ]
        refused = await self._append_owned_turns(ours, skip_existing=skip_existing) if ours else frozenset()
        if len(ours) == len(turns):
            return refused
        return refused | await self.append_turns(
            [turn for turn in turns if turn not in ours], skip_existing=skip_existing
        )

    async def _append_owned_turns(self, turns: Sequence[ConversationTurn], *, skip_existing: bool) -> frozenset[str]:
        """Add turns of which no two name one conversation and different owners."""
        moment = get_utc_now()
        insert = self._database.build_insert(conversations)
        grown = conversations.c.messages + insert.excluded.messages
        change = insert.on_conflict_do_update(
            index_elements=["id"],
            set_={"messages": grown, "updated_at": moment},
            where=conversations.c.owner == insert.excluded.owner,
        ).returning(conversations.c.id, conversations.c.messages.label("total"))
        async with self._database.begin_write() as connection:
            known = await self._select_existing_turn_ids(connection, turns) if skip_existing else frozenset()
            added = _group_by_conversation([turn for turn in turns if turn.turn_id not in known])
            if not added:
                return frozenset()
            rows = [
                _conversation_to_row(one[0].conversation, moment, sum(len(turn.messages) for turn in one))
                for one in added
            ]
            totals = {row.id: row.total for row in (await connection.execute(change, rows)).all()}
            said: list[dict[str, Any]] = []
            for row, one in zip(rows, added, strict=True):
                first = totals.get(row["id"], 0) - row["messages"]
                for turn in one if row["id"] in totals else ():
                    said += _messages_to_rows(row["id"], first, turn.messages, moment, turn.turn_id)
                    first += len(turn.messages)
            if said:
                await connection.execute(messages.insert(), said)
        refused = [one for one in added if one[0].conversation.conversation_id not in totals]
        return frozenset(turn.turn_id for one in refused for turn in one)

    @staticmethod
    async def _select_existing_turn_ids(
        connection: AsyncConnection, turns: Sequence[ConversationTurn]
    ) -> frozenset[str]:
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
        return await fetch_newest_first(
            self._database, query, table.updated_at, table.id, _to_conversation, after=after, limit=limit
        )

    async def delete(self, conversation_id: str) -> bool:
        """Forget a conversation and what was said. Returns whether there was one."""
        async with self._database.begin_write() as connection:
            done = await connection.execute(delete(conversations).where(conversations.c.id == conversation_id))
        return done.rowcount > 0


def _group_by_conversation(turns: Sequence[ConversationTurn]) -> list[list[ConversationTurn]]:
    """The turns of each conversation, in one order everywhere: no two processes wait for each other."""
    groups: dict[str, list[ConversationTurn]] = {}
    for turn in turns:
        groups.setdefault(turn.conversation.conversation_id, []).append(turn)
    return [groups[key] for key in sorted(groups)]


def _conversation_to_row(conversation: Conversation, timestamp: datetime, message_count: int = 0) -> dict[str, Any]:
    return {
        "id": conversation.conversation_id,
        "owner": conversation.owner,
        "agent_id": conversation.agent_id,
        "title": conversation.title,
        "messages": message_count,
        "created_at": timestamp,
        "updated_at": timestamp,
    }


def _messages_to_rows(
    conversation_id: str, first_position: int, new_messages: Sequence[Message], timestamp: datetime, turn_id: str = ""
) -> list[dict[str, Any]]:
    return [
        {
            "conversation_id": conversation_id,
            "position": first_position + offset,
            "role": message.role,
            "body": message_to_json(message),
            "created_at": timestamp,
            "turn_id": turn_id,
        }
        for offset, message in enumerate(new_messages)
    ]


def build_conversation_exists_error(conversation_id: str) -> BadInput:
    """The error for an id that is taken."""
    return BadInput(f"There is a conversation {conversation_id!r} already; continue it, or choose another id.")


def build_conversation_missing_error(conversation_id: str) -> BadInput:
    """The error for an id that no conversation has."""
    return BadInput(f"There is no conversation {conversation_id!r}; begin it first.")


def build_conversation_conflict_error(conversation_id: str, message_count: int, expected_count: int) -> StoreConflict:
    """The error for a conversation that went on elsewhere."""
    return StoreConflict(
        f"Conversation {conversation_id!r} has {message_count} messages, not {expected_count}: it went on elsewhere meanwhile."
    )


def _to_conversation(row: Row[Any]) -> Conversation:
    return Conversation(
        row.id,
        row.owner,
        row.agent_id,
        row.title,
        row._mapping["messages"],  # noqa: SLF001 - the documented name; a row may have methods of any name
        row.created_at,
        row.updated_at,
    )
