"""Repository of conversations and their messages, in the database."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import Row, delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.dml import ReturningInsert

from opposable.domain.json_forms import message_from_json, message_to_json
from opposable.domain.messages import Message
from opposable.domain.records import Conversation, ConversationTurn, Page, get_utc_now, scope_conversation_id
from opposable.store.database import Repository
from opposable.store.pagination import fetch_newest_first
from opposable.store.rows import to_record
from opposable.store.tables import conversations, messages


class ConversationRepository(Protocol):
    """Conversations in the database or in Valkey.

    Every method raises `StoreUnavailable` when the server does not answer.
    """

    async def get(self, conversation_id: str) -> Conversation | None:
        """Return the conversation with this id."""
        ...

    async def list_messages(self, conversation_id: str, *, start: int = 0) -> tuple[Message, ...]:
        """Return the messages in order, from number `start` (counted from 0)."""
        ...

    async def append_turns(self, turns: Sequence[ConversationTurn], *, skip_existing: bool = False) -> frozenset[str]:
        """Append turns to their conversations, all or none. Create missing conversations.

        Set `skip_existing` on a retry: turns that are stored already are skipped.

        Returns:
            The ids of rejected turns: their conversation belongs to another owner.
        """
        ...

    async def list(self, owner: str | None = None, *, after: str = "", limit: int = 100) -> Page[Conversation]:
        """Return a page of conversations, the last changed first.

        `after` is the cursor of the previous page, `limit` a number from 1 to 1000. `owner` None is for all owners.
        """
        ...

    async def rename(self, conversation_id: str, title: str) -> bool:
        """Change the title of a conversation. Return whether it exists."""
        ...

    async def delete(self, conversation_id: str) -> bool:
        """Delete a conversation and its messages. Return whether it existed."""
        ...


class SqlConversationRepository(Repository):
    """Conversations in the database. Implements `ConversationRepository`."""

    async def get(self, conversation_id: str) -> Conversation | None:
        """Return the conversation with this id."""
        [rows] = await self._database.fetch_inline(select(conversations).where(conversations.c.id == conversation_id))
        return _to_conversation(rows[0]) if rows else None

    async def list_messages(self, conversation_id: str, *, start: int = 0) -> tuple[Message, ...]:
        """Return the messages in order, from number `start` (counted from 0)."""
        query = select(messages.c.body).where(
            messages.c.conversation_id == conversation_id, messages.c.position >= start
        )
        [rows] = await self._database.fetch_inline(query.order_by(messages.c.position))
        return tuple(message_from_json(row.body) for row in rows)

    async def append_turns(self, turns: Sequence[ConversationTurn], *, skip_existing: bool = False) -> frozenset[str]:
        """Append turns to their conversations. Return the ids of rejected turns."""
        first_owners: dict[str, str] = {}
        same_owner_turns = []
        for turn in turns:
            conversation = turn.conversation
            if first_owners.setdefault(conversation.conversation_id, conversation.owner) == conversation.owner:
                same_owner_turns.append(turn)
        rejected_ids: frozenset[str] = frozenset()
        if same_owner_turns:
            rejected_ids = await self._append_owned_turns(same_owner_turns, skip_existing=skip_existing)
        if len(same_owner_turns) == len(turns):
            return rejected_ids
        other_turns = [turn for turn in turns if turn not in same_owner_turns]
        return rejected_ids | await self.append_turns(other_turns, skip_existing=skip_existing)

    async def _append_owned_turns(self, turns: Sequence[ConversationTurn], *, skip_existing: bool) -> frozenset[str]:
        """Append turns in which each conversation has one owner. Return the ids of rejected turns."""
        changed_at = get_utc_now()
        async with self._database.begin_write() as connection:
            existing_ids = await self._select_existing_turn_ids(connection, turns) if skip_existing else frozenset()
            groups = _group_by_conversation([turn for turn in turns if turn.turn_id not in existing_ids])
            if not groups:
                return frozenset()
            conversation_rows = [
                _conversation_to_row(group[0].conversation, changed_at, sum(len(turn.messages) for turn in group))
                for group in groups
            ]
            upsert = self._build_upsert(changed_at)
            totals = {row.id: row.total for row in (await connection.execute(upsert, conversation_rows)).all()}
            message_rows: list[dict[str, Any]] = []
            for row, group in zip(conversation_rows, groups, strict=True):
                position = totals.get(row["id"], 0) - row["messages"]
                for turn in group if row["id"] in totals else ():
                    message_rows += _messages_to_rows(row["id"], position, turn.messages, changed_at, turn.turn_id)
                    position += len(turn.messages)
            if message_rows:
                await connection.execute(messages.insert(), message_rows)
        rejected_groups = [group for group in groups if group[0].conversation.conversation_id not in totals]
        return frozenset(turn.turn_id for group in rejected_groups for turn in group)

    def _build_upsert(self, changed_at: datetime) -> ReturningInsert[Any]:
        """Build the statement that creates conversations or adds to their number of messages.

        It returns the id and new total of each row, and no row for a conversation of another owner.
        """
        insert = self._database.build_insert(conversations)
        return insert.on_conflict_do_update(
            index_elements=["id"],
            set_={"messages": conversations.c.messages + insert.excluded.messages, "updated_at": changed_at},
            where=conversations.c.owner == insert.excluded.owner,
        ).returning(conversations.c.id, conversations.c.messages.label("total"))

    @staticmethod
    async def _select_existing_turn_ids(
        connection: AsyncConnection, turns: Sequence[ConversationTurn]
    ) -> frozenset[str]:
        query = select(messages.c.turn_id).where(
            messages.c.conversation_id.in_({turn.conversation.conversation_id for turn in turns}),
            messages.c.turn_id.in_([turn.turn_id for turn in turns]),
        )
        return frozenset((await connection.scalars(query)).all())

    async def list(self, owner: str | None = None, *, after: str = "", limit: int = 100) -> Page[Conversation]:
        """Return a page of conversations, the last changed first."""
        table = conversations.c
        query = select(conversations) if owner is None else select(conversations).where(table.owner == owner)
        return await fetch_newest_first(
            self._database, query, table.updated_at, table.id, _to_conversation, after=after, limit=limit
        )

    async def rename(self, conversation_id: str, title: str) -> bool:
        """Change the title of a conversation. Return whether it exists."""
        statement = update(conversations).where(conversations.c.id == conversation_id).values(title=title)
        return await self._database.execute(statement) > 0

    async def delete(self, conversation_id: str) -> bool:
        """Delete a conversation and its messages. Return whether it existed."""
        return await self._database.execute(delete(conversations).where(conversations.c.id == conversation_id)) > 0


def scope_turn(turn: ConversationTurn) -> ConversationTurn:
    """Return a rejected turn for a conversation of its owner: another owner stored the same new id first."""
    conversation = turn.conversation
    stored_id = scope_conversation_id(conversation.conversation_id, conversation.owner)
    return replace(turn, conversation=replace(conversation, conversation_id=stored_id))


def _group_by_conversation(turns: Sequence[ConversationTurn]) -> list[list[ConversationTurn]]:
    """Group turns by conversation, sorted by id. One lock order for all processes avoids deadlocks."""
    groups: dict[str, list[ConversationTurn]] = {}
    for turn in turns:
        groups.setdefault(turn.conversation.conversation_id, []).append(turn)
    return [groups[conversation_id] for conversation_id in sorted(groups)]


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
            "body": message_to_json(message, include_parsing=True),
            "created_at": timestamp,
            "turn_id": turn_id,
        }
        for offset, message in enumerate(new_messages)
    ]


def _to_conversation(row: Row[Any]) -> Conversation:
    return to_record(Conversation, row, conversation_id=row.id)
