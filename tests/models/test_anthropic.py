"""Anthropic's wire format against a real server on loopback."""

import json
import re

import orjson
import pytest
from tests.models.chat_server import chat_server, respond_events, respond_json, respond_text

from opposable.domain.content import FilePart, ImagePart, TextPart
from opposable.domain.errors import ModelError, ModelRefusedKey, ModelRejected
from opposable.domain.events import CallDelta, Reply, TextDelta, ThinkingDelta
from opposable.domain.messages import (
    Message,
    NativeReply,
    assistant_message,
    system_message,
    tool_message,
    user_message,
)
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.domain.usage import Usage
from opposable.models.anthropic import AnthropicModel, build_request, parse_reply
from opposable.models.base import ForcedTool, ModelOptions

pytestmark = pytest.mark.anyio

ADD = ToolDefinition("add", "Add.", {"type": "object", "properties": {"a": {"type": "integer"}}})
HISTORY = (
    system_message("be brief"),
    user_message("add"),
    assistant_message(
        "sure", (ToolCall.from_json("c1", "add", '{"a": 1}'), ToolCall.from_json("c2", "add", '{"a": 2}'))
    ),
    tool_message("c1", "add", "1"),
    tool_message("c2", "add", "no", is_error=True),
    user_message("and?"),
)


async def collect_parts(server, options=ModelOptions(), tools=(ADD,), messages=(user_message("hi"),)):
    model = AnthropicModel("claude", "sk-ant-secret", server.url)
    try:
        return [part async for part in model.stream(messages, tools, options)]
    finally:
        await model.aclose()


@pytest.mark.parametrize(
    ("model", "tools", "extra_body", "history", "cached"),
    [
        ("claude-sonnet-5", (ADD,), {}, HISTORY, ["and?"]),
        ("claude-sonnet-5", (ADD,), {}, HISTORY[:5], ["no"]),
        ("claude-sonnet-5", (ADD,), {"cache_control": None}, HISTORY, []),
        ("claude-sonnet-5", (), {}, HISTORY, []),
        ("claude-sonnet-5", (ADD,), {}, HISTORY[:1], []),
        ("claude-sonnet-5", (ADD,), {}, (*HISTORY, assistant_message("Well")), []),
        ("glm-5", (ADD,), {}, HISTORY, []),
    ],
    ids=["user", "result", "switched off", "without tools", "without messages", "begun reply", "another maker"],
)
def test_the_history_of_a_run_is_cached(model, tools, extra_body, history, cached):
    body = orjson.loads(build_request(model, history, tools, ModelOptions(extra_body=extra_body)))
    blocks = [block for message in body["messages"] for block in message["content"]]
    found = [block for block in blocks if block.get("cache_control") == {"type": "ephemeral"}]
    assert [block.get("text") or block.get("content") for block in found] == cached


@pytest.mark.parametrize("base_url", [None, "https://api.anthropic.com", "https://api.anthropic.com/v1/"])
@pytest.mark.parametrize("path", ["messages", "messages/count_tokens"])
async def test_the_base_url_may_be_that_of_the_sdk(base_url, path):
    model = AnthropicModel("claude", "sk-ant-secret", base_url)
    assert model.get_upstream(path).url == f"https://api.anthropic.com/v1/{path}"
    await model.aclose()


async def test_roles_alternate_and_system_messages_are_separate():
    answer = {
        "content": [{"type": "text", "text": "3"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 9, "output_tokens": 1},
    }
    async with chat_server(respond_json(answer)) as server:
        got = await collect_parts(server, ModelOptions(stream=False, tool_choice=ForcedTool("add")), messages=HISTORY)
    assert got == [Reply(assistant_message("3"), "stop", Usage(9, 1, 1))]
    assert server.headers[0]["x-api-key"] == "sk-ant-secret"
    assert server.bodies[0] == {
        "model": "claude",
        "max_tokens": 8192,
        "system": "be brief",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "add"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "sure"},
                    {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}},
                    {"type": "tool_use", "id": "c2", "name": "add", "input": {"a": 2}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": "1"},
                    {"type": "tool_result", "tool_use_id": "c2", "content": "no", "is_error": True},
                    {"type": "text", "text": "and?"},
                ],
            },
        ],
        "tools": [{"name": "add", "description": "Add.", "input_schema": ADD.parameters}],
        "tool_choice": {"type": "tool", "name": "add"},
    }


