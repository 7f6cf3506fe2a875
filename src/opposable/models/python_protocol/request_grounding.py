"""Grounding of arguments in the request: what it states and a call omits or repeats."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from opposable.domain.language import extract_numbers, split_words
from opposable.parsers.schema_coercion import SchemaNode

_NUMBER_MEANING_PATTERN = re.compile(
    r"(\d+)['\"]?\s*(?:[=:：→-]|(?:for|is|are|means|represents|indicates|stands for)\b|为|是|表示|代表)\s*([^\d,;.()，；。（）、]+)"
)
"""A number with its meaning in a description, such as "1 for new, 2 for used"."""
_NEGATION_WORDS = frozenset(
    [
        "no",
        "not",
        "without",
        "except",
        "excluding",
        "avoid",
        "hide",
        "omit",
        "skip",
        "never",
        "non",
        "than",
        "t",
        "不",
        "无",
        "非",
        "除",
        "没",
        "别",
    ]
)
"""Words before a choice that exclude it."""
_NAME_PATTERN = re.compile(
    r"(?:[A-Z][\w'.-]*|of|the|and|de|la)(?: (?:[A-Z][\w'.-]*|of|the|and|de|la)){0,7}|[\u3400-\u9fff]{1,12}"
)
"""A name; other texts can contain unrelated words."""
_MAX_CHANCE_LETTERS = 5
"""Letters in a row that can match by chance."""
_MAX_JOINED_WORDS = 6
_FLAG_WORDS = frozenset(
    [
        "is",
        "are",
        "has",
        "have",
        "include",
        "includes",
        "including",
        "with",
        "show",
        "return",
        "get",
        "enable",
        "enabled",
        "use",
        "want",
    ]
)
"""Words of the name of a flag that say nothing about its subject."""


def match_choices_to_request(
    arguments: dict[str, Any], schema: SchemaNode, request_words: Sequence[str], repairs: list[str]
) -> dict[str, Any]:
    """Return the arguments with each list of choices as the request names them.

    Requested choices are added. A list with all choices is cut to the requested ones. Words of names that other arguments
    use do not count.
    """
    made = dict(arguments)
    for name, value in arguments.items():
        choices = (
            schema.get_property(name).get_alternative("array").get_item_schema(0).choices()
            if isinstance(value, list)
            else []
        )
        if choices:
            others = [text for other in arguments if other != name for text in _list_texts(arguments[other])]
            free = _blank_values(request_words, filter(_is_name, others))
            made[name] = _adjust_choices(value, choices, find_requested_choices(choices, free), repairs)
    return made


def add_requested_optionals(
    arguments: dict[str, Any],
    rest_arguments: dict[str, Any],
    schema: SchemaNode,
    request_words: Sequence[str],
    repairs: list[str],
) -> dict[str, Any]:
    """Return the arguments with those optional ones of `rest_arguments` that the request contains."""
    made = dict(arguments)
    for name, value in rest_arguments.items():
        free = _blank_values(request_words, _list_texts(list(made.values())))
        items = value if isinstance(value, list) else [value]
        offered = name in schema.properties() and name not in schema.required_names() and name not in arguments
        offered = offered and _matches_schema(value, schema.get_property(name))
        about = schema.get_property(name).description()
        is_requested = all(_is_value_requested(item, free) for item in items) or matches_described_code(
            value, about, free
        )
        if (
            offered
            and items
            and (is_requested or (_is_true(value, schema.get_property(name)) and _is_flag_requested(name, free)))
        ):
            made[name] = value
            repairs.append("optional value taken from the request")
    return made


def get_flag_subject(name: str) -> str:
    """Return the subject of a flag by its name: "details" for `include_details`."""
    return " ".join(word for word in split_words(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)) if word not in _FLAG_WORDS)


def _is_flag_requested(flag: str, free_words: Sequence[str]) -> bool:
    """Return whether the request contains the words of the name of a flag."""
    held = split_words(get_flag_subject(flag))
    return (
        _is_distinctive(held) and not _NEGATION_WORDS.intersection(free_words) and bool(_find_phrase(held, free_words))
    )


def _is_name(text: str) -> bool:
    return bool(_NAME_PATTERN.fullmatch(text))


def _is_true(value: Any, schema: SchemaNode) -> bool:
    return value is True or (value in ("True", "true") and value in schema.choices())


def find_requested_choices(choices: Iterable[Any], text_words: Sequence[str]) -> list[str]:
    """Return the choices that the text contains and does not exclude."""
    texts = {
        choice: held for choice in choices if isinstance(choice, str) and _is_distinctive(held := split_words(choice))
    }
    left = list(text_words)
    found = []
    for choice in sorted(texts, key=lambda choice: -len(texts[choice])):
        spots = _find_phrase(texts[choice], left)
        if any(not _NEGATION_WORDS.intersection(left[max(0, at - 2) : at]) for at in spots):
            found.append(choice)
        for at in spots:
            left[at : at + len(texts[choice])] = [""] * len(texts[choice])
    return [choice for choice in texts if choice in found]


def get_word_overlap(value: str, text_words: Sequence[str]) -> float | None:
    """Return the share of the words of a value that the text contains.

    None if it has none.
    """
    held = split_words(value)
    if not held or _is_other_script(held, text_words):
        return None
    if _is_joined_from_words("".join(held), text_words):
        return 1.0
    exact = {*text_words, *extract_numbers(text_words)}
    starts = {word[:4] for word in exact if len(word) > 3}
    initials = "".join(word[0] for word in text_words)
    return sum(
        word in exact
        or word[:4] in starts
        or (len(word) <= 3 and word.isalpha() and _is_abbreviation(word, text_words, initials))
        for word in held
    ) / len(held)


def _is_joined_from_words(letters: str, text_words: Sequence[str]) -> bool:
    """Return whether consecutive words form these letters: McDonald's from "mc donalds"."""
    if len(letters) <= _MAX_CHANCE_LETTERS or not letters.isalpha():
        return False
    for at in range(len(text_words)):
        so_far = ""
        for word in text_words[at : at + _MAX_JOINED_WORDS]:
            so_far += word
            if so_far == letters:
                return True
            if not letters.startswith(so_far):
                break
    return False


