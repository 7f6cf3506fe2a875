"""Message headers of the harmony format (GPT-OSS): role, channel and recipient."""

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
    """What a header says about the message body.

    `tool` is the recipient if that is a tool.
    """

    body: BodyKind
    tool: str = ""


def parse_header(text: str) -> MessageHeader:
    """Parse a header: the text before `<|message|>`."""
    recipients = [match["to"] for match in _RECIPIENT.finditer(text)]
    channels = [match["channel"] for match in _CHANNEL.finditer(text)]
    recipient = next((to for to in reversed(recipients) if to != "assistant"), "")
    if recipient in ("user", "all"):
        return MessageHeader("text")
    if recipient == "self":
        return MessageHeader("thinking")
    if recipient:
        return MessageHeader("call", recipient)
    return MessageHeader("thinking" if channels and channels[-1] == "analysis" else "text")
