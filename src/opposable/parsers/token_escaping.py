"""Takes the power out of markup in text that comes from outside: a tool's result, a page, a file.

A server turns `<|im_start|>` in a prompt into the very token that begins a message, wherever it stands, and a model may
take `<tool_call>` in a web page for its own. A character without width behind the first bracket keeps the text readable
and makes it text.
"""

import re

from opposable.parsers.markers import CLOSERS, HEADER_MARKERS, IGNORED_MARKERS, OPENERS, THINKING_ENDS, THINKING_MARKERS

WORD_JOINER = "\u2060"
"""A word joiner: it has no width, no line may break at it, and no vocabulary has a marker with it inside."""

_CONTROL_TOKENS = r"<[|｜][^<>\n]{1,64}[|｜]>|<[|｜][\w▁]{1,64}>|<[\w▁]{1,64}[|｜]>|</?s>|\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>|<(?:start|end)_of_image>"
_KNOWN_MARKERS = "|".join(
    re.escape(marker)
    for marker in sorted(
        {
            *OPENERS,
            *CLOSERS,
            *IGNORED_MARKERS,
            *THINKING_MARKERS,
            *THINKING_ENDS,
            *THINKING_MARKERS.values(),
            *HEADER_MARKERS,
        },
        key=len,
        reverse=True,
    )
    if marker[0] in "<[◁]"
)
_MARKUP = re.compile(f"{_CONTROL_TOKENS}|{_KNOWN_MARKERS}", re.IGNORECASE)
_MARKER_START = re.compile(r"[<\[◁]")


def escape_special_tokens(text: str) -> str:
    """`text` with every marker of a model family broken; the same object where there is none. Linear time."""
    if not _MARKER_START.search(text):
        return text
    return _MARKUP.sub(lambda found: f"{found[0][0]}{WORD_JOINER}{found[0][1:]}", text)
