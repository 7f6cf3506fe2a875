"""What a wrong argument may have meant: of what its failure names, the one thing that is most like it."""

import re
from difflib import SequenceMatcher
from typing import Any

from opposable.agent.assistance.pinyin import is_pinyin_of

MAX_VALUE_CHARACTERS = 200
"""Characters of a value that is looked for, and of one that is found."""

MAX_LISTED_VALUES = 40
"""Values of a list from which another one is chosen."""

_MAX_CHARACTERS_READ = 2_000
"""Characters of a failure that are read."""
_MAX_VALUES_COMPARED = 300
"""Values of a failure that are compared."""
_MIN_SIMILARITY = 0.7
"""How like two texts must be, where neither holds the other, for one to be meant by the other."""
_SEPARATOR_PATTERN = re.compile(r"[,;:：、，；。\n\"'“”‘’()\[\]]|\.(?=\s|$)")
_LIST_PATTERN = re.compile(r"(?::\s|：)([^:：\n]+)$", re.MULTILINE)
_COMMA_PATTERN = re.compile(r"[,;、，；]")
_QUOTE_PAIRS = (("'", "'"), ('"', '"'), ("“", "”"), ("‘", "’"), ("「", "」"), ("《", "》"), ("`", "`"))
_CODE_AND_LABEL_WORDS = 2
"""Words of a value that stands beside what it is called: "ANNUAL 年假"."""
_CODE_LENGTHS = range(2, 6)
"""Letters of a code that is the beginning of a name: RIV."""
_NUMBER_PATTERN = re.compile(r"\d+")
_WORD_PATTERN = re.compile(r"[a-z]+|\d+|[^\x00-\x7f]+")


def suggest_arguments(arguments: dict[str, Any], error_text: str) -> dict[str, str]:
    """By name of argument: the value a failure names that is most like the one given, which it repeats.

    Nothing where no value is like it, or where two are equally so. Ids that differ in a number alone are not alike:
    17 may mean A-17, A-18 does not.
    """
    error_text = error_text[:_MAX_CHARACTERS_READ]
    repeated = {
        name: value
        for name, value in arguments.items()
        if isinstance(value, str) and len(value) <= MAX_VALUE_CHARACTERS and _is_quoted(error_text, value)
    }
    found = {name: _find_nearest_value(value, error_text) for name, value in repeated.items()}
    return {name: near for name, near in found.items() if near}


def find_substituted_value(failed_arguments: dict[str, Any], new_arguments: dict[str, Any], error_text: str) -> str:
    """What a call takes from a failure's list in place of a value that the list does not have, "" where it takes none.

    No correction but another thing: who asks for order B-5 does not mean A-17 because there is an A-17.
    """
    error_text = error_text[:_MAX_CHARACTERS_READ]
    listed = {part.strip() for part in _SEPARATOR_PATTERN.split(error_text)}
    for name, value in failed_arguments.items():
        new = new_arguments.get(name)
        if not isinstance(value, str) or not _is_quoted(error_text, value):
            continue
        if isinstance(new, str) and new != value and new in listed:
            return new
    return ""


def parse_listed_values(error_text: str) -> tuple[str, ...]:
    """The values that a failure lists behind a colon, each without a space in it; none where that is no list."""
    found = _LIST_PATTERN.search(error_text[:_MAX_CHARACTERS_READ])
    values = [value.strip("'\"` ") for value in _COMMA_PATTERN.split(found[1].rstrip(".。"))] if found else []
    if not 1 < len(values) <= MAX_LISTED_VALUES or not all(values) or any(re.search(r"\s", value) for value in values):
        return ()
    return tuple(dict.fromkeys(values))


def _is_quoted(error_text: str, value: str) -> bool:
    """Whether a failure tells the value in quotes."""
    return any(f"{before}{value}{behind}" in error_text for before, behind in _QUOTE_PAIRS)


def _find_nearest_value(value: str, error_text: str) -> str:
    named: dict[str, float] = {}  # of the many values that a long list names, the first ones
    for before, behind in _QUOTE_PAIRS:
        error_text = error_text.replace(f"{before}{value}{behind}", "\n")
    for part in _SEPARATOR_PATTERN.split(error_text):
        words = part.split()
        if len(words) == len({*words, value}) == _CODE_AND_LABEL_WORDS:
            return next(word for word in words if word != value)
        for one in (part.strip(), *words):
            if (
                one
                and one != value
                and len(one) <= MAX_VALUE_CHARACTERS
                and one not in named
                and len(named) < _MAX_VALUES_COMPARED
            ):
                short = one.isupper() and len(one) in _CODE_LENGTHS and value.casefold().startswith(one.casefold())
                named[one] = 1.0 if short else _compute_similarity(value.casefold(), one.casefold())
    best = max(named.values(), default=0.0)
    nearest = [one for one, likeness in named.items() if likeness == best]
    return nearest[0] if best >= _MIN_SIMILARITY and len(nearest) == 1 else ""


def _compute_similarity(value: str, candidate: str) -> float:
    """How like two texts in lower case are; above 1 where the one named holds the words of the one given."""
    if is_pinyin_of(candidate, value):
        return 1.0
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
    far = alike.real_quick_ratio() < _MIN_SIMILARITY or alike.quick_ratio() < _MIN_SIMILARITY
    return 0.0 if far else alike.ratio()
