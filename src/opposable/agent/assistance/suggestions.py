"""Rule: add to a failed result what may correct the call: the value of the error that is most similar."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import islice
from typing import Any

from opposable.agent.assistance import prompts
from opposable.agent.assistance.rule import AssistanceRule
from opposable.agent.failure_fingerprints import MIN_SIMILARITY, format_arguments
from opposable.agent.policy import Step

MAX_VALUE_CHARACTERS = 200
"""Characters of a compared value."""

_MAX_CHARACTERS_READ = 2_000
"""Characters of an error that are read."""
_MAX_VALUES_COMPARED = 300
"""Values of an error that are compared."""
_SEPARATOR_PATTERN = re.compile(r"[,;:：、，；。\n\"'“”‘’()\[\]]|\.(?=\s|$)")
_QUOTE_PAIRS = (("'", "'"), ('"', '"'), ("“", "”"), ("‘", "’"), ("「", "」"), ("《", "》"), ("`", "`"))
_NUMBER_PATTERN = re.compile(r"\d+")
_WORD_PATTERN = re.compile(r"[a-z]+|\d+|[^\x00-\x7f]+")


class Suggestions(AssistanceRule):
    """Suggest the most similar value that an error names, or another attempt."""

    def annotate(self, step: Step, steps: Sequence[Step]) -> str:
        """Return the suggestion for a failed call without a known correction."""
        run, result = self.run, step.result
        if result.failure is None or step.call.id in run.suggested_arguments:
            return ""
        note = prompts.RETRY if run.is_retryable(result) else ""
        if suggested := suggest_arguments(run.arguments[step.call.id], result.content):
            run.suggested_arguments[step.call.id] = dict(suggested)
            note = prompts.SIMILAR_ARGUMENTS.format(arguments=format_arguments(suggested.items()))
        return "" if step.call.id in run.blocked_ids else note


def suggest_arguments(arguments: dict[str, Any], error_text: str) -> dict[str, str]:
    """Return the most similar value of an error for each argument it quotes.

    A value needs to be the only best one. Ids that differ only in a number are not similar.
    """
    error_text = error_text[:_MAX_CHARACTERS_READ]
    texts = [(name, text) for name, text in arguments.items() if isinstance(text, str)]
    quoted = ((name, text) for name, text in texts if len(text) <= MAX_VALUE_CHARACTERS and is_quoted(error_text, text))
    return {name: near for name, text in quoted if (near := _find_nearest_value(text, error_text))}


def is_quoted(error_text: str, value: str) -> bool:
    """Return whether an error quotes the value, or names it if it is a code."""
    return _compile_mention(value).search(error_text) is not None


def _compile_mention(value: str) -> re.Pattern[str]:
    """Compile a pattern of the value in quotes; also without them if it has digits and other characters."""
    quoted = [re.escape(f"{opening}{value}{closing}") for opening, closing in _QUOTE_PAIRS]
    is_code = _NUMBER_PATTERN.search(value) is not None and not value.isdecimal()
    bare = [rf"(?<![\w./-]){re.escape(value)}(?![\w/-]|\.\w)"] if is_code else []
    return re.compile("|".join(quoted + bare), re.ASCII)


def _find_nearest_value(value: str, error_text: str) -> str:
    error_text = _compile_mention(value).sub("\n", error_text)
    texts = (text for part in _SEPARATOR_PATTERN.split(error_text) for text in (part.strip(), *part.split()))
    candidates = dict.fromkeys(text for text in texts if len(text) <= MAX_VALUE_CHARACTERS)
    compared = islice((text for text in candidates if text not in ("", value)), _MAX_VALUES_COMPARED)
    similarities = {text: _compute_similarity(value.casefold(), text.casefold()) for text in compared}
    best = max(similarities.values(), default=0.0)
    nearest = [candidate for candidate, likeness in similarities.items() if likeness == best]
    return nearest[0] if best >= MIN_SIMILARITY and len(nearest) == 1 else ""


def _compute_similarity(value: str, candidate: str) -> float:
    """Return the similarity of two lower-case texts. Above 1 if the candidate contains the value."""
    few, many = _WORD_PATTERN.findall(value), _WORD_PATTERN.findall(candidate)
    whole = "".join(few)
    if not few or not many:
        return 0.0
    ends = range(1, len(many) + 1)
    if any("".join(many[start:end]) == whole for end in ends for start in range(end)):
        return 1 + len(whole) / len("".join(many))
    if _NUMBER_PATTERN.sub("", value) == _NUMBER_PATTERN.sub("", candidate):
        return 0.0
    alike = SequenceMatcher(None, candidate, value)
    far = alike.real_quick_ratio() < MIN_SIMILARITY or alike.quick_ratio() < MIN_SIMILARITY
    return 0.0 if far else alike.ratio()
