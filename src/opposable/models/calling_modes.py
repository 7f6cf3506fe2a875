"""Calling modes: how a model is asked for tool calls."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

from opposable.models.base import Model
from opposable.models.profile import Calling, ModelProfile, get_profile
from opposable.safety.filesystem.drafts import open_draft

CallingMode = Literal["native", "auto", "text", "rescue", "prompted", "constrained", "python"]
"""How a model is asked for calls.

`native`, `auto` and `text`: tools in the wire format, and calls as in `Calling`. `rescue`: calls from the text alone.
`prompted`: the text protocol in the prompt. `constrained`: the same, each reply held to the protocol's schema where the
server can. `python`: tools as Python signatures, with a no-call option, for servers like llama.cpp.
"""

CALLING_MODES: tuple[CallingMode, ...] = get_args(CallingMode)
CALLING_MODES_FILE = "calling_modes.json"

_CALLING: Mapping[CallingMode, Calling] = {
    "native": "native",
    "auto": "auto",
    "text": "text",
    "rescue": "text",
    "prompted": "text",
    "constrained": "constrained",
    "python": "constrained",
}


def apply_calling_mode(mode: CallingMode, inner: Model, *, assisted: bool = False) -> Model:
    """Return `inner`, asked for calls in this mode."""
    if mode == "native":
        return inner
    profile = replace(get_profile(inner), calling=_CALLING[mode], assisted=assisted)
    if mode == "auto":
        from opposable.models.marker_calls import MarkerCallsModel  # lazy: its patterns, as below

        return MarkerCallsModel(inner, profile)
    if mode == "python":
        from opposable.models.python_protocol.model import PythonProtocolModel  # lazy: as above

        return PythonProtocolModel(inner, profile=profile)
    from opposable.models.text_protocol import TextProtocolModel  # lazy: a native model needs none of 100 ms

    return TextProtocolModel(
        inner,
        "protocol" if mode in ("prompted", "constrained") else "native",
        constrained=mode == "constrained",
        trust_native_calls=mode != "rescue",
        profile=profile,
    )


def get_default_calling_mode(name: str) -> CallingMode:
    """Return the mode of a model that was not measured: native for hosted providers, auto for a server by URL."""
    if name == "local":
        return "python"
    if name.startswith("local:"):
        return "prompted"
    return "auto" if name.startswith(("http:", "https:")) else "native"


def get_expected_profile(name: str, mode: CallingMode) -> ModelProfile:
    """Return the profile that a model has in this mode, without creating it. Only the embedded model is assisted."""
    return ModelProfile(_CALLING[mode], assisted=name == "local")


def load_calling_modes(directory: Path) -> Mapping[str, CallingMode]:
    """Return the stored modes of measured models by name; {} if the file is missing or unreadable."""
    try:
        modes = json.loads((directory / CALLING_MODES_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {name: mode for name, mode in modes.items() if mode in CALLING_MODES} if isinstance(modes, dict) else {}


def save_calling_mode(directory: Path, name: str, mode: CallingMode) -> None:
    """Store the best mode of the model `name`. Raises: `OSError`."""
    directory.mkdir(parents=True, exist_ok=True)
    modes = {**load_calling_modes(directory), name: mode}
    with open_draft(directory / CALLING_MODES_FILE, replace=True) as draft:
        draft.write(json.dumps(modes, indent=1, ensure_ascii=False).encode())
