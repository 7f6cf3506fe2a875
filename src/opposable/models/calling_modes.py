"""The ways of asking a model for calls, and which is the best for which model."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

from opposable.models.base import Model
from opposable.models.python_protocol.model import PythonProtocolModel
from opposable.models.text_protocol import TextProtocolModel

Way = Literal["native", "rescue", "prompted", "constrained", "python"]
"""`native`: tools in the wire format, the server's calls are trusted and calls leaked into text are read too.
`rescue`: tools in the wire format, calls are read from the text alone. `prompted`: the seed protocol in the prompt.
`constrained`: the same, each reply held to the protocol's schema where the server can. `python`: tools as Python
signatures, with a way out where none fits (needs a server that gives token probabilities and goes on from a begun
reply, as llama.cpp's does)."""

WAYS: tuple[Way, ...] = get_args(Way)
FILE = "ways.json"


def asked(way: Way, inner: Model) -> Model:
    """`inner`, asked in this way."""
    match way:
        case "native":
            return TextProtocolModel(inner)
        case "rescue":
            return TextProtocolModel(inner, trusting=False)
        case "prompted":
            return TextProtocolModel(inner, "protocol")
        case "constrained":
            return TextProtocolModel(inner, "protocol", constrained=True)
        case "python":
            return PythonProtocolModel(inner)


def default_way(name: str) -> Way:
    """The way that is taken for a model nobody has tried: measured for the embedded one, cautious for other files."""
    if name == "local":
        return "python"
    return "prompted" if name.startswith("local:") else "native"


def remembered(directory: Path) -> Mapping[str, Way]:
    """The best way of each model that was tried, by the model's name; empty where nothing readable is kept."""
    try:
        kept = json.loads((directory / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {name: way for name, way in kept.items() if way in WAYS} if isinstance(kept, dict) else {}


def remember(directory: Path, name: str, way: Way) -> None:
    """Keep `way` as the best for the model `name`. Raises: `OSError`."""
    directory.mkdir(parents=True, exist_ok=True)
    ways = {**remembered(directory), name: way}
    new = directory / f".{FILE}.new"
    new.write_text(json.dumps(ways, indent=1, ensure_ascii=False), encoding="utf-8")
    new.replace(directory / FILE)
