"""Every way a language model writes a tool call as text, read into calls.

The reader is loaded when it is first asked for: its patterns take some 50 ms to make ready, which a program that only
describes its tools need not wait for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from opposable.parsers.arguments import ParsedArguments, parse_arguments
from opposable.parsers.parse_result import (
    CallFinished,
    ParsedCall,
    ParseResult,
    ParserEvent,
    RejectedCall,
    RejectionReason,
    TextWasThinking,
)

if TYPE_CHECKING:
    from opposable.parsers.marker_aliases import aliases_from_template
    from opposable.parsers.stream_parser import StreamParser, parse
    from opposable.parsers.token_escaping import escape_special_tokens
    from opposable.parsers.tool_names import ToolLike

_LATER = {
    "ToolLike": "tool_names",
    "StreamParser": "stream_parser",
    "aliases_from_template": "marker_aliases",
    "escape_special_tokens": "token_escaping",
    "parse": "stream_parser",
}

__all__ = [
    "CallFinished",
    "ParseResult",
    "ParsedArguments",
    "ParsedCall",
    "ParserEvent",
    "RejectedCall",
    "RejectionReason",
    "StreamParser",
    "TextWasThinking",
    "ToolLike",
    "aliases_from_template",
    "escape_special_tokens",
    "parse",
    "parse_arguments",
]


def __getattr__(name: str) -> Any:
    """A name that is loaded when it is first asked for."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    globals()[name] = value
    return value
