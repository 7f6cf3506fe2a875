"""Pins of accepted MCP tools: the SHA-256 of the whole tool object."""

import asyncio
from pathlib import Path
from typing import Any, Protocol

import orjson
from pydantic import TypeAdapter, ValidationError

from opposable.domain.errors import BadInput
from opposable.domain.records import ToolPin


class PinStore(Protocol):
    """Stores pins: in a table, a file or memory.

    A pin without `sha256` belongs to a tool that was seen and not yet accepted.
    """

    async def get(self, server_id: str, tool: str) -> ToolPin | None:
        """Return the pin of a server's tool, None if it was never seen.

        Raises:
            StoreError: The store cannot be reached.
            BadInput: The stored pins cannot be read.
        """
        ...

    async def put(self, pin: ToolPin) -> None:
        """Store a pin and replace the previous one of the tool. Raises: as `get`."""
        ...


class MemoryPinStore:
    """Pins in memory, for the lifetime of the process."""

    def __init__(self) -> None:
        self._pins: dict[tuple[str, str], ToolPin] = {}

    async def get(self, server_id: str, tool: str) -> ToolPin | None:
        """Return the pin of a server's tool."""
        return self._pins.get((server_id, tool))

    async def put(self, pin: ToolPin) -> None:
        """Store a pin."""
        self._pins[pin.server_id, pin.tool] = pin


class FilePinStore:
    """Pins in a JSON file, readable by its owner only. Raises: `BadInput` if the file is damaged."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = asyncio.Lock()

    async def get(self, server_id: str, tool: str) -> ToolPin | None:
        """Return the pin of a server's tool."""
        async with self._lock:
            pins = await asyncio.to_thread(_read_pins, self._path)
        return next((pin for pin in pins if (pin.server_id, pin.tool) == (server_id, tool)), None)

    async def put(self, pin: ToolPin) -> None:
        """Store a pin by replacing the whole file."""
        async with self._lock:
            await asyncio.to_thread(_write_pin, self._path, pin)


def _read_pins(path: Path) -> list[ToolPin]:
    if not path.exists():
        return []
    try:
        return _PINS_ADAPTER.validate_json(path.read_bytes())
    except ValidationError as error:
        raise BadInput(
            f"`{path}` contains no readable pins. Repair it, or remove it to review all tools again."
        ) from error


def _write_pin(path: Path, pin: ToolPin) -> None:
    others = [other for other in _read_pins(path) if (other.server_id, other.tool) != (pin.server_id, pin.tool)]
    path.parent.mkdir(parents=True, exist_ok=True)
    new_file = path.with_name(f"{path.name}.new")
    new_file.touch(mode=0o600)
    new_file.write_bytes(orjson.dumps([*others, pin], option=orjson.OPT_INDENT_2))
    new_file.replace(path)


_PINS_ADAPTER: TypeAdapter[list[ToolPin]] = TypeAdapter(list[ToolPin])


def to_protocol_json(tool: Any) -> dict[str, Any]:
    """Return a tool object as the server sent it, without defaults."""
    sent: dict[str, Any] = tool.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return sent
