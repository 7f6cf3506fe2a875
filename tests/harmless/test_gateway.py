"""An expert's trace through the gateway: each reply reaches the client as the provider wrote it, in one request."""

import json

import orjson
import pytest
from tests.harmless.everyday import ALL_TRACES
from tests.harmless.test_agent import messages_of, replies_of
from tests.harmless.traces import TOOLS, Trace

from opposable.domain.messages import Message
from opposable.models.marker_calls import MarkerCallsModel
from opposable.models.profile import ModelProfile
from opposable.models.scripted import ScriptedModel
from opposable.tools.result_text import value_to_text
from opposable.web.gateway.completions import stream_reply
from opposable.web.gateway.request import parse_body

pytestmark = pytest.mark.anyio

DEFINITIONS = [
    {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}
    for name, (description, parameters) in TOOLS.items()
]


MARKED_TEXTS = frozenset(
    {"tool_call tags", "bare tool_call tags", "Mistral marker", "Llama marker", "function tag", "XML"}
)
"""Traces whose text holds a whole call in markers, outside code and quotation."""

CASES = [(trace, "native") for trace in ALL_TRACES]
CASES += [(trace, "auto") for trace in ALL_TRACES if trace.name not in MARKED_TEXTS]


def to_json(message: Message) -> dict:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.call_id, "content": message.content}
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments_json}}
        for call in message.tool_calls
    ]
    return {"role": message.role, "content": message.content} | ({"tool_calls": calls} if calls else {})


def results_of(trace: Trace, turn: int, reply: Message) -> list[dict]:
    calls = trace.turns[turn]
    outcomes = [
        str(call.outcome) if isinstance(call.outcome, Exception) else value_to_text(call.outcome) for call in calls
    ]
    return [
        {"role": "tool", "tool_call_id": call.id, "content": outcome}
        for call, outcome in zip(reply.tool_calls, outcomes, strict=True)
    ]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("trace", "calling"), CASES, ids=[f"{trace.rule} {trace.name}, {name}" for trace, name in CASES]
)
async def test_a_trace_passes_through_the_gateway_unchanged(trace, calling, stream):
    history = [{"role": "system", "content": trace.system}] if trace.system else []
    history += [to_json(message) for message in messages_of(trace)]
    for turn, expected in enumerate(replies_of(trace)):
        inner = ScriptedModel(expected)
        model = inner if calling == "native" else MarkerCallsModel(inner, ModelProfile("auto"))
        body = {"model": "m", "messages": history, "tools": DEFINITIONS, "stream": stream}
        parts = [part async for part in stream_reply(model, parse_body(orjson.loads(orjson.dumps(body))))]
        assert len(inner.requests) == 1
        assert [to_json(message)["content"] for message in inner.requests[0].messages] == [
            message["content"] for message in history
        ] or calling == "auto"
        message = parts[-1].message
        assert message.content == expected.content
        assert [(call.name, call.arguments_json) for call in message.tool_calls] == [
            (call.name, call.arguments_json) for call in expected.tool_calls
        ]
        if expected.tool_calls:
            history = [*history, json.loads(json.dumps(to_json(expected))), *results_of(trace, turn, expected)]
