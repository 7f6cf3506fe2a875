"""Parsers for tool calls that a language model writes as text.

Everything is imported on first use: compiling the patterns takes about 50 ms, and a program whose model calls tools
natively needs none of them.
"""

from typing import TYPE_CHECKING

from opposable.domain.lazy_imports import import_on_first_use

if TYPE_CHECKING:
    from opposable.parsers.arguments import ParsedArguments as ParsedArguments
    from opposable.parsers.arguments import parse_arguments as parse_arguments
    from opposable.parsers.arguments import repair_arguments as repair_arguments
    from opposable.parsers.marker_aliases import aliases_from_template as aliases_from_template
    from opposable.parsers.parse_result import CallFinished as CallFinished
    from opposable.parsers.parse_result import ParseResult as ParseResult
    from opposable.parsers.parse_result import ParserEvent as ParserEvent
    from opposable.parsers.parse_result import RejectedCall as RejectedCall
    from opposable.parsers.parse_result import RejectionReason as RejectionReason
    from opposable.parsers.parse_result import TextWasThinking as TextWasThinking
    from opposable.parsers.stream_parser import StreamParser as StreamParser
    from opposable.parsers.stream_parser import parse as parse
    from opposable.parsers.token_escaping import escape_special_tokens as escape_special_tokens
    from opposable.parsers.tool_names import ToolLike as ToolLike
else:
    __getattr__, __all__ = import_on_first_use(
        __name__,
        {
            "arguments": "ParsedArguments parse_arguments repair_arguments",
            "marker_aliases": "aliases_from_template",
            "parse_result": "CallFinished ParseResult ParserEvent RejectedCall RejectionReason TextWasThinking",
            "stream_parser": "StreamParser parse",
            "token_escaping": "escape_special_tokens",
            "tool_names": "ToolLike",
        },
    )
