"""The ReAct format: `Action: f`, `Action Input: …`, and its variants."""

import re
from typing import Any, Literal

from opposable.parsers.bracket_scanner import BracketScan
from opposable.parsers.call_candidates import may_be_call
from opposable.parsers.lenient_json import skip_whitespace
from opposable.parsers.tool_names import ToolIndex

_ACTION = re.compile(r"(?:(?:Action|行动|动作|✿FUNCTION✿)[:：]|\*\*Action:\*\*|\*\*Action\*\*:)[ \t]{0,16}")
_LINE = re.compile(r"(?P<name>[^\n]{0,160})(?P<end>\n|\Z)")
_INPUT = re.compile(
    r"\s{0,120}(?:\*\*)?(?:(?:Action[ _]?)?(?:Input|Arguments)|Parameters)(?:\*\*)?[ \t]*[:：](?:\*\*)?[ \t]*",
    re.IGNORECASE,
)
_OTHER_INPUT = re.compile(r"\s{0,120}(?:行动输入|动作输入|✿ARGS✿)[ \t]*[:：][ \t]*")
"""The label of an input, after an action whose label is not English."""
_PARTIAL_LABEL = re.compile(r"\s{0,120}[*✿\w \t]{0,40}\Z")
"""The next line, as long as it may become the label of an input."""
_STOP = re.compile(r"^[^\S\n]{0,32}(?:\*\*)?(?:Observation|Thought|Action|Final Answer|PAUSE)", re.MULTILINE)
_OTHER_STOP = re.compile(r"^[^\S\n]{0,32}(?:(?:观察|思考|行动|动作|最终答案)[:：]|✿RE(?:SULT|TURN)✿)", re.MULTILINE)
_OBSERVATION = re.compile(r"\s{0,120}(?:\*\*)?Observation")
_OTHER_OBSERVATION = re.compile(r"\s{0,120}(?:观察[:：]|✿RESULT✿)")
_FINAL_ANSWER = re.compile(r"(?:Final Answer|最终答案|✿RETURN✿)[:：]|\*\*Final Answer(?::\*\*|\*\*:)")
_THOUGHT = re.compile(r"^(?:\*\*)?(?:Thought|思考)(?:\*\*)?\s*[:：].*$", re.MULTILINE)
_FENCE_START = re.compile(r"```[\w]*\s*")
_BACKTICKED_OBJECT = re.compile(r"`(?P<object>\{.*\})`", re.DOTALL)
MAX_LABEL_CHARACTERS = 64
MAX_LOOKAHEAD_CHARACTERS = 120

Verdict = Literal["call", "label", "text"]


LABELS = tuple(
    f"{label}{colon}"
    for label in ("Action", "行动", "动作", "✿FUNCTION✿", "Final Answer", "最终答案", "✿RETURN✿")
    for colon in ":："
)
"""The labels that begin a line of the format; those in bold type are English."""


def is_action_start(text: str, at: int) -> bool:
    """Return whether the label of an action is at `at`."""
    return _ACTION.match(text, at) is not None


def match_final_answer(text: str, at: int) -> int | None:
    """Return the position after the label of the final answer at `at`, or None."""
    match = _FINAL_ANSWER.match(text, at)
    return match.end() if match else None


def begins_with_thought(text: str) -> bool:
    """Return whether the text is empty or begins with a thought."""
    return not text.strip() or _THOUGHT.match(text.lstrip()) is not None


def remove_thoughts(text: str) -> str:
    """Return the text before an action without the model's thoughts."""
    return _THOUGHT.sub("", text).strip()


