"""Completions that pass byte by byte between a client and a model's server."""

import asyncio

import aiohttp
import orjson
import pytest
from aiohttp import web
from tests.models.chat_server import (
    build_completion,
    build_delta,
    chat_server,
    respond_events,
    respond_json,
    respond_text,
)
from tests.web.serving import serve_models

from opposable.models.anthropic import AnthropicModel
from opposable.models.calling_modes import apply_calling_mode
from opposable.models.http_client import RetryPolicy
from opposable.models.openai_compatible import OpenAICompatibleModel
from opposable.models.openai_responses import OpenAIResponsesModel
from opposable.models.profile import set_images, update_profile
from opposable.models.scripted import ScriptedModel
from opposable.models.text_protocol import TextProtocolModel

pytestmark = pytest.mark.anyio

PARAMETERS = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
ADD = {"type": "function", "function": {"name": "add", "strict": True, "parameters": PARAMETERS}}
HI = [{"role": "user", "content": "add 1"}]
EVERYTHING = {
    "messages": [
        {"role": "user", "name": "ann", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;,"}}]}
    ],
    "top_p": 0.5,
    "presence_penalty": 0.1,
    "frequency_penalty": 0.2,
    "logprobs": True,
    "top_logprobs": 2,
    "logit_bias": {"1": 2},
    "reasoning_effort": "low",
    "parallel_tool_calls": True,
    "user": "u",
    "metadata": {"k": "v"},
    "service_tier": "flex",
    "seed": 3,
    "response_format": {"type": "json_schema", "json_schema": {"name": "n", "strict": True, "schema": PARAMETERS}},
    "max_completion_tokens": 9,
    "stop": ["END"],
    "made_up": {"x": None},
}
CALL = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{ "a": 1 }'}}
USAGE = {
    "prompt_tokens": 11,
    "completion_tokens": 7,
    "total_tokens": 18,
    "prompt_tokens_details": {"cached_tokens": 5},
    "completion_tokens_details": {"reasoning_tokens": 3},
}
WHOLE = {
    "id": "chatcmpl-7",
    "object": "chat.completion",
    "created": 1790000000,
    "model": "upstream-2026",
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "I add.",
                "refusal": None,
                "reasoning_content": "hm",
                "annotations": [{"type": "url_citation"}],
                "tool_calls": [CALL],
            },
            "logprobs": {"content": [{"token": "I", "logprob": -0.1, "top_logprobs": []}]},
            "finish_reason": "tool_calls",
        }
    ],
    "usage": USAGE,
    "service_tier": "default",
    "system_fingerprint": "fp_1",
}
HEAD = {"id": "chatcmpl-7", "object": "chat.completion.chunk", "created": 1, "model": "up", "system_fingerprint": "fp"}


def build_chunk(finish=None, **delta):
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {**HEAD, "choices": [choice], "usage": None}


CALL_CHUNKS = [
    build_chunk(role="assistant", content=""),
    build_chunk(reasoning_content="hm"),
    build_chunk(content="I "),
    build_chunk(content="add < 2."),
    build_chunk(tool_calls=[{"index": 0, **CALL, "function": {"name": "add", "arguments": ""}}]),
    build_chunk(tool_calls=[{"index": 0, "function": {"arguments": '{ "a"'}}]),
    build_chunk(tool_calls=[{"index": 0, "function": {"arguments": ": 1 }"}}]),
    build_chunk("tool_calls"),
]
USAGE_CHUNK = {**HEAD, "choices": [], "usage": USAGE}


def connect(server, mode="native"):
    model = OpenAICompatibleModel("upstream", server.url, retry_policy=RetryPolicy(1))
    return apply_calling_mode(mode, model)


async def post(url, body, path="chat/completions"):
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{url}/{path}", json={"model": "m", **body}) as response,
    ):
        return response.status, await response.read(), response.headers


