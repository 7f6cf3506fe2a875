"""Calls that failed, as they are remembered: without secrets, and with what put them right."""

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Any

import orjson

from opposable.domain.records import canonical_sha256
from opposable.parsers import defuse
from opposable.safety.redaction import REDACTED, redacted

UNSURE = "~"
"""Begins the fingerprint of arguments that held a secret: two of these may stand for different calls."""

LONGEST = 200
"""Characters of a value or of a sentence that are kept."""

_FIELD = re.compile(r"^- ([^\s:：]{1,100})[:：]", re.MULTILINE)
_DIGITS = re.compile(r"\d+")
_ALIKE = 0.6
"""How like two texts must be for one to be a correction of the other."""


def fingerprint(arguments: dict[str, Any]) -> str:
    """What makes failed calls of one action the same: a hash of the arguments in one order, their secrets taken out."""
    safe = redacted(arguments)
    made = canonical_sha256(safe)[:32]
    return made if safe == arguments else UNSURE + made


def wrong_fields(arguments: dict[str, Any], said: str) -> tuple[str, ...]:
    """The arguments a failure is about: those its lines name, or those whose value it repeats."""
    named = [field.split(".")[0] for field in _FIELD.findall(said)]
    if named:
        return tuple(dict.fromkeys(named))
    return tuple(
        name for name, value in arguments.items() if isinstance(value, str) and len(value) > 1 and value in said
    )


def message_of(arguments: dict[str, Any], said: str) -> str:
    """What is kept of a failure in words: the arguments it is about as a line of JSON, then what the tool said."""
    about = wrong_fields(arguments, said)
    shown = {name: value for name, value in arguments.items() if name in about} or arguments
    line = orjson.dumps(short(redacted(shown)), default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    return f"{line}\n{str(redacted(said[: LONGEST * 20]))[: LONGEST * 2]}"


def given_in(message: str) -> dict[str, Any]:
    """The arguments a kept failure is about; empty where its message tells none."""
    try:
        found = orjson.loads(message.partition("\n")[0])
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def correction(
    failed: dict[str, Any], worked: dict[str, Any], said: str, *, grown: bool = False
) -> dict[str, Any] | None:
    """What was different in the call that worked, as `{"given": {…}, "right": {…}}`; None where it is another matter.

    It is a correction where what failed was told by field, where the tool itself had named the new value, where a value
    went to another name, or where a value became a similar one; numbers alone that differ make another call, not a
    better one, unless they have `grown` as after a time-out.
    """
    given = {name: value for name, value in failed.items() if worked.get(name, _NONE) != value}
    right = {name: value for name, value in worked.items() if failed.get(name, _NONE) != value}
    if not given and not right:
        return None
    told = {field.split(".")[0] for field in _FIELD.findall(said)}
    larger = grown and bool(right) and all(_larger(given.get(name), value) for name, value in right.items())
    if not (larger or told & (given.keys() | right.keys()) or _follows(given, right, said)):
        return None
    return {"given": short(redacted(given)), "right": short(redacted(right))}


def in_words(correction: dict[str, Any] | None) -> tuple[str, str]:
    """What was given and what was right, each as `name="value", …`; ("", "") where nothing can be told."""
    if not correction or not isinstance(right := correction.get("right"), dict):
        return "", ""
    given = correction.get("given")
    pairs = (named(given.items() if isinstance(given, dict) else ()), named(right.items()))
    return ("", "") if REDACTED in pairs[1] else pairs


def named(items: Iterable[tuple[str, Any]]) -> str:
    """Arguments as `name="value", …`, with nothing in them that a model could take for markup or for another line."""
    told = (f"{name[:60]}={orjson.dumps(value, default=str).decode()[:LONGEST]}" for name, value in items)
    return defuse(", ".join(" ".join(one.split()) for one in told))


def short(value: Any) -> Any:
    """A JSON value with its texts cut to what is kept of them."""
    if isinstance(value, str):
        return value if len(value) <= LONGEST else f"{value[:LONGEST]}…"
    if isinstance(value, dict):
        return {str(key)[:LONGEST]: short(inner) for key, inner in list(value.items())[:20]}
    if isinstance(value, list | tuple):
        return [short(inner) for inner in value[:20]]
    return value


_NONE = object()


def _follows(given: dict[str, Any], right: dict[str, Any], said: str) -> bool:
    """Whether what is right can be seen to follow from what was given or from what the tool said of it."""
    if any(isinstance(value, str) and len(value) > 1 and value in said for value in right.values()):
        return True
    if given.keys().isdisjoint(right) and any(value in given.values() for value in right.values()):
        return True
    return any(name in given and _alike(given[name], value) for name, value in right.items())


def _larger(given: Any, right: Any) -> bool:
    return isinstance(given, int | float) and isinstance(right, int | float) and right > given


def _alike(given: Any, right: Any) -> bool:
    if type(given) is not type(right):
        return str(given) == str(right)
    if not isinstance(given, str) or _DIGITS.sub("", given) == _DIGITS.sub("", right):
        return False
    return SequenceMatcher(None, given[:LONGEST], right[:LONGEST]).ratio() >= _ALIKE
