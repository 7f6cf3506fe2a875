"""Repository of agents: their specs, versions and tool bindings."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any
from uuid import uuid4

from pydantic import ValidationError
from sqlalchemy import Row, Select, delete, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from opposable.domain.errors import BadInput, StoreConflict
from opposable.domain.records import AgentRecord, Page, get_utc_now
from opposable.domain.specs import AgentSpec, AgentToolBinding
from opposable.domain.validation_problems import describe_problems
from opposable.safety.literal_secrets import check_headers
from opposable.store.database import Repository
from opposable.store.pagination import fetch_newest_first
from opposable.store.tables import agent_tools, agent_versions, agents, tools

MAX_ID_LENGTH = 36
"""Characters of an agent id."""


class AgentRepository(Repository):
    """Agents. Tool bindings are rows of their own, returned in the order of their tool ids."""

    async def add(self, spec: AgentSpec) -> AgentRecord:
        """Store a new agent as version 1.

        Raises:
            BadInput: The id is taken or longer than 36 characters, the store lacks a bound tool, or a binding
                holds a literal secret.
        """
        if len(spec.agent_id) > MAX_ID_LENGTH:
            raise BadInput(
                f"The agent id {spec.agent_id!r} has {len(spec.agent_id)} characters; "
                f"the limit is {MAX_ID_LENGTH}. Choose a shorter id."
            )
        _check_bindings(spec.tools)
        created_at = get_utc_now()
        record = AgentRecord(_sort_bindings(spec), 1, created_at, created_at)
        insert = self._database.build_insert(agents).values(**_to_row(record))
        insert = insert.on_conflict_do_nothing(index_elements=["id"])
        try:
            async with self._database.begin_write() as connection:
                if (await connection.execute(insert.returning(agents.c.id))).one_or_none() is None:
                    raise BadInput(
                        f"The agent {spec.agent_id!r} already exists. Update it, or choose another agent_id."
                    )
                await _insert_version_and_bindings(connection, record)
        except IntegrityError as error:
            raise await self._build_missing_tool_error(spec) from error
        return record

    async def update(self, spec: AgentSpec, *, expected_version: int | None = None) -> AgentRecord | None:
        """Store a changed agent as a new version. An unchanged spec creates no version.

        Returns:
            The current record, or None when the agent does not exist.

        Raises:
            StoreConflict: `expected_version` is not the stored version.
            BadInput: The store lacks a bound tool, or a new binding holds a literal secret.
        """
        return await self._update_spec(spec.agent_id, lambda _: spec, expected_version)

    async def bind(self, agent_id: str, binding: AgentToolBinding) -> AgentRecord | None:
        """Bind a tool to an agent, or change its binding.

        Raises:
            BadInput: The store lacks the tool, or the binding holds a literal secret.
        """
        return await self._update_spec(agent_id, lambda spec: _replace_binding(spec, binding.tool_id, binding))

    async def unbind(self, agent_id: str, tool_id: str) -> AgentRecord | None:
        """Remove a tool from an agent. Return None when the agent does not exist."""
        return await self._update_spec(agent_id, lambda spec: _replace_binding(spec, tool_id))

    async def get(self, agent_id: str) -> AgentRecord | None:
        """Return the agent with this id."""
        agent_rows, binding_rows = await self._database.fetch_inline(
            select(agents).where(agents.c.id == agent_id), _select_bindings(agent_id)
        )
        return _to_record(agent_rows[0], binding_rows) if agent_rows else None

    async def list(self, *, after: str = "", limit: int = 100) -> Page[AgentRecord]:
        """Return a page of agents, the last changed first.

        `after` is the cursor of the previous page, `limit` a number from 1 to 1000.
        """
        page = await fetch_newest_first(
            self._database, select(agents), agents.c.updated_at, agents.c.id, lambda row: row, after=after, limit=limit
        )
        agent_ids = [row.id for row in page.items]
        query = select(agent_tools).where(agent_tools.c.agent_id.in_(agent_ids)).order_by(agent_tools.c.tool_id)
        binding_rows = await self._database.fetch(query)
        records = [
            _to_record(row, [binding for binding in binding_rows if binding.agent_id == row.id]) for row in page.items
        ]
        return Page(tuple(records), page.next_cursor)

    async def list_versions(self, agent_id: str) -> tuple[AgentRecord, ...]:
        """Return every version of an agent, newest first. `updated_at` is the version's creation time."""
        query = select(agent_versions).where(agent_versions.c.agent_id == agent_id)
        rows = await self._database.fetch(query.order_by(agent_versions.c.version.desc()))
        created_at = rows[-1].created_at if rows else None
        return tuple(
            AgentRecord(_parse_spec(row.agent_id, row.spec), row.version, created_at, row.created_at) for row in rows
        )

    async def delete(self, agent_id: str) -> bool:
        """Delete an agent, its versions and its bindings. Return whether it existed."""
        async with self._database.begin_write() as connection:
            await connection.execute(delete(agent_tools).where(agent_tools.c.agent_id == agent_id))
            result = await connection.execute(delete(agents).where(agents.c.id == agent_id))
        return result.rowcount > 0

    async def _update_spec(
        self, agent_id: str, edit_spec: Callable[[AgentSpec], AgentSpec], expected_version: int | None = None
    ) -> AgentRecord | None:
        new_spec: AgentSpec | None = None
        try:
            async with self._database.begin_write() as connection:
                current = await _select_agent_for_update(connection, agent_id)
                if current is None:
                    return None
                if expected_version is not None and current.version != expected_version:
                    raise StoreConflict(
                        f"Agent {agent_id!r} is at version {current.version}; the change is based on version "
                        f"{expected_version}. Read the agent again and repeat the change."
                    )
                new_spec = _sort_bindings(edit_spec(current.spec))
                _check_bindings(binding for binding in new_spec.tools if binding not in current.spec.tools)
                if new_spec == current.spec:
                    return current
                record = AgentRecord(new_spec, current.version + 1, current.created_at, get_utc_now())
                await connection.execute(update(agents).where(agents.c.id == agent_id).values(**_to_row(record)))
                await _insert_version_and_bindings(connection, record)
        except IntegrityError as error:
            assert new_spec is not None
            raise await self._build_missing_tool_error(new_spec) from error
        return record

    async def _build_missing_tool_error(self, spec: AgentSpec) -> BadInput:
        tool_ids = [binding.tool_id for binding in spec.tools]
        async with self._database.begin_read() as connection:
            stored_ids = set(await connection.scalars(select(tools.c.id).where(tools.c.id.in_(tool_ids))))
        missing = ", ".join(tool_id for tool_id in tool_ids if tool_id not in stored_ids)
        return BadInput(f"Agent {spec.agent_id!r} cannot have tools that are not stored: {missing}. Add them first.")


