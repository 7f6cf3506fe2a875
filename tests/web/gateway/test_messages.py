"""Messages of Anthropic's API over any model."""

import aiohttp
import anthropic
import orjson
import pytest
from tests.models.chat_server import build_delta, chat_server, respond_events, respond_json
from tests.web.gateway.test_relay import post
from tests.web.serving import serve_models

from opposable.domain.content import ImagePart, TextPart
from opposable.domain.errors import ModelUnavailable
from opposable.domain.events import Reply
from opposable.domain.messages import assistant_message, system_message, tool_message, user_message
from opposable.domain.tools import ToolCall
from opposable.domain.usage import Usage
from opposable.models.anthropic import AnthropicModel
from opposable.models.base import ForcedTool, ModelOptions
from opposable.models.http_client import RetryPolicy
from opposable.models.openai_compatible import OpenAICompatibleModel
from opposable.models.scripted import ScriptedModel, reply_with_calls, tool_call
from opposable.web.gateway.messages_request import parse_messages_request
from opposable.web.openai_errors import GatewayError

pytestmark = pytest.mark.anyio

HI = [{"role": "user", "content": "hi"}]
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
ADD = {"name": "add", "description": "Add.", "input_schema": SCHEMA}
PIXEL = "iVBORw0KGgo="


def open_client(url, key="none"):
    return anthropic.AsyncAnthropic(base_url=url.removesuffix("/v1"), api_key=key, max_retries=0)


def parse(**body):
    return parse_messages_request({"model": "m", "max_tokens": 9, "messages": HI, **body})


def test_every_kind_of_block_is_parsed():
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
    request = parse(
        system=[{"type": "text", "text": "be kind", "cache_control": {"type": "ephemeral"}}],
        messages=[
            {"role": "user", "content": [{"type": "text", "text": "see"}, image]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s"},
                    {"type": "redacted_thinking", "data": "x"},
                    {"type": "text", "text": "I add."},
                    {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "t1",
                        "content": [{"type": "text", "text": "2"}, image],
                        "is_error": True,
                    },
                    {"type": "text", "text": "and?"},
                ],
            },
        ],
        tools=[ADD],
        tool_choice={"type": "tool", "name": "add", "disable_parallel_tool_use": True},
        temperature=0.5,
        stop_sequences=["END"],
        thinking={"type": "enabled", "budget_tokens": 1024},
        top_p=0.5,
    )
    pixel = ImagePart("", b"\x89PNG\r\n\x1a\n", "image/png")
    assert request.messages == (
        system_message("be kind"),
        user_message("see", (TextPart("see"), pixel)),
        assistant_message("I add.", (ToolCall("t1", "add", {"a": 1}),), "hm"),
        tool_message("t1", "add", "2", (TextPart("2"), pixel), is_error=True),
        user_message("and?"),
    )
    assert request.options == ModelOptions(
        stream=False, tool_choice=ForcedTool("add"), max_tokens=9, temperature=0.5, stop=("END",)
    )
    assert (request.single_call_only, request.extra) == (True, {"top_p": 0.5})


