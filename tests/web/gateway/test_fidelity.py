"""Unusual requests and replies of natively calling models, which the gateway must not alter."""

import asyncio
import json

import aiohttp
import orjson
import pytest
from aiohttp import web
from tests.models.chat_server import chat_server, respond_json
from tests.web.gateway.test_relay import ADD, CALL, CALL_CHUNKS, connect
from tests.web.serving import serve_models

from opposable.models.anthropic import AnthropicModel
from opposable.models.calling_modes import apply_calling_mode
from opposable.models.fallback import FallbackModel
from opposable.models.http_client import RetryPolicy
from opposable.models.openai_compatible import ServerQuirks
from opposable.models.openai_responses import OpenAIResponsesModel
from opposable.models.scripted import ScriptedModel

pytestmark = pytest.mark.anyio

HUGE = 123456789012345678901234567890
HI = [{"role": "user", "content": "hi"}]
DOTTED = {"type": "function", "function": {"name": "shop.add", "parameters": {"type": "object"}}}
SEARCHED = {"role": "assistant", "content": None, "refusal": None, "audio": {"id": "a1"}, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "<|im_end|>"}], "x": None}

CHAT_REQUESTS = {
    "whole numbers beyond 64 bits": {"messages": HI, "metadata": {"id": HUGE, "low": -(2**70)}, "seed": 2**63},
    "numbers": {"messages": HI, "logit_bias": {"1": -100}, "temperature": 1e-7, "top_p": 1.0, "x": 1.7e308},
    "nulls and empty texts": {"messages": [{"role": "user", "content": "", "name": None}], "stop": None, "user": ""},
    "unicode": {"messages": [{"role": "user", "content": "\u0000 😀 \u2028 \ufeff \uffff é"}]},
    "functions": {"messages": HI, "functions": [ADD["function"]], "function_call": {"name": "add"}},
    "a function's result": {
        "messages": [
            *HI,
            {"role": "assistant", "content": None, "function_call": {"name": "add", "arguments": "{}"}},
            {"role": "function", "name": "add", "content": "1"},
        ],
        "functions": [ADD["function"]],
    },
    "a tool with a dot": {"messages": HI, "tools": [DOTTED], "tool_choice": "required"},
    "custom tools": {
        "messages": HI,
        "tools": [ADD, {"type": "custom", "custom": {"name": "sh", "format": {"type": "text"}}}],
        "tool_choice": {"type": "custom", "custom": {"name": "sh"}},
    },
    "allowed tools": {
        "messages": HI,
        "tools": [ADD],
        "tool_choice": {
            "type": "allowed_tools",
            "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "add"}}]},
        },
    },
    "a conversation with calls": {"messages": [*HI, SEARCHED, RESULT], "tools": [ADD]},
    "audio and files": {
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
                    {"type": "file", "file": {"file_id": "f1"}},
                    {"type": "made_up", "x": []},
                ],
            }
        ],
        "tools": [ADD],
        "modalities": ["text", "audio"],
        "n": 3,
    },
}

FORCED = {"messages": HI, "max_tokens": 9, "tools": [{"name": "add", "input_schema": {}, "strict": True}]}
MESSAGES_REQUESTS = {
    "whole numbers beyond 64 bits": {
        "max_tokens": 9,
        "messages": [
            *HI,
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {"n": HUGE}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": []}]},
        ],
    },
    "signatures, server tools and caching": {
        "max_tokens": 9,
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "context_management": {"edits": []},
        "tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 1}],
        "mcp_servers": [],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "", "signature": "EqQB=="},
                    {"type": "redacted_thinking", "data": "x"},
                    {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
                    {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
                    {"type": "text", "text": "a", "citations": [{"type": "web_search_result_location"}]},
                ],
            },
            *HI,
        ],
    },
    "a forced tool": {**FORCED, "tool_choice": {"type": "tool", "name": "add", "disable_parallel_tool_use": True}},
}

