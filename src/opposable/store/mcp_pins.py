"""Repository of pins: the accepted definitions of MCP tools."""

from dataclasses import fields
from typing import Any

from sqlalchemy import select, update

from opposable.domain.records import ToolPin, get_utc_now
from opposable.store.database import Repository
from opposable.store.rows import to_record, to_row
from opposable.store.tables import mcp_pins


class McpPinRepository(Repository):
    """Pins of the tools of each MCP server."""

    async def put(self, *pins: ToolPin) -> None:
        """Store pins. Each replaces the pin of the same server and tool."""
        insert = self._database.build_insert(mcp_pins)
        key = ("server_id", "tool")
        values = {field.name: insert.excluded[field.name] for field in fields(ToolPin) if field.name not in key}
        upsert = insert.on_conflict_do_update(index_elements=key, set_=values)
        rows = [to_row(pin) for pin in sorted(pins, key=lambda pin: pin.tool)]  # one lock order
        async with self._database.begin_write() as connection:
            await connection.execute(upsert, rows)

    async def list_for_server(self, server_id: str) -> tuple[ToolPin, ...]:
        """Return the pins of a server, ordered by tool name."""
        query = select(mcp_pins).where(mcp_pins.c.server_id == server_id).order_by(mcp_pins.c.tool)
        return tuple(to_record(ToolPin, row) for row in await self._database.fetch(query))

    async def accept(self, server_id: str, tool: str, sha256: str) -> bool:
        """Accept the changed definition with this digest. Return whether it was pending."""
        if not sha256:
            return False
        is_pending = (
            (mcp_pins.c.server_id == server_id) & (mcp_pins.c.tool == tool) & (mcp_pins.c.pending_sha256 == sha256)
        )
        accepted: dict[str, Any] = {
            "sha256": mcp_pins.c.pending_sha256,
            "definition": mcp_pins.c.pending,
            "pending_sha256": "",
            "pending": None,
            "pinned_at": get_utc_now(),
        }
        return await self._database.execute(update(mcp_pins).where(is_pending).values(**accepted)) > 0