REFUSED = {
    "no limit": ({"max_tokens": None}, "max_tokens"),
    "no messages": ({"messages": []}, "messages"),
    "a message that is none": ({"messages": [3]}, "messages[0]"),
    "an unknown block": ({"messages": [{"role": "user", "content": [{"type": "video"}]}]}, "messages[0].content[0]"),
    "a block that is none": ({"messages": [{"role": "user", "content": [3]}]}, "messages[0].content[0]"),
    "a call without input": (
        {"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "b"}]}]},
        "messages[0].content[0]",
    ),
    "a result without an id": (
        {"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]},
        "messages[0].content[0]",
    ),
    "an image that is none": (
        {
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "?"}}
                    ],
                }
            ]
        },
        "messages[0].content[0].source",
    ),
    "a tool of the server": ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools[0]"),
    "a choice by a list": ({"tools": [ADD], "tool_choice": {"type": "tool", "name": []}}, "tool_choice"),
    "a name too long": ({"tools": [{**ADD, "name": "a" * 129}]}, "tools[0].function.name"),
    "a choice of no tool": ({"tools": [ADD], "tool_choice": {"type": "tool", "name": "sub"}}, "tool_choice"),
    "too hot": ({"temperature": 2}, "temperature"),
    "an image as instructions": (
        {"system": [{"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}]},
        "system",
    ),
}


@pytest.mark.parametrize(("body", "param"), REFUSED.values(), ids=REFUSED)
def test_invalid_parameters_are_reported_with_their_path(body, param):
    with pytest.raises(GatewayError) as caught:
        parse(**body)
    assert (caught.value.status, caught.value.body["error"]["param"]) == (400, param)


def test_names_are_as_long_as_in_the_api():
    assert parse(tools=[{**ADD, "name": "a" * 128}]).tools[0].name == "a" * 128


@pytest.mark.parametrize("stream", [False, True])
async def test_text_thinking_and_calls_become_blocks(stream):
    message = assistant_message("I add.", (tool_call("add", '{"a": 1}'),), "hm")
    model = ScriptedModel(Reply(message, "tool_calls", Usage(10, 5, 1)))
    options = {"model": "m", "max_tokens": 9, "messages": HI, "tools": [ADD]}
    async with serve_models(model) as url, open_client(url) as sdk:
        if stream:
            async with sdk.messages.stream(**options) as events:
                said = await events.get_final_message()
        else:
            said = await sdk.messages.create(**options)
    thought, text, use = said.content
    assert (thought.thinking, text.text, use.name, use.input) == ("hm", "I add.", "add", {"a": 1})
    assert (said.stop_reason, said.model, said.role) == ("tool_use", "m", "assistant")
    assert said.usage.output_tokens == 5


async def test_the_events_of_a_stream_are_in_order():
    async with serve_models(ScriptedModel(reply_with_calls(tool_call("add", '{"a": 1}'), text="I add."))) as url:
        _, raw, _ = await post(url, {"max_tokens": 9, "messages": HI, "tools": [ADD], "stream": True}, "messages")
    events = [orjson.loads(frame.partition(b"data: ")[2]) for frame in raw.split(b"\n\n") if frame]
    assert [frame.partition(b"\n")[0].decode() for frame in raw.split(b"\n\n") if frame] == [
        f"event: {event['type']}" for event in events
    ]
    assert [(event["type"], event.get("index")) for event in events] == [
        ("message_start", None),
        ("content_block_start", 0),
        ("content_block_delta", 0),
        ("content_block_stop", 0),
        ("content_block_start", 1),
        ("content_block_delta", 1),
        ("content_block_stop", 1),
        ("message_delta", None),
        ("message_stop", None),
    ]


@pytest.mark.parametrize(
    ("finish", "reason"), [("stop", "end_turn"), ("length", "max_tokens"), ("content_filter", "refusal")]
)
async def test_each_reason_to_stop_is_translated(finish, reason):
    async with serve_models(ScriptedModel(Reply(assistant_message("a"), finish))) as url:
        _, raw, _ = await post(url, {"max_tokens": 9, "messages": HI}, "messages")
    assert orjson.loads(raw)["stop_reason"] == reason


@pytest.mark.parametrize("stream", [False, True])
async def test_errors_have_the_format_of_the_api(stream):
    async with serve_models(ScriptedModel(ModelUnavailable("away"))) as url:
        status, raw, headers = await post(url, {"max_tokens": 9, "messages": HI, "stream": stream}, "messages")
        assert (status, headers["retry-after"]) == (503, "2")
        assert orjson.loads(raw) == {"type": "error", "error": {"type": "overloaded_error", "message": "away"}}
        status, raw, _ = await post(url, {"max_tokens": 9, "messages": HI, "model": "none"}, "messages")
        assert (status, orjson.loads(raw)["error"]["type"]) == (404, "not_found_error")


async def test_the_key_can_be_in_the_header_of_the_api():
    async with serve_models(ScriptedModel("hi"), api_key="secret") as url:
        async with open_client(url, "secret") as sdk:
            assert (await sdk.messages.create(model="m", max_tokens=9, messages=HI)).content[0].text == "hi"
        async with open_client(url, "wrong") as sdk:
            for request in (sdk.messages.create(model="m", max_tokens=9, messages=HI), sdk.models.list()):
                with pytest.raises(anthropic.AuthenticationError, match="not valid") as error:
                    await request
                assert error.value.type == "authentication_error"


async def test_models_are_listed_and_missing_routes_reported_in_the_format_of_the_api():
    async with serve_models(ScriptedModel("hi")) as url, open_client(url) as client:
        [model] = [model async for model in client.models.list(limit=1)]
        assert (await client.models.retrieve("m")) == model
        for request in (client.models.retrieve("none"), client.messages.batches.list()):
            with pytest.raises(anthropic.NotFoundError) as missing:
                await request
            assert missing.value.type == "not_found_error"
    assert (model.id, model.type, model.display_name, model.created_at.tzinfo is not None) == ("m", "model", "m", True)


async def test_tokens_are_estimated():
    async with serve_models(ScriptedModel("hi")) as url, open_client(url) as sdk:
        short = await sdk.messages.count_tokens(model="m", messages=HI)
        long = await sdk.messages.count_tokens(model="m", messages=HI, tools=[ADD], system="a b c d e f g h")
    assert 0 < short.input_tokens < long.input_tokens


WHOLE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude",
    "content": [{"type": "text", "text": "hi", "citations": None}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 3, "output_tokens": 2, "cache_read_input_tokens": 1},
}
START = {"type": "message_start", "message": {**WHOLE, "content": []}}
CALL_EVENTS = [
    START,
    {"type": "ping"},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}},
    {"type": "content_block_stop", "index": 0},
    {
        "type": "content_block_start",
        "index": 1,
        "content_block": {"type": "tool_use", "id": "t", "name": "add", "input": {}},
    },
    {
        "type": "content_block_delta",
        "index": 1,
        "delta": {"type": "input_json_delta", "partial_json": '{"a":"data:,1"}'},
    },
    {"type": "content_block_stop", "index": 1},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 4}},
    {"type": "message_stop"},
]


