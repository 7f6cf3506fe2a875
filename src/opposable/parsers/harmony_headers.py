"""Message headers of the harmony form (GPT-OSS and its kin): who speaks, on which channel, to whom."""

import re
from dataclasses import dataclass
from typing import Literal

MAX_HEADER_CHARACTERS = 400
MESSAGE_MARKER = "<|message|>"
_RECIPIENT = re.compile(r"\bto=(?P<to>[^\s<]+)")
_CHANNEL = re.compile(r"<\|channel\|>\s*(?P<channel>\w+)")

BodyKind = Literal["text", "thinking", "call", "nothing"]


@dataclass(frozen=True, slots=True)
class MessageHeader:
    """What a header says of the body behind it; `tool` is the recipient where that is a tool."""

    body: BodyKind
    tool: str = ""


def parse_header(text: str) -> MessageHeader:
    """The meaning of a header: all that stands before `<|message|>`."""
    recipients = [found["to"] for found in _RECIPIENT.finditer(text)]
    channels = [found["channel"] for found in _CHANNEL.finditer(text)]
    recipient = next((to for to in reversed(recipients) if to != "assistant"), "")
    if recipient in ("user", "all"):
        return MessageHeader("text")
    if recipient == "self":
        return MessageHeader("thinking")
    if recipient:
        return MessageHeader("call", recipient)
    return MessageHeader("thinking" if channels and channels[-1] == "analysis" else "text")
