"""Every way a language model writes a tool call as text, read into calls.

The reader is loaded when it is first asked for: its patterns take some 50 ms to make ready, which a program that only
describes its tools need not wait for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from opposable.parsers.arguments import Arguments, read_arguments
from opposable.parsers.parse_result import (
    Call,
    CallFinished,
    Part,
    Reading,
    Rejected,
    RejectionReason,
    TextWasThinking,
)

if TYPE_CHECKING:
    from opposable.parsers.marker_aliases import aliases_of
    from opposable.parsers.stream_parser import Reader, read
    from opposable.parsers.token_escaping import defuse
    from opposable.parsers.tool_names import OfferedTool

_LATER = {
    "OfferedTool": "tool_names",
    "Reader": "stream_parser",
    "aliases_of": "marker_aliases",
    "defuse": "token_escaping",
    "read": "stream_parser",
}

__all__ = [
    "Arguments",
    "Call",
    "CallFinished",
    "OfferedTool",
    "Part",
    "Reader",
    "Reading",
    "Rejected",
    "RejectionReason",
    "TextWasThinking",
    "aliases_of",
    "defuse",
    "read",
    "read_arguments",
]


def __getattr__(name: str) -> Any:
    """A name that is loaded when it is first asked for."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    globals()[name] = value
    return value