def duplicates_other_argument(value: str, text_words: Sequence[str], other_values: Sequence[Any]) -> bool:
    """Return whether all words of a text occur only where other arguments use them."""
    held = split_words(value)
    if not held or any(word.isdigit() for word in held) or not set(held) <= set(text_words):
        return False
    return set(held).isdisjoint(_blank_values(text_words, _list_texts(list(other_values))))


def _matches_schema(value: Any, schema: SchemaNode) -> bool:
    kinds, choices = schema.allowed_types(), schema.choices()
    named = {list: "array", str: "string", bool: "boolean"}
    kind = named.get(type(value), "number")
    return (not kinds or kind in kinds or (kind == "number" and "integer" in kinds)) and (
        not choices or value in choices
    )


def _is_value_requested(value: Any, free_words: Sequence[str]) -> bool:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return False
    held = split_words(str(value))
    return bool(held) and (not isinstance(value, str) or _is_distinctive(held)) and bool(_find_phrase(held, free_words))


def matches_described_code(value: Any, description: str, free_words: Sequence[str]) -> bool:
    """Return whether the explanation of this number matches the text best."""
    explained = {number: set(split_words(meaning)) for number, meaning in _NUMBER_MEANING_PATTERN.findall(description)}
    if type(value) is not int or str(value) not in explained or len(explained) < 2:
        return False
    common = set.intersection(*explained.values())
    shares = {number: _get_matched_share(meaning - common, free_words) for number, meaning in explained.items()}
    best = shares.pop(str(value))
    return best > max(shares.values())


def get_described_meaning(value: Any, description: str) -> str:
    """Return the meaning of a number in a description; "" if it has none."""
    explained = dict(_NUMBER_MEANING_PATTERN.findall(description))
    return explained.get(str(value), "") if type(value) is int and len(explained) > 1 else ""


def is_value_described(description: str, value: str) -> bool:
    """Return whether a description contains the value."""
    held = split_words(value)
    return bool(held) and bool(_find_phrase(held, split_words(description)))


def _get_matched_share(meaning_words: set[str], free_words: Sequence[str]) -> float:
    return len(meaning_words.intersection(free_words)) / len(meaning_words) if meaning_words else 0.0


def _is_distinctive(value_words: Sequence[str]) -> bool:
    """Return whether the words of a choice are long enough to be meant."""
    return len("".join(value_words)) > 2 or not all(word.isascii() for word in value_words)


def _adjust_choices(
    value: list[Any], choices: Sequence[Any], requested_choices: Sequence[str], repairs: list[str]
) -> list[Any]:
    copied = len(choices) > 2 and all(choice in value for choice in choices)
    remaining = [item for item in value if item in requested_choices or not copied or not requested_choices]
    adjusted = remaining + [choice for choice in requested_choices if choice not in remaining]
    if adjusted != value:
        repairs.append("choices as the request says them")
    return adjusted


def _find_phrase(phrase: Sequence[str], text_words: Sequence[str]) -> list[int]:
    return [
        at
        for at in range(len(text_words) - len(phrase) + 1)
        if all(_is_same_word(word, text_words[at + n]) for n, word in enumerate(phrase))
    ]


def _is_same_word(word: str, other: str) -> bool:
    """Return whether two words are equal apart from a plural ending."""
    return word == other or (min(len(word), len(other)) > 2 and bool(_get_singulars(word) & _get_singulars(other)))


def _get_singulars(word: str) -> set[str]:
    """Return the possible singular forms of a word."""
    return {word, word.removesuffix("s"), word.removesuffix("es")}


def _blank_values(text_words: Sequence[str], values: Iterable[str]) -> list[str]:
    """Return the words with those of the values blanked, so that no word counts twice."""
    left = list(text_words)
    for value in values:
        held = split_words(value)
        for at in _find_phrase(held, left) if held else ():
            left[at : at + len(held)] = [""] * len(held)
    return left


def _is_other_script(value_words: Sequence[str], text_words: Sequence[str]) -> bool:
    """Return whether a text is in another script than the request, such as Shanghai for 上海."""
    latin = any(word.isascii() and word.isalpha() for word in value_words)
    foreign = any(not word.isascii() for word in value_words)
    if latin == foreign or not set(value_words).isdisjoint(text_words):
        return False
    return latin == any(not word.isascii() for word in text_words)


def _is_abbreviation(word: str, text_words: Sequence[str], initials: str) -> bool:
    return (len(word) > 1 and word in initials) or any(each.startswith(word) for each in text_words)


def _list_texts(value: Any) -> list[str]:
    if isinstance(value, str | int | float):
        return [str(value)]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in inner for text in _list_texts(item)]
