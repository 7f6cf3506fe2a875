"""Deferred calls: calls in a reply that need the results of its other calls."""

from collections.abc import Container, Sequence
from typing import Any

from opposable.domain.language import split_words
from opposable.domain.tools import ToolCall, ToolDefinition, new_call_id
from opposable.models.python_protocol.call_builder import is_ungrounded
from opposable.models.python_protocol.code_parser import parse_ready_and_deferred
from opposable.models.python_protocol.prompts import list_parameters
from opposable.parsers.arguments import coerce_arguments
from opposable.parsers.schema_coercion import SchemaNode


def build_deferred_calls(
    code: str,
    tools: Sequence[ToolDefinition],
    conversation: str,
    ready_calls: Sequence[ToolCall],
    *,
    doubtful_lines: Container[int] = (),
) -> tuple[ToolCall, ...]:
    """Return the calls in `code` that wait for the results of `ready_calls`, one of each tool.

    They use the result of another call, or were left out for an ungrounded value. They have only their known arguments.
    """
    if not ready_calls:
        return ()
    order = {tool.name: list_parameters(tool) for tool in tools}
    schemas = {tool.name: SchemaNode(tool.parameters) for tool in tools}
    spoken = split_words(conversation)
    waiting: dict[str, ToolCall] = {}
    found, later = parse_ready_and_deferred(code, order, conversation) or ((), ())
    for call in (*later, *found):
        if call.name in {*waiting, *(one.name for one in ready_calls)} or call.line in doubtful_lines:
            continue
        known = _keep_known_arguments(call.arguments, schemas[call.name], spoken)
        waiting[call.name] = ToolCall(new_call_id(), call.name, known, dialect="python")
    return tuple(waiting.values())


def _keep_known_arguments(
    arguments: dict[str, Any], schema: SchemaNode, conversation_words: Sequence[str]
) -> dict[str, Any]:
    """Return the arguments that the function has and that are grounded."""
    names = schema.properties()
    read = coerce_arguments({name: value for name, value in arguments.items() if name in names}, schema).value or {}
    return {
        name: value
        for name, value in read.items()
        if not (isinstance(value, str) and is_ungrounded(value, conversation_words))
    }
