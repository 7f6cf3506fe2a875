"""Repository of stored tools: the columns of the seed schema, a column for other fields, and their versions."""

import contextlib
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import Row, delete, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from opposable.domain.errors import BadInput
from opposable.domain.records import Page, ToolVersion, get_utc_now
from opposable.domain.specs import NO_PARAMETERS, AnyToolSpec, HttpToolSpec, McpServerSpec, ToolSpec, ToolType
from opposable.domain.validation_problems import describe_problems
from opposable.safety.literal_secrets import check_headers
from opposable.store.database import Repository
from opposable.store.pagination import validate_limit
from opposable.store.tables import agent_tools, tool_versions, tools

_SPEC_ADAPTER: TypeAdapter[AnyToolSpec] = TypeAdapter(AnyToolSpec)
_COLUMN_FIELDS = ("display_name", "description", "category", "enabled", "version", "rate_limit")

MAX_TOOL_VERSIONS = 50
"""Versions that the store holds of a tool; the oldest is deleted first."""


class ToolRepository(Repository):
    """Specs of stored tools."""

    async def add(self, spec: AnyToolSpec, *, saved_by: str = "") -> None:
        """Store a new tool as version 1.

        Raises:
            BadInput: Its id or name is taken, a text is longer than its column, or a header holds a literal secret.
        """
        row = _to_row(spec)
        try:
            async with self._database.begin_write() as connection:
                await connection.execute(
                    tools.insert().values(**row, created_at=get_utc_now(), updated_at=get_utc_now())
                )
                await _insert_version(connection, spec, saved_by, get_utc_now())
        except IntegrityError as error:
            if await self.get(spec.tool_id) is None:
                raise _build_name_taken_error(row["name"]) from error
            raise BadInput(
                f"The tool {spec.tool_id!r} already exists. Update it, or choose another tool_id."
            ) from error

    async def save(self, spec: AnyToolSpec, *, saved_by: str = "") -> None:
        """Store a new or changed tool. A changed spec becomes the next version.

        `saved_by` is the name of the API key that saves it.

        Raises:
            BadInput: Another tool has its name, a text is longer than its column, or a header holds a literal secret.
        """
        row = _to_row(spec)
        new_values = {name: value for name, value in row.items() if name != "id"} | {"updated_at": get_utc_now()}
        insert = self._database.build_insert(tools).values(**row, created_at=get_utc_now(), updated_at=get_utc_now())
        try:
            async with self._database.begin_write() as connection:
                query = select(tools).where(tools.c.id == spec.tool_id).with_for_update()
                previous_row = (await connection.execute(query)).one_or_none()
                if previous_row is not None:  # written before versions existed, or with SQL
                    with contextlib.suppress(BadInput):  # not a valid spec
                        previous_time = previous_row.updated_at or get_utc_now()
                        await _insert_version(connection, _to_spec(previous_row), "", previous_time)
                await connection.execute(insert.on_conflict_do_update(index_elements=["id"], set_=new_values))
                await _insert_version(connection, spec, saved_by, get_utc_now())
        except IntegrityError as error:
            raise _build_name_taken_error(row["name"]) from error

    async def get(self, tool_id: str) -> AnyToolSpec | None:
        """Return the tool with this id.

        Raises:
            BadInput: The row is not a valid spec.
        """
        [rows] = await self._database.fetch_inline(select(tools).where(tools.c.id == tool_id))
        return _to_spec(rows[0]) if rows else None

    async def list(
        self, *, after: str = "", limit: int = 100, enabled: bool | None = None, tool_type: ToolType | None = None
    ) -> Page[AnyToolSpec]:
        """Return a page of tools, ordered by id. Invalid rows are in its `unreadable_rows`.

        `after` is the cursor of the previous page, `limit` a number from 1 to 1000.
        """
        query = select(tools).where(tools.c.id > after).order_by(tools.c.id).limit(validate_limit(limit) + 1)
        if enabled is not None:
            query = query.where(tools.c.enabled.is_(enabled))
        if tool_type is not None:
            query = query.where(tools.c.tool_type == tool_type)
        rows = await self._database.fetch(query)
        specs: list[AnyToolSpec] = []
        unreadable_rows: dict[str, str] = {}
        for row in rows[:limit]:
            try:
                specs.append(_to_spec(row))
            except BadInput as error:
                unreadable_rows[row.id] = str(error)
        return Page(tuple(specs), rows[limit - 1].id if len(rows) > limit else "", unreadable_rows)

    async def list_versions(self, tool_id: str) -> tuple[ToolVersion, ...]:
        """Return the stored versions of a tool, newest first.

        A tool that was stored before versions existed has none until it is saved again.
        """
        query = select(tool_versions).where(tool_versions.c.tool_id == tool_id)
        rows = await self._database.fetch(query.order_by(tool_versions.c.version.desc()))
        return tuple(
            ToolVersion(_parse_spec(tool_id, row.spec), row.version, row.saved_by, row.created_at) for row in rows
        )

    async def set_enabled(self, tool_id: str, enabled: bool) -> bool:
        """Enable or disable a tool. Return whether it exists."""
        values = {"enabled": enabled, "updated_at": get_utc_now()}
        return await self._database.execute(update(tools).where(tools.c.id == tool_id).values(**values)) > 0

    async def delete(self, tool_id: str) -> bool:
        """Delete a tool, its versions and the agents' bindings to it. Return whether it existed."""
        async with self._database.begin_write() as connection:
            await connection.execute(delete(agent_tools).where(agent_tools.c.tool_id == tool_id))
            result = await connection.execute(delete(tools).where(tools.c.id == tool_id))
        return result.rowcount > 0


