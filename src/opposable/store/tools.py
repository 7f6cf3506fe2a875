"""Repository of stored tools: the columns of the seed schema, plus a column for other fields."""

from typing import Any

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import Row, delete, select, update
from sqlalchemy.exc import IntegrityError

from opposable.domain.errors import BadInput
from opposable.domain.records import Page, get_utc_now
from opposable.domain.specs import NO_PARAMETERS, AnyToolSpec, HttpToolSpec, McpServerSpec, ToolSpec, ToolType
from opposable.domain.validation_problems import describe_problems
from opposable.safety.literal_secrets import check_headers
from opposable.store.database import StoreDatabase
from opposable.store.pagination import validate_limit
from opposable.store.tables import agent_tools, tools

_SPEC_ADAPTER: TypeAdapter[AnyToolSpec] = TypeAdapter(AnyToolSpec)
_COLUMN_FIELDS = ("display_name", "description", "category", "enabled", "version", "rate_limit")


class ToolRepository:
    """Specs of stored tools."""

    def __init__(self, database: StoreDatabase) -> None:
        self._database = database

    async def add(self, spec: AnyToolSpec) -> None:
        """Store a new tool.

        Raises:
            BadInput: Its id or name is taken, a text is longer than its column, or a header holds a literal secret.
        """
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
                f"The tool {spec.tool_id!r} already exists. Update it, or choose another tool_id."
            ) from error

    async def save(self, spec: AnyToolSpec) -> None:
        """Store a new or changed tool.

        Raises:
            BadInput: Another tool has its name, a text is longer than its column, or a header holds a literal secret.
        """
        row = _to_row(spec)
        new_values = {name: value for name, value in row.items() if name != "id"} | {"updated_at": get_utc_now()}
        insert = self._database.build_insert(tools).values(**row, created_at=get_utc_now(), updated_at=get_utc_now())
        try:
            async with self._database.begin_write() as connection:
                await connection.execute(insert.on_conflict_do_update(index_elements=["id"], set_=new_values))
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

        Args:
            after: The cursor of the previous page.
            limit: The number of tools, from 1 to 1000.
            enabled: Only tools that are enabled, or disabled.
            tool_type: Only tools of this type.
        """
        query = select(tools).where(tools.c.id > after).order_by(tools.c.id).limit(validate_limit(limit) + 1)
        if enabled is not None:
            query = query.where(tools.c.enabled.is_(enabled))
        if tool_type is not None:
            query = query.where(tools.c.tool_type == tool_type)
        async with self._database.begin_read() as connection:
            rows = (await connection.execute(query)).all()
        specs: list[AnyToolSpec] = []
        unreadable_rows: dict[str, str] = {}
        for row in rows[:limit]:
            try:
                specs.append(_to_spec(row))
            except BadInput as error:
                unreadable_rows[row.id] = str(error)
        return Page(tuple(specs), rows[limit - 1].id if len(rows) > limit else "", unreadable_rows)

    async def set_enabled(self, tool_id: str, enabled: bool) -> bool:
        """Enable or disable a tool. Return whether it exists."""
        async with self._database.begin_write() as connection:
            result = await connection.execute(
                update(tools).where(tools.c.id == tool_id).values(enabled=enabled, updated_at=get_utc_now())
            )
        return result.rowcount > 0

    async def delete(self, tool_id: str) -> bool:
        """Delete a tool and the agents' bindings to it. Return whether it existed."""
        async with self._database.begin_write() as connection:
            await connection.execute(delete(agent_tools).where(agent_tools.c.tool_id == tool_id))
            result = await connection.execute(delete(tools).where(tools.c.id == tool_id))
        return result.rowcount > 0


def _build_name_taken_error(name: str) -> BadInput:
    return BadInput(f"Another tool has the name {name!r}. Choose a different name.")


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
    try:
        return _SPEC_ADAPTER.validate_python({**row.spec, **data})
    except ValidationError as error:
        problem = describe_problems(error, AnyToolSpec, limit=1)
        raise BadInput(f"The stored tool {row.id!r} is not valid: {problem}. Save the tool again.") from error
