"""Tool calls from Python code: typed by the schemas of the tools, without ungrounded values."""

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

from opposable.domain.language import extract_numbers, split_words
from opposable.domain.tools import ToolCall, ToolDefinition, new_call_id
from opposable.models.python_protocol.argument_repairs import (
    convert_percentage,
    drop_unknown_arguments,
    take_nearest_choice,
    wrap_in_single_object,
)
from opposable.models.python_protocol.prompts import CODE_FENCE, get_schema, list_parameters
from opposable.models.python_protocol.python_call_parser import CodeCall, parse_calls
from opposable.models.python_protocol.request_grounding import (
    add_requested_optionals,
    duplicates_other_argument,
    get_described_meaning,
    get_word_overlap,
    is_value_described,
    match_choices_to_request,
)
from opposable.models.python_protocol.weekdays import find_requested_days, replace_ungrounded_days
from opposable.parsers import parse
from opposable.parsers.arguments import coerce_arguments
from opposable.parsers.schema_coercion import SchemaNode

_STRAY_PREFIX = re.compile(
    r"(?:(?:step|步骤|第)?\s*\d+\s*步?[.)、:：]\s*|[-*>•·`]+\s*|\w+[:：]\s*|(?:then|and|首先|然后)[,，:：]?\s*|(?!no\b|or\b|if\b)[a-z]{1,2}\s+)"
    r"(?=[^\W\d])",
    re.IGNORECASE,
)
"""What can precede the call in a line that is not valid Python."""
_UNGROUNDED_VALUE_REPAIR = "made-up optional value dropped"


def build_calls(
    code: str,
    tools: Sequence[ToolDefinition],
    conversation: str,
    request: str = "",
    *,
    is_truncated: bool = False,
    doubtful_lines: Container[int] = (),
) -> tuple[ToolCall, ...]:
    """Return the calls of offered tools in `code`.

    Args:
        code: The code that the model wrote.
        tools: The tools offered.
        conversation: The text of the conversation.
        request: The last user message.
        is_truncated: Whether the token limit cut the code off. Unfinished calls are then left out.
        doubtful_lines: Lines whose calls are left out if there are more certain calls of other tools.
    """
    order = {tool.name: list_parameters(tool) for tool in tools}
    schemas = {tool.name: SchemaNode(tool.parameters) for tool in tools}
    found = parse_calls(code, order, conversation)
    if found is None:
        found = [
            replace(call, line=n)
            for n, line in enumerate(code.splitlines(), start=1)
            for call in _parse_line(line.strip(), order, conversation)
        ]
    if not found:
        found = _parse_leniently(code, tools, is_truncated)
    found = [_match_function(call, schemas) for call in found]
    if len({call.name for call in found}) > 1:
        found = [call for call in found if call.line not in doubtful_lines] or found
    # of several calls, it is unknown which one a choice belongs to
    spoken, asked_words = split_words(conversation), split_words(request) if len(found) == 1 else []
    days = find_requested_days(conversation, request)
    read = (_to_tool_call(each, schemas[each.name], conversation, spoken, asked_words, days) for each in found)
    calls = _drop_duplicates(call for call in read if call is not None)
    if len({call.name for call in calls}) > 1:
        calls = [call for call in calls if not _has_ungrounded_argument(call, schemas[call.name], spoken)] or calls
    return tuple(_drop_repeated_rounds(calls))


def leaves_out_optional(call: ToolCall, tools: Sequence[ToolDefinition]) -> bool:
    """Return whether the call leaves out optional parameters of its tool."""
    schema, given = get_schema(call, tools), dict(call.arguments)
    return not set(schema.properties()) <= {*given, *schema.required_names()}


def reopen_call(code: str) -> str:
    """Return code that is one call, up to its next argument; "" for any other code."""
    held = code.strip()
    if not held.endswith(")"):
        return ""
    held = held[:-1].rstrip().rstrip(",")
    return held if held.endswith("(") else held + ","


def add_rest_arguments(
    call: ToolCall, rest_calls: Sequence[ToolCall], tools: Sequence[ToolDefinition], request: str
) -> ToolCall:
    """Return the call with optional arguments of `rest_calls` that the request contains."""
    if len(rest_calls) != 1 or rest_calls[0].name != call.name:
        return call
    repairs: list[str] = []
    given = add_requested_optionals(
        dict(call.arguments),
        dict(rest_calls[0].arguments),
        get_schema(call, tools),
        split_words(request),
        repairs,
    )
    return replace_arguments(call, given, repairs)


def replace_argument(call: ToolCall, name: str, value: str) -> ToolCall:
    """Return the call with one argument replaced."""
    given = {**dict(call.arguments), name: value}
    return replace_arguments(call, given, ["value in the shape that its description shows"])


def replace_arguments(call: ToolCall, arguments: dict[str, Any], repairs: Sequence[str]) -> ToolCall:
    """Return the call with other arguments, and the repairs noted."""
    all_repairs = tuple(dict.fromkeys([*call.repairs, *repairs]))
    return replace(call, arguments=arguments, raw=None, repairs=all_repairs)


