"""Values in the shape their descriptions show: "San Francisco, CA" where the request says San Francisco alone."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from opposable.domain.language import words
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.models.python_protocol.prompts import schema_of
from opposable.parsers.lenient_json import strict

_QUOTED = re.compile(r"""(?<!\w)'([^'\n]+)'(?!\w)|"([^"\n]+)"|`([^`\n]+)`|“([^”\n]+)”|「([^」\n]+)」""")
_PLAIN = re.compile(
    r"\b(?:e\.?g\.?|format(?: of)?|such as|like)[:,]? ([A-Z][\w.]*(?: [A-Z][\w.]*)*, [A-Z]\w+)\b(?! ?,)"
)
_SECOND = re.compile(r"\b(?:state|country|province|region)\b|[州省]|国家", re.IGNORECASE)
_LABEL = re.compile(r"(?:^|\s)([a-z]{2,}):(?=[^\s/:])")
_LISTS = re.compile(r"separated|list of|逗号|分隔|列表", re.IGNORECASE)
_MOST_WORDS = 3
"""Words that a place's second part may have."""


@dataclass(frozen=True, slots=True)
class Unshaped:
    """A text of a call that lacks the shape shown: what the model is to go on from in its stead, and what it must hold."""

    name: str
    value: str
    begun: str
    labels: tuple[str, ...] = ()

    def whole(self, rest: str, spoken: Sequence[str]) -> str | None:
        """The text in its shape, `rest` being what the model went on with; None where that will not do.

        A place's second part may be what the model knows; what stands behind labels was `spoken`, in so many words.
        """
        if self.labels:
            made = self.begun + rest.strip()
            behind = set(words(made)).difference(*map(words, self.labels))
            kept = set(words(self.value)) <= behind <= set(spoken)
            return made if kept and _LABEL.findall(made) == list(self.labels) else None
        added = rest.strip()
        held = words(added)
        alike = (
            not added or not (added[0].isupper() or not added[0].isascii()) or re.search(r"[\d,，()\[\]{}=:]", added)
        )
        if alike or not 0 < len(added.split()) <= _MOST_WORDS or set(held) & set(words(self.value)):
            return None
        return f"{self.begun} {added}" if self.begun.endswith(",") else self.begun + added


def unshaped(call: ToolCall, tools: Sequence[ToolDefinition]) -> Iterator[Unshaped]:
    """The texts of a call whose parameters' descriptions show another shape than they have."""
    schema = schema_of(call, tools)
    given: dict[str, Any] = strict(call.arguments)
    for name, value in given.items():
        about = schema.property(name).description()
        if not isinstance(value, str) or not value.strip() or schema.property(name).choices():
            continue
        if labels := _labels(about):
            if not any(f"{label}:" in value for label in labels):
                yield Unshaped(name, value, f"{labels[0]}:", labels)
        elif _shows_place(about) and not re.search(r"[,，\d]", value):
            yield Unshaped(name, value, value + ("," if value.isascii() else "，"))


def place_of(code: str, value: str) -> int | None:
    """Where the text stands in the code as a literal of its own, behind the quote; None where it does not, or twice."""
    found = list(re.finditer(rf"""(['"]){re.escape(value)}\1""", code))
    return found[0].start() + 1 if len(found) == 1 else None


def _labels(about: str) -> tuple[str, ...]:
    for shown in _shown(about):
        labels = tuple(_LABEL.findall(shown))
        if len(labels) > 1 and len(set(labels)) == len(labels):
            return labels
    return ()


def _shows_place(about: str) -> bool:
    """Whether all that is shown are places of two parts."""
    shown = [*_shown(about), *_PLAIN.findall(about)]
    return (
        bool(shown)
        and not _LISTS.search(about)
        and all(len(re.split("[,，]", each)) == 2 for each in shown)
        and bool(_SECOND.search(about))
    )


def _shown(about: str) -> list[str]:
    return ["".join(groups) for groups in _QUOTED.findall(about)]
