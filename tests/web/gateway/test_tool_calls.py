"""Calls of a reply, which the gateway resolves as the agent does."""

import pytest

from opposable.agent.tool_execution import resolve_calls
from opposable.domain.errors import InvalidArguments
from opposable.domain.events import Reply
from opposable.domain.messages import assistant_message
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.tools.library import ToolLibrary
from opposable.web.gateway.request import parse_body
from opposable.web.gateway.tool_calls import triage_calls

PARAMETERS = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "string", "enum": ["x"]}, "list": {"type": "array"}},
    "required": ["a"],
    "additionalProperties": False,
}
ADD = {"type": "function", "function": {"name": "add", "parameters": PARAMETERS}}
NESTED = {"a": 1}
for _ in range(400):
    NESTED = {"a": NESTED}

CALLS = {
    "valid": ToolCall.from_json("c", "add", '{ "a": 1 }'),
    "a number as text": ToolCall.from_json("c", "add", '{"a": "1"}'),
    "a null for an optional argument": ToolCall.from_json("c", "add", '{"a": 1, "b": null}'),
    "Python": ToolCall.from_json("c", "add", "{'a': 1,}"),
    "another name": ToolCall.from_json("c", "functions.Add", '{"a": 1}'),
    "two problems, of which one is repaired": ToolCall.from_json("c", "add", '{"a": "1", "b": "y"}'),
    "no argument": ToolCall.from_json("c", "add", "{}"),
    "not readable": ToolCall.from_json("c", "add", '{"a": ,,}'),
    "nested too deeply": ToolCall("c", "add", NESTED),
    "nested too deeply as text": ToolCall.from_json("c", "add", '{"a": ' + "[" * 5000),
    "an unknown tool": ToolCall.from_json("c", "mul", "{}"),
}


class Add:
    """A tool with the schema of the request, which does not validate its arguments itself."""

    tool_id, timeout = "add", None
    definition = ToolDefinition("add", "", PARAMETERS)

    async def run(self, arguments, context):
        raise InvalidArguments(())


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_the_gateway_resolves_a_call_as_the_agent_does(call):
    reply = Reply(assistant_message("", (call,)))
    request = parse_body({"model": "m", "messages": [{"role": "user", "content": "add"}], "tools": [ADD]})
    [resolved] = resolve_calls(reply, ToolLibrary([Add()]), "en")
    triage = triage_calls(reply, request)
    if resolved.failure is not None:
        assert triage.invalid_calls == ((call, resolved.failure.content),)
        return
    assert [(sent.name, dict(sent.arguments)) for sent in triage.valid_calls] == [("add", resolved.arguments)]