RESPONSES_REQUESTS = {
    "whole numbers beyond 64 bits": {"input": "hi", "metadata": {"n": HUGE}},
    "items of the server": {
        "input": [
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"},
            {"type": "item_reference", "id": "msg_1"},
            {"type": "web_search_call", "id": "ws", "status": "completed"},
        ],
        "tools": [{"type": "web_search"}, {"type": "mcp", "server_label": "x"}, {"type": "custom", "name": "sh"}],
        "background": False,
        "include": ["reasoning.encrypted_content", "message.output_text.logprobs"],
        "prompt": {"id": "p"},
        "conversation": "c",
        "tool_choice": {"type": "custom", "name": "sh"},
    },
}

CASES = [("chat/completions", mode, name) for name in CHAT_REQUESTS for mode in ("native", "auto")]
CASES += [("messages", "native", name) for name in MESSAGES_REQUESTS]
CASES += [("responses", "native", name) for name in RESPONSES_REQUESTS]
REQUESTS = {"chat/completions": CHAT_REQUESTS, "messages": MESSAGES_REQUESTS, "responses": RESPONSES_REQUESTS}


def create_model(path, url, mode="native"):
    if path == "messages":
        return AnthropicModel("upstream", "key", url, retry_policy=RetryPolicy(1))
    if path == "responses":
        quirks = ServerQuirks(apis=frozenset({"responses"}))
        return OpenAIResponsesModel("upstream", url, "key", quirks=quirks, retry_policy=RetryPolicy(1))
    return apply_calling_mode(mode, connect(type("Server", (), {"url": url})()))


def respond_raw(raw, sent, headers=None, status=200, content_type="application/json"):
    """A response of these bytes, or of each of the chunks; `sent` gets the bodies, headers and queries of requests."""

    async def answer(request):
        sent.append((await request.read(), request.headers, request.query_string))
        if isinstance(raw, bytes):
            return web.Response(body=raw, status=status, content_type=content_type, headers=headers)
        response = web.StreamResponse(headers={"content-type": content_type, **(headers or {})})
        await response.prepare(request)
        for chunk in raw:
            await response.write(chunk)
            await asyncio.sleep(0.002)
        await response.write_eof()
        return response

    return answer


async def exchange(path, raw_body, answer, mode="native", headers=None, query=""):
    async with (
        chat_server(answer) as server,
        serve_models(create_model(path, server.url, mode)) as url,
        aiohttp.ClientSession(headers={"content-type": "application/json", **(headers or {})}) as session,
        session.post(f"{url}/{path}{query}", data=raw_body) as response,
    ):
        return response.status, await response.read(), response.headers


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(("path", "mode", "name"), CASES)
async def test_a_request_reaches_the_server_unaltered(path, mode, name, indent):
    sent, body = [], REQUESTS[path][name]
    raw_body = json.dumps({"model": "m", **body}, indent=indent).encode()
    await exchange(path, raw_body, respond_raw(b'{"choices": []}', sent), mode)
    [(received, _, _)] = sent
    assert json.loads(received) == {**body, "model": "upstream"}
    assert list(json.loads(received)) == ["model", *body]


