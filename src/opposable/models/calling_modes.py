"""The ways of asking a model for calls, and which is the best for which model."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

from opposable.models.base import Model
from opposable.models.python_protocol.model import PythonProtocolModel
from opposable.models.text_protocol import TextProtocolModel

CallingMode = Literal["native", "rescue", "prompted", "constrained", "python"]
"""`native`: tools in the wire format, the server's calls are trusted and calls leaked into text are read too.
`rescue`: tools in the wire format, calls are read from the text alone. `prompted`: the seed protocol in the prompt.
`constrained`: the same, each reply held to the protocol's schema where the server can. `python`: tools as Python
signatures, with a way out where none fits (needs a server that gives token probabilities and goes on from a begun
reply, as llama.cpp's does)."""

CALLING_MODES: tuple[CallingMode, ...] = get_args(CallingMode)
CALLING_MODES_FILE = "ways.json"


def apply_calling_mode(mode: CallingMode, inner: Model) -> Model:
    """`inner`, asked in this way."""
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
    """The way that is taken for a model nobody has tried: measured for the embedded one, cautious for other files."""
    if name == "local":
        return "python"
    return "prompted" if name.startswith("local:") else "native"


def load_calling_modes(directory: Path) -> Mapping[str, CallingMode]:
    """The best way of each model that was tried, by the model's name; empty where nothing readable is kept."""
    try:
        kept = json.loads((directory / CALLING_MODES_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {name: way for name, way in kept.items() if way in CALLING_MODES} if isinstance(kept, dict) else {}


def save_calling_mode(directory: Path, name: str, mode: CallingMode) -> None:
    """Keep `way` as the best for the model `name`. Raises: `OSError`."""
    directory.mkdir(parents=True, exist_ok=True)
    ways = {**load_calling_modes(directory), name: mode}
    new = directory / f".{CALLING_MODES_FILE}.new"
    new.write_text(json.dumps(ways, indent=1, ensure_ascii=False), encoding="utf-8")
    new.replace(directory / CALLING_MODES_FILE)
