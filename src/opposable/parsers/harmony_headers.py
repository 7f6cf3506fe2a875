"""Message headers of the harmony form (GPT-OSS and its kin): who speaks, on which channel, to whom."""

import re
from dataclasses import dataclass
from typing import Literal

MAX_HEADER = 400
MESSAGE = "<|message|>"
_RECIPIENT = re.compile(r"\bto=(?P<to>[^\s<]+)")
_CHANNEL = re.compile(r"<\|channel\|>\s*(?P<channel>\w+)")

Body = Literal["text", "thinking", "call", "nothing"]


@dataclass(frozen=True, slots=True)
class Header:
    """What a header says of the body behind it; `tool` is the recipient where that is a tool."""

    body: Body
    tool: str = ""


def header_of(text: str) -> Header:
    """The meaning of a header: all that stands before `<|message|>`."""
    recipients = [found["to"] for found in _RECIPIENT.finditer(text)]
    channels = [found["channel"] for found in _CHANNEL.finditer(text)]
    recipient = next((to for to in reversed(recipients) if to != "assistant"), "")
    if recipient in ("user", "all"):
        return Header("text")
    if recipient == "self":
        return Header("thinking")
    if recipient:
        return Header("call", recipient)
    return Header("thinking" if channels and channels[-1] == "analysis" else "text")