async def test_a_streamed_reply_brings_thinking_text_and_calls():
    stream = [
        {"type": "message_start", "message": {"usage": {"input_tokens": 7, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "好"}},
        {"type": "ping"},
        {
            "type": "content_block_start",
            "index": 2,
            "content_block": {"type": "tool_use", "id": "c1", "name": "add", "input": {}},
        },
        {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"a"'}},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": ": 1}"}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 12}},
        {"type": "message_stop"},
    ]
    async with chat_server(respond_events(*stream, done=False, pieces=9)) as server:
        got = await collect_parts(server)
    said = Message("assistant", "好", tool_calls=(ToolCall.from_json("c1", "add", '{"a": 1}'),), thinking="hm")
    assert got == [
        ThinkingDelta("hm"),
        TextDelta("好"),
        CallDelta(0, "c1", "add"),
        CallDelta(0, arguments='{"a"'),
        CallDelta(0, arguments=": 1}"),
        Reply(said, "tool_calls", Usage(7, 12, 1)),
    ]


@pytest.mark.parametrize(
    ("ending", "finish"),
    [
        ([], "incomplete"),
        ([{"type": "message_delta", "delta": {"stop_reason": "tool_use"}}], "incomplete"),
        ([{"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"}], "tool_calls"),
        (
            [
                {"type": "message_delta", "delta": {"stop_reason": "model_context_window_exceeded"}},
                {"type": "message_stop"},
            ],
            "length",
        ),
    ],
)
async def test_a_stream_without_its_end_is_incomplete(ending, finish):
    stream = [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "c", "name": "add"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"a": 1}'}},
        *ending,
    ]
    async with chat_server(respond_events(*stream, done=False)) as server:
        reply = (await collect_parts(server))[-1]
    assert (reply.finish, len(reply.message.tool_calls)) == (finish, 1)


async def test_a_cut_call_is_marked_in_both_ways_of_asking():
    use = {"type": "tool_use", "id": "c", "name": "add", "input": {}}
    answer = {"content": [use], "stop_reason": "max_tokens", "usage": {}}
    async with chat_server(respond_json(answer)) as server:
        [reply] = await collect_parts(server, ModelOptions(stream=False))
    assert [call.truncated for call in reply.message.tool_calls] == [True]


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (respond_json({"error": {"message": "bad key sk-ant-secret"}}, 401), ModelRefusedKey, "bad key ***"),
        (respond_json({"hello": 1}), ModelError, "sent no message"),
    ],
)
async def test_errors_are_translated(answer, kind, said):
    async with chat_server(answer) as server:
        with pytest.raises(kind) as caught:
            await collect_parts(server, ModelOptions(stream=False))
    assert said in str(caught.value)


async def test_an_error_event_raises():
    async with chat_server(respond_events({"type": "error", "error": {"message": "overloaded"}})) as server:
        with pytest.raises(ModelRejected, match="overloaded"):
            await collect_parts(server)


@pytest.mark.parametrize(
    "event", [{"type": "message_start"}, {"type": "content_block_delta", "index": 0, "delta": None}]
)
async def test_a_malformed_event_is_an_error_of_the_model(event):
    async with chat_server(respond_events(event)) as server:
        with pytest.raises(ModelError, match="malformed event"):
            await collect_parts(server)


async def test_a_stream_of_invalid_json_is_an_error_of_the_model():
    broken = respond_text('data: {"type": "content_block_delta", \n\n', content_type="text/event-stream")
    async with chat_server(broken) as server:
        with pytest.raises(ModelError, match="invalid JSON"):
            await collect_parts(server)


