"""Which tools of a server are the ones that were accepted: the SHA-256 of the whole tool object."""

import asyncio
from pathlib import Path
from typing import Any, Protocol

import orjson
from pydantic import TypeAdapter, ValidationError

from opposable.domain.errors import BadInput
from opposable.domain.records import ToolPin


class PinStore(Protocol):
    """Where pins are kept: a table, a file or memory.

    A pin without `sha256` is of a tool that was seen, and waits for its first acceptance.
    """

    async def get(self, server_id: str, tool: str) -> ToolPin | None:
        """The pin of a server's tool, None where it was never seen. Raises: `StoreError`, `BadInput` (unreadable)."""
        ...

    async def put(self, pin: ToolPin) -> None:
        """Keep a pin in place of any other of that server and tool. Raises: as `get`."""
        ...


class MemoryPinStore:
    """Pins for as long as the process lives."""

    def __init__(self) -> None:
        self._pins: dict[tuple[str, str], ToolPin] = {}

    async def get(self, server_id: str, tool: str) -> ToolPin | None:
        """The pin of a server's tool."""
        return self._pins.get((server_id, tool))

    async def put(self, pin: ToolPin) -> None:
        """Keep a pin."""
        self._pins[pin.server_id, pin.tool] = pin


class FilePinStore:
    """Pins in a JSON file: a list, readable and writable by its owner alone. Raises: `BadInput` when it is damaged."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = asyncio.Lock()

    async def get(self, server_id: str, tool: str) -> ToolPin | None:
        """The pin of a server's tool."""
        async with self._lock:
            pins = await asyncio.to_thread(_read_pins, self._path)
        return next((pin for pin in pins if (pin.server_id, pin.tool) == (server_id, tool)), None)

    async def put(self, pin: ToolPin) -> None:
        """Keep a pin: the file is replaced as a whole."""
        async with self._lock:
            await asyncio.to_thread(_write_pin, self._path, pin)


def _read_pins(path: Path) -> list[ToolPin]:
    if not path.exists():
        return []
    try:
        return _PINS_ADAPTER.validate_json(path.read_bytes())
    except ValidationError as error:
        raise BadInput(
            f"{path} holds no pins that can be read; mend it, or remove it to see all tools anew."
        ) from error


def _write_pin(path: Path, pin: ToolPin) -> None:
    others = [other for other in _read_pins(path) if (other.server_id, other.tool) != (pin.server_id, pin.tool)]
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.new")
    fresh.touch(mode=0o600)
    fresh.write_bytes(orjson.dumps([*others, pin], option=orjson.OPT_INDENT_2))
    fresh.replace(path)


_PINS_ADAPTER: TypeAdapter[list[ToolPin]] = TypeAdapter(list[ToolPin])


def to_protocol_json(tool: Any) -> dict[str, Any]:
    """A tool object of the protocol as it was sent: all fields, none added."""
    sent: dict[str, Any] = tool.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return sent
