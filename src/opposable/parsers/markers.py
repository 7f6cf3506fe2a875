"""The markers of every model family; to support a new family, add a line here."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

MAX_MARKER_CHARACTERS = 48


@dataclass(frozen=True, slots=True)
class OpeningMarker:
    """A marker that announces calls.

    Attributes:
        parser: The name of the call format.
        allows_bare_names: Whether a call may begin with the bare name of a tool.
        is_control_token: Whether the marker is one token of the model's vocabulary, so that text never only mentions
            it.
        shared_characters: How many of the marker's last characters belong to the call itself.
    """

    parser: str
    allows_bare_names: bool = False
    is_control_token: bool = False
    shared_characters: int = 0


def _deepseek_variants(word: str) -> list[str]:
    """Return how DeepSeek's distilled models spell a marker; `_` joins its parts."""
    return [f"<{bar}{word.replace('_', separator)}{bar}>" for bar in "｜|" for separator in ("▁", "_", " ", "\\_")]


TAG_NAMESPACE = "antml:"
"""The namespace of one family's tags."""

_TAG_OPENERS = {
    "<tool_call>": OpeningMarker("hermes", allows_bare_names=True),
    "<tool_calls>": OpeningMarker("tool_calls"),
    "<tools>": OpeningMarker("hermes"),
    "<tool>": OpeningMarker("hermes"),
    "<function_call>": OpeningMarker("granite_function_call"),
    "<function_calls>": OpeningMarker("function_calls", allows_bare_names=True),
    "<atem:function_calls>": OpeningMarker("invoke"),
    f"<{TAG_NAMESPACE}function_calls>": OpeningMarker("invoke"),
    "<seed:tool_call>": OpeningMarker("seed_oss"),
    "<minimax:tool_call>": OpeningMarker("minimax_m2"),
    "<longcat_tool_call>": OpeningMarker("longcat", allows_bare_names=True),
    "<dots_function_call>": OpeningMarker("dots"),
    "<TOOLCALL>": OpeningMarker("nemotron"),
    "[TOOL_REQUEST]": OpeningMarker("tool_request"),
    "functools[": OpeningMarker("functools", shared_characters=1),
}
_CONTROL_OPENERS = {
    **dict.fromkeys(
        [*_deepseek_variants("tool_calls_begin"), *_deepseek_variants("tool_call_begin")],
        OpeningMarker("deepseek", allows_bare_names=True, is_control_token=True),
    ),
    "]<]minimax[>[<tool_call>": OpeningMarker("minimax_m3", is_control_token=True),
    "<｜DSML｜function_calls>": OpeningMarker("deepseek_dsml", is_control_token=True),
    "<｜DSML｜tool_calls>": OpeningMarker("deepseek_dsml", is_control_token=True),
    "<|python_tag|>": OpeningMarker("llama3", allows_bare_names=True, is_control_token=True),
    "<|python_start|>": OpeningMarker("llama4", allows_bare_names=True, is_control_token=True),
    "[TOOL_CALLS]": OpeningMarker("mistral", allows_bare_names=True, is_control_token=True),
    "<|tool_calls_section_begin|>": OpeningMarker("kimi_k2", allows_bare_names=True, is_control_token=True),
    "<|tool_call_begin|>": OpeningMarker("kimi_k2", allows_bare_names=True, is_control_token=True),
    "<|open|>tools<|sep|>": OpeningMarker("kimi_k3", is_control_token=True),
    "<|tool_call|>": OpeningMarker("granite", allows_bare_names=True, is_control_token=True),
    "<|tool_call>": OpeningMarker("gemma4", allows_bare_names=True, is_control_token=True),
    "<start_function_call>": OpeningMarker("function_gemma", allows_bare_names=True, is_control_token=True),
    "<|START_ACTION|>": OpeningMarker("cohere", is_control_token=True),
    "<|tool_call_start|>": OpeningMarker("lfm2", is_control_token=True),
    "<|tools_prefix|>": OpeningMarker("apertus", is_control_token=True),
    "<|action_start|>": OpeningMarker("internlm", is_control_token=True),
    "<|function_call|>": OpeningMarker("gigachat", is_control_token=True),
    "<|content_invoke_tool_json|>": OpeningMarker("inkling", is_control_token=True),
    "function call<|role_sep|>": OpeningMarker("gigachat", is_control_token=True),
    "-> tool/function_call": OpeningMarker("hyperclovax", is_control_token=True),
}
LINE_OPENERS = ("functools[", "function call<|role_sep|>", "-> tool/function_call")
"""Openers that count only at the beginning of a line."""
MISSING_END = "missing end of the call"
"""The repair of a call without its closing tag."""