def test_images_and_files_are_sent_as_blocks():
    pixel = ImagePart("", b"\x89PNG\r\n\x1a\n", "image/png")
    messages = [
        user_message("see", (TextPart("see"), pixel, FilePart("https://example.com/a.pdf"))),
        tool_message("c1", "shot", "done", (TextPart("done"), pixel)),
    ]
    body = orjson.loads(build_request("m", messages, (), ModelOptions()))
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    document = {"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}}
    [message] = body["messages"]
    assert message["content"][:3] == [{"type": "text", "text": "see"}, image, document]
    assert message["content"][3]["content"] == [{"type": "text", "text": "done"}, image]


def test_files_are_sent_as_the_api_takes_them_and_blank_texts_are_left_out():
    files = [
        FilePart("", b"%PDF-1", "application/pdf", "report.pdf"),
        FilePart("", "a,b\n1,é".encode(), "text/csv", "rows.csv"),
        FilePart("", b"\xff\xfe", "application/msword"),
    ]
    body = orjson.loads(build_request("m", [user_message("", (TextPart(""), *files))], (), ModelOptions()))
    data = ["JVBERi0x", "a,b\n1,é", "//4="]
    kinds = [("base64", "application/pdf"), ("text", "text/plain"), ("base64", "application/msword")]
    sources = [{"type": kind[0], "media_type": kind[1], "data": one} for kind, one in zip(kinds, data, strict=True)]
    assert body["messages"][0]["content"] == [
        {"type": "document", "source": sources[0], "title": "report.pdf"},
        {"type": "document", "source": sources[1], "title": "rows.csv"},
        {"type": "document", "source": sources[2]},
    ]


def test_calls_of_later_replies_with_the_same_id_get_ids_of_their_own():
    history = [user_message("add")]
    for call_id in ("call_0", "call_0_2", "call_0", "call_0"):
        history += [assistant_message("", (ToolCall(call_id, "add", {}),)), tool_message(call_id, "add", "1")]
    _, *sent = orjson.loads(build_request("m", history, (ADD,), ModelOptions()))["messages"]
    calls = [message["content"][0]["id"] for message in sent[::2]]
    assert calls == [message["content"][0]["tool_use_id"] for message in sent[1::2]]
    assert calls == ["call_0", "call_0_2", "call_0_3", "call_0_4"]


@pytest.mark.parametrize(
    "given", [["functions.add:0", "functions.add:1"], ["a.0", "a:0", "a_0"], ["甲", "乙"], ["toolu_01Ab-c"]]
)
def test_ids_of_calls_have_the_characters_of_the_api_and_stay_apart(given):
    calls = tuple(ToolCall(call_id, "add", {"a": 1}) for call_id in given)
    history = (user_message("add"), assistant_message("", calls), *[tool_message(one, "add", "1") for one in given])
    _, reply, results = orjson.loads(build_request("m", history, (ADD,), ModelOptions()))["messages"]
    ids = [block["id"] for block in reply["content"]]
    assert ids == [block["tool_use_id"] for block in results["content"]]
    assert len(set(ids)) == len(given)
    assert all(re.fullmatch("[a-zA-Z0-9_-]+", one) for one in ids)
    assert [one for one in given if re.fullmatch("[a-zA-Z0-9_-]+", one)] == [one for one in ids if one in given]


THINKING = {"type": "thinking", "thinking": "hm", "signature": "c2lnbmVk"}
REDACTED = {"type": "redacted_thinking", "data": "aGlkZGVu"}
USE = {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}}