def _build_name_taken_error(name: str) -> BadInput:
    return BadInput(f"Another tool has the name {name!r}. Choose a different name.")


async def _insert_version(connection: AsyncConnection, spec: AnyToolSpec, saved_by: str, saved_at: datetime) -> None:
    """Insert a spec as the next version of its tool, unless it equals the newest one. Delete the oldest versions."""
    of_tool = tool_versions.c.tool_id == spec.tool_id
    query = select(tool_versions).where(of_tool).order_by(tool_versions.c.version.desc()).limit(1)
    newest = (await connection.execute(query)).one_or_none()
    data = spec.model_dump(mode="json", exclude_defaults=True, exclude={"enabled"})
    data |= {"tool_id": spec.tool_id, "tool_type": spec.tool_type}
    if newest is not None and newest.spec == data:
        return
    version = newest.version + 1 if newest is not None else 1
    row = {"tool_id": spec.tool_id, "version": version, "spec": data, "saved_by": saved_by, "created_at": saved_at}
    await connection.execute(tool_versions.insert().values(**row))
    await connection.execute(
        delete(tool_versions).where(of_tool, tool_versions.c.version <= version - MAX_TOOL_VERSIONS)
    )


def _to_row(spec: ToolSpec) -> dict[str, Any]:
    """Return the row of a spec. Fields without a column of their own go into the column `spec`."""
    match spec:
        case HttpToolSpec(endpoint=endpoint):
            check_headers(endpoint.headers, spec.tool_id)
        case McpServerSpec(headers=headers):
            check_headers(headers, spec.tool_id)
    other_fields = spec.model_dump(mode="json")
    row: dict[str, Any] = {name: other_fields.pop(name) for name in _COLUMN_FIELDS}
    row["id"] = other_fields.pop("tool_id")
    row["name"] = spec.name or spec.tool_id
    row["type"] = other_fields.pop("mode")
    row["tags"] = other_fields.pop("tags")
    row["tool_type"] = other_fields.pop("tool_type")
    row["endpoint"] = other_fields.pop("endpoint", {})
    row["parameters"] = other_fields.pop("parameters", NO_PARAMETERS)
    row["response_transform"] = other_fields.pop("response_transform", None)
    row["spec"] = other_fields
    for name, value in row.items():
        max_length = getattr(tools.c[name].type, "length", None)
        if max_length is not None and isinstance(value, str) and len(value) > max_length:
            raise BadInput(
                f"{name} of tool {spec.tool_id!r} has {len(value)} characters; the limit is {max_length}. Shorten it."
            )
    return row


def _to_spec(row: Row[Any]) -> AnyToolSpec:
    data = {name: getattr(row, name) for name in _COLUMN_FIELDS}
    if row.name != row.id:  # otherwise the spec has no name of its own, or holds it in `spec`
        data["name"] = row.name
    data |= {"tool_id": row.id, "mode": row.type, "tags": row.tags or (), "tool_type": row.tool_type}
    if row.tool_type == "http":
        data |= {"endpoint": row.endpoint, "parameters": row.parameters}
        data |= {"response_transform": row.response_transform or {}}
    data = {name: value for name, value in data.items() if value is not None}
    return _parse_spec(row.id, {**row.spec, **data})


def _parse_spec(tool_id: str, data: dict[str, Any]) -> AnyToolSpec:
    try:
        return _SPEC_ADAPTER.validate_python(data)
    except ValidationError as error:
        problem = describe_problems(error, AnyToolSpec, limit=1)
        raise BadInput(f"The stored tool {tool_id!r} is not valid: {problem}. Save the tool again.") from error
