"""Detection of quoted calls, which the model shows or cites but does not make."""

import re

from opposable.parsers import quotation_patterns as cues
from opposable.parsers.markers import build_alternatives

LOOK_BACK_CHARACTERS = 240
LOOK_AHEAD_CHARACTERS = 240
MAX_LEAD_CHARACTERS = 600


def _compile_cues(words: tuple[str, ...], chinese: tuple[str, ...]) -> re.Pattern[str]:
    latin = rf"\b{build_alternatives(words)}(?!\w)"
    return re.compile(f"{latin}|{build_alternatives(chinese)}" if chinese else latin)


_QUOTING_CUES = _compile_cues(cues.QUOTING_CUES, cues.QUOTING_CUES_CHINESE)
_SHOWING_CUES = _compile_cues(cues.SHOWING_CUES, cues.SHOWING_CUES_CHINESE)
_CONTAINER_CUES = _compile_cues(cues.CONTAINER_CUES, ())
_CALLING_CUES = _compile_cues(cues.CALLING_CUES, cues.CALLING_CUES_CHINESE)
_EXPLAINING_CUES = _compile_cues(cues.EXPLAINING_CUES, cues.EXPLAINING_CUES_CHINESE)
_STATEMENT_ENDS = (".", "!", "。", "！")
_ASKS_USER = re.compile(r"(?:\b(?:i|we|me|us|you)\b|[我你您吗]|是否|要不要).*[?？]\Z", re.DOTALL)
_GAPS = re.compile(r"[\s*_`]+")
_SENTENCE_END = re.compile(r"[.!?。！？](?=\s|$)|[。！？]|\n\s*\n")
_ENDS_SENTENCE = re.compile(r"[.!?。！？:：;；…]['\"”’)\]*_]*\s*\Z")
_QUOTES = "\"'“‘«「『《(（"
_SPEAKER = re.compile(
    r"\W*(?:assistant|user|human|model|ai|system|tool|bot|助手|用户|模型|系统|工具)\W*[:：]\W*", re.IGNORECASE
)
_INVENTED_TURN = re.compile(
    r"\S\s*\n\W*(?:user|human|instruction|用户)\W*[:：].*\n\W*(?:assistant|ai|model|response|助手|模型)\W*[:：]\W*\Z",
    re.IGNORECASE | re.DOTALL,
)
"""A turn of the user that the model made up, with the label of its own next turn."""
_ITEM_SIGN = r"(?:[-*+•]|\d{1,3}[.)、])"
_LIST_ITEM = re.compile(rf"{_ITEM_SIGN}\s*\Z")
_LABEL = re.compile(rf"\s*(?:#{{1,6}} .*|{_ITEM_SIGN}|[\w-]+: [|>][+-]?|{_SPEAKER.pattern})", re.IGNORECASE)


def is_quoted(before: str) -> bool:
    """Return whether the sentence before a call presents it as a quotation, or asks the user whether to make it.

    If the sentence has both kinds of cue, quoting ("for example", "the page says") and calling ("I will", "let me"),
    the later one counts. A finished sentence does not introduce the call, so only cues of showing count there: "the
    page says:" introduces a quotation, "The page says that Paris is spelled so." does not.
    """
    quoting_end, calling_end = _find_cues(before)
    return quoting_end > calling_end or _INVENTED_TURN.search(before[-LOOK_BACK_CHARACTERS:]) is not None


def is_shown(before: str) -> bool:
    """Return whether a call is quoted, or follows a heading, a label or the sign of a list item: it is only shown."""
    line = before.rstrip().rpartition("\n")[2]
    return is_quoted(before) or _LABEL.fullmatch(line) is not None


def is_introduced(before: str) -> bool:
    """Return whether the text before a call neither ends a sentence nor announces the call."""
    return bool(before.strip()) and not ends_statement(before.rstrip()) and not announces_call(before)


def announces_call(before: str) -> bool:
    """Return whether the text before a call announces that it is about to be made."""
    quoting_end, calling_end = _find_cues(before)
    return calling_end > quoting_end


def ends_statement(before: str) -> bool:
    """Return whether the text before a call is short and ends with a finished sentence, which introduces nothing."""
    return len(before) < MAX_LEAD_CHARACTERS and before.endswith(_STATEMENT_ENDS)


def describes_example(after: str) -> bool:
    """Return whether the text after a call describes it as an example."""
    return _EXPLAINING_CUES.search(_normalize_text(after[:LOOK_AHEAD_CHARACTERS])) is not None


def _find_cues(before: str) -> tuple[int, int]:
    """Return where the last quoting cue and the last calling cue end.

    -1 if the cue is missing.
    """
    if not before or before.isspace():
        return -1, -1
    sentence = _normalize_text(_get_last_sentence(before[-LOOK_BACK_CHARACTERS:])).rstrip()
    if _ASKS_USER.search(sentence):
        return len(sentence), -1
    is_finished = sentence.endswith(_STATEMENT_ENDS)
    quoting_cues = _SHOWING_CUES if is_finished else _QUOTING_CUES
    quoting_end = max((match.end() for match in quoting_cues.finditer(sentence)), default=-1)
    calling_end = max((match.end() for match in _CALLING_CUES.finditer(sentence)), default=-1)
    if quoting_end < 0 and calling_end < 0 and not is_finished and _CONTAINER_CUES.search(sentence):
        return 0, -1
    return quoting_end, calling_end


def _normalize_text(text: str) -> str:
    return _GAPS.sub(" ", text.lower().replace("’", "'"))


def _get_last_sentence(text: str) -> str:
    text = text.rstrip()
    start = 0
    for match in _SENTENCE_END.finditer(text):
        if match.end() < len(text):
            start = match.end()
    return text[start:]


def ends_sentence(line: str) -> bool:
    """Return whether a line ends a sentence or introduces what follows."""
    return _ENDS_SENTENCE.search(line.rstrip()) is not None


def is_indented_code(lead: str) -> bool:
    """Return whether the text after `lead` is an indented Markdown code block."""
    text, _, line = lead.rpartition("\n")
    return bool(text.strip()) and not line.strip() and len(line.expandtabs(4)) >= 4


def is_mentioned(line: str, after: str) -> bool:
    """Return whether a call is part of a sentence.

    Args:
        line: The text before the call on its line.
        after: The text after the call on its line.
    """
    before = line.rstrip()
    if _SPEAKER.fullmatch(before):
        return True
    if not before or _LIST_ITEM.search(before):
        return False
    if before[-1] in _QUOTES or (before[-1] == "`" and after[:1] == "`"):
        return True
    if before.lstrip().startswith(">") and not before.lstrip().startswith(">>>"):
        return True
    return bool(after.strip()) and not _ENDS_SENTENCE.search(before)
