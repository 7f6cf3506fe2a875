"""What the request says in so many words and a call leaves out: a small model forgets optional values it was told."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from opposable.domain.language import numbers_spoken, words
from opposable.parsers.schema_coercion import Schema

_EXPLAINED = re.compile(
    r"(\d+)['\"]?\s*(?:[=:：→-]|(?:for|is|are|means|represents|indicates|stands for)\b|为|是|表示|代表)\s*([^\d,;.()，；。（）、]+)"
)
"""A number and what it stands for, as descriptions put it: "1 for new, 2 for used"."""
_REFUSED = frozenset("no not without except excluding avoid hide omit skip never non than t 不 无 非 除 没 别".split())  # noqa: SIM905
"""Words before a choice that say it is not wanted."""
_NAME = re.compile(
    r"(?:[A-Z][\w'.-]*|of|the|and|de|la)(?: (?:[A-Z][\w'.-]*|of|the|and|de|la)){0,7}|[\u3400-\u9fff]{1,12}"
)
"""A name; another text may hold what is said beside it."""
_SURELY_NAMED = 5
"""Letters that stand one behind the other by no chance, whatever words they are cut into, if there are more."""
_MOST_CUTS = 6
_SWITCHES = frozenset("is are has have include includes including with show return get enable enabled use want".split())  # noqa: SIM905
"""Words of a flag's name that say nothing of what it is about."""


def with_choices_said(
    given: dict[str, Any], schema: Schema, asked: Sequence[str], repairs: list[str]
) -> dict[str, Any]:
    """The arguments with each list of choices as `asked`, the user's last words, says it.

    It gets those said that it lacks, and is cut to those said where all the choices there are were copied. What stands in
    a name that another argument took up is not said: the "history" of a Natural History Museum.
    """
    made = dict(given)
    for name, value in given.items():
        choices = schema.property(name).branch("array").items(0).choices() if isinstance(value, list) else []
        if choices:
            others = [text for other in given if other != name for text in _texts(given[other])]
            free = _without(asked, filter(_is_name, others))
            made[name] = _listed(value, choices, choices_said(choices, free), repairs)
    return made


def with_rest_said(
    given: dict[str, Any], rest: dict[str, Any], schema: Schema, asked: Sequence[str], repairs: list[str]
) -> dict[str, Any]:
    """The arguments with those of `rest`, an optional parameter's each, whose values `asked` says and no other took up.

    A number is said, too, where the parameter's description has it stand for what was said: 2 of "1 for new, 2 for used";
    a flag where its name was.
    `rest` is what the model goes on with when its call is not let end: made up but for what was said.
    """
    made = dict(given)
    for name, value in rest.items():
        free = _without(asked, _texts(list(made.values())))
        items = value if isinstance(value, list) else [value]
        offered = name in schema.properties() and name not in schema.required() and name not in given
        offered = offered and _fits(value, schema.property(name))
        about = schema.property(name).description()
        told = all(_said_once(item, free) for item in items) or stands_for(value, about, free)
        if offered and items and (told or (_is_on(value, schema.property(name)) and _is_named(name, free))):
            made[name] = value
            repairs.append("optional value taken from the request")
    return made


def flagged(name: str) -> str:
    """What a flag is about, by its name: "details" for `include_details`."""
    return " ".join(word for word in words(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)) if word not in _SWITCHES)


def _is_named(flag: str, free: Sequence[str]) -> bool:
    """Whether the words of a flag's name were said, and nothing was refused: "with details" for `include_details`."""
    held = words(flagged(flag))
    return _telling(held) and not _REFUSED.intersection(free) and bool(_places(held, free))


def _is_name(text: str) -> bool:
    return bool(_NAME.fullmatch(text))


def _is_on(value: Any, schema: Schema) -> bool:
    return value is True or (value in ("True", "true") and value in schema.choices())


def choices_said(choices: Iterable[Any], spoken: Sequence[str]) -> list[str]:
    """The choices that stand among the words spoken, wanted and not as a part of a longer one."""
    texts = {choice: held for choice in choices if isinstance(choice, str) and _telling(held := words(choice))}
    left = list(spoken)
    found = []
    for choice in sorted(texts, key=lambda choice: -len(texts[choice])):
        spots = _places(texts[choice], left)
        if any(not _REFUSED.intersection(left[max(0, at - 2) : at]) for at in spots):
            found.append(choice)
        for at in spots:
            left[at : at + len(texts[choice])] = [""] * len(texts[choice])
    return [choice for choice in texts if choice in found]


def share_said(value: str, spoken: Sequence[str]) -> float | None:
    """The share of a value's words that were spoken, also by their beginning or initials; None where it has none."""
    held = words(value)
    if not held or _translated(held, spoken):
        return None
    if _is_said_apart("".join(held), spoken):
        return 1.0
    exact = {*spoken, *numbers_spoken(spoken)}
    starts = {word[:4] for word in exact if len(word) > 3}
    initials = "".join(word[0] for word in spoken)
    return sum(
        word in exact or word[:4] in starts or (len(word) <= 3 and word.isalpha() and _short(word, spoken, initials))
        for word in held
    ) / len(held)


