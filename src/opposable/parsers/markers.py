"""The markup of every model family, as data: a new family is a line here."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

MAX_MARKER_CHARACTERS = 48


@dataclass(frozen=True, slots=True)
class OpeningMarker:
    """A marker behind which calls stand.

    `naked` says that a call may begin with the tool's bare name; `control` that the marker is one token of the
    model's vocabulary, which is not written by way of mention; `keep` is the number of the marker's last characters
    that belong to the call itself.
    """

    parser: str
    allows_bare_names: bool = False
    is_control_token: bool = False
    shared_characters: int = 0


def _deepseek_variants(word: str) -> list[str]:
    """The ways in which DeepSeek's distilled models write the marker `word`, whose parts are joined by `_`."""
    return [f"<{bar}{word.replace('_', joint)}{bar}>" for bar in "｜|" for joint in ("▁", "_", " ", "\\_")]


TAG_NAMESPACE = "antml:"
"""The name space of one family's tags."""

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
        _deepseek_variants("tool_calls_begin"), OpeningMarker("deepseek", allows_bare_names=True, is_control_token=True)
    ),
    **dict.fromkeys(
        _deepseek_variants("tool_call_begin"), OpeningMarker("deepseek", allows_bare_names=True, is_control_token=True)
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
"""Openers that count at the beginning of a line alone."""
OPENERS = _TAG_OPENERS | _CONTROL_OPENERS
"""Every marker behind which calls stand."""

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
"""Every marker that ends a call, or a run of them."""

FILLER_MARKERS = frozenset({"<|plugin|>", "<|interpreter|>", "<|call|>"})
"""Markers that stand between a call's marker and the call, and say nothing."""

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
"""Markers that mean nothing where they stand alone and that a user never sees."""

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
"""What opens the model's reasoning, and what closes it."""

THINKING_ENDS = frozenset({*THINKING_MARKERS.values(), "[BEGIN FINAL RESPONSE]"}) - {
    "<channel|>",
    "<|inner_suffix|>",
    "<|end_message|>",
}
"""What closes reasoning even where nothing in the reply opened it: the prompt did."""

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
"""Elements whose content is shown or repeated, and other people's turns made up by the model: never done."""

HEADER_MARKERS = ("<|start|>", "<|channel|>")
"""What begins a message header in the harmony form; `<|message|>` ends it."""

TAGGED_CALL_STARTS = (
    "<function=", "<function name=", "<invoke name=", "<atem:invoke name=", f"<{TAG_NAMESPACE}invoke name=", "<steptml:invoke name=",
    "<｜DSML｜invoke name=", "]<]minimax[>[<invoke name=", "<|open|>call tool=",
)  # fmt: skip
"""How a call begins whose arguments stand in tags."""


def compile_alternatives(literals: Iterable[str]) -> re.Pattern[str]:
    """A pattern that matches the longest of `literals`, by way of their common beginnings: it fails fast."""
    return re.compile(build_alternatives(literals))


def build_alternatives(literals: Iterable[str]) -> str:
    """The text of that pattern."""
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
    """Every beginning of every literal, short of the whole."""
    return frozenset(literal[:size] for literal in literals for size in range(1, len(literal)))


_STOP_LITERALS = (
    CLOSERS | FILLER_MARKERS | set(OPENERS) | {"<|end|>", "<|start|>", "<|im_end|>", "<|eot_id|>"} | THINKING_ENDS
) - set(LINE_OPENERS)
_STOP_PATTERN = compile_alternatives(_STOP_LITERALS)
_STOP_PREFIXES = get_prefixes(_STOP_LITERALS)


def match_stop(text: str, at: int) -> str:
    """The marker at `at` where a call's value cannot go on; "" where there is none."""
    found = _STOP_PATTERN.match(text, at)
    return found[0] if found else ""


def may_become_stop(text: str, at: int) -> bool:
    """Whether the text, which ends soon after `at`, may go on to be such a marker."""
    return len(text) - at < MAX_MARKER_CHARACTERS and text[at:] in _STOP_PREFIXES
