"""What a wrong argument may have meant: of what its failure names, the one thing that is most like it."""

import re
from difflib import SequenceMatcher
from typing import Any

from opposable.agent.pinyin import spells

LONGEST = 200
"""Characters of a value that is looked for, and of one that is found."""

MOST_LISTED = 40
"""Values of a list from which another one is chosen."""

_READ = 2_000
"""Characters of a failure that are read."""
_MOST = 300
"""Values of a failure that are compared."""
_NEAR = 0.7
"""How like two texts must be, where neither holds the other, for one to be meant by the other."""
_BETWEEN = re.compile(r"[,;:：、，；。\n\"'“”‘’()\[\]]|\.(?=\s|$)")
_LISTED = re.compile(r"(?::\s|：)([^:：\n]+)$", re.MULTILINE)
_COMMAS = re.compile(r"[,;、，；]")
_QUOTES = (("'", "'"), ('"', '"'), ("“", "”"), ("‘", "’"), ("「", "」"), ("《", "》"), ("`", "`"))
_CODE_AND_LABEL = 2
"""Words of a value that stands beside what it is called: "ANNUAL 年假"."""
_CODES = range(2, 6)
"""Letters of a code that is the beginning of a name: RIV."""
_NUMBER = re.compile(r"\d+")
_WORD = re.compile(r"[a-z]+|\d+|[^\x00-\x7f]+")


def nearest_named(arguments: dict[str, Any], said: str) -> dict[str, str]:
    """By name of argument: the value a failure names that is most like the one given, which it repeats.

    Nothing where no value is like it, or where two are equally so. Ids that differ in a number alone are not alike:
    17 may mean A-17, A-18 does not.
    """
    said = said[:_READ]
    repeated = {
        name: value
        for name, value in arguments.items()
        if isinstance(value, str) and len(value) <= LONGEST and _repeats(said, value)
    }
    found = {name: _nearest(value, said) for name, value in repeated.items()}
    return {name: near for name, near in found.items() if near}


def swapped(given: dict[str, Any], other: dict[str, Any], said: str) -> str:
    """What a call takes from a failure's list in place of a value that the list does not have, "" where it takes none.

    No correction but another thing: who asks for order B-5 does not mean A-17 because there is an A-17.
    """
    said = said[:_READ]
    listed = {part.strip() for part in _BETWEEN.split(said)}
    for name, value in given.items():
        new = other.get(name)
        if not isinstance(value, str) or not _repeats(said, value):
            continue
        if isinstance(new, str) and new != value and new in listed:
            return new
    return ""


def listed(said: str) -> tuple[str, ...]:
    """The values that a failure lists behind a colon, each without a space in it; none where that is no list."""
    found = _LISTED.search(said[:_READ])
    values = [value.strip("'\"` ") for value in _COMMAS.split(found[1].rstrip(".。"))] if found else []
    if not 1 < len(values) <= MOST_LISTED or not all(values) or any(re.search(r"\s", value) for value in values):
        return ()
    return tuple(dict.fromkeys(values))


def _repeats(said: str, value: str) -> bool:
    """Whether a failure tells the value in quotes."""
    return any(f"{before}{value}{behind}" in said for before, behind in _QUOTES)


def _nearest(value: str, said: str) -> str:
    named: dict[str, float] = {}  # of the many values that a long list names, the first ones
    for before, behind in _QUOTES:
        said = said.replace(f"{before}{value}{behind}", "\n")
    for part in _BETWEEN.split(said):
        words = part.split()
        if len(words) == len({*words, value}) == _CODE_AND_LABEL:
            return next(word for word in words if word != value)
        for one in (part.strip(), *words):
            if one and one != value and len(one) <= LONGEST and one not in named and len(named) < _MOST:
                short = one.isupper() and len(one) in _CODES and value.casefold().startswith(one.casefold())
                named[one] = 1.0 if short else _likeness(value.casefold(), one.casefold())
    best = max(named.values(), default=0.0)
    nearest = [one for one, likeness in named.items() if likeness == best]
    return nearest[0] if best >= _NEAR and len(nearest) == 1 else ""


def _likeness(given: str, named: str) -> float:
    """How like two texts in lower case are; above 1 where the one named holds the words of the one given."""
    if spells(named, given):
        return 1.0
    few, many = _WORD.findall(given), _WORD.findall(named)
    whole = "".join(few)
    if not few or not many:
        return 0.0
    ends = range(1, len(many) + 1)
    if any("".join(many[start:end]) == whole for end in ends for start in range(end)):
        return 1 + len(whole) / len("".join(many))
    if _NUMBER.sub("", given) == _NUMBER.sub("", named):
        return 0.0
    alike = SequenceMatcher(None, named, given)
    far = alike.real_quick_ratio() < _NEAR or alike.quick_ratio() < _NEAR
    return 0.0 if far else alike.ratio()