CHOICE = {"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}
CHAT_REPLIES = {
    "a refusal": {"choices": [{**CHOICE, "message": {"role": "assistant", "content": None, "refusal": "No."}}]},
    "several choices": {"choices": [CHOICE, {**CHOICE, "index": 1}]},
    "no choice": {"choices": []},
    "a function call": {
        "choices": [
            {
                "message": {"content": None, "function_call": {"name": "add", "arguments": "{"}},
                "finish_reason": "function_call",
            }
        ]
    },
    "a custom call": {
        "choices": [
            {"message": {"tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "sh", "input": "ls"}}]}}
        ]
    },
    "huge numbers": {"choices": [CHOICE], "x": HUGE, "y": 1.5e-300},
    "a call with huge numbers": {
        "choices": [
            {
                "message": {
                    "content": "",
                    "tool_calls": [{**CALL, "function": {"name": "add", "arguments": f'{{"a": {HUGE}, "b": 1e400}}'}}],
                },
                "finish_reason": "tool_calls",
            }
        ]
    },
    "a call of an unknown tool": {
        "choices": [
            {"message": {"tool_calls": [{**CALL, "function": {"name": "other", "arguments": "{}"}}]}, "x": "\ud83d"}
        ]
    },
    "reasoning and annotations": {
        "choices": [
            {
                **CHOICE,
                "message": {
                    "content": "hi",
                    "reasoning": "r",
                    "reasoning_details": [{"signature": "s"}],
                    "annotations": [{"type": "url_citation"}],
                    "audio": {"data": "AAAA"},
                },
                "logprobs": {"content": [{"token": "\ud83d", "bytes": [240], "logprob": -9999.0}]},
            }
        ],
        "usage": None,
    },
}


@pytest.mark.parametrize("tools", [[], [ADD]], ids=["no tools", "tools"])
@pytest.mark.parametrize("name", CHAT_REPLIES)
async def test_a_reply_reaches_the_client_byte_by_byte(name, tools):
    raw = json.dumps(CHAT_REPLIES[name], indent=1).encode()
    body = {"model": "m", "messages": HI} | ({"tools": tools} if tools else {})
    status, received, _ = await exchange("chat/completions", orjson.dumps(body), respond_raw(raw, []))
    assert (status, received) == (200, raw)


MESSAGE = {
    "id": "msg_1",
    "content": [
        {"type": "thinking", "thinking": "t", "signature": "EqQB"},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"n": HUGE}},
        {"type": "text", "text": "\ud83d", "citations": [{"cited_text": "x"}]},
        {"type": "tool_use", "id": "t", "name": "other.tool", "input": {"n": HUGE}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "container": None,
    "usage": {"input_tokens": 1, "cache_creation": {"ephemeral_5m_input_tokens": 0}, "server_tool_use": None},
}


@pytest.mark.parametrize("path", ["messages", "responses"])
async def test_a_message_and_a_response_reach_the_client_byte_by_byte(path):
    raw = json.dumps(MESSAGE if path == "messages" else {"output": MESSAGE["content"], "x": HUGE}, indent=1).encode()
    body = orjson.dumps({"model": "m", "messages": HI, "max_tokens": 9, "input": "hi"})
    status, received, _ = await exchange(path, body, respond_raw(raw, []))
    assert (status, received) == (200, raw)


CHAT_TRACE = b"".join(b"data: " + orjson.dumps(chunk) + b"\n\n" for chunk in CALL_CHUNKS) + b"data: [DONE]\n\n"
CHAT_TRACE = CHAT_TRACE.replace(b',"usage":null', b"")
TEXT_TRACE = (
    ": OPENROUTER PROCESSING\n\n"
    'data: {"choices":[{"index":0,"delta":{"content":"价格 😀 é"},"logprobs":null}]}\n\n'
    'event: made.up\nid: 7\nretry: 100\ndata: {"x":1}\n\n'
    'data: {"choices":[]}\n\n'
    'data: {"choices":[{"index":1,"delta":{"content":"b"}}],"nvext":{}}\n\n'
    'data: {"error":{"message":"Overloaded","code":502}}\n\n'
).encode()
MESSAGE_TRACE = (
    'event: message_start\ndata: {"type":"message_start","message":{"usage":{"input_tokens":3}}}\n\n'
    'event: ping\ndata: {"type": "ping"}\n\n'
    'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":'
    '{"type":"tool_use","id":"t","name":"add","input":{}}}\n\n'
    "event: content_block_delta\ndata: "
    '{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\\"价\\": 😀"}}\n\n'
    'event: ping\ndata: {"type": "ping"}\n\n'
    'event: made_up\ndata: {"type":"made_up"}\n\n'
    'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n'
    'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{}}\n\n'
    'event: message_stop\ndata: {"type":"message_stop"}\n\n'
).encode()
BROKEN_MESSAGE_TRACE = (
    'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"é"}}\n\n'
    'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'
).encode()
RESPONSE_TRACE = (
    'event: response.created\ndata: {"type":"response.created","response":{"id":"r"}}\n\n'
    'event: response.made_up.delta\ndata: {"type":"response.made_up.delta","delta":"价😀"}\n\n'
    'event: response.failed\ndata: {"type":"response.failed","response":{"error":{"code":"server_error"}}}\n\n'
    'event: error\ndata: {"type":"error","message":"Overloaded"}\n\n'
).encode()
TRACES = [
    ("chat/completions", CHAT_TRACE),
    ("chat/completions", TEXT_TRACE),
    ("messages", MESSAGE_TRACE),
    ("messages", BROKEN_MESSAGE_TRACE),
    ("responses", RESPONSE_TRACE),
]


@pytest.mark.parametrize("ends", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("size", [1, 7, 100_000])
@pytest.mark.parametrize(("path", "trace"), TRACES)
async def test_a_recorded_stream_is_replayed_byte_by_byte(path, trace, size, ends):
    raw = trace.replace(b"\n", ends)
    if size == 1:  # enough to cut every line end, marker and character of the ending
        chunks = [raw[:-60], *[raw[at : at + 1] for at in range(len(raw) - 60, len(raw))]]
    else:
        chunks = [raw[at : at + size] for at in range(0, len(raw), size)]
    body = {"model": "m", "messages": HI, "max_tokens": 9, "input": "hi", "stream": True}
    if trace is CHAT_TRACE:
        body["tools"] = [ADD]
    answer = respond_raw(chunks, [], content_type="text/event-stream")
    status, received, _ = await exchange(path, orjson.dumps(body), answer)
    assert (status, received) == (200, trace)


async def test_lines_that_end_in_crlf_are_sent_at_once():
    """An event is not held until the end of the stream because its line end was cut."""
    chunks = [b'data: {"choices":[]}\r\n\r', b"\n", b'data: {"choices":[],"x":1}\r\n', b"\r\n"]
    reached = asyncio.Event()

    async def answer(request):
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for chunk in chunks[:2]:
            await response.write(chunk)
            await asyncio.sleep(0.01)
        await asyncio.wait_for(reached.wait(), 5)
        for chunk in chunks[2:]:
            await response.write(chunk)
        return response

    async with (
        chat_server(answer) as server,
        serve_models(connect(server)) as url,
        aiohttp.ClientSession() as session,
        session.post(f"{url}/chat/completions", json={"model": "m", "messages": HI, "stream": True}) as response,
    ):
        assert await response.content.readuntil(b"\n\n") == b'data: {"choices":[]}\n\n'
        reached.set()
        assert await response.content.read() == b'data: {"choices":[],"x":1}\n\n'


RESPONSE_CALL_TRACE = (
    b'event: response.output_item.added\ndata: {"type":"response.output_item.added","output_index":0,'
    b'"item":{"type":"function_call","call_id":"c","name":"add","arguments":""}}\n\n'
    b'event: response.completed\ndata: {"type":"response.completed","response":{"status":"completed"}}\n\n'
)


@pytest.mark.parametrize(
    ("path", "mode", "trace"),
    [
        ("chat/completions", "native", CHAT_TRACE),
        ("chat/completions", "auto", CHAT_TRACE),
        ("messages", "native", MESSAGE_TRACE),
        ("responses", "native", RESPONSE_CALL_TRACE),
    ],
)
async def test_calls_are_sent_with_the_last_event_of_a_connection_that_stays_open(path, mode, trace):
    has_arrived, after = asyncio.Event(), b": bye\n\n"

    async def answer(request):
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(trace)
        await asyncio.wait_for(has_arrived.wait(), 5)
        await response.write(after)
        return response

    body = {"model": "m", "messages": HI, "max_tokens": 9, "input": "hi", "stream": True}
    async with (
        chat_server(answer) as server,
        serve_models(create_model(path, server.url, mode)) as url,
        aiohttp.ClientSession() as session,
        session.post(f"{url}/{path}", json=body | ({"tools": [ADD]} if trace is CHAT_TRACE else {})) as response,
    ):
        assert await asyncio.wait_for(response.content.readexactly(len(trace)), 3) == trace
        has_arrived.set()
        assert await response.content.read() == after


async def test_an_error_after_a_part_of_a_call_is_the_last_event():
    error = b'data: {"error":{"message":"Overloaded","code":502}}\n\n'
    chunks = [b"data: " + orjson.dumps(chunk) + b"\n\n" for chunk in CALL_CHUNKS[:6]]
    body = orjson.dumps({"model": "m", "messages": HI, "stream": True, "tools": [ADD]})
    answer = respond_raw([*chunks, error], [], content_type="text/event-stream")
    _, received, _ = await exchange("chat/completions", body, answer)
    assert received == b"".join(chunks[:4]).replace(b',"usage":null', b"") + error


RESPONSE_HEADERS = {
    "x-request-id": "req_1",
    "request-id": "req_2",
    "x-ratelimit-remaining-tokens": "5",
    "anthropic-ratelimit-requests-remaining": "7",
    "openai-processing-ms": "12",
    "retry-after": "3",
}
PRIVATE_HEADERS = {"openai-organization": "acme", "anthropic-organization-id": "o", "set-cookie": "a=b", "x-other": "1"}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", ["chat/completions", "messages", "responses"])
async def test_the_headers_of_the_server_reach_the_client(path, stream):
    body = orjson.dumps({"model": "m", "messages": HI, "max_tokens": 9, "input": "hi", "stream": stream})
    headers = {**RESPONSE_HEADERS, **PRIVATE_HEADERS}
    raw, kind = (b"data: {}\n\n", "text/event-stream") if stream else (b'{"choices": []}', "application/json")
    _, _, received = await exchange(path, body, respond_raw(raw, [], headers, content_type=kind))
    assert {name: received.get(name) for name in headers} == {**RESPONSE_HEADERS, **dict.fromkeys(PRIVATE_HEADERS)}


@pytest.mark.parametrize("stream", [False, True])
async def test_a_header_of_the_server_that_is_not_ascii_is_left_out(stream):
    body = orjson.dumps({"model": "m", "messages": HI, "stream": stream})
    answer = respond_raw(b'{"choices": []}', [], {"x-request-id": "请求", "retry-after": "3"})
    status, _, headers = await exchange("chat/completions", body, answer)
    assert (status, headers.get("x-request-id"), headers.get("retry-after")) == (200, None, "3")


@pytest.mark.parametrize("path", ["chat/completions", "messages", "responses"])
async def test_beta_headers_and_the_query_reach_the_server(path):
    sent = []
    headers = {"anthropic-beta": "a,b", "openai-beta": "c", "idempotency-key": "k", "x-api-key": "mine"}
    headers |= {"anthropic-version": "2024-01-01", "anthropic-user-profile-id": "u", "anthropic-workspace-id": "w"}
    body = orjson.dumps({"model": "m", "messages": HI, "max_tokens": 9, "input": "hi"})
    await exchange(path, body, respond_raw(b'{"choices": []}', sent), headers=headers, query="?beta=true")
    [(_, received, query)] = sent
    assert query == "beta=true"
    assert {name: received.get(name) for name in headers} == {
        **headers,
        "x-api-key": "key" if path == "messages" else None,
    }


OPENAI_ERROR = {"error": {"message": "No.", "type": "t", "param": None, "code": "c", "x": 1}, "request_id": "r"}
FULL = {
    "error": {"message": "The maximum context length is 5.", "code": "context_length_exceeded", "param": "messages"}
}
ANTHROPIC_ERROR = {"type": "error", "error": {"type": "billing_error", "message": "No."}, "request_id": "r"}
ANTHROPIC_FULL = {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 9 > 5"}}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("path", "status", "error"),
    [
        ("chat/completions", status, OPENAI_ERROR)
        for status in (400, 402, 404, 409, 413, 422, 429, 451, 500, 501, 502, 503, 504)
    ]
    + [("responses", 400, OPENAI_ERROR), ("responses", 404, OPENAI_ERROR), ("chat/completions", 400, FULL)]
    + [("messages", status, ANTHROPIC_ERROR) for status in (400, 402, 404, 413, 429, 500, 529)]
    + [("chat/completions", 400, {"error": {"message": "Invalid context_window_size", "code": "below_min"}})]
    + [("chat/completions", status, {"detail": [{"msg": "No."}]}) for status in (405, 409, 418, 422)]
    + [("messages", 400, ANTHROPIC_FULL)],
)
async def test_an_error_of_the_server_reaches_the_client_unaltered(path, status, error, stream):
    body = orjson.dumps({"model": "m", "messages": HI, "max_tokens": 9, "input": "hi", "stream": stream})
    answer = respond_raw(orjson.dumps(error), [], {"x-request-id": "req_1"}, status)
    received_status, received, headers = await exchange(path, body, answer)
    assert (received_status, orjson.loads(received), headers["x-request-id"]) == (status, error, "req_1")


@pytest.mark.parametrize("status", [500, 502, 503, 504])
@pytest.mark.parametrize("path", ["chat/completions", "messages"])
async def test_an_unavailable_server_without_an_error_body_keeps_its_status(path, status):
    body = orjson.dumps({"model": "m", "messages": HI, "max_tokens": 9})
    page = respond_raw(b"<html>Bad gateway</html>", [], {"retry-after": "0"}, status)
    received_status, received, headers = await exchange(path, body, page)
    assert (received_status, headers["retry-after"]) == (status, "0")
    assert f"answered HTTP {status}" in orjson.loads(received)["error"]["message"]


@pytest.mark.parametrize("path", ["chat/completions", "messages"])
async def test_a_rejected_request_without_an_error_body_keeps_its_status(path):
    body = orjson.dumps({"model": "m", "messages": HI, "max_tokens": 9})
    received_status, received, _ = await exchange(path, body, respond_raw(b"I am a teapot", [], {}, 418))
    assert received_status == 418
    assert "I am a teapot" in orjson.loads(received)["error"]["message"]


@pytest.mark.parametrize("stream", [False, True])
async def test_the_reply_of_a_fallback_has_no_headers_of_the_model_that_failed(stream):
    limited = respond_json({"error": {"message": "Slow down."}}, 429, {"x-request-id": "req_1", "retry-after": "9"})
    async with chat_server(limited) as server:
        model = FallbackModel("m", [connect(server), ScriptedModel("hi")])
        async with serve_models(model) as url, aiohttp.ClientSession() as session:
            body = {"model": "m", "messages": HI, "stream": stream}
            async with session.post(f"{url}/chat/completions", json=body) as response:
                assert (response.status, b"hi" in await response.read()) == (200, True)
                assert not {"x-request-id", "retry-after"} & set(response.headers)


async def test_a_conversation_without_a_result_keeps_all_other_fields():
    """Servers reject such a conversation; what the client sent apart from the missing result is unaltered."""
    sent = []
    audio = {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}]}
    body = {"messages": [audio, SEARCHED, audio], "tools": [ADD], "logprobs": True, "made_up": HUGE}
    answer = respond_raw(b'{"choices": []}', sent)
    await exchange("chat/completions", json.dumps({"model": "m", **body}).encode(), answer)
    received = json.loads(sent[0][0])
    missing = received["messages"].pop(2)
    assert (missing["role"], missing["tool_call_id"]) == ("tool", "call_1")
    assert received == {**body, "model": "upstream"}
