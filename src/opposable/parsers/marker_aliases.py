"""Model families whose markers are synonyms of markers the parser knows."""

import copy
import re
from collections.abc import Mapping
from typing import Any

from opposable.parsers.markers import OPENERS, TAGGED_CALL_STARTS, THINKING_MARKERS, compile_alternatives, get_prefixes

MARKER_ALIASES: dict[str, str] = {
    # Solar Open 2
    "<|tool_call:start|>": "<tool_call>",
    "<|tool_arg:start|>": "<arg_key>",
    "<|tool_arg:value|>": "</arg_key><arg_value>",
    "<|tool_arg:end|>": "</arg_value>",
    "<|tool_call:end|>": "</tool_call>",
    "<|think:start|>": "<think>",
    "<|think:end|>": "</think>",
    # K2 Horizon
    "<ifm|tool_calls>": "<tool_calls>",
    "</ifm|tool_calls>": "</tool_calls>",
    "<ifm|tool_call>": "<tool_call>",
    "</ifm|tool_call>": "</tool_call>",
    "<ifm|arg_key>": "<arg_key>",
    "</ifm|arg_key>": "</arg_key>",
    "<ifm|arg_value>": "<arg_value>",
    "</ifm|arg_value>": "</arg_value>",
    "<ifm|arg_type>": "<arg_type>",
    "</ifm|arg_type>": "</arg_type>",
    **{f"<ifm|{effort}>": "<think>" for effort in ("think", "think_fast", "think_faster")},
    **{f"</ifm|{effort}>": "</think>" for effort in ("think", "think_fast", "think_faster")},
    # Hunyuan 3 and 4, whose open weights have tags with a suffix
    **{
        f"<{slash}{tag}:opensource>": f"<{slash}{tag}>"
        for tag in ("tool_calls", "tool_call", "tool_sep", "arg_key", "arg_value", "think")
        for slash in ("", "/")
    },
    # PLaMo 3
    "<|plamo:begin_tool_requests:plamo|>": "<|tool_calls_section_begin|>",
    "<|plamo:end_tool_requests:plamo|>": "<|tool_calls_section_end|>",
    "<|plamo:begin_tool_request:plamo|>": "<|tool_call_begin|>",
    "<|plamo:end_tool_request:plamo|>": "<|tool_call_end|>",
    "<|plamo:begin_tool_name:plamo|>": "",
    "<|plamo:end_tool_name:plamo|>": "",
    "<|plamo:begin_tool_arguments:plamo|>": "<|tool_call_argument_begin|>",
    "<|plamo:end_tool_arguments:plamo|>": "",
    "<|plamo:constrain|>json<|plamo:msg|>": "",
    "<|plamo:begin_think:plamo|>": "<think>",
    "<|plamo:end_think:plamo|>": "</think>",
    # MiniCPM, where a tokenizer drops the space of a tag or writes its own sign for it
    **{f"<{tag}{space}name=": f"<{tag} name=" for tag in ("function", "param") for space in ("", "Ġ", "▁")},
}
"""Markers, mapped to the known markers that replace them."""


class MarkerTranslator:
    """Replaces aliases in text that arrives in deltas, with minimal buffering.

    `uses_standard_starts` means that every alias starts with a character that also starts a known marker, so text
    without such a character can skip the translator.
    """

    def __init__(self, aliases: Mapping[str, str]) -> None:
        self.buffered = ""
        self._aliases = aliases
        self._pattern = compile_alternatives(aliases)
        self._prefixes = get_prefixes(aliases)
        self._first_characters = re.compile(f"[{re.escape(''.join({alias[0] for alias in aliases}))}]")
        self._max_alias_characters = max(map(len, aliases))
        self.uses_standard_starts = all(alias[0] in "<[]◁" for alias in aliases)

    def feed(self, delta: str) -> str:
        """Translate a delta and return the text that is now certain."""
        text = self.buffered + delta
        if not self._first_characters.search(text):
            self.buffered = ""
            return text
        text = self._pattern.sub(self._translate, text)
        end = len(text)
        for match in self._first_characters.finditer(text, max(0, end - self._max_alias_characters)):
            if text[match.start() :] in self._prefixes:
                end = match.start()
                break
        self.buffered = text[end:]
        return text[:end]

    def close(self) -> str:
        """Return the buffered text."""
        buffered, self.buffered = self.buffered, ""
        return buffered

    def _translate(self, match: re.Match[str]) -> str:
        return self._aliases[match[0]]


_BUILT_IN_TRANSLATOR = MarkerTranslator(MARKER_ALIASES)


def create_translator(aliases: Mapping[str, str] | None) -> MarkerTranslator:
    """Create a translator for the built-in aliases and for `aliases`."""
    if aliases:
        return MarkerTranslator({**MARKER_ALIASES, **aliases})
    return copy.copy(_BUILT_IN_TRANSLATOR)


def aliases_from_template(response_template: Mapping[str, Any]) -> dict[str, str]:
    """Derive aliases from a Hugging Face `response_template`.

    The template is part of a model's `tokenizer_config.json`. Only literal `open` and `close` markers of the thinking
    and tool-call fields are used. Patterns, and markers that the parser knows, need no alias. Pass the result to
    `StreamParser(aliases=…)`.
    """
    fields = response_template.get("fields")
    fields = fields if isinstance(fields, Mapping) else {}
    result: dict[str, str] = {}
    for name, opening, closing in (
        ("thinking", "<think>", "</think>"),
        ("reasoning_content", "<think>", "</think>"),
        ("tool_calls", "<tool_call>", "</tool_call>"),
    ):
        field = fields.get(name)
        opening_markers = _get_literals(field, "open")
        if opening_markers and not any(_is_known(literal) for literal in opening_markers):
            result.update(dict.fromkeys(opening_markers, opening))
            result.update(dict.fromkeys(_get_literals(field, "close"), closing))
    return result


def _get_literals(field: Any, key: str) -> list[str]:
    value = field.get(key) if isinstance(field, Mapping) else None
    values = value if isinstance(value, list) else [value]
    return [literal.strip() for literal in values if isinstance(literal, str) and literal.strip()]


def _is_known(literal: str) -> bool:
    return literal in THINKING_MARKERS or literal.startswith((*TAGGED_CALL_STARTS, *OPENERS))