OPENERS = _TAG_OPENERS | _CONTROL_OPENERS
"""Every marker that announces calls."""

CLOSERS = frozenset({
    "</tool_call>", "</tool_calls>", "</tools>", "</tool>", "</function_call>", "</function_calls>",
    "</atem:function_calls>", f"</{TAG_NAMESPACE}function_calls>", "</seed:tool_call>", "</minimax:tool_call>",
    "</longcat_tool_call>", "</dots_function_call>", "</TOOLCALL>", "[END_TOOL_REQUEST]", "[/TOOL_CALLS]",
    "]<]minimax[>[</tool_call>", "</｜DSML｜function_calls>", "</｜DSML｜tool_calls>",
    "<|python_end|>", "<|tool_calls_section_end|>", "<|tool_call_end|>", "<|close|>tools<|sep|>", "<|/tool_call|>",
    "<tool_call|>", "<end_function_call>", "<|END_ACTION|>", "<|tools_suffix|>", "<|action_end|>", "<|eom_id|>", "<|end_message|>",
    "</function>", "</invoke>",
    *_deepseek_variants("tool_calls_end"), *_deepseek_variants("tool_call_end"),
})  # fmt: skip
"""Every marker that ends a call or a sequence of calls."""

FILLER_MARKERS = frozenset({"<|plugin|>", "<|interpreter|>", "<|call|>"})
"""Markers without meaning between an opener and its call."""

ROLE_HEADERS = (
    "<|im_start|>assistant\n", "<start_of_turn>model\n", "<|start_header_id|>assistant<|end_header_id|>\n", "<|assistant|>\n",
)  # fmt: skip
"""The header of the model's own turn, which the prompt has already; at the beginning of a reply it is not shown."""

END_OF_TEXT = "</s>"
"""The token that some servers leave at the end of a reply; elsewhere it is text."""

IGNORED_MARKERS = frozenset({
    "<|im_end|>", "<|im_start|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|endoftext|>",
    "<|begin_of_text|>", "<|end_of_turn|>", "<end_of_turn>", "<start_of_turn>", "<|role_end|>", "<|END_RESPONSE|>", "<|START_RESPONSE|>",
    "<|START_TEXT|>", "<|END_TEXT|>", "<|CHATBOT_TOKEN|>", "<|END_OF_TURN_TOKEN|>", "<|START_OF_TURN_TOKEN|>", "<|message_sep|>",
    "<｜end▁of▁sentence｜>", "<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>",
    "<|eot|>", "<|eom|>", "<|return|>", "<|end|>", "<|call|>", "<|assistant_end|>", "<|assistant_start|>", "<|channel>", "<channel|>", "<turn|>",
    "<|tool_calls_section_end|>", "<|tool_call_end|>", "<|tool_call_argument_begin|>", "<|close|>tools<|sep|>", "<|close|>call<|sep|>",
    "<|END_ACTION|>", "<|tools_suffix|>", "<|action_end|>", "<|python_end|>", "<|tool_call_start|>", "<tool_call|>",
    "<|message_model|>", "<|content_text|>", "<|end_message|>", "<|content_model_end_sampling|>",
    "<|inner_suffix|>", "<|response_prefix|>", "[BEGIN FINAL RESPONSE]", "[END FINAL RESPONSE]", "[e~[", "<end_function_call>",
    *_deepseek_variants("tool_calls_end"), *_deepseek_variants("tool_call_end"),
})  # fmt: skip
"""Markers without meaning of their own, never shown to the user."""

THINKING_MARKERS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<seed:think>": "</seed:think>",
    "<mm:think>": "</mm:think>",
    "<longcat_think>": "</longcat_think>",
    "[THINK]": "[/THINK]",
    "◁think▷": "◁/think▷",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|inner_prefix|>": "<|inner_suffix|>",
    "<|content_thinking|>": "<|end_message|>",
    "<|channel>thought": "<channel|>",
    "<|open|>think<|sep|>": "<|close|>think<|sep|>",
}
"""The markers that open reasoning, mapped to those that close it."""

THINKING_ENDS = frozenset({*THINKING_MARKERS.values(), "[BEGIN FINAL RESPONSE]"}) - {
    "<channel|>",
    "<|inner_suffix|>",
    "<|end_message|>",
}
"""The markers that close reasoning even if the reply did not open it (the prompt did)."""