class ReactScan:
    """The scan of one action that begins with its label at `start`.

    `scan` returns None if more text is needed, else a verdict:

    - "call": `name`, `get_raw_arguments()` and `end` are set;
    - "label": the call follows as JSON at `end`;
    - "text": there is no call, and the text continues at `end`.

    `has_invented_result` means that the model goes on to make up the result. `lacks_input` means that the name of a tool
    is all there is, which is a call only without text before it.
    """

    def __init__(self, start: int, tools: ToolIndex) -> None:
        self.start = start
        self.end = start
        self.name = ""
        self.repairs: tuple[str, ...] = ()
        self.has_invented_result = False
        self.lacks_input = False
        self._is_english = True
        self._tools = tools
        self._input_text = ""
        self._input_start = self._input_end = -1
        self._bracket_scan: BracketScan | None = None
        self._search_from = start

    def scan(self, text: str, final: bool) -> Verdict | None:
        """Return the verdict on the action, or None if more text is needed."""
        if self._input_start < 0:
            verdict = self._scan_label(text, final)
            if verdict != "call" or self._input_start < 0:
                return verdict
        return self._scan_input(text, final)

    def _scan_label(self, text: str, final: bool) -> Verdict | None:
        label = _ACTION.match(text, self.start)
        assert label is not None
        self._is_english = label[0].isascii() or label[0].startswith("Action")
        at = label.end()
        first = skip_whitespace(text, at)
        is_far = first - at >= MAX_LOOKAHEAD_CHARACTERS
        if not final and not is_far and text[first:] in ("", "`", "``"):
            return None
        if is_far or first >= len(text):
            return self._finish_as_text(at)
        fence = _FENCE_START.match(text, first)
        if text[first] in "{[" or fence:
            may_be = may_be_call(text, fence.end() if fence else first, self._tools)
            if may_be is None and not final and len(text) - first < MAX_LOOKAHEAD_CHARACTERS:
                return None
            if may_be or text[first] != "[":
                self.end = first
                return "label" if may_be else "text"
        line = _LINE.match(text, at)
        if line is None:
            return self._finish_as_text(at)
        if line.end() >= len(text) and not line["end"].startswith("\n") and not final:
            return None
        return self._scan_tool_name(text, line, at, final)

    def _scan_tool_name(self, text: str, line: re.Match[str], at: int, final: bool) -> Verdict | None:
        name = line["name"].strip().strip("*`\"'[] ")
        tool, _ = self._tools.find(name)
        match = (_INPUT if self._is_english else _OTHER_INPUT).match(text, line.end("name"))
        if match is None:
            if not final and _PARTIAL_LABEL.match(text, line.end("name")):
                return None
            input_start = skip_whitespace(text, line.end("name"))
            needs_no_input = self._is_english and tool is not None and not tool.schema.required_names()
            ends_turn = input_start >= len(text) or _OBSERVATION.match(text, input_start)
            is_far = input_start - line.end("name") > MAX_LOOKAHEAD_CHARACTERS
            if not (needs_no_input and ends_turn) or is_far:
                return self._scan_python_call(line, at)
            self.lacks_input = True
        elif not final and text[match.end() - 1 :] in (":", "：", ":*", "：*"):
            return None
        else:
            input_start = match.end()
        if tool is None and not re.fullmatch(r"[\w.\-]{1,64}", name, re.NOFLAG if self._is_english else re.ASCII):
            return self._finish_as_text(at)
        self.name = name
        self._input_start = input_start
        return "call"

    def _scan_python_call(self, line: re.Match[str], at: int) -> Verdict:
        name = line["name"].strip()
        if "(" in name and name.endswith(")") and self._tools.find(name.split("(")[0])[0]:
            self.name, self._input_text = name.split("(")[0], name[name.index("(") + 1 : -1]
            self.end = line.end("name")
            return "call"
        return self._finish_as_text(at)

    def _finish_as_text(self, end: int) -> Verdict:
        self.end = end
        return "text"

    def _scan_input(self, text: str, final: bool) -> Verdict | None:
        self._input_start = skip_whitespace(text, self._input_start)
        if self._input_start >= len(text) and not final:
            return None
        fence = _FENCE_START.match(text, self._input_start)
        first = fence.end() if fence else self._input_start
        if self._input_end >= 0:
            end: int | None = self._input_end
        elif text.startswith("{", first):
            self._bracket_scan = self._bracket_scan or BracketScan(first)
            end = self._bracket_scan.scan(text, final)
        else:
            stop = (_STOP if self._is_english else _OTHER_STOP).search(text, max(self._search_from, self._input_start))
            self._search_from = max(self._search_from, len(text) - MAX_LABEL_CHARACTERS)
            end = stop.start() if stop else (len(text) if final else None)
        if end is None:
            return None
        self._input_end = end
        return self._finish_call(text, first, end, fence is not None, final)

    def _finish_call(self, text: str, first: int, end: int, is_fenced: bool, final: bool) -> Verdict | None:
        start = skip_whitespace(text, end)
        if is_fenced and start - end <= MAX_LOOKAHEAD_CHARACTERS and text.startswith("```", start):
            end, start = start + 3, skip_whitespace(text, start + 3)
        is_near = start - end <= MAX_LOOKAHEAD_CHARACTERS
        upcoming = text[start : start + 13]
        words = ("```", "Observation", "**Observation", "观察：", "✿RESULT✿")
        if not final and is_near and any(word != upcoming and word.startswith(upcoming) for word in words):
            return None
        self._input_text = text[first:end].strip().removesuffix("```").strip()
        if backticked := _BACKTICKED_OBJECT.fullmatch(self._input_text):
            self._input_text = backticked["object"]
        observation = _OBSERVATION if self._is_english else _OTHER_OBSERVATION
        self.has_invented_result = observation.match(text, end) is not None
        self.end = end
        return "call"

    def get_raw_arguments(self) -> Any:
        """Return the arguments as written: JSON text, or a tool's only argument."""
        tool, _ = self._tools.find(self.name)
        if tool is None or self._input_text[:1] in ("{", "[", ""):
            return self._input_text
        names = list(tool.schema.properties())
        if len(names) == 1 and not re.match(rf"\s*{re.escape(names[0])}\s*[=:]", self._input_text):
            self.repairs = ("the one argument given without its name",)
            return {names[0]: self._input_text.strip("\"'")}
        return self._input_text
