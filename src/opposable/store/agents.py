"""Agents as data: their specs, every version of them, and the tools bound to them."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

from pydantic import ValidationError
from sqlalchemy import Row, delete, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from opposable.domain.errors import BadInput, StoreConflict
from opposable.domain.records import AgentRecord, Page, get_utc_now
from opposable.domain.specs import AgentSpec, AgentToolBinding
from opposable.store.database import StoreDatabase
from opposable.store.pagination import fetch_newest_first
from opposable.store.tables import agent_tools, agent_versions, agents

MAX_ID_LENGTH = 36


class AgentRepository:
    """Agents. The tools bound to one are rows of their own, kept and told in the order of their ids."""

    def __init__(self, database: StoreDatabase) -> None:
        self._database = database

    async def add(self, spec: AgentSpec) -> AgentRecord:
        """Keep a new agent as version 1.

        Raises: `BadInput` when its id is taken or longer than 36 characters, or a tool it names is not in the store.
        """
        if len(spec.agent_id) > MAX_ID_LENGTH:
            raise BadInput(
                f"The agent id {spec.agent_id!r} has {len(spec.agent_id)} characters; at most {MAX_ID_LENGTH} are kept."
            )
        moment = get_utc_now()
        kept = AgentRecord(_sort_bindings(spec), 1, moment, moment)
        insert = (
            self._database.build_insert(agents).values(**_to_row(kept)).on_conflict_do_nothing(index_elements=["id"])
        )
        try:
            async with self._database.begin_write() as connection:
                if (await connection.execute(insert.returning(agents.c.id))).one_or_none() is None:
                    raise BadInput(
                        f"There is an agent {spec.agent_id!r} already; update it, or choose another agent_id."
                    )
                await _insert_version_and_bindings(connection, kept)
        except IntegrityError as error:
            raise _build_missing_tool_error(spec) from error
        return kept

    async def update(self, spec: AgentSpec, *, expected_version: int | None = None) -> AgentRecord | None:
        """Keep a changed agent as a new version; what is as it was makes none. None when there is no such agent.

        Raises: `StoreConflict` when `expected` is given and is not its version, `BadInput` when a tool it names is not
        in the store.
        """
        return await self._update_spec(spec.agent_id, lambda _: spec, expected_version)

    async def bind(self, agent_id: str, binding: AgentToolBinding) -> AgentRecord | None:
        """Bind a tool to an agent, or change how it is bound. Raises: `BadInput` when there is no such tool."""

        def bound(spec: AgentSpec) -> AgentSpec:
            others = [other for other in spec.tools if other.tool_id != binding.tool_id]
            return spec.model_copy(update={"tools": (*others, binding)})

        return await self._update_spec(agent_id, bound, None)

    async def unbind(self, agent_id: str, tool_id: str) -> AgentRecord | None:
        """Take a tool from an agent; None when there is no such agent."""

        def unbound(spec: AgentSpec) -> AgentSpec:
            return spec.model_copy(update={"tools": tuple(each for each in spec.tools if each.tool_id != tool_id)})

        return await self._update_spec(agent_id, unbound, None)

    async def get(self, agent_id: str) -> AgentRecord | None:
        """The agent of that id."""
        async with self._database.begin_inline_read() as connection:
            return await _select_agent(connection, agent_id)

    async def list(self, *, after: str = "", limit: int = 100) -> Page[AgentRecord]:
        """Agents, the last changed first; `after` is the last part's cursor."""
        query = select(agents)
        page = await fetch_newest_first(
            self._database, query, agents.c.updated_at, agents.c.id, lambda row: row, after=after, limit=limit
        )
        ids = [row.id for row in page.items]
        bound = select(agent_tools).where(agent_tools.c.agent_id.in_(ids)).order_by(agent_tools.c.tool_id)
        async with self._database.begin_read() as connection:
            bindings = (await connection.execute(bound)).all()
        found = [_to_record(row, [one for one in bindings if one.agent_id == row.id]) for row in page.items]
        return Page(tuple(found), page.next_cursor)

    async def list_versions(self, agent_id: str) -> tuple[AgentRecord, ...]:
        """Every version of an agent, newest first; `updated_at` is when it came to be."""
        query = select(agent_versions).where(agent_versions.c.agent_id == agent_id)
        async with self._database.begin_read() as connection:
            rows = (await connection.execute(query.order_by(agent_versions.c.version.desc()))).all()
        born = rows[-1].created_at if rows else None
        return tuple(
            AgentRecord(_parse_spec(row.agent_id, row.spec), row.version, born, row.created_at) for row in rows
        )

    async def delete(self, agent_id: str) -> bool:
        """Forget an agent, its versions and bindings. Returns whether there was one."""
        async with self._database.begin_write() as connection:
            await connection.execute(delete(agent_tools).where(agent_tools.c.agent_id == agent_id))
            done = await connection.execute(delete(agents).where(agents.c.id == agent_id))
        return done.rowcount > 0

    async def _update_spec(
        self, agent_id: str, edit_spec: Callable[[AgentSpec], AgentSpec], expected_version: int | None
    ) -> AgentRecord | None:
        wanted: AgentSpec | None = None
        try:
            async with self._database.begin_write() as connection:
                there = await _select_agent(connection, agent_id, for_update=True)
                if there is None:
                    return None
                if expected_version is not None and there.version != expected_version:
                    raise StoreConflict(
                        f"Agent {agent_id!r} is at version {there.version}; this change was made from {expected_version}."
                    )
                wanted = _sort_bindings(edit_spec(there.spec))
                if wanted == there.spec:
                    return there
                kept = AgentRecord(wanted, there.version + 1, there.created_at, get_utc_now())
                await connection.execute(update(agents).where(agents.c.id == agent_id).values(**_to_row(kept)))
                await _insert_version_and_bindings(connection, kept)
        except IntegrityError as error:
            assert wanted is not None
            raise _build_missing_tool_error(wanted) from error
        return kept