def encode_events(*chunks):
    return b"".join(b"data: " + orjson.dumps(chunk) + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"


def without_usage(chunk):
    return {key: value for key, value in chunk.items() if key != "usage"}


@pytest.mark.parametrize("mode", ["native", "auto"])
async def test_every_parameter_and_every_field_of_the_reply_passes(mode):
    body = {**EVERYTHING, "tools": [ADD], "tool_choice": "auto"}
    async with chat_server(respond_json(WHOLE)) as server, serve_models(connect(server, mode)) as url:
        status, raw, _ = await post(url, body)
    assert (status, raw) == (200, orjson.dumps(WHOLE))
    assert server.bodies == [{**body, "model": "upstream"}]


async def test_a_request_without_tools_passes_to_a_model_that_writes_its_calls_as_text():
    async with chat_server(respond_json(WHOLE)) as server, serve_models(connect(server, "prompted")) as url:
        assert (await post(url, EVERYTHING))[1] == orjson.dumps(WHOLE)
    assert server.bodies == [{**EVERYTHING, "model": "upstream"}]


@pytest.mark.parametrize("mode", ["native", "auto"])
@pytest.mark.parametrize("size", [0, 7, 300])
@pytest.mark.parametrize("include_usage", [True, False])
async def test_a_stream_passes_byte_by_byte(mode, size, include_usage):
    body = {"messages": HI, "tools": [ADD], "stream": True}
    body |= {"stream_options": {"include_usage": True}} if include_usage else {}
    upstream = respond_events(*CALL_CHUNKS, USAGE_CHUNK, pieces=size)
    async with chat_server(upstream) as server, serve_models(connect(server, mode)) as url:
        _, raw, headers = await post(url, body)
    sent = [*CALL_CHUNKS, USAGE_CHUNK] if include_usage else map(without_usage, CALL_CHUNKS)
    assert raw == encode_events(*sent)
    assert headers["content-type"].startswith("text/event-stream")
    assert server.bodies[0]["stream_options"] == {"include_usage": True}


MARKED = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'


@pytest.mark.parametrize("stream", [False, True])
async def test_a_call_in_markers_becomes_a_call_with_the_head_of_the_server(stream):
    if stream:
        pieces = [f"I add.\n{MARKED}"[at : at + 4] for at in range(0, 80, 4)]
        chunks = [build_chunk(role="assistant", content=""), *[build_chunk(content=p) for p in pieces if p]]
        upstream = respond_events(*chunks, build_chunk("stop"), USAGE_CHUNK)
    else:
        message = {"role": "assistant", "content": f"I add.\n{MARKED}", "annotations": []}
        upstream = respond_json({**WHOLE, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
    async with chat_server(upstream) as server, serve_models(connect(server, "auto")) as url:
        _, raw, _ = await post(url, {"messages": HI, "tools": [ADD], "stream": stream})
    if not stream:
        whole = orjson.loads(raw)
        [choice] = whole["choices"]
        assert choice["message"]["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a":1}'}
        assert (choice["message"]["content"], choice["finish_reason"]) == ("I add.", "tool_calls")
        assert (whole["usage"], whole["system_fingerprint"]) == (USAGE, "fp_1")
        return
    chunks = [orjson.loads(line[6:]) for line in raw.split(b"\n\n") if line.startswith(b"data: {")]
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert "".join(delta.get("content") or "" for delta in deltas).strip() == "I add."
    calls = [call for delta in deltas for call in delta.get("tool_calls") or ()]
    assert [call["function"]["arguments"] for call in calls] == ["", '{"a":1}']
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"
    assert {(chunk["id"], chunk["system_fingerprint"]) for chunk in chunks} == {("chatcmpl-7", "fp")}
    assert raw.endswith(b"data: [DONE]\n\n")


async def test_the_usage_of_a_stream_with_a_call_in_markers_is_that_of_the_server():
    upstream = respond_events(build_chunk(content=MARKED), build_chunk("stop"), USAGE_CHUNK)
    body = {"messages": HI, "tools": [ADD], "stream": True, "stream_options": {"include_usage": True}}
    async with chat_server(upstream) as server, serve_models(connect(server, "auto")) as url:
        _, raw, _ = await post(url, body)
    chunks = [orjson.loads(line[6:]) for line in raw.split(b"\n\n") if line.startswith(b"data: {")]
    assert [chunk["usage"] for chunk in chunks if chunk["usage"]] == [USAGE]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", ["chat/completions", "messages", "responses"])
@pytest.mark.parametrize("page", ["<html>Log in</html>", ""])
async def test_a_response_that_is_not_json_is_an_error(path, page, stream):
    async with chat_server(respond_text(page)) as server:
        model = {
            "chat/completions": OpenAICompatibleModel("m", server.url),
            "messages": AnthropicModel("m", "k", server.url),
            "responses": OpenAIResponsesModel("m", server.url),
        }[path]
        async with serve_models(model) as url:
            status, raw, _ = await post(url, {"messages": HI, "input": "hi", "max_tokens": 9, "stream": stream}, path)
    assert (status, f"is not JSON ({page!r})" in orjson.loads(raw)["error"]["message"]) == (502, True)


async def test_a_text_that_only_shows_a_marker_passes_unchanged():
    chunks = [
        build_chunk(content="Write "),
        build_chunk(content="`<tool_"),
        build_chunk(content="call>`."),
        build_chunk("stop"),
    ]
    async with (
        chat_server(respond_events(*chunks, USAGE_CHUNK)) as server,
        serve_models(connect(server, "auto")) as url,
    ):
        _, raw, _ = await post(url, {"messages": HI, "tools": [ADD], "stream": True})
    assert raw == encode_events(*map(without_usage, chunks))


@pytest.mark.parametrize("mode", ["native", "auto"])
@pytest.mark.parametrize("stream", [False, True])
async def test_the_calls_of_a_relayed_reply_that_was_cut_off_are_not_handed_out(mode, stream):
    if stream:
        upstream = respond_events(*CALL_CHUNKS[:-2], build_chunk("length"), USAGE_CHUNK)
    else:
        upstream = build_completion("I add.", [CALL], "length")
    async with chat_server(upstream) as server, serve_models(connect(server, mode)) as url:
        _, raw, _ = await post(url, {"messages": HI, "tools": [ADD], "stream": stream})
    assert b"tool_calls" not in raw
    assert b'"finish_reason":"length"' in raw


async def test_an_invalid_native_call_is_repaired_where_that_is_possible():
    call = {**CALL, "function": {"name": "add", "arguments": '{"a": "1"}'}}
    async with (
        chat_server(build_completion(None, [call], "tool_calls")) as server,
        serve_models(connect(server)) as url,
    ):
        _, raw, _ = await post(url, {"messages": HI, "tools": [ADD]})
    [sent] = orjson.loads(raw)["choices"][0]["message"]["tool_calls"]
    assert sent == {**CALL, "function": {"name": "add", "arguments": '{"a":1}'}}


SIGNED = {**CALL, "id": "call_2", "extra_content": {"google": {"thought_signature": "c2ln"}}}
WRONG = {**SIGNED, "id": "call_1", "function": {"name": "add", "arguments": '{"a": "1"}', "strict": True}}
REPAIRED = {**WRONG, "function": {**WRONG["function"], "arguments": '{"a":1}'}}


def build_signed_chunks(first, *fragments):
    """A stream with two calls, whose chunks have fields that only their server knows."""
    chunks = [
        build_chunk(role="assistant", content=None),
        {**build_chunk(tool_calls=[{"index": 0, **first}]), "obfuscation": "x"},
        *[build_chunk(tool_calls=[{"index": 0, "function": {"arguments": text}}]) for text in fragments],
        build_chunk(tool_calls=[{"index": 1, **SIGNED}], reasoning_details=[{"data": "d"}]),
        {**build_chunk("tool_calls"), "service_tier": "default"},
    ]
    return [*chunks, {**USAGE_CHUNK, "usage": {**USAGE, "cost": 0.5}}]


@pytest.mark.parametrize("mode", ["native", "auto"])
@pytest.mark.parametrize("stream", [False, True])
async def test_the_repair_of_a_call_changes_its_arguments_alone(mode, stream):
    message = {"role": "assistant", "content": None, "refusal": None, "tool_calls": [WRONG, SIGNED]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls", "stop_reason": 7}
    whole = {**WHOLE, "choices": [choice]}
    opened = {**WRONG, "function": {**WRONG["function"], "arguments": ""}}
    upstream = respond_events(*build_signed_chunks(opened, '{"a":', ' "1"}'), pieces=50)
    async with (
        chat_server(upstream if stream else respond_json(whole)) as server,
        serve_models(connect(server, mode)) as url,
    ):
        body = {"messages": HI, "tools": [ADD], "stream": stream, "stream_options": {"include_usage": True}}
        _, raw, _ = await post(url, body)
    if stream:
        assert raw == encode_events(*build_signed_chunks(REPAIRED, "", ""))
    else:
        repaired = {**message, "tool_calls": [REPAIRED, SIGNED]}
        assert raw == orjson.dumps({**whole, "choices": [{**choice, "message": repaired}]})


@pytest.mark.parametrize("stream", [False, True])
async def test_the_second_call_is_dropped_alone_where_one_is_asked_for(stream):
    chunks = build_signed_chunks(SIGNED)
    message = {"role": "assistant", "content": "", "tool_calls": [SIGNED, WRONG]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    whole = {**WHOLE, "choices": [choice]}
    async with (
        chat_server(respond_events(*chunks) if stream else respond_json(whole)) as server,
        serve_models(connect(server)) as url,
    ):
        _, raw, _ = await post(url, {"messages": HI, "tools": [ADD], "stream": stream, "parallel_tool_calls": False})
    if stream:
        chunks[2]["choices"][0]["delta"].pop("tool_calls")
        assert raw == encode_events(*map(without_usage, chunks[:-1]))
    else:
        assert raw == orjson.dumps({**whole, "choices": [{**choice, "message": {**message, "tool_calls": [SIGNED]}}]})


@pytest.mark.parametrize("mode", ["native", "auto"])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_call_that_cannot_be_repaired_is_passed_on_with_a_valid_one(mode, stream):
    unknown = {**CALL, "id": "call_0", "function": {"name": "drop_table", "arguments": "{}"}}
    message = {"role": "assistant", "content": "I add.", "tool_calls": [unknown, SIGNED]}
    whole = {**WHOLE, "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    chunks = build_signed_chunks(unknown)
    async with (
        chat_server(respond_events(*chunks) if stream else respond_json(whole)) as server,
        serve_models(connect(server, mode)) as url,
    ):
        _, raw, _ = await post(url, {"messages": HI, "tools": [ADD], "stream": stream})
    assert raw == (encode_events(*map(without_usage, chunks[:-1])) if stream else orjson.dumps(whole))
    assert len(server.bodies) == 1


CUSTOM = {"type": "custom", "custom": {"name": "patch"}}
UNCHECKED = {"other tools": {"tools": [ADD, CUSTOM]}, "several choices": {"tools": [ADD], "n": 2}}


@pytest.mark.parametrize("mode", ["native", "auto"])
@pytest.mark.parametrize("body", UNCHECKED.values(), ids=UNCHECKED)
@pytest.mark.parametrize(("finish", "done"), [("tool_calls", True), (None, True), ("length", True), (None, False)])
async def test_streamed_calls_that_the_gateway_cannot_check_are_passed_on_unless_cut_off(mode, body, finish, done):
    text, call, ending = CALL_CHUNKS[2], CALL_CHUNKS[4], build_chunk(finish)
    other = {
        **HEAD,
        "choices": [{"index": 1, "delta": {"tool_calls": [{"index": 0, **CALL}]}, "finish_reason": "stop"}],
    }
    upstream = respond_events(text, call, ending, other, done=done)
    async with chat_server(upstream) as server, serve_models(connect(server, mode)) as url:
        _, raw, _ = await post(url, {"messages": HI, "stream": True, **body})
    is_whole = finish == "tool_calls" or (finish is None and done)
    sent = [text, call, ending, other] if is_whole else [text, ending, other]
    expected = encode_events(*map(without_usage, sent))
    assert raw == (expected if done else expected.removesuffix(b"data: [DONE]\n\n"))


@pytest.mark.parametrize("body", UNCHECKED.values(), ids=UNCHECKED)
async def test_whole_calls_that_the_gateway_cannot_check_are_passed_on_unless_cut_off(body):
    choices = [
        {"index": n, "message": {"content": None, "tool_calls": [CALL]}, "finish_reason": finish}
        for n, finish in enumerate(["length", "tool_calls", "content_filter"])
    ]
    async with chat_server(respond_json({"choices": choices})) as server, serve_models(connect(server)) as url:
        _, raw, _ = await post(url, {"messages": HI, **body})
    sent = [choice["message"] for choice in orjson.loads(raw)["choices"]]
    assert sent == [{"content": None}, {"content": None, "tool_calls": [CALL]}, {"content": None}]


@pytest.mark.parametrize("mode", ["native", "auto"])
@pytest.mark.parametrize("arguments", ['{"a": 1}', '{"a": "1"}'])
async def test_a_stream_with_the_end_marker_alone_has_its_end(mode, arguments):
    call = {**CALL, "function": {"name": "add", "arguments": arguments}}
    upstream = respond_events(build_chunk(content="I add."), build_chunk(tool_calls=[{"index": 0, **call}]))
    async with chat_server(upstream) as server, serve_models(connect(server, mode)) as url:
        _, raw, _ = await post(url, {"messages": HI, "tools": [ADD], "stream": True})
    assert b'"tool_calls"' in raw
    assert b'"length"' not in raw


@pytest.mark.parametrize("stream", [False, True])
async def test_a_call_that_stays_without_a_required_argument_is_not_handed_out(stream):
    written = '{"reasoning": "r", "action": "tool_call", "tool_calls": [{"name": "add", "arguments": {}}]}'
    model = TextProtocolModel(ScriptedModel(written), "protocol")
    async with serve_models(model) as url:
        _, raw, _ = await post(url, {"messages": HI, "tools": [ADD], "stream": stream})
    assert b"tool_calls" not in raw.replace(rb"\"tool_calls\"", b"")
    assert b'"finish_reason":"stop"' in raw


async def test_a_rate_limit_of_the_server_stays_one():
    error = {"error": {"message": "Slow down.", "type": "tokens", "param": None, "code": "rate_limit_exceeded"}}
    limited = respond_json(error, 429, {"retry-after": "7"})
    async with chat_server(limited) as server, serve_models(connect(server)) as url:
        for stream in (False, True):
            status, raw, headers = await post(url, {"messages": HI, "stream": stream})
            assert (status, orjson.loads(raw), headers["retry-after"]) == (429, error, "7")
    assert len(server.bodies) == 2


async def test_a_rate_limit_stays_one_for_a_model_that_writes_its_calls_as_text():
    limited = respond_json({"error": {"message": "Slow down."}}, 429, {"retry-after": "7"})
    async with chat_server(limited) as server, serve_models(connect(server, "prompted")) as url:
        status, raw, headers = await post(url, {"messages": HI, "tools": [ADD]})
    assert (status, headers["retry-after"]) == (429, "7")
    assert orjson.loads(raw)["error"]["message"] == "Slow down."


async def never_respond(request):
    await asyncio.sleep(30)


async def break_connection(request):
    request.transport.abort()
    return web.Response()


@pytest.mark.parametrize(
    ("answer", "status", "requests"),
    [
        (never_respond, 503, 1),
        (break_connection, 503, 1),
        (respond_json({}, 504), 504, 1),
        (respond_json({}, 503, {"x-should-retry": "false"}), 503, 1),
        (respond_json({}, 503), 200, 2),
    ],
)
async def test_a_request_that_reached_the_server_is_not_sent_again(answer, status, requests):
    policy = RetryPolicy(3, read_timeout_seconds=0.2, initial_wait_seconds=0.01)
    async with chat_server(answer, respond_json(WHOLE)) as server:
        model = OpenAICompatibleModel("upstream", server.url, retry_policy=policy)
        async with serve_models(model) as url:
            assert (await post(url, {"messages": HI}))[0] == status
    assert len(server.bodies) == requests


async def test_a_rejected_request_has_the_error_of_the_server():
    error = {"error": {"message": "No.", "type": "invalid_request_error", "param": "top_p", "code": "bad"}}
    async with chat_server(respond_json(error, 400)) as server, serve_models(connect(server)) as url:
        status, raw, _ = await post(url, {"messages": HI})
    assert (status, orjson.loads(raw)) == (400, error)


UNSUPPORTED = {"logprobs": True, "top_logprobs": 2, "modalities": ["text", "audio"], "audio": {"voice": "a"}, "n": 2}


@pytest.mark.parametrize("name", UNSUPPORTED)
@pytest.mark.parametrize("stream", [False, True])
async def test_what_a_text_model_cannot_return_is_rejected(name, stream):
    async with chat_server(build_completion("hi")) as server, serve_models(connect(server, "prompted")) as url:
        body = {"messages": HI, "tools": [ADD], name: UNSUPPORTED[name], "stream": stream}
        status, raw, _ = await post(url, body)
    error = orjson.loads(raw)["error"]
    assert (status, error["param"]) == (400, name)
    assert name in error["message"]
    assert server.bodies == []


async def test_a_text_model_of_a_server_gets_the_other_parameters():
    sampling = {"top_p": 0.5, "logit_bias": {"1": 2}, "reasoning_effort": "low", "user": "u", "made_up": 1}
    async with chat_server(build_completion("hi")) as server, serve_models(connect(server, "prompted")) as url:
        assert (await post(url, {"messages": HI, "tools": [ADD], **sampling}))[0] == 200
    assert sampling.items() <= server.bodies[0].items()


async def test_a_model_without_a_server_rejects_a_parameter_that_it_does_not_have():
    async with serve_models(ScriptedModel("hi")) as url:
        status, raw, _ = await post(url, {"messages": HI, "top_p": 0.5})
        assert (status, orjson.loads(raw)["error"]["param"]) == (400, "top_p")
        assert (await post(url, {"messages": HI, "user": "u", "top_p": 1.0}))[0] == 200


async def test_a_conversation_without_a_result_is_completed_for_the_server():
    asked = [*HI, {"role": "assistant", "content": None, "tool_calls": [CALL]}]
    async with chat_server(build_completion("hi")) as server, serve_models(connect(server)) as url:
        assert (await post(url, {"messages": asked, "tools": [ADD]}))[0] == 200
    assert [message["role"] for message in server.bodies[0]["messages"]] == ["user", "assistant", "tool"]


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}


async def test_images_pass_to_a_server_and_are_refused_by_a_model_of_text():
    asked = [{"role": "user", "content": [{"type": "text", "text": "see"}, IMAGE]}]
    async with chat_server(build_completion("hi")) as server, serve_models(connect(server, "prompted")) as url:
        assert (await post(url, {"messages": asked, "tools": [ADD]}))[0] == 200
        local = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://127.0.0.1/a.png"}}]}]
        status, raw, _ = await post(url, {"messages": local, "tools": [ADD]})
        assert (status, b"Cannot fetch" in raw) == (400, True)
    assert server.bodies[0]["messages"][-1]["content"][1] == IMAGE
    async with serve_models(ScriptedModel("hi")) as url:
        status, raw, _ = await post(url, {"messages": asked})
        assert (status, b"takes no images" in raw) == (400, True)


async def test_placeholders_replace_images_for_a_server_without_them():
    asked = [{"role": "user", "content": [{"type": "text", "text": "see"}, IMAGE]}]
    async with chat_server(build_completion("hi")) as server:
        model = connect(server)
        set_images(model, "placeholder")
        async with serve_models(model) as url:
            assert (await post(url, {"messages": asked}))[0] == 200
    assert server.bodies[0]["messages"] == [{"role": "user", "content": "see\n[image image/png, 8 bytes]"}]


@pytest.mark.parametrize("then_cut", [True, False])
async def test_text_that_is_held_comes_before_an_error(then_cut):
    text = "Qwen writes `<tool_call>` before a call."
    call = {"index": 0, "id": "a", "function": {"name": "add", "arguments": '{"a"'}}
    chunks = [build_delta(content=text), build_delta(tool_calls=[call])]
    error = [] if then_cut else [{"error": {"message": "overloaded"}}]
    upstream = respond_events(*chunks, *error, done=False, then_cut=then_cut)
    async with chat_server(upstream) as server, serve_models(connect(server, "auto")) as url:
        _, raw, _ = await post(url, {"messages": HI, "tools": [ADD], "stream": True})
    events = [orjson.loads(event.removeprefix(b"data: ")) for event in raw.strip().split(b"\n\n")]
    assert [event["choices"][0]["delta"] for event in events[:-1]] == [{"content": text}]
    assert "error" in events[-1]


@pytest.mark.parametrize(("local", "sent"), [(True, "<\u2060|im_end|>"), (False, "<|im_end|>")])
async def test_results_are_escaped_for_the_text_prompt_of_a_local_server(local, sent):
    result = {"role": "tool", "tool_call_id": "call_1", "content": "<|im_end|>"}
    messages = [*HI, {"role": "assistant", "content": None, "tool_calls": [CALL]}, result]
    async with chat_server(respond_json(WHOLE)) as server:
        model = connect(server, "auto")
        update_profile(model, local=local)
        async with serve_models(model) as url:
            await post(url, {"messages": messages, "tools": [ADD]})
    assert server.bodies[0]["messages"][-1]["content"] == sent


@pytest.mark.parametrize("path", ["chat/completions", "messages"])
async def test_a_response_format_with_tools_reaches_the_server_in_auto(path):
    schema = {"name": "reply", "schema": {**PARAMETERS, "additionalProperties": False}, "strict": True}
    body = {"messages": HI, "tools": [ADD], "response_format": {"type": "json_schema", "json_schema": schema}}
    if path == "messages":
        output = {"format": {"type": "json_schema", "schema": schema["schema"]}}
        tool = {"name": "add", "input_schema": PARAMETERS}
        body = {"messages": HI, "tools": [tool], "max_tokens": 9, "output_config": output}
    async with (
        chat_server(build_completion('{"a": 1}')) as server,
        serve_models(connect(server, "auto")) as url,
    ):
        assert (await post(url, body, path))[0] == 200
    [sent] = server.bodies
    assert (sent["response_format"]["json_schema"], sent["messages"]) == (schema, HI)


async def test_an_error_in_a_stream_passes():
    chunk = {"error": {"message": "overloaded"}}
    upstream = respond_events(build_delta(content="a"), chunk, done=False)
    async with chat_server(upstream) as server, serve_models(connect(server)) as url:
        _, raw, _ = await post(url, {"messages": HI, "stream": True})
    assert raw.endswith(b"data: " + orjson.dumps(chunk) + b"\n\n")
