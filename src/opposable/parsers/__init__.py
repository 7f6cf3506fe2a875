"""Parsers for tool calls that a language model writes as text.

Everything is imported on first use: compiling the patterns takes about 50 ms, and a program whose model calls tools
natively needs none of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opposable.parsers.arguments import ParsedArguments, parse_arguments, repair_arguments
    from opposable.parsers.marker_aliases import aliases_from_template
    from opposable.parsers.parse_result import (
        CallFinished,
        ParseResult,
        ParserEvent,
        RejectedCall,
        RejectionReason,
        TextWasThinking,
    )
    from opposable.parsers.stream_parser import StreamParser, parse
    from opposable.parsers.token_escaping import escape_special_tokens
    from opposable.parsers.tool_names import ToolLike

_LAZY_ATTRIBUTES = {
    **dict.fromkeys(("ParsedArguments", "parse_arguments", "repair_arguments"), "arguments"),
    **dict.fromkeys(
        (
            "CallFinished",
            "ParseResult",
            "ParserEvent",
            "RejectedCall",
            "RejectionReason",
            "TextWasThinking",
        ),
        "parse_result",
    ),
    **dict.fromkeys(("StreamParser", "parse"), "stream_parser"),
    "ToolLike": "tool_names",
    "aliases_from_template": "marker_aliases",
    "escape_special_tokens": "token_escaping",
}

__all__ = [
    "CallFinished",
    "ParseResult",
    "ParsedArguments",
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
    "repair_arguments",
]


def __getattr__(name: str) -> Any:
    """Import an attribute on first use."""
    if name not in _LAZY_ATTRIBUTES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_LAZY_ATTRIBUTES[name]}"), name)
    globals()[name] = value
    return value