def _parse_line(line: str, parameters: Mapping[str, Sequence[str]], conversation: str) -> Sequence[CodeCall]:
    """Parse the calls of a line, also after a stray prefix."""
    found = parse_calls(line, parameters, conversation)
    if found is None and (stray := _STRAY_PREFIX.match(line)):
        found = parse_calls(line[stray.end() :].rstrip("`*;；。"), parameters, conversation)
    return found or ()


def _parse_leniently(code: str, tools: Sequence[ToolDefinition], is_truncated: bool) -> list[CodeCall]:
    """Parse code that is not valid Python with the parser of written calls."""
    end = "" if is_truncated else CODE_FENCE
    reading = parse(f"{CODE_FENCE}python\n{code.strip()}\n{end}", tuple(tools), truncated=is_truncated)
    return [CodeCall(call.name, call.arguments) for call in reading.calls]


def _match_function(call: CodeCall, schemas: Mapping[str, SchemaNode]) -> CodeCall:
    """Return the call of the only other function that has its arguments, if its own has none of them."""
    given = set(call.arguments)
    if not given or given & set(schemas[call.name].properties()):
        return call
    taking = [name for name, each in schemas.items() if set(each.required_names()) <= given <= set(each.properties())]
    return replace(call, name=taking[0]) if len(taking) == 1 else call


def _to_tool_call(
    call: CodeCall,
    schema: SchemaNode,
    conversation: str,
    conversation_words: Sequence[str],
    request_words: Sequence[str],
    requested_days: Sequence[date],
) -> ToolCall | None:
    """Return the call with its arguments repaired; None if they cannot be parsed."""
    repairs = list(call.repairs)
    read = coerce_arguments(wrap_in_single_object(call.arguments, schema, repairs), schema)
    if read.value is None:
        return None
    repairs += read.repairs
    given = {
        name: convert_percentage(
            take_nearest_choice(value, schema.get_property(name), request_words, repairs),
            schema.get_property(name),
            conversation,
            repairs,
        )
        for name, value in read.value.items()
    }
    for name in [name for name in given if name not in schema.required_names()]:
        about = schema.get_property(name)
        if given[name] is None and "null" not in about.allowed_types():
            del given[name]
        elif _is_unneeded(name, given, schema, conversation_words):
            del given[name]
            repairs.append(_UNGROUNDED_VALUE_REPAIR)
    given = match_choices_to_request(drop_unknown_arguments(given, schema, repairs), schema, request_words, repairs)
    given = replace_ungrounded_days(given, requested_days, conversation, repairs)
    return ToolCall(new_call_id(), call.name, given, dialect="python", repairs=tuple(dict.fromkeys(repairs)))


def _is_unneeded(name: str, arguments: dict[str, Any], schema: SchemaNode, conversation_words: Sequence[str]) -> bool:
    """Return whether an optional text is ungrounded, so that the default is better."""
    value, about = arguments[name], schema.get_property(name).node
    if not isinstance(value, str) or value == about.get("default"):
        return False
    if is_ungrounded(value, conversation_words):
        return True
    choices = schema.get_property(name).choices()
    if choices and about.get("default", choices[0]) not in choices and get_word_overlap(value, conversation_words) == 0:
        return True  # none of the choices is the usual case
    if "default" not in about or is_value_described(schema.get_property(name).description(), value):
        return False
    others = {other: arguments[other] for other in arguments if other != name}
    explained = [
        get_described_meaning(number, schema.get_property(other).description()) for other, number in others.items()
    ]
    return duplicates_other_argument(
        value, conversation_words, [*explained, *(arguments.get(each) for each in schema.required_names())]
    )


def is_ungrounded(value: str, conversation_words: Iterable[str]) -> bool:
    """Return whether a text contains numbers and none of its words occurs in the conversation."""
    held = split_words(value)
    if not any(word.isdigit() for word in held):
        return False
    known = set(conversation_words)
    known |= extract_numbers(known)
    dates = [word for word in known if word.isdigit() and len(word) > 5]  # 20230929, meant by 2023-09-29
    return not any(word in known or (word.isdigit() and any(word in date for date in dates)) for word in held)


def _drop_duplicates(calls: Iterable[ToolCall]) -> list[ToolCall]:
    """Drop calls that differed only in dropped ungrounded values."""
    unique_calls: list[ToolCall] = []
    seen: set[tuple[str, str]] = set()
    for call in calls:
        if _UNGROUNDED_VALUE_REPAIR not in call.repairs or (call.name, call.arguments_json) not in seen:
            unique_calls.append(call)
        seen.add((call.name, call.arguments_json))
    return unique_calls


def _drop_repeated_rounds(calls: list[ToolCall]) -> list[ToolCall]:
    """Drop repetitions of a whole series of calls; one call written twice stays."""
    made = [(call.name, call.arguments_json) for call in calls]
    for length in range(2, len(calls) // 2 + 1):
        rounds, left = divmod(len(calls), length)
        if not left and len(set(made[:length])) == length and made == made[:length] * rounds:
            return calls[:length]
    return calls


def _has_ungrounded_argument(call: ToolCall, schema: SchemaNode, conversation_words: Sequence[str]) -> bool:
    """Return whether a required text of the call is ungrounded."""
    given = dict(call.arguments)
    required = [given.get(name) for name in schema.required_names()]
    return any(isinstance(value, str) and is_ungrounded(value, conversation_words) for value in required)
