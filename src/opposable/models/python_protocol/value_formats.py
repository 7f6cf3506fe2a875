"""Values in the format that their descriptions show, such as "San Francisco, CA"."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from opposable.domain.language import split_words
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.models.python_protocol.prompts import get_schema

_QUOTED_PATTERN = re.compile(r"""(?<!\w)'([^'\n]+)'(?!\w)|"([^"\n]+)"|`([^`\n]+)`|“([^”\n]+)”|「([^」\n]+)」""")
_EXAMPLE_PLACE_PATTERN = re.compile(
    r"\b(?:e\.?g\.?|format(?: of)?|such as|like)[:,]? ([A-Z][\w.]*(?: [A-Z][\w.]*)*, [A-Z]\w+)\b(?! ?,)"
)
_REGION_PATTERN = re.compile(r"\b(?:state|country|province|region)\b|[州省]|国家", re.IGNORECASE)
_LIST_PATTERN = re.compile(r"separated|list of|逗号|分隔|列表", re.IGNORECASE)
_MAX_REGION_WORDS = 3
"""Words of the second part of a place."""


@dataclass(frozen=True, slots=True)
class FormatMismatch:
    """A value without the described format, and the prefix to continue."""

    name: str
    value: str
    prefix: str

    def complete_value(self, continuation: str) -> str | None:
        """Return the value in its format; None if the continuation is unsuitable."""
        added = continuation.strip()
        added_words = split_words(added)
        is_unsuitable = (
            not added or not (added[0].isupper() or not added[0].isascii()) or re.search(r"[\d,，()\[\]{}=:]", added)
        )
        if (
            is_unsuitable
            or not 0 < len(added.split()) <= _MAX_REGION_WORDS
            or set(added_words) & set(split_words(self.value))
        ):
            return None
        return f"{self.prefix} {added}" if self.prefix.endswith(",") else self.prefix + added


def find_format_mismatches(call: ToolCall, tools: Sequence[ToolDefinition]) -> Iterator[FormatMismatch]:
    """Yield the values of a call that lack the format of their descriptions."""
    schema = get_schema(call, tools)
    given: dict[str, Any] = dict(call.arguments)
    for name, value in given.items():
        about = schema.get_property(name).description()
        if not isinstance(value, str) or not value.strip() or schema.get_property(name).choices():
            continue
        if _is_place_shown(about) and not re.search(r"[,，\d]", value):
            yield FormatMismatch(name, value, value + ("," if value.isascii() else "，"))


def find_literal(code: str, value: str) -> int | None:
    """Return the position of a text as the only such literal in the code.

    None otherwise.
    """
    found = list(re.finditer(rf"""(['"]){re.escape(value)}\1""", code))
    return found[0].start() + 1 if len(found) == 1 else None


def _is_place_shown(description: str) -> bool:
    """Return whether all examples are places with two parts."""
    shown = [*_get_examples(description), *_EXAMPLE_PLACE_PATTERN.findall(description)]
    return (
        bool(shown)
        and not _LIST_PATTERN.search(description)
        and all(len(re.split("[,，]", each)) == 2 for each in shown)
        and bool(_REGION_PATTERN.search(description))
    )


def _get_examples(description: str) -> list[str]:
    return ["".join(groups) for groups in _QUOTED_PATTERN.findall(description)]
