"""Escaping of control tokens in untrusted text, such as tool results and files.

A server turns `<|im_start|>` in a prompt into the token that begins a message, wherever it occurs. A model may also
take `<tool_call>` in a web page for its own call. A zero-width character after the first bracket prevents both, and the
text stays readable. What is ordinary HTML or XML stays: `<s>`, which is a token of some models, and tags such as
`<tool>`. A model that edits a file must see it as it is.
"""

import re

from opposable.parsers.markers import CLOSERS, HEADER_MARKERS, IGNORED_MARKERS, OPENERS, THINKING_ENDS, THINKING_MARKERS

WORD_JOINER = "\u2060"
"""Zero-width and non-breaking; no vocabulary has a marker that contains it."""

_ORDINARY_TAGS = frozenset({"<tool>", "</tool>", "<tools>", "</tools>", "</function>", "</invoke>"})
_CONTROL_TOKENS = r"<[|｜][^<>\n]{1,64}[|｜]>|<[|｜][\w▁]{1,64}>|<[\w▁]{1,64}[|｜]>|\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>|<(?:start|end)_of_image>"
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
    if marker[0] in "<[◁]" and marker not in _ORDINARY_TAGS
)
_MARKUP = re.compile(f"{_CONTROL_TOKENS}|{_KNOWN_MARKERS}", re.IGNORECASE)


def escape_special_tokens(text: str) -> str:
    """Return `text` with every marker of a model family broken. Linear time.

    If there is no marker, the same object is returned.
    """
    if "<" not in text and "[" not in text and "◁" not in text:  # ten times as fast as a pattern: each turn asks it
        return text
    return _MARKUP.sub(lambda match: f"{match[0][0]}{WORD_JOINER}{match[0][1:]}", text)
