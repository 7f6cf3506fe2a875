"""Calling modes: how a model is asked for tool calls."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

from opposable.models.base import Model
from opposable.models.python_protocol.model import PythonProtocolModel
from opposable.models.text_protocol import TextProtocolModel

CallingMode = Literal["native", "rescue", "prompted", "constrained", "python"]
"""How a model is asked for tool calls.

- `native`: Tools go in the fields of the API. Native calls are trusted, and calls in the text are parsed too.
- `rescue`: Tools go in the fields of the API. Calls are parsed from the text alone.
- `prompted`: The text protocol in the prompt describes the tools.
- `constrained`: As `prompted`, and a schema enforces the form of the reply where the server can.
- `python`: Tools as Python signatures, with a no-call option. The server must return token probabilities and continue
  a started reply, as llama.cpp does.
"""

CALLING_MODES: tuple[CallingMode, ...] = get_args(CallingMode)
CALLING_MODES_FILE = "ways.json"


def apply_calling_mode(mode: CallingMode, inner: Model) -> Model:
    """Return `inner` wrapped for a calling mode."""
    match mode:
        case "native":
            return TextProtocolModel(inner)
        case "rescue":
            return TextProtocolModel(inner, trust_native_calls=False)
        case "prompted":
            return TextProtocolModel(inner, "protocol")
        case "constrained":
            return TextProtocolModel(inner, "protocol", constrained=True)
        case "python":
            return PythonProtocolModel(inner)


def get_default_calling_mode(name: str) -> CallingMode:
    """Return the calling mode of a model without a measured one."""
    if name == "local":
        return "python"
    return "prompted" if name.startswith("local:") else "native"


def load_calling_modes(directory: Path) -> Mapping[str, CallingMode]:
    """Return the stored mode of each measured model, by its name.

    {} if the file is missing or unreadable.
    """
    try:
        modes = json.loads((directory / CALLING_MODES_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {name: mode for name, mode in modes.items() if mode in CALLING_MODES} if isinstance(modes, dict) else {}


def save_calling_mode(directory: Path, name: str, mode: CallingMode) -> None:
    """Store the best mode of the model `name`. Raises: `OSError`."""
    directory.mkdir(parents=True, exist_ok=True)
    modes = {**load_calling_modes(directory), name: mode}
    draft = directory / f".{CALLING_MODES_FILE}.new"
    draft.write_text(json.dumps(modes, indent=1, ensure_ascii=False), encoding="utf-8")
    draft.replace(directory / CALLING_MODES_FILE)