def stream_blocks(*blocks):
    """The events of a reply, with the fields of its blocks as deltas."""
    events = [{"type": "message_start", "message": {"usage": {"input_tokens": 7}}}]
    for index, block in enumerate(blocks):
        deltas = {
            "thinking": [{"thinking": block.get("thinking")}, {"signature": block.get("signature")}],
            "text": [{"text": block.get("text")}, *({"citation": one} for one in block.get("citations", ()))],
            "tool_use": [{"partial_json": orjson.dumps(block.get("input")).decode()}],
            "compaction": [{key: block.get(key) for key in ("content", "encrypted_content")}],
        }.get(block["type"], [])
        empty = {"thinking": "", "signature": "", "text": "", "citations": [], "input": {}, "encrypted_content": None}
        start = {**block, **{key: value for key, value in empty.items() if key in block}}
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
    return [*events, {"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"}]


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_signed_thinking_is_passed_back_to_its_model_only(is_streamed):
    blocks = [THINKING, REDACTED, {"type": "text", "text": "So:"}, USE]
    whole = respond_json({"content": blocks, "stop_reason": "tool_use", "usage": {}})
    answer = respond_events(*stream_blocks(*blocks), done=False) if is_streamed else whole
    async with chat_server(answer) as server:
        message = (await collect_parts(server, ModelOptions(stream=is_streamed)))[-1].message
    assert (message.content, message.thinking) == ("So:", "hm")
    history = [user_message("hi"), message, tool_message("c1", "add", "1")]
    sent = orjson.loads(build_request("claude", history, (ADD,), ModelOptions()))["messages"][1]
    assert sent == {"role": "assistant", "content": blocks}
    other = orjson.loads(build_request("another", history, (ADD,), ModelOptions()))["messages"][1]
    assert [block["type"] for block in other["content"]] == ["text", "tool_use"]


@pytest.mark.parametrize(
    ("model", "is_sampled"),
    [
        ("claude-3-7-sonnet-latest", True),
        ("claude-opus-4-20250514", True),
        ("claude-sonnet-4-5-20250929", True),
        ("claude-opus-4-6", True),
        ("kimi-k2", True),
        ("claude-opus-4-7", False),
        ("claude-opus-4-8-20260701", False),
        ("claude-sonnet-5", False),
        ("claude-haiku-5-5", False),
        ("claude-fable-5-1", False),
    ],
)
def test_the_temperature_is_sent_to_models_that_take_one(model, is_sampled):
    request = orjson.loads(build_request(model, [user_message("hi")], (), ModelOptions(temperature=0.0)))
    assert request.get("temperature") == (0.0 if is_sampled else None)
    created = AnthropicModel(model, "k")
    assert ("temperature" in created.unsupported_options, "top_p" in created.extra_parameters) == (
        not is_sampled,
        is_sampled,
    )


def text_block(text):
    return {"type": "text", "text": text}


COMPACTION = {"type": "compaction", "content": "So far: hi.", "encrypted_content": "c2VhbA=="}


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize(
    "blocks",
    [
        [text_block("First:"), USE, text_block("Second:"), {**USE, "id": "c2"}],
        [USE, text_block("That was it.")],
        [text_block("One."), text_block("Two."), USE],
        [COMPACTION, text_block("So:"), USE],
    ],
)
async def test_the_blocks_of_a_reply_are_passed_back_in_their_order(is_streamed, blocks):
    whole = respond_json({"content": blocks, "stop_reason": "tool_use", "usage": {}})
    answer = respond_events(*stream_blocks(*blocks), done=False) if is_streamed else whole
    async with chat_server(answer) as server:
        message = (await collect_parts(server, ModelOptions(stream=is_streamed)))[-1].message
    history = [user_message("hi"), message, *(tool_message(call.id, "add", "1") for call in message.tool_calls)]
    sent = orjson.loads(build_request("claude", history, (ADD,), ModelOptions()))["messages"][1]
    assert sent == {"role": "assistant", "content": blocks}


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_the_tokens_of_the_thinking_are_counted(is_streamed):
    usage = {"input_tokens": 7, "output_tokens": 9, "output_tokens_details": {"thinking_tokens": 5}}
    whole = respond_json({"content": [text_block("3")], "stop_reason": "end_turn", "usage": usage})
    *events, delta, stop = stream_blocks(text_block("3"))
    streamed = respond_events(*events, {**delta, "usage": usage}, stop, done=False)
    async with chat_server(streamed if is_streamed else whole) as server:
        *_, reply = await collect_parts(server, ModelOptions(stream=is_streamed))
    assert reply.usage == Usage(7, 9, 1, reasoning_tokens=5)