QUOTED_ELEMENTS = {
    "<!--": "-->",
    "<tool_response>": "</tool_response>",
    "<tool_responses>": "</tool_responses>",
    "<tool_result>": "</tool_result>",
    "<tool_results>": "</tool_results>",
    "<tool_output>": "</tool_output>",
    "<function_results>": "</function_results>",
    "<function_result>": "</function_result>",
    "<result>": "</result>",
    "<results>": "</results>",
    "<output>": "</output>",
    "<observation>": "</observation>",
    "<search_results>": "</search_results>",
    "<document>": "</document>",
    "<documents>": "</documents>",
    "<example>": "</example>",
    "<examples>": "</examples>",
    "<quote>": "</quote>",
    "<blockquote>": "</blockquote>",
    "<html": "</html>",
    "<!DOCTYPE": "</html>",
    "<body": "</body>",
    "<pre>": "</pre>",
    "<code>": "</code>",
    "<page>": "</page>",
    "<web_page>": "</web_page>",
    "<webpage>": "</webpage>",
    "<content>": "</content>",
    "<div": "</div>",
    "<script": "</script>",
    "<|im_start|>user": "<|im_end|>",
    "<|im_start|>tool": "<|im_end|>",
    "<|im_start|>system": "<|im_end|>",
    "<|start_header_id|>user<|end_header_id|>": "<|eot_id|>",
    "<|start_header_id|>tool<|end_header_id|>": "<|eot_id|>",
    "<|start_header_id|>ipython<|end_header_id|>": "<|eot_id|>",
    "<start_of_turn>user": "<end_of_turn>",
    "<｜User｜>": "<｜Assistant｜>",
    "<|user|>": "<|assistant|>",
    "<|observation|>": "<|assistant|>",
    "[INST]": "[/INST]",
    "[TOOL_RESULTS]": "[/TOOL_RESULTS]",
    "<|START_TOOL_RESULT|>": "<|END_TOOL_RESULT|>",
    "<｜tool▁outputs▁begin｜>": "<｜tool▁outputs▁end｜>",
}
"""Elements with quoted content, and turns of other speakers made up by the model: calls in them are never executed."""

USER_TURNS = (
    "<|im_start|>user", "<|start_header_id|>user<|end_header_id|>", "<start_of_turn>user", "<｜User｜>", "<|user|>", "[INST]",
)  # fmt: skip
"""The markers of QUOTED_ELEMENTS that begin a turn of the user. A model that makes one up also makes up what follows."""

HEADER_MARKERS = ("<|start|>", "<|channel|>")
"""The markers that begin a message header in the harmony format; `<|message|>` ends it."""

TAGGED_CALL_STARTS = (
    "<function=", "<function name=", "<tool_call name=", "<function_call name=", "<invoke name=", "<atem:invoke name=", f"<{TAG_NAMESPACE}invoke name=", "<steptml:invoke name=",
    "<｜DSML｜invoke name=", "]<]minimax[>[<invoke name=", "<|open|>call tool=",
)  # fmt: skip
"""The beginnings of calls whose arguments are written in tags."""


def compile_alternatives(literals: Iterable[str]) -> re.Pattern[str]:
    """Compile a pattern that matches the longest of `literals`.

    Common prefixes are shared, so mismatches fail fast.
    """
    return re.compile(build_alternatives(literals))


def build_alternatives(literals: Iterable[str]) -> str:
    """Return the source of that pattern."""
    tails: dict[str, list[str]] = {}
    ends = False
    for literal in literals:
        if literal:
            tails.setdefault(literal[0], []).append(literal[1:])
        else:
            ends = True
    branches = [re.escape(first) + build_alternatives(rest) for first, rest in sorted(tails.items())]
    if not branches:
        return ""
    if len(branches) == 1 and not ends:
        return branches[0]
    return f"(?:{'|'.join(branches)}){'?' if ends else ''}"


def get_prefixes(literals: Iterable[str]) -> frozenset[str]:
    """Return every proper prefix of every literal."""
    return frozenset(literal[:size] for literal in literals for size in range(1, len(literal)))


_STOP_LITERALS = (
    CLOSERS | FILLER_MARKERS | set(OPENERS) | {"<|end|>", "<|start|>", "<|im_end|>", "<|eot_id|>"} | THINKING_ENDS
) - set(LINE_OPENERS)
_STOP_PATTERN = compile_alternatives(_STOP_LITERALS)
_STOP_PREFIXES = get_prefixes(_STOP_LITERALS)


def match_stop(text: str, at: int) -> str:
    """Return the marker at `at` that ends the value of a call, or ""."""
    match = _STOP_PATTERN.match(text, at)
    return match[0] if match else ""


def may_become_stop(text: str, at: int) -> bool:
    """Return whether the text, which ends soon after `at`, may become such a marker."""
    return len(text) - at < MAX_MARKER_CHARACTERS and text[at:] in _STOP_PREFIXES
