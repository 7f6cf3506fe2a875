"""Tools as rows: doc 002's columns, and beside them what else a spec says."""

from typing import Any

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import Row, delete, select, update
from sqlalchemy.exc import IntegrityError

from opposable.domain.errors import BadInput
from opposable.domain.records import Page, get_utc_now
from opposable.domain.specs import NO_PARAMETERS, AnyToolSpec, ToolSpec, ToolType
from opposable.store.database import StoreDatabase
from opposable.store.pagination import validate_limit
from opposable.store.tables import agent_tools, tools

_SPEC_ADAPTER: TypeAdapter[AnyToolSpec] = TypeAdapter(AnyToolSpec)
_COLUMN_FIELDS = ("display_name", "description", "category", "enabled", "version", "rate_limit")


class ToolRepository:
    """The tools an owner has described."""

    def __init__(self, database: StoreDatabase) -> None:
        self._database = database

    async def add(self, spec: AnyToolSpec) -> None:
        """Keep a new tool. Raises: `BadInput` when its id or name is taken, or a text is longer than its column."""
        row = _to_row(spec)
        try:
            async with self._database.begin_write() as connection:
                await connection.execute(
                    tools.insert().values(**row, created_at=get_utc_now(), updated_at=get_utc_now())
                )
        except IntegrityError as error:
            if await self.get(spec.tool_id) is None:
                raise _build_name_taken_error(row["name"]) from error
            raise BadInput(
                f"There is a tool {spec.tool_id!r} already; update it, or choose another tool_id."
            ) from error

    async def save(self, spec: AnyToolSpec) -> None:
        """Keep a tool, new or changed. Raises: `BadInput` when another has its name, or a text is longer than its column."""
        row = _to_row(spec)
        changed = {name: value for name, value in row.items() if name != "id"} | {"updated_at": get_utc_now()}
        insert = self._database.build_insert(tools).values(**row, created_at=get_utc_now(), updated_at=get_utc_now())
        try:
            async with self._database.begin_write() as connection:
                await connection.execute(insert.on_conflict_do_update(index_elements=["id"], set_=changed))
        except IntegrityError as error:
            raise _build_name_taken_error(row["name"]) from error

    async def get(self, tool_id: str) -> AnyToolSpec | None:
        """The tool of that id. Raises: `BadInput` when its row was changed by hand into what is no tool."""
        [rows] = await self._database.fetch_inline(select(tools).where(tools.c.id == tool_id))
        return _to_spec(rows[0]) if rows else None

    async def list(
        self, *, after: str = "", limit: int = 100, enabled: bool | None = None, tool_type: ToolType | None = None
    ) -> Page[AnyToolSpec]:
        """Tools by id; `after` is the last part's cursor. A row that is no tool is set aside with the reason."""
        query = select(tools).where(tools.c.id > after).order_by(tools.c.id).limit(validate_limit(limit) + 1)
        if enabled is not None:
            query = query.where(tools.c.enabled.is_(enabled))
        if tool_type is not None:
            query = query.where(tools.c.tool_type == tool_type)
        async with self._database.begin_read() as connection:
            rows = (await connection.execute(query)).all()
        found: list[AnyToolSpec] = []
        set_aside: dict[str, str] = {}
        for row in rows[:limit]:
            try:
                found.append(_to_spec(row))
            except BadInput as error:
                set_aside[row.id] = str(error)
        return Page(tuple(found), rows[limit - 1].id if len(rows) > limit else "", set_aside)

    async def set_enabled(self, tool_id: str, enabled: bool) -> bool:
        """Switch a tool on or off. Returns whether there is one."""
        async with self._database.begin_write() as connection:
            done = await connection.execute(
                update(tools).where(tools.c.id == tool_id).values(enabled=enabled, updated_at=get_utc_now())
            )
        return done.rowcount > 0

    async def delete(self, tool_id: str) -> bool:
        """Forget a tool and the agents' bindings to it. Returns whether there was one."""
        async with self._database.begin_write() as connection:
            await connection.execute(delete(agent_tools).where(agent_tools.c.tool_id == tool_id))
            done = await connection.execute(delete(tools).where(tools.c.id == tool_id))
        return done.rowcount > 0


def _build_name_taken_error(name: str) -> BadInput:
    return BadInput(f"There is another tool of the name {name!r}; choose another name.")


def _to_row(spec: ToolSpec) -> dict[str, Any]:
    """A spec in columns. What has no column of its own goes into `spec`."""
    rest = spec.model_dump(mode="json")
    row: dict[str, Any] = {name: rest.pop(name) for name in _COLUMN_FIELDS}
    row["id"] = rest.pop("tool_id")
    row["name"] = spec.name or spec.tool_id
    row["type"] = rest.pop("mode")
    row["tags"] = rest.pop("tags")
    row["tool_type"] = rest.pop("tool_type")
    row["endpoint"] = rest.pop("endpoint", {})
    row["parameters"] = rest.pop("parameters", NO_PARAMETERS)
    row["response_transform"] = rest.pop("response_transform", None)
    row["spec"] = rest
    for name, value in row.items():
        longest = getattr(tools.c[name].type, "length", None)
        if longest is not None and isinstance(value, str) and len(value) > longest:
            raise BadInput(f"{name} of tool {spec.tool_id!r} has {len(value)} characters; at most {longest} are kept.")
    return row


def _to_spec(row: Row[Any]) -> AnyToolSpec:
    data = {name: getattr(row, name) for name in _COLUMN_FIELDS}
    if row.name != row.id:  # else the name is the id's, or kept beside it
        data["name"] = row.name
    data |= {"tool_id": row.id, "mode": row.type, "tags": row.tags or (), "tool_type": row.tool_type}
    if row.tool_type == "http":
        data |= {"endpoint": row.endpoint, "parameters": row.parameters}
        data |= {"response_transform": row.response_transform or {}}
    data = {name: value for name, value in data.items() if value is not None}
    try:
        return _SPEC_ADAPTER.validate_python({**row.spec, **data})
    except ValidationError as error:
        wrong = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in wrong["loc"])
        raise BadInput(f"The row of tool {row.id!r} describes no tool: {where}: {wrong['msg']}.") from error
