"""The calls of a reply written as Python: typed by the tools' schemas, without what the model made up."""

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

from opposable import parsers as dialects
from opposable.domain.language import numbers_spoken, words
from opposable.domain.tools import ToolCall, ToolDefinition, new_call_id
from opposable.models.http_client import to_json
from opposable.models.python_protocol.argument_repairs import as_share, chosen, put_inside, without_unknown
from opposable.models.python_protocol.code_parser import CodeCall, calls_in
from opposable.models.python_protocol.prompts import FENCE, parameters_of, schema_of
from opposable.models.python_protocol.request_grounding import (
    meaning_of,
    names,
    said_elsewhere,
    share_said,
    with_choices_said,
    with_rest_said,
)
from opposable.models.python_protocol.weekdays import days_meant, with_days_counted
from opposable.parsers.arguments import arguments_of
from opposable.parsers.lenient_json import strict
from opposable.parsers.schema_coercion import Schema

_STRAY = re.compile(
    r"(?:(?:step|步骤|第)?\s*\d+\s*步?[.)、:：]\s*|[-*>•·`]+\s*|\w+[:：]\s*|(?:then|and|首先|然后)[,，:：]?\s*|(?!no\b|or\b|if\b)[a-z]{1,2}\s+)"
    r"(?=[^\W\d])",
    re.IGNORECASE,
)
"""What may stand before the call of a line that is no Python otherwise."""
_MADE_UP = "made-up optional value dropped"


def read_calls(
    code: str,
    tools: Sequence[ToolDefinition],
    said: str,
    asked: str = "",
    *,
    cut: bool = False,
    doubtful: Container[int] = (),
) -> tuple[ToolCall, ...]:
    """The calls of offered tools in `code`; `said` is all the text of the conversation, `asked` the user's last words.

    `cut` says that the token limit ended the code: then what is unfinished is left out. `doubtful` are lines whose
    calls are left out where surer ones of other tools stand beside them: a small model asked for calls writes some for
    good measure. So is a call of a made-up number or id beside one of another tool that may bring the right one.
    """
    order = {tool.name: parameters_of(tool) for tool in tools}
    schemas = {tool.name: Schema(tool.parameters) for tool in tools}
    found = calls_in(code, order, said)
    if found is None:
        found = [
            replace(call, line=n)
            for n, line in enumerate(code.splitlines(), start=1)
            for call in _of_line(line.strip(), order, said)
        ]
    if not found:
        found = _read_leniently(code, tools, cut)
    found = [_of_its_function(call, schemas) for call in found]
    if len({call.name for call in found}) > 1:
        found = [call for call in found if call.line not in doubtful] or found
    # of several calls, nobody knows which one a choice belongs to
    spoken, asked_words = words(said), words(asked) if len(found) == 1 else []
    days = days_meant(said, asked)
    read = (_tool_call(each, schemas[each.name], said, spoken, asked_words, days) for each in found)
    calls = _told_apart(call for call in read if call is not None)
    if len({call.name for call in calls}) > 1:
        calls = [call for call in calls if not _guessed(call, schemas[call.name], spoken)] or calls
    return tuple(_once(calls))


def optional_left(call: ToolCall, tools: Sequence[ToolDefinition]) -> bool:
    """Whether the call leaves optional parameters of its tool out."""
    schema, given = schema_of(call, tools), strict(call.arguments)
    return not set(schema.properties()) <= {*given, *schema.required()}


def unended(code: str) -> str:
    """Code that is one call, up to where its next argument would stand; nothing where it is more or none."""
    held = code.strip()
    if not held.endswith(")"):
        return ""
    held = held[:-1].rstrip().rstrip(",")
    return held if held.endswith("(") else held + ","


def with_rest(call: ToolCall, rest: Sequence[ToolCall], tools: Sequence[ToolDefinition], asked: str) -> ToolCall:
    """The call with what `rest`, the same call gone on with, adds and `asked`, the user's last words, says."""
    if len(rest) != 1 or rest[0].name != call.name:
        return call
    repairs: list[str] = []
    given = with_rest_said(
        strict(call.arguments), strict(rest[0].arguments), schema_of(call, tools), words(asked), repairs
    )
    return with_arguments(call, given, repairs)


def with_value(call: ToolCall, name: str, value: str) -> ToolCall:
    """The call with one argument in the shape its description shows (`python_shapes`)."""
    given = {**strict(call.arguments), name: value}
    return with_arguments(call, given, ["value in the shape that its description shows"])


def with_arguments(call: ToolCall, given: dict[str, Any], repairs: Sequence[str]) -> ToolCall:
    """The call with other arguments, and what was mended by them."""
    told = tuple(dict.fromkeys([*call.repairs, *repairs]))
    return replace(call, arguments=to_json(given).decode(), repairs=told)


