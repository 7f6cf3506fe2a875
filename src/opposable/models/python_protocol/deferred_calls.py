"""The calls of a reply written as Python whose time has not come: they need what its other calls bring."""

from collections.abc import Container, Sequence
from typing import Any

from opposable.domain.language import words
from opposable.domain.tools import ToolCall, ToolDefinition, new_call_id
from opposable.models.http_client import to_json
from opposable.models.python_protocol.call_builder import made_up
from opposable.models.python_protocol.code_parser import made_and_waiting
from opposable.models.python_protocol.prompts import parameters_of
from opposable.parsers.arguments import arguments_of
from opposable.parsers.schema_coercion import Schema


def waiting_calls(
    code: str,
    tools: Sequence[ToolDefinition],
    said: str,
    made: Sequence[ToolCall],
    *,
    doubtful: Container[int] = (),
) -> tuple[ToolCall, ...]:
    """The calls in `code` that wait for what `made`, the calls that are made of it, bring: one of each tool.

    These are calls that hold another's result, and those left out for a made-up number or id; they have the arguments
    that are known. `said` is all the text of the conversation, `doubtful` are lines whose calls nobody waits for.
    """
    if not made:
        return ()
    order = {tool.name: parameters_of(tool) for tool in tools}
    schemas = {tool.name: Schema(tool.parameters) for tool in tools}
    spoken = words(said)
    waiting: dict[str, ToolCall] = {}
    found, later = made_and_waiting(code, order, said) or ((), ())
    for call in (*later, *found):
        if call.name in {*waiting, *(one.name for one in made)} or call.line in doubtful:
            continue
        known = _known(call.arguments, schemas[call.name], spoken)
        waiting[call.name] = ToolCall(new_call_id(), call.name, to_json(known).decode(), "python")
    return tuple(waiting.values())


def _known(given: dict[str, Any], schema: Schema, spoken: Sequence[str]) -> dict[str, Any]:
    """The arguments that the function has and nobody made up."""
    names = schema.properties()
    read = arguments_of({name: value for name, value in given.items() if name in names}, schema).value or {}
    return {name: value for name, value in read.items() if not (isinstance(value, str) and made_up(value, spoken))}