async def test_thinking_of_a_reply_that_was_cut_is_not_passed_back():
    answer = {"content": [THINKING, USE], "stop_reason": "max_tokens", "usage": {}}
    async with chat_server(respond_json(answer)) as server:
        [reply] = await collect_parts(server, ModelOptions(stream=False))
    assert reply.message.native is None


def test_signed_thinking_goes_back_with_the_id_of_its_result():
    answer = {"content": [THINKING, {**USE, "id": "functions.add:0"}], "stop_reason": "tool_use", "usage": {}}
    history = (user_message("add"), parse_reply(answer, "m").message, tool_message("functions.add:0", "add", "1"))
    _, reply, results = orjson.loads(build_request("m", history, (ADD,), ModelOptions()))["messages"]
    assert reply["content"][0] == THINKING
    assert reply["content"][1]["id"] == results["content"][0]["tool_use_id"] == "functions_2e_add_3a_0"


def test_blank_texts_of_a_reply_are_not_passed_back():
    blocks = [THINKING, {"type": "text", "text": "\n\n"}, USE, {"type": "text", "text": ""}]
    message = parse_reply({"content": blocks, "stop_reason": "tool_use", "usage": {}}, "m").message
    history = (user_message("add"), message, tool_message("c1", "add", "1"))
    _, reply, _ = orjson.loads(build_request("m", history, (ADD,), ModelOptions()))["messages"]
    assert reply["content"] == [THINKING, USE]


def test_a_reply_of_a_model_of_the_same_name_in_another_api_is_passed_back_as_text():
    native = NativeReply("m", ({"type": "reply", "reasoning_content": "hm"},), "chat")
    history = (user_message("hi"), Message("assistant", "Hello.", native=native), user_message("add"))
    _, reply, _ = orjson.loads(build_request("m", history, (), ModelOptions()))["messages"]
    assert reply["content"] == [{"type": "text", "text": "Hello."}]


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_texts_are_apart_where_other_blocks_come_between_them(is_streamed):
    search = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}
    cited = {
        "type": "text",
        "text": "1916",
        "citations": [{"type": "web_search_result_location", "encrypted_index": "E"}],
    }
    texts = [{"type": "text", "text": text} for text in ("I look.", "", "Born in ", ".")]
    blocks = [THINKING, texts[0], search, found, texts[1], texts[2], cited, texts[3], {**THINKING, "thinking": "ok"}]
    whole = respond_json({"content": blocks, "stop_reason": "end_turn", "usage": {}})
    answer = respond_events(*stream_blocks(*blocks), done=False) if is_streamed else whole
    async with chat_server(answer) as server:
        *parts, reply = await collect_parts(server, ModelOptions(stream=is_streamed))
    assert (reply.message.content, reply.message.thinking) == ("I look.\n\nBorn in 1916.", "hm\n\nok")
    assert list(reply.message.get_native_items("claude", "messages")) == blocks
    if is_streamed:
        assert "".join(part.text for part in parts if type(part) is TextDelta) == reply.message.content
        assert "".join(part.text for part in parts if type(part) is ThinkingDelta) == reply.message.thinking


