"""Every value of a reply may be missing or of a wrong type: the reply is read, or a `ModelError` says what is wrong."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.models.chat_server import Handler, chat_server, respond_events, respond_json
from tests.models.responses_server import build_events, build_response, call_item, message_item, reasoning_item

from opposable.domain.errors import ModelError
from opposable.domain.messages import Message, tool_message, user_message
from opposable.models.anthropic import AnthropicModel
from opposable.models.base import ModelOptions
from opposable.models.http_client import RetryPolicy
from opposable.models.openai_compatible import OpenAICompatibleModel
from opposable.models.openai_responses import OpenAIResponsesModel

pytestmark = pytest.mark.anyio

MISSING = object()
WRONG_VALUES = [MISSING, None, -1, 1e300, True, "text", [], {}, ["a"], [[1]], {"type": "text"}]

CALL = {"index": 0, "id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
THOUGHT = {"type": "reasoning.text", "text": "thought", "index": 0}
PARTS = [{"type": "text", "text": "said"}, {"type": "thinking", "thinking": [{"type": "text", "text": "thought"}]}]
SAID = {"role": "assistant", "content": "said", "reasoning_content": "thought", "reasoning_details": [THOUGHT]}
COUNTS = {
    "prompt_tokens": 3,
    "completion_tokens": 2,
    "prompt_tokens_details": {"cached_tokens": 1},
    "completion_tokens_details": {"reasoning_tokens": 1},
}
CHAT = {
    "choices": [{"index": 0, "message": {**SAID, "tool_calls": [CALL]}, "finish_reason": "tool_calls"}],
    "usage": COUNTS,
}
CHAT_EVENTS = [
    {"choices": [{"index": 0, "delta": delta, "finish_reason": None}], "usage": COUNTS}
    for delta in ({"content": "said"}, SAID, {"content": PARTS}, {"tool_calls": [CALL]})
]

BLOCKS: list[dict[str, Any]] = [
    {"type": "thinking", "thinking": "thought", "signature": "s"},
    {"type": "text", "text": "said", "citations": [{"type": "page"}]},
    {"type": "server_tool_use", "id": "s1", "name": "search", "input": {"query": "a"}},
    {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}},
]
CLAUDE_COUNTS = {"input_tokens": 3, "output_tokens": 2, "cache_read_input_tokens": 1}
CLAUDE = {"type": "message", "content": BLOCKS, "stop_reason": "tool_use", "usage": CLAUDE_COUNTS}
DELTAS = [{"thinking": "t"}, {"text": "t"}, {"partial_json": "{}"}, {"partial_json": "{}"}, {"signature": "s"}]
CLAUDE_EVENTS = [
    {"type": "message_start", "message": {**CLAUDE, "content": []}},
    *({"type": "content_block_start", "index": index, "content_block": block} for index, block in enumerate(BLOCKS)),
    *({"type": "content_block_delta", "index": index % 4, "delta": delta} for index, delta in enumerate(DELTAS)),
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
]

RESPONSE = build_response(reasoning_item("e", "thought"), message_item("said"), call_item("c1", '{"a": 1}'))
RESPONSE_EVENTS = build_events(RESPONSE, deltas=1)


def mutate(value: Any) -> Iterator[Any]:
    """Yield a value with each of its parts, at any depth, replaced by wrong values."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in list(parts):
        for replacement in (*mutate(part), *WRONG_VALUES):
            changed = copy.copy(value)
            if replacement is MISSING:
                del changed[key]
            else:
                changed[key] = replacement
            yield changed


def list_malformed_replies(whole: dict[str, Any], events: list[dict[str, Any]]) -> Iterator[tuple[bool, Handler]]:
    """Yield malformed replies, each with whether it is streamed."""
    for response in mutate(whole):
        yield False, respond_json(response)
    for index, event in enumerate(events):
        for changed in mutate(event):
            yield True, respond_events(*events[:index], changed, *events[index + 1 :])


def check_types(message: Message) -> None:
    """Check the values that others compare, concatenate and hash."""
    texts = [message.content, message.thinking]
    for call in message.tool_calls:
        texts += [call.id, call.name, call.arguments_json]
        json.dumps(dict(call.arguments))
    assert [type(text) for text in texts] == [str] * len(texts)


@pytest.mark.parametrize(
    ("create", "whole", "events"),
    [
        (lambda url, retries: OpenAICompatibleModel("m", url, retry_policy=retries), CHAT, CHAT_EVENTS),
        (lambda url, retries: AnthropicModel("m", "key", url, retry_policy=retries), CLAUDE, CLAUDE_EVENTS),
        (lambda url, retries: OpenAIResponsesModel("m", url, retry_policy=retries), RESPONSE, RESPONSE_EVENTS),
    ],
    ids=["chat completions", "messages", "responses"],
)
async def test_a_malformed_reply_is_read_or_is_a_model_error(create, whole, events):
    readable = 0
    question = user_message("hi")
    async with chat_server() as server:
        model = create(server.url, RetryPolicy(max_attempts=1))
        for is_streamed, answer in list_malformed_replies(whole, events):
            server.answers[:] = [answer]
            try:
                *parts, reply = [part async for part in model.stream([question], (), ModelOptions(stream=is_streamed))]
            except ModelError:
                continue
            readable += 1
            check_types(reply.message)
            texts = [getattr(part, name, "") for part in parts for name in ("text", "id", "name", "arguments")]
            assert [type(text) for text in texts] == [str] * len(texts)
            usage = reply.usage
            counts = [usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.reasoning_tokens]
            assert all(type(count) is int and count >= 0 for count in counts)
            server.answers[:] = [respond_json(whole)]
            results = [tool_message(call.id, call.name, "3") for call in reply.message.tool_calls]
            async for _ in model.stream([question, reply.message, *results], (), ModelOptions(stream=False)):
                pass
        await model.aclose()
    assert readable > 500