def _select_bindings(agent_id: str) -> Select[Any]:
    return select(agent_tools).where(agent_tools.c.agent_id == agent_id).order_by(agent_tools.c.tool_id)


async def _select_agent_for_update(connection: AsyncConnection, agent_id: str) -> AgentRecord | None:
    query = select(agents).where(agents.c.id == agent_id).with_for_update()
    row = (await connection.execute(query)).one_or_none()
    if row is None:
        return None
    return _to_record(row, (await connection.execute(_select_bindings(agent_id))).all())


async def _insert_version_and_bindings(connection: AsyncConnection, record: AgentRecord) -> None:
    """Insert the whole spec as a version, and the bindings as rows of their own."""
    agent_id, changed_at = record.spec.agent_id, record.updated_at
    version_row = {
        "agent_id": agent_id,
        "version": record.version,
        "spec": record.spec.model_dump(mode="json"),
        "created_at": changed_at,
    }
    await connection.execute(agent_versions.insert().values(**version_row))
    await connection.execute(delete(agent_tools).where(agent_tools.c.agent_id == agent_id))
    binding_rows = [
        {
            "id": str(uuid4()),
            "agent_id": agent_id,
            "tool_id": binding.tool_id,
            "enabled": binding.enabled,
            "config": binding.config,
            "created_at": changed_at,
            "updated_at": changed_at,
        }
        for binding in record.spec.tools
    ]
    if binding_rows:
        await connection.execute(agent_tools.insert(), binding_rows)


def _replace_binding(spec: AgentSpec, tool_id: str, *new_bindings: AgentToolBinding) -> AgentSpec:
    """Return the spec with new bindings in place of those of a tool."""
    other_bindings = [binding for binding in spec.tools if binding.tool_id != tool_id]
    return spec.model_copy(update={"tools": (*other_bindings, *new_bindings)})


def _sort_bindings(spec: AgentSpec) -> AgentSpec:
    """Return the spec with each tool bound once, sorted by tool id. The last of several bindings wins."""
    bindings = {binding.tool_id: binding for binding in spec.tools}
    return spec.model_copy(update={"tools": tuple(bindings[tool_id] for tool_id in sorted(bindings))})


def _check_bindings(bindings: Iterable[AgentToolBinding]) -> None:
    """Reject bindings that put a literal secret into a header. Raises: `BadInput`."""
    for binding in bindings:
        for config in (binding.config, binding.config.get("endpoint")):
            headers = config.get("headers") if isinstance(config, dict) else None
            if isinstance(headers, dict):
                check_headers(headers, binding.tool_id)


def _to_row(record: AgentRecord) -> dict[str, Any]:
    return {
        "id": record.spec.agent_id,
        "name": record.spec.name,
        "spec": record.spec.model_dump(mode="json", exclude={"agent_id", "name", "tools"}),
        "version": record.version,
        "created_at": record.created_at,
        "updated_at": record.updated_at,
    }


def _to_record(row: Row[Any], binding_rows: Sequence[Row[Any]]) -> AgentRecord:
    bindings = [
        {"tool_id": binding.tool_id, "enabled": binding.enabled is not False, "config": binding.config or {}}
        for binding in binding_rows
    ]
    spec_data = {**row.spec, "agent_id": row.id, "name": row.name, "tools": bindings}
    return AgentRecord(_parse_spec(row.id, spec_data), row.version, row.created_at, row.updated_at)


def _parse_spec(agent_id: str, data: dict[str, Any]) -> AgentSpec:
    try:
        return AgentSpec.model_validate(data)
    except ValidationError as error:
        problem = describe_problems(error, AgentSpec, limit=1)
        raise BadInput(f"The stored agent {agent_id!r} is not valid: {problem}. Save the agent again.") from error