async def _select_agent(connection: AsyncConnection, agent_id: str, *, for_update: bool = False) -> AgentRecord | None:
    query = select(agents).where(agents.c.id == agent_id)
    row = (await connection.execute(query.with_for_update() if for_update else query)).one_or_none()
    if row is None:
        return None
    bound = select(agent_tools).where(agent_tools.c.agent_id == agent_id).order_by(agent_tools.c.tool_id)
    return _to_record(row, (await connection.execute(bound)).all())


async def _insert_version_and_bindings(connection: AsyncConnection, record: AgentRecord) -> None:
    """The version as a whole, and the bindings as rows."""
    agent_id, moment = record.spec.agent_id, record.updated_at
    version = {
        "agent_id": agent_id,
        "version": record.version,
        "spec": record.spec.model_dump(mode="json"),
        "created_at": moment,
    }
    await connection.execute(agent_versions.insert().values(**version))
    await connection.execute(delete(agent_tools).where(agent_tools.c.agent_id == agent_id))
    rows = [
        {
            "id": str(uuid4()),
            "agent_id": agent_id,
            "tool_id": binding.tool_id,
            "enabled": binding.enabled,
            "config": binding.config,
            "created_at": moment,
            "updated_at": moment,
        }
        for binding in record.spec.tools
    ]
    if rows:
        await connection.execute(agent_tools.insert(), rows)


def _sort_bindings(spec: AgentSpec) -> AgentSpec:
    """The spec with each tool once, the last binding counting, in the order of ids."""
    bindings = {binding.tool_id: binding for binding in spec.tools}
    return spec.model_copy(update={"tools": tuple(bindings[tool_id] for tool_id in sorted(bindings))})


def _to_row(record: AgentRecord) -> dict[str, Any]:
    return {
        "id": record.spec.agent_id,
        "name": record.spec.name,
        "spec": record.spec.model_dump(mode="json", exclude={"agent_id", "name", "tools"}),
        "version": record.version,
        "created_at": record.created_at,
        "updated_at": record.updated_at,
    }


def _to_record(row: Row[Any], binding_rows: Any) -> AgentRecord:
    bound = [
        {"tool_id": each.tool_id, "enabled": each.enabled is not False, "config": each.config or {}}
        for each in binding_rows
    ]
    data = {**row.spec, "agent_id": row.id, "name": row.name, "tools": bound}
    return AgentRecord(_parse_spec(row.id, data), row.version, row.created_at, row.updated_at)


def _parse_spec(agent_id: str, data: dict[str, Any]) -> AgentSpec:
    try:
        return AgentSpec.model_validate(data)
    except ValidationError as error:
        wrong = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in wrong["loc"])
        raise BadInput(f"The row of agent {agent_id!r} describes no agent: {where}: {wrong['msg']}.") from error


def _build_missing_tool_error(spec: AgentSpec) -> BadInput:
    names = ", ".join(binding.tool_id for binding in spec.tools)
    return BadInput(
        f"A tool bound to agent {spec.agent_id!r} is not in the store; add it first. The tools are: {names}."
    )
