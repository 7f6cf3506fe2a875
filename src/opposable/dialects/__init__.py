"""Every way a language model writes a tool call as text, read into calls."""

from opposable.dialects.aliases import aliases_of
from opposable.dialects.arguments import Arguments, read_arguments
from opposable.dialects.defuse import defuse
from opposable.dialects.names import OfferedTool
from opposable.dialects.reader import Reader, read
from opposable.dialects.reading import (
    Call,
    CallFinished,
    Part,
    Reading,
    Rejected,
    RejectionReason,
    TextWasThinking,
)

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