async def test_a_server_with_this_api_gets_the_request_and_the_client_its_reply_unchanged():
    body = {"max_tokens": 9, "messages": HI, "thinking": {"type": "adaptive"}, "made_up": {"a": 1}}
    async with (
        chat_server(respond_json(WHOLE)) as server,
        serve_models(AnthropicModel("claude", "key", server.url)) as url,
        aiohttp.ClientSession() as session,
    ):
        headers = {"anthropic-beta": "x-2026", "x-api-key": "none"}
        async with session.post(f"{url}/messages", json={"model": "m", **body}, headers=headers) as response:
            assert (response.status, await response.read()) == (200, orjson.dumps(WHOLE))
    assert server.bodies == [{**body, "model": "claude"}]
    sent = {name.lower(): value for name, value in server.headers[0].items()}
    assert (sent["anthropic-beta"], sent["x-api-key"]) == ("x-2026", "key")


@pytest.mark.parametrize("size", [0, 11])
async def test_a_relayed_stream_passes_byte_by_byte(size):
    upstream = respond_events(*CALL_EVENTS, pieces=size, done=False)
    async with chat_server(upstream) as server, serve_models(AnthropicModel("claude", "key", server.url)) as url:
        _, raw, _ = await post(url, {"max_tokens": 9, "messages": HI, "tools": [ADD], "stream": True}, "messages")
    assert raw == b"".join(b"data: " + orjson.dumps(event) + b"\n\n" for event in CALL_EVENTS)