def _of_line(line: str, order: Mapping[str, Sequence[str]], said: str) -> Sequence[CodeCall]:
    """The calls of a line, also behind a stray letter or mark that a small model wrote before them."""
    found = calls_in(line, order, said)
    if found is None and (stray := _STRAY.match(line)):
        found = calls_in(line[stray.end() :].rstrip("`*;；。"), order, said)
    return found or ()


def _read_leniently(code: str, tools: Sequence[ToolDefinition], cut: bool) -> list[CodeCall]:
    """What is no proper Python, as `dialects` reads it."""
    end = "" if cut else FENCE
    reading = dialects.read(f"{FENCE}python\n{code.strip()}\n{end}", tuple(tools), truncated=cut)
    return [CodeCall(call.name, call.arguments) for call in reading.calls]


def _of_its_function(call: CodeCall, schemas: Mapping[str, Schema]) -> CodeCall:
    """The call, of the only other function that takes its arguments where the one written takes none of them."""
    given = set(call.arguments)
    if not given or given & set(schemas[call.name].properties()):
        return call
    taking = [name for name, each in schemas.items() if set(each.required()) <= given <= set(each.properties())]
    return replace(call, name=taking[0]) if len(taking) == 1 else call


def _tool_call(
    call: CodeCall, schema: Schema, said: str, spoken: Sequence[str], asked: Sequence[str], days: Sequence[date]
) -> ToolCall | None:
    """The call with its arguments put right; `spoken` are the words of `said`, `asked` those of the user's last.

    `days` are those that the user's weekday means.
    """
    repairs = list(call.repairs)
    read = arguments_of(put_inside(call.arguments, schema, repairs), schema)
    if read.value is None:
        return None
    repairs += read.repairs
    given = {
        name: as_share(chosen(value, schema.property(name), asked, repairs), schema.property(name), said, repairs)
        for name, value in read.value.items()
    }
    for name in [name for name in given if name not in schema.required()]:
        about = schema.property(name)
        if given[name] is None and "null" not in about.kinds():
            del given[name]
        elif _for_nothing(name, given, schema, spoken):
            del given[name]
            repairs.append(_MADE_UP)
    given = with_choices_said(without_unknown(given, schema, repairs), schema, asked, repairs)
    given = with_days_counted(given, days, said, repairs)
    return ToolCall(new_call_id(), call.name, to_json(given).decode(), "python", tuple(dict.fromkeys(repairs)))


def _for_nothing(name: str, given: dict[str, Any], schema: Schema, spoken: Sequence[str]) -> bool:
    """Whether a text, an optional parameter's, is made up: its default serves as well, where it has one."""
    value, about = given[name], schema.property(name).node
    if not isinstance(value, str) or value == about.get("default"):
        return False
    if made_up(value, spoken):
        return True
    choices = schema.property(name).choices()
    if choices and about.get("default", choices[0]) not in choices and share_said(value, spoken) == 0:
        return True  # none of the choices is the usual case
    if "default" not in about or names(schema.property(name).description(), value):
        return False
    others = {other: given[other] for other in given if other != name}
    explained = [meaning_of(number, schema.property(other).description()) for other, number in others.items()]
    return said_elsewhere(value, spoken, [*explained, *(given.get(each) for each in schema.required())])


def made_up(value: str, spoken: Iterable[str]) -> bool:
    """Whether a text has numbers and nothing of it was spoken: a date that nobody named, an id out of the air."""
    held = words(value)
    if not any(word.isdigit() for word in held):
        return False
    known = set(spoken)
    known |= numbers_spoken(known)
    dates = [word for word in known if word.isdigit() and len(word) > 5]  # 20230929, meant by 2023-09-29
    return not any(word in known or (word.isdigit() and any(word in date for date in dates)) for word in held)


def _told_apart(calls: Iterable[ToolCall]) -> list[ToolCall]:
    """The calls without those that only what was made up told apart: missions 1 to 9 of a game that nobody counted."""
    kept: list[ToolCall] = []
    known: set[tuple[str, str]] = set()
    for call in calls:
        if _MADE_UP not in call.repairs or (call.name, call.arguments) not in known:
            kept.append(call)
        known.add((call.name, call.arguments))
    return kept


def _once(calls: list[ToolCall]) -> list[ToolCall]:
    """The calls without the second round of several: a small model that has written them all may begin again.

    One call written twice stands: two dice may be asked for.
    """
    made = [(call.name, call.arguments) for call in calls]
    for length in range(2, len(calls) // 2 + 1):
        rounds, left = divmod(len(calls), length)
        if not left and len(set(made[:length])) == length and made == made[:length] * rounds:
            return calls[:length]
    return calls


def _guessed(call: ToolCall, schema: Schema, spoken: Sequence[str]) -> bool:
    """Whether a required text of the call is made up, as an order's id before the orders are listed."""
    given = strict(call.arguments)
    required = [given.get(name) for name in schema.required()]
    return any(isinstance(value, str) and made_up(value, spoken) for value in required)
