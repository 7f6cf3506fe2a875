"""Pins of accepted MCP tools: the SHA-256 of the whole tool object."""

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from pydantic import TypeAdapter, ValidationError

from opposable.domain.errors import BadInput
from opposable.domain.records import ToolPin
from opposable.safety.filesystem.drafts import PRIVATE_MODE, open_draft


class PinStore(Protocol):
    """Stores pins: in a table, a file or memory.

    A pin without `sha256` belongs to a tool that was seen and not yet accepted.
    """

    async def list_for_server(self, server_id: str) -> Sequence[ToolPin]:
        """Return the pins of a server's tools.

        Raises:
            StoreError: The store cannot be reached.
            BadInput: The stored pins cannot be read.
        """
        ...

    async def put(self, *pins: ToolPin) -> None:
        """Store pins and replace the previous ones of their tools. Raises: as `list_for_server`."""
        ...


class MemoryPinStore:
    """Pins in memory, for the lifetime of the process."""

    def __init__(self) -> None:
        self._pins: dict[tuple[str, str], ToolPin] = {}

    async def list_for_server(self, server_id: str) -> Sequence[ToolPin]:
        """Return the pins of a server's tools."""
        return [pin for pin in self._pins.values() if pin.server_id == server_id]

    async def put(self, *pins: ToolPin) -> None:
        """Store pins."""
        self._pins |= _index_pins(pins)


class FilePinStore:
    """Pins in a JSON file, readable by its owner only. Raises: `BadInput` if the file is damaged."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = asyncio.Lock()

    async def list_for_server(self, server_id: str) -> Sequence[ToolPin]:
        """Return the pins of a server's tools."""
        async with self._lock:
            pins = await asyncio.to_thread(_read_pins, self._path)
        return [pin for pin in pins if pin.server_id == server_id]

    async def put(self, *pins: ToolPin) -> None:
        """Store pins by replacing the whole file."""
        async with self._lock:
            await asyncio.to_thread(_write_pins, self._path, pins)


def _index_pins(pins: Iterable[ToolPin]) -> dict[tuple[str, str], ToolPin]:
    return {(pin.server_id, pin.tool): pin for pin in pins}


def _read_pins(path: Path) -> list[ToolPin]:
    if not path.exists():
        return []
    try:
        return _PINS_ADAPTER.validate_json(path.read_bytes())
    except ValidationError as error:
        raise BadInput(
            f"`{path}` contains no readable pins. Repair it, or remove it to review all tools again."
        ) from error


def _write_pins(path: Path, pins: Sequence[ToolPin]) -> None:
    all_pins = _index_pins([*_read_pins(path), *pins])
    path.parent.mkdir(parents=True, exist_ok=True)
    with open_draft(path, replace=True, mode=PRIVATE_MODE) as draft:
        draft.write(_PINS_ADAPTER.dump_json(list(all_pins.values()), indent=2))


_PINS_ADAPTER: TypeAdapter[list[ToolPin]] = TypeAdapter(list[ToolPin])


def to_protocol_json(tool: Any) -> dict[str, Any]:
    """Return a tool object as the server sent it, without defaults."""
    sent: dict[str, Any] = tool.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return sent