def _is_said_apart(joined: str, spoken: Sequence[str]) -> bool:
    """Whether words that follow each other are these letters, however cut: McDonald's, said as "mc donalds"."""
    if len(joined) <= _SURELY_NAMED or not joined.isalpha():
        return False
    for at in range(len(spoken)):
        so_far = ""
        for word in spoken[at : at + _MOST_CUTS]:
            so_far += word
            if so_far == joined:
                return True
            if not joined.startswith(so_far):
                break
    return False


def said_elsewhere(value: str, spoken: Sequence[str], elsewhere: Sequence[Any]) -> bool:
    """Whether all words of a text were spoken, but none that others, `elsewhere`, did not take up: it repeats them.

    A text with numbers may repeat another: a day may be the first and the last.
    """
    held = words(value)
    if not held or any(word.isdigit() for word in held) or not set(held) <= set(spoken):
        return False
    return set(held).isdisjoint(_without(spoken, _texts(list(elsewhere))))


def _fits(value: Any, schema: Schema) -> bool:
    kinds, choices = schema.kinds(), schema.choices()
    named = {list: "array", str: "string", bool: "boolean"}
    kind = named.get(type(value), "number")
    return (not kinds or kind in kinds or (kind == "number" and "integer" in kinds)) and (
        not choices or value in choices
    )


def _said_once(value: Any, free: Sequence[str]) -> bool:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return False
    held = words(str(value))
    return bool(held) and (not isinstance(value, str) or _telling(held)) and bool(_places(held, free))


def stands_for(value: Any, about: str, free: Sequence[str]) -> bool:
    """Whether of all the numbers that a description explains, this one's explanation says most of what was said."""
    explained = {number: set(words(meaning)) for number, meaning in _EXPLAINED.findall(about)}
    if type(value) is not int or str(value) not in explained or len(explained) < 2:
        return False
    common = set.intersection(*explained.values())
    shares = {number: _part(meaning - common, free) for number, meaning in explained.items()}
    best = shares.pop(str(value))
    return best > max(shares.values())


def meaning_of(value: Any, about: str) -> str:
    """What a description says that this number stands for; "" where it says nothing of it, or of no other."""
    explained = dict(_EXPLAINED.findall(about))
    return explained.get(str(value), "") if type(value) is int and len(explained) > 1 else ""


def names(about: str, value: str) -> bool:
    """Whether a description names the value, as one that may stand there."""
    held = words(value)
    return bool(held) and bool(_places(held, words(about)))


def _part(meaning: set[str], free: Sequence[str]) -> float:
    return len(meaning.intersection(free)) / len(meaning) if meaning else 0.0


def _telling(held: Sequence[str]) -> bool:
    """Whether a choice's words are long enough to be meant where they are said."""
    return len("".join(held)) > 2 or not all(word.isascii() for word in held)


def _listed(value: list[Any], choices: Sequence[Any], found: Sequence[str], repairs: list[str]) -> list[Any]:
    copied = len(choices) > 2 and all(choice in value for choice in choices)
    kept = [item for item in value if item in found or not copied or not found]
    made = kept + [choice for choice in found if choice not in kept]
    if made != value:
        repairs.append("choices as the request says them")
    return made


def _places(held: Sequence[str], spoken: Sequence[str]) -> list[int]:
    return [
        at
        for at in range(len(spoken) - len(held) + 1)
        if all(_same(word, spoken[at + n]) for n, word in enumerate(held))
    ]


def _same(one: str, other: str) -> bool:
    """Whether two words are one, apart from a plural's ending."""
    return one == other or (min(len(one), len(other)) > 2 and bool(_bare(one) & _bare(other)))


def _bare(word: str) -> set[str]:
    """A word as it may be in the singular."""
    return {word, word.removesuffix("s"), word.removesuffix("es")}


def _without(spoken: Sequence[str], values: Iterable[str]) -> list[str]:
    """The words with those of the values blanked, so that no word counts twice."""
    left = list(spoken)
    for value in values:
        held = words(value)
        for at in _places(held, left) if held else ():
            left[at : at + len(held)] = [""] * len(held)
    return left


def _translated(held: Sequence[str], spoken: Sequence[str]) -> bool:
    """Whether a text of which nothing was said is in another script, as Shanghai for 上海: it may be what was said."""
    latin = any(word.isascii() and word.isalpha() for word in held)
    foreign = any(not word.isascii() for word in held)
    if latin == foreign or not set(held).isdisjoint(spoken):
        return False
    return latin == any(not word.isascii() for word in spoken)


def _short(word: str, spoken: Sequence[str], initials: str) -> bool:
    return (len(word) > 1 and word in initials) or any(each.startswith(word) for each in spoken)


def _texts(value: Any) -> list[str]:
    if isinstance(value, str | int | float):
        return [str(value)]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in inner for text in _texts(item)]