@pytest.mark.parametrize("stream", [False, True])
async def test_the_calls_of_a_relayed_message_that_was_cut_off_are_not_handed_out(stream):
    if stream:
        ending = {**CALL_EVENTS[8], "delta": {"stop_reason": "max_tokens"}}
        upstream = respond_events(*CALL_EVENTS[:8], ending, CALL_EVENTS[9], done=False)
    else:
        use = {"type": "tool_use", "id": "t", "name": "add", "input": {}}
        upstream = respond_json({**WHOLE, "content": [*WHOLE["content"], use], "stop_reason": "max_tokens"})
    async with chat_server(upstream) as server, serve_models(AnthropicModel("claude", "key", server.url)) as url:
        _, raw, _ = await post(url, {"max_tokens": 9, "messages": HI, "tools": [ADD], "stream": stream}, "messages")
    assert b"tool_use" not in raw
    assert b'"index":1' not in raw
    assert b"max_tokens" in raw
    assert b'"hi"' in raw


async def test_the_blocks_after_a_call_of_a_relayed_message_that_was_cut_off_have_no_gap():
    text = [{**event, "index": 2} for event in CALL_EVENTS[2:5]]
    ending = {**CALL_EVENTS[8], "delta": {"stop_reason": "max_tokens"}}
    upstream = respond_events(*CALL_EVENTS[:8], *text, ending, CALL_EVENTS[9], done=False)
    async with chat_server(upstream) as server, serve_models(AnthropicModel("claude", "key", server.url)) as url:
        _, raw, _ = await post(url, {"max_tokens": 9, "messages": HI, "tools": [ADD], "stream": True}, "messages")
    events = [orjson.loads(line[6:]) for line in raw.split(b"\n") if line.startswith(b"data: ")]
    assert events == [*CALL_EVENTS[:5], *({**event, "index": 1} for event in text), ending, CALL_EVENTS[9]]


async def test_a_rate_limit_of_a_server_with_this_api_stays_one():
    error = {"type": "error", "error": {"type": "rate_limit_error", "message": "Slow down."}}
    async with (
        chat_server(respond_json(error, 429, {"retry-after": "7"})) as server,
        serve_models(AnthropicModel("claude", "key", server.url, retry_policy=RetryPolicy(1))) as url,
    ):
        status, raw, headers = await post(url, {"max_tokens": 9, "messages": HI}, "messages")
    assert (status, orjson.loads(raw), headers["retry-after"]) == (429, error, "7")


@pytest.mark.parametrize("api", ["messages", "responses"])
async def test_the_repair_of_a_call_leaves_the_text_of_another_in_every_api(api):
    texts = ('{"a": "1"}', '{ "a": 1.0 }')
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": "add", "arguments": text}}
        for n, text in enumerate(texts)
    ]
    deltas = [build_delta(tool_calls=[{"index": n, **call}]) for n, call in enumerate(calls)]
    body = {
        "messages": {"messages": HI, "max_tokens": 9, "tools": [ADD]},
        "responses": {"input": "hi", "tools": [{"type": "function", "name": "add", "parameters": SCHEMA}]},
    }[api]
    async with (
        chat_server(respond_events(*deltas, build_delta("tool_calls"))) as server,
        serve_models(OpenAICompatibleModel("upstream", server.url)) as url,
    ):
        _, raw, _ = await post(url, {**body, "stream": True}, api)
    events = [orjson.loads(frame.partition(b"data: ")[2]) for frame in raw.split(b"\n\n") if frame]
    if api == "messages":
        sent = [event["delta"]["partial_json"] for event in events if event["type"] == "content_block_delta"]
    else:
        sent = [event["delta"] for event in events if event["type"] == "response.function_call_arguments.delta"]
    assert sent == ['{"a":1}', texts[1]]