async def test_a_whole_message_is_read_from_a_server_that_does_not_stream():
    answer = {"type": "message", "content": [{"type": "text", "text": "3"}, USE], "stop_reason": "tool_use"}
    async with chat_server(respond_json({**answer, "usage": {"input_tokens": 9, "output_tokens": 1}})) as server:
        delta, reply = await collect_parts(server)
    assert delta == TextDelta("3")
    assert reply == Reply(assistant_message("3", (ToolCall("c1", "add", {"a": 1}),)), "tool_calls", Usage(9, 1, 1))


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_a_paused_reply_is_continued(is_streamed):
    search = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"encrypted_content": "E"}]}
    paused = [{"type": "text", "text": "Searching. "}, search]
    ended = [found, {"type": "text", "text": "Found."}]
    usage = {"input_tokens": 3, "output_tokens": 2}

    def respond(blocks, stop_reason):
        if not is_streamed:
            return respond_json({"content": blocks, "stop_reason": stop_reason, "usage": usage})
        events = [{"type": "message_start", "message": {"usage": usage}}]
        for index, block in enumerate(blocks):
            empty = {**block, **{field: type(block[field])() for field in ("text", "input") if field in block}}
            delta = {"text": block["text"]} if "text" in block else {"partial_json": json.dumps(block.get("input", ""))}
            events.append({"type": "content_block_start", "index": index, "content_block": empty})
            if block is not found:
                events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "message_delta", "delta": {"stop_reason": stop_reason}})
        return respond_events(*events, {"type": "message_stop"}, done=False)

    own = {"type": "web_search_20250305", "name": "web_search"}
    options = ModelOptions(stream=is_streamed, extra_body={"tools": [own]})
    async with chat_server(respond(paused, "pause_turn"), respond(ended, "end_turn")) as server:
        *parts, reply = await collect_parts(server, options)
    assert (reply.message.content, reply.finish, reply.usage) == ("Searching. \n\nFound.", "stop", Usage(6, 4, 2))
    assert [part.text for part in parts] == (["Searching. ", "\n\nFound."] if is_streamed else [])
    assert list(reply.message.get_native_items("claude", "messages")) == [*paused, *ended]
    assert server.bodies[1]["messages"] == [*server.bodies[0]["messages"], {"role": "assistant", "content": paused}]
    assert [tool["name"] for tool in server.bodies[0]["tools"]] == ["web_search", "add"]


def test_an_empty_reply_is_left_out_and_an_empty_message_is_not():
    history = (user_message("hi"), assistant_message(""), user_message(""))
    [sent] = orjson.loads(build_request("m", history, (), ModelOptions()))["messages"]
    assert sent == {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "text", "text": ""}]}


@pytest.mark.parametrize("is_streamed", [True, False])
async def test_parameters_with_chinese_names_are_renamed_in_requests_and_back_in_calls(is_streamed):
    parameters = {"type": "object", "properties": {"城市": {"type": "string"}, "b": {}}, "required": ["城市", "b"]}
    tools = (ToolDefinition("weather", "Weather.", parameters), ADD)
    use = {"type": "tool_use", "id": "c2", "name": "weather"}
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    events = [
        {"type": "message_start", "message": {}},
        {"type": "content_block_start", "index": 0, "content_block": thought},
        {"type": "content_block_start", "index": 1, "content_block": {**use, "input": {}}},
        {"type": "content_block_delta", "index": 1, "delta": {"partial_json": '{"parameter_1": "北京", '}},
        {"type": "content_block_delta", "index": 1, "delta": {"partial_json": '"b": 1}'}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    ]
    whole = {"content": [thought, {**use, "input": {"parameter_1": "北京", "b": 1}}], "stop_reason": "tool_use"}
    first = (user_message("?"), assistant_message("", (ToolCall("c1", "weather", {"城市": "上海", "b": 2}),)))
    messages = (*first, tool_message("c1", "weather", "晴"))
    async with chat_server(respond_events(*events) if is_streamed else respond_json(whole)) as server:
        options = ModelOptions(stream=is_streamed)
        parts = await collect_parts(server, options, tools, messages)
        reply = parts[-1].message
        await collect_parts(server, options, tools, (*messages, reply, tool_message("c2", "weather", "雨")))
    [call] = reply.tool_calls
    assert (dict(call.arguments), call.raw) == ({"城市": "北京", "b": 1}, None)
    assert not any(isinstance(part, CallDelta) for part in parts)
    schema = server.bodies[0]["tools"][0]["input_schema"]
    assert (schema["required"], schema["properties"]["parameter_1"]["description"]) == (["parameter_1", "b"], "城市")
    assert server.bodies[0]["tools"][1]["input_schema"] == ADD.parameters
    sent = [block for body in server.bodies for message in body["messages"] for block in message["content"]]
    inputs = [block["input"] for block in sent if block["type"] == "tool_use"]
    assert inputs == [{"parameter_1": "上海", "b": 2}] * 2 + [{"parameter_1": "北京", "b": 1}]
