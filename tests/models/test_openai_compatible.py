"""The chat-completions client against a real server on loopback."""

import asyncio
import json
import socket
from contextlib import aclosing

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

from opposable.domain.content import FilePart, ImagePart, TextPart
from opposable.domain.errors import (
    ContextFull,
    ModelError,
    ModelNotFound,
    ModelRefusedKey,
    ModelRejected,
    ModelUnavailable,
)
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
from opposable.models.base import ForcedTool, ModelOptions
from opposable.models.http_client import RetryPolicy
from opposable.models.openai_compatible import OpenAICompatibleModel, ServerQuirks

pytestmark = pytest.mark.anyio

WHOLE = ModelOptions(stream=False)
QUICK = RetryPolicy(
    initial_wait_seconds=0.01, max_wait_seconds=2.0, read_timeout_seconds=1.0, connect_timeout_seconds=1.0
)
ADD = ToolDefinition("add", "Add.", {"type": "object", "properties": {"a": {"type": "integer"}}})
CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}


async def collect_parts(
    server, options=ModelOptions(), tools=(), messages=(user_message("hi"),), key="sk-secret-key", quirks=None
):
    model = OpenAICompatibleModel("m", server.url, key, retry_policy=QUICK, quirks=quirks)
    try:
        return [part async for part in model.stream(messages, tools, options)]
    finally:
        await model.aclose()


async def test_a_reply_in_one_piece_brings_text_and_usage():
    async with chat_server(build_completion("hello")) as server:
        assert await collect_parts(server, WHOLE) == [Reply(assistant_message("hello"), "stop", Usage(11, 7, 1))]
    assert server.headers[0]["Authorization"] == "Bearer sk-secret-key"
    assert server.bodies[0] == {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


async def test_calls_are_read_and_finish_is_tool_calls_even_when_the_server_says_stop():
    async with chat_server(build_completion(None, [CALL], finish="stop")) as server:
        [reply] = await collect_parts(server, WHOLE, (ADD,))
    assert reply.message.tool_calls == (ToolCall.from_json("c1", "add", '{"a": 1}'),)
    assert reply.finish == "tool_calls"


async def test_arguments_that_came_as_an_object_and_missing_ids_are_taken():
    odd = {"function": {"name": "add", "arguments": {"a": 1}}}
    async with chat_server(build_completion(None, [odd])) as server:
        [reply] = await collect_parts(server, WHOLE, (ADD,))
    [call] = reply.message.tool_calls
    assert (call.name, call.arguments) == ("add", {"a": 1})
    assert call.id


@pytest.mark.parametrize("pieces", [0, 1, 7, 64])
async def test_a_streamed_reply_is_the_same_however_the_bytes_are_cut(pieces):
    chunks = [
        build_delta(role="assistant", content=""),
        build_delta(reasoning_content="hm"),
        build_delta(content="你好"),
        build_delta(content=" world"),
        build_delta(tool_calls=[{"index": 0, "id": "c1", "function": {"name": "add", "arguments": ""}}]),
        build_delta(tool_calls=[{"index": 0, "function": {"arguments": '{"a":'}}]),
        build_delta(tool_calls=[{"index": 1, "id": "c2", "function": {"name": "add", "arguments": '{"a": 2}'}}]),
        build_delta(tool_calls=[{"index": 0, "function": {"arguments": " 1}"}}]),
        build_delta(finish="tool_calls"),
        {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 3}},
    ]
    async with chat_server(respond_events(*chunks, pieces=pieces)) as server:
        got = await collect_parts(server, tools=(ADD,))
    calls = (ToolCall.from_json("c1", "add", '{"a": 1}'), ToolCall.from_json("c2", "add", '{"a": 2}'))
    assert got == [
        ThinkingDelta("hm"),
        TextDelta("你好"),
        TextDelta(" world"),
        CallDelta(0, "c1", "add", ""),
        CallDelta(0, arguments='{"a":'),
        CallDelta(1, "c2", "add", '{"a": 2}'),
        CallDelta(0, arguments=" 1}"),
        Reply(
            Message(
                "assistant",
                "你好 world",
                tool_calls=calls,
                thinking="hm",
                native=NativeReply("m", ({"type": "reply", "reasoning_content": "hm"},), "chat"),
            ),
            "tool_calls",
            Usage(5, 3, 1),
        ),
    ]
    assert server.bodies[0]["stream_options"] == {"include_usage": True}


async def test_a_stream_without_indexes_keeps_its_calls_apart():
    chunks = [
        build_delta(tool_calls=[{"id": "x", "function": {"name": "add", "arguments": '{"a": 1}'}}]),
        build_delta(tool_calls=[{"id": "y", "function": {"name": "add", "arguments": '{"a": 2}'}}]),
        build_delta(finish="stop"),
    ]
    async with chat_server(respond_events(*chunks)) as server:
        reply = (await collect_parts(server, tools=(ADD,)))[-1]
    assert [(c.id, c.arguments_json) for c in reply.message.tool_calls] == [("x", '{"a": 1}'), ("y", '{"a": 2}')]


@pytest.mark.parametrize("index", [0, None])
async def test_a_stream_with_one_index_for_all_calls_keeps_them_apart(index):
    first, second = (
        {"index": index, "id": key, "function": {"name": "add", "arguments": f'{{"a": {n}'}}
        for n, key in enumerate("xy")
    )
    end = {"index": index, "id": None, "function": {"arguments": "}"}}
    chunks = [build_delta(tool_calls=[delta]) for delta in (first, end, second, end)] + [build_delta("tool_calls")]
    async with chat_server(respond_events(*chunks)) as server:
        reply = (await collect_parts(server, tools=(ADD,)))[-1]
    assert [(c.id, c.arguments_json) for c in reply.message.tool_calls] == [("x", '{"a": 0}'), ("y", '{"a": 1}')]


@pytest.mark.parametrize("call_id", [{}, {"id": None}, {"id": ""}])
@pytest.mark.parametrize("index", [{}, {"index": 0}])
async def test_a_stream_without_ids_keeps_its_whole_calls_apart(index, call_id):
    texts = ["{}", '{"a": 1}', '{"a": 1}']
    functions = [{"name": "add", "arguments": text} for text in texts]
    parts = [{"name": "add", "arguments": '{"a"'}, {"name": "add", "arguments": ": 2}"}, {"arguments": ""}]
    chunks = [build_delta(tool_calls=[{**index, **call_id, "function": one}]) for one in (*functions, *parts)]
    async with chat_server(respond_events(*chunks, build_delta("tool_calls"))) as server:
        reply = (await collect_parts(server, tools=(ADD,)))[-1]
    assert [call.arguments_json for call in reply.message.tool_calls] == [*texts, '{"a": 2}']
    assert len({call.id for call in reply.message.tool_calls}) == 4


async def test_a_call_with_another_id_in_each_delta_stays_one():
    deltas = [{"name": "add"}, {"arguments": '{"a"'}, {"arguments": ": 1}"}]
    chunks = [build_delta(tool_calls=[{"index": 0, "id": f"x{n}", "function": f}]) for n, f in enumerate(deltas)]
    async with chat_server(respond_events(*chunks, build_delta("tool_calls"))) as server:
        reply = (await collect_parts(server, tools=(ADD,)))[-1]
    assert [(c.id, c.arguments_json) for c in reply.message.tool_calls] == [("x0", '{"a": 1}')]


@pytest.mark.parametrize("texts", [['{"a": 1}', ""], ["", '{"a": 1}'], ['{"a":', " 1}", ""]])
async def test_deltas_without_ids_may_repeat_the_name(texts):
    deltas = [{"index": 0, "function": {"name": "add", "arguments": text}} for text in texts]
    chunks = [build_delta(tool_calls=[delta]) for delta in deltas]
    async with chat_server(respond_events(*chunks, build_delta("tool_calls"))) as server:
        reply = (await collect_parts(server, tools=(ADD,)))[-1]
    assert [c.arguments for c in reply.message.tool_calls] == [{"a": 1}]


THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
OTHER_CONTENTS = [
    ({"content": None, "refusal": "I will not."}, "I will not.", ""),
    ({"content": [THOUGHT, {"type": "text", "text": "Hi"}, {"type": "reference", "reference_ids": [1]}]}, "Hi", "hm"),
]


@pytest.mark.parametrize(("message", "text", "thinking"), OTHER_CONTENTS, ids=["refusal", "list"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_refusal_and_a_list_of_contents_are_text(message, text, thinking, stream):
    whole = {"choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}]}
    chunks = [build_delta(**message), build_delta(**{**message, "role": "assistant"}), build_delta("stop")]
    async with chat_server(respond_events(*chunks) if stream else respond_json(whole)) as server:
        *deltas, reply = await collect_parts(server, ModelOptions(stream=stream))
    times = 2 if stream else 1
    assert (reply.message.content, reply.message.thinking) == (text * times, thinking * times)
    assert "".join(delta.text for delta in deltas if type(delta) is TextDelta) == (text * times if stream else "")


async def test_a_call_cut_off_by_the_token_limit_is_marked():
    chunks = [
        build_delta(tool_calls=[{"index": 0, "id": "c", "function": {"name": "add", "arguments": '{"a'}}]),
        build_delta("length"),
    ]
    async with chat_server(respond_events(*chunks)) as server:
        reply = (await collect_parts(server, tools=(ADD,)))[-1]
    assert reply.finish == "length"
    assert [call.truncated for call in reply.message.tool_calls] == [True]


async def test_the_history_is_sent_in_the_wire_format():
    history = (
        system_message("be brief"),
        user_message("add"),
        assistant_message("", (ToolCall.from_json("c1", "add", '{"a": 1}'),), thinking="secret thought"),
        tool_message("c1", "add", "1"),
    )
    async with chat_server(build_completion("1")) as server:
        await collect_parts(server, WHOLE, (ADD,), history)
    calls = [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}]
    assert server.bodies[0]["messages"] == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "add"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "content": "1", "tool_call_id": "c1"},
    ]
    function = {"name": "add", "description": "Add.", "parameters": ADD.parameters}
    assert server.bodies[0]["tools"] == [{"type": "function", "function": function}]


@pytest.mark.parametrize("options", [WHOLE, ModelOptions()])
@pytest.mark.parametrize(
    "sent",
    [
        {"reasoning_content": "because"},
        {"reasoning": "because"},
        {"reasoning_content": "because", "reasoning": "because"},
        {"reasoning_details": [{"type": "reasoning.encrypted", "data": "c2ln"}]},
    ],
)
async def test_the_reasoning_of_a_reply_goes_back_in_its_field_to_its_model_alone(options, sent):
    if options.stream:
        call = build_delta("tool_calls", tool_calls=[{**CALL, "index": 0}])
        response = respond_events(build_delta(**sent), call)
    else:
        response = build_completion(None, [CALL], **sent)
    async with chat_server(response, build_completion("3"), build_completion("3")) as server:
        reply = (await collect_parts(server, options, (ADD,)))[-1]
        history = (user_message("add"), reply.message, tool_message("c1", "add", "3"))
        await collect_parts(server, WHOLE, (ADD,), history)
        other = OpenAICompatibleModel("other", server.url, retry_policy=QUICK)
        async with aclosing(other), aclosing(other.stream(history, (ADD,), WHOLE)) as parts:
            assert [part async for part in parts]
    assert server.bodies[1]["messages"][1] == {"role": "assistant", "content": None, "tool_calls": [CALL], **sent}
    assert server.bodies[2]["messages"][1] == {"role": "assistant", "content": None, "tool_calls": [CALL]}


async def test_streamed_details_of_reasoning_go_back_as_the_items_they_are_parts_of():
    thought = {"type": "reasoning.text", "index": 0, "format": "anthropic-claude-v1"}
    chunks = [
        build_delta(reasoning_details=[{**thought, "text": "be"}]),
        build_delta(reasoning_details=[{**thought, "text": "cause"}]),
        build_delta(reasoning_details=[{**thought, "text": None, "signature": "c2ln"}]),
        build_delta(reasoning_details=[{"type": "reasoning.encrypted", "data": "YQ", "id": "r1"}]),
        build_delta(reasoning_details=[{"type": "reasoning.encrypted", "data": "Yg", "id": "r2"}]),
        build_delta("tool_calls", tool_calls=[{**CALL, "index": 0}]),
    ]
    async with chat_server(respond_events(*chunks), build_completion("3")) as server:
        reply = (await collect_parts(server, tools=(ADD,)))[-1]
        await collect_parts(server, WHOLE, (ADD,), (user_message("add"), reply.message, tool_message("c1", "add", "3")))
    assert server.bodies[1]["messages"][1]["reasoning_details"] == [
        {**thought, "text": "because", "signature": "c2ln"},
        {"type": "reasoning.encrypted", "data": "YQ", "id": "r1"},
        {"type": "reasoning.encrypted", "data": "Yg", "id": "r2"},
    ]


@pytest.mark.parametrize("options", [WHOLE, ModelOptions()])
async def test_further_fields_of_a_call_go_back_to_their_model_alone(options):
    signature = {"extra_content": {"google": {"thought_signature": "c2ln"}}}
    if options.stream:
        first = {**CALL, "function": {"name": "add", "arguments": ""}, "index": 0, **signature}
        rest = {"index": 0, "function": {"arguments": CALL["function"]["arguments"]}, "note": None}
        upstream = respond_events(build_delta(tool_calls=[first]), build_delta(tool_calls=[rest]))
    else:
        upstream = build_completion(None, [{**CALL, **signature, "note": None}], "tool_calls")
    async with chat_server(upstream) as server:
        reply = (await collect_parts(server, options, (ADD,)))[-1]
        history = (user_message("add"), reply.message, tool_message("c1", "add", "1"))
        await collect_parts(server, options, (ADD,), history)
        other = OpenAICompatibleModel("other", server.url, retry_policy=QUICK)
        async with aclosing(other), aclosing(other.stream(history, (ADD,), options)) as parts:
            assert [part async for part in parts]
    assert server.bodies[1]["messages"][1]["tool_calls"] == [{**CALL, **signature}]
    assert server.bodies[2]["messages"][1]["tool_calls"] == [CALL]


async def test_the_items_of_another_api_are_not_sent():
    block = {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}}
    call = ToolCall.from_json("c1", "add", '{"a": 1}')
    message = Message("assistant", "", tool_calls=(call,), native=NativeReply("m", (block,)))
    async with chat_server(build_completion("1")) as server:
        await collect_parts(server, WHOLE, (ADD,), (user_message("add"), message, tool_message("c1", "add", "1")))
    assert server.bodies[0]["messages"][1]["tool_calls"] == [CALL]


@pytest.mark.parametrize(
    ("choice", "wire"),
    [
        ("none", "none"),
        ("required", "required"),
        (ForcedTool("add"), {"type": "function", "function": {"name": "add"}}),
        ("auto", None),
    ],
)
async def test_the_tool_choice_is_sent(choice, wire):
    async with chat_server(build_completion("x")) as server:
        await collect_parts(server, ModelOptions(stream=False, tool_choice=choice), (ADD,))
    assert server.bodies[0].get("tool_choice") == wire


async def test_options_are_sent():
    options = ModelOptions(
        stream=False,
        max_tokens=5,
        temperature=0.5,
        stop=("X",),
        seed=3,
        response_schema={"type": "object", "required": ["a"]},
    )
    async with chat_server(build_completion("x")) as server:
        await collect_parts(server, options, quirks=ServerQuirks(max_tokens_key="max_completion_tokens"))
    body = server.bodies[0]
    assert body.pop("response_format")["json_schema"]["schema"] == {"type": "object", "required": ["a"]}
    assert body == {
        "model": "m",
        "max_completion_tokens": 5,
        "temperature": 0.5,
        "stop": ["X"],
        "seed": 3,
        "messages": [{"role": "user", "content": "hi"}],
    }


async def test_lone_surrogates_do_not_break_a_request():
    async with chat_server(build_completion("x")) as server:
        await collect_parts(server, WHOLE, messages=(user_message("a\ud800b"),))
    assert server.bodies[0]["messages"][0]["content"] == "a?b"


async def test_a_whole_reply_may_end_inside_a_character():
    async def answer(request):
        return web.Response(
            text=r'{"choices": [{"message": {"content": "cut \ud83d"}}]}', content_type="application/json"
        )

    async with chat_server(answer) as server:
        *_, reply = await collect_parts(server, WHOLE)
    assert reply.message.content.startswith("cut ")


@pytest.mark.parametrize("size", [0, 1, 7])
async def test_a_character_split_over_two_texts_is_joined(size):
    texts = ["hi \ud83d", "\ude00 and \\ud83d", ", \ud83d", "!"]
    arguments = ['{"text": "\ud83d', "\ude00", '"}']
    deltas = [build_delta(content=text) for text in texts]
    deltas += [
        build_delta(tool_calls=[{"index": 0, "id": "a", "function": {"name": "send", "arguments": arguments[0]}}])
    ]
    deltas += [build_delta(tool_calls=[{"index": 0, "function": {"arguments": part}}]) for part in arguments[1:]]
    chunks = [json.dumps(delta).encode() for delta in [*deltas, build_delta("tool_calls")]]
    async with chat_server(respond_events(*chunks, pieces=size)) as server:
        *parts, reply = await collect_parts(server)
    text = "hi 😀 and \\ud83d, !"
    assert (reply.message.content, "".join(part.text for part in parts if isinstance(part, TextDelta))) == (text, text)
    assert reply.message.tool_calls[0].arguments == {"text": "😀"}


ERRORS = [
    (401, {"error": {"message": "Incorrect API key provided: sk-secret-key"}}, ModelRefusedKey, "refused the key"),
    (403, {"error": "forbidden"}, ModelRefusedKey, "forbidden"),
    (404, {"error": {"message": "model 'm' not found"}}, ModelNotFound, "model 'm' not found"),
    (400, {"error": {"message": "maximum context length is 5"}}, ContextFull, "context window"),
    (
        400,
        {"error": {"type": "exceed_context_size_error", "message": "request (9) exceeds the available context size"}},
        ContextFull,
        "context window",
    ),
    (400, {"error": {"message": "bad tool"}}, ModelRejected, "bad tool"),
    (422, {"detail": [{"msg": "x"}]}, ModelRejected, "refused the request"),
    (302, {}, ModelError, "redirects"),
    (500, {"error": {"message": "boom"}}, ModelUnavailable, "boom"),
    (429, {"error": {"message": "slow down"}}, ModelUnavailable, "slow down"),
]


@pytest.mark.parametrize(("status", "body", "kind", "said"), ERRORS)
@pytest.mark.parametrize("options", [WHOLE, ModelOptions()], ids=["whole", "streamed"])
async def test_server_errors_are_translated_without_the_key(status, body, kind, said, options):
    headers = {"location": "http://elsewhere/"} if status == 302 else None
    async with chat_server(respond_json(body, status, headers)) as server:
        with pytest.raises(kind) as caught:
            await collect_parts(server, options)
    assert said in str(caught.value)
    assert "sk-secret-key" not in str(caught.value)
    assert len(server.bodies) == (QUICK.max_attempts if kind is ModelUnavailable else 1)


async def test_a_wrong_path_says_what_a_base_url_looks_like():
    async with chat_server(build_completion("x")) as server:
        server.url = server.url.replace("/v1", "/nowhere")
        with pytest.raises(ModelNotFound, match="usually ends in /v1"):
            await collect_parts(server, WHOLE)


@pytest.mark.parametrize(
    "body", ["<html>hello</html>", "", "null", "[]", '{"choices": []}', '{"choices": [{"message": 5}]}']
)
async def test_an_answer_that_is_no_completion_is_refused(body):
    async with chat_server(respond_text(body, content_type="application/json")) as server:
        with pytest.raises(ModelError):
            await collect_parts(server, WHOLE)


async def test_an_error_chunk_raises():
    async with chat_server(respond_events(build_delta(content="a"), {"error": {"message": "gpu on fire"}})) as server:
        with pytest.raises(ModelRejected, match="gpu on fire"):
            await collect_parts(server)


@pytest.mark.parametrize("error", [{"type": "rate_limit_error"}, {"code": 429}, {"code": "rate_limit_exceeded"}])
async def test_a_rate_limit_in_a_stream_is_not_a_full_context(error):
    chunk = {"error": {"message": "Too many tokens, please wait.", **error}}
    async with chat_server(respond_events(chunk)) as server:
        with pytest.raises(ModelUnavailable) as caught:
            await collect_parts(server)
    assert caught.value.status == 429


@pytest.mark.parametrize(("done", "finish"), [(True, "tool_calls"), (False, "incomplete")])
async def test_the_end_marker_alone_ends_a_reply(done, finish):
    call = {"index": 0, "id": "a", "function": {"name": "add", "arguments": '{"a": 1}'}}
    async with chat_server(respond_events(build_delta(tool_calls=[call]), done=done)) as server:
        reply = (await collect_parts(server))[-1]
    assert (reply.finish, [call.arguments for call in reply.message.tool_calls]) == (finish, [{"a": 1}])


@pytest.mark.parametrize(
    "chunk",
    [
        {"choices": [None]},
        {"choices": {}, "usage": 3},
        {"choices": [{"delta": {"tool_calls": [None]}}]},
        {"choices": [{"delta": {"content": 5}}]},
    ],
)
async def test_a_malformed_chunk_is_an_error_of_the_model(chunk):
    async with chat_server(respond_events(build_delta(content="a"), chunk)) as server:
        with pytest.raises(ModelError, match="malformed event"):
            await collect_parts(server)


async def test_a_stream_that_breaks_off_is_unavailable():
    async with chat_server(respond_events(build_delta(content="a"), done=False, then_cut=True)) as server:
        with pytest.raises(ModelUnavailable):
            await collect_parts(server)


async def test_a_json_answer_to_a_streamed_request_is_read():
    async with chat_server(build_completion("whole")) as server:
        got = await collect_parts(server)
    assert got[-1].message == assistant_message("whole")


async def test_an_unreachable_server_is_reported_with_its_address():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        model = OpenAICompatibleModel("m", f"http://127.0.0.1:{taken.getsockname()[1]}/v1", retry_policy=QUICK)
        with pytest.raises(ModelUnavailable, match=r"Cannot reach .*127\.0\.0\.1"):
            [part async for part in model.stream((user_message("hi"),))]
        await model.aclose()


async def test_a_silent_server_is_not_waited_for_forever():
    async def silent(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(30)
        return web.Response()

    async with chat_server(silent) as server:
        model = OpenAICompatibleModel(
            "m", server.url, retry_policy=RetryPolicy(max_attempts=1, read_timeout_seconds=0.1)
        )
        with pytest.raises(ModelUnavailable, match="did not answer in time"):
            [part async for part in model.stream((user_message("hi"),))]
        await model.aclose()


async def test_an_overloaded_server_is_asked_again_after_the_time_it_names():
    busy = respond_json({"error": {"message": "busy"}}, 429, {"retry-after": "0.2"})
    async with chat_server(busy, respond_json({}, 503), build_completion("at last")) as server:
        started = asyncio.get_running_loop().time()
        [reply] = await collect_parts(server, WHOLE)
    assert reply.message.content == "at last"
    assert len(server.bodies) == 3
    assert asyncio.get_running_loop().time() - started >= 0.2


async def test_a_server_that_forbids_it_is_not_asked_again():
    async with chat_server(respond_json({"error": {"message": "No."}}, 503, {"x-should-retry": "false"})) as server:
        with pytest.raises(ModelUnavailable):
            await collect_parts(server, WHOLE)
    assert len(server.bodies) == 1


async def test_a_wait_beyond_the_maximum_is_refused():
    async with chat_server(respond_json({"error": {"message": "busy"}}, 429, {"retry-after": "3600"})) as server:
        with pytest.raises(ModelUnavailable, match="asks to wait 3600 s"):
            await collect_parts(server, WHOLE)
    assert len(server.bodies) == 1


async def test_leaving_a_stream_closes_the_connection():
    gone = asyncio.Event()

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        try:
            while True:
                await response.write(b'data: {"choices":[{"delta":{"content":"x"}}]}\n\n')
                await asyncio.sleep(0.01)
        except (ConnectionError, asyncio.CancelledError):
            gone.set()
            raise

    async with chat_server(endless) as server:
        model = OpenAICompatibleModel("m", server.url)
        stream = model.stream((user_message("hi"),))
        assert await anext(stream) == TextDelta("x")
        await stream.aclose()
        await asyncio.wait_for(gone.wait(), 2)
        await model.aclose()


async def test_a_message_is_serialised_once():
    said = user_message("hi")
    async with chat_server(build_completion("x")) as server:
        await collect_parts(server, WHOLE, messages=(said,))
        encoded = said._wire_cache["chat m"]
        await collect_parts(server, WHOLE, messages=(said,))
    assert said._wire_cache["chat m"] is encoded


def test_every_model_error_is_caught_as_one():
    assert all(issubclass(kind, ModelError) for _, _, kind, _ in ERRORS)


async def test_images_are_sent_as_parts_and_those_of_results_after_the_results():
    pixel = ImagePart("", b"\x89PNG\r\n\x1a\n", "image/png", "low")
    call = ToolCall("c1", "shot", {})
    messages = [
        user_message("see", (TextPart("see"), pixel, FilePart("", b"%PDF-", "application/pdf", "a.pdf"))),
        assistant_message("", (call,)),
        tool_message("c1", "shot", "done", (TextPart("done"), pixel)),
    ]
    async with chat_server(build_completion("hi")) as server:
        model = OpenAICompatibleModel("m", server.url)
        async for _ in model.stream(messages, (), ModelOptions(stream=False)):
            pass
        await model.aclose()
    url = "data:image/png;base64,iVBORw0KGgo="
    image = {"type": "image_url", "image_url": {"url": url, "detail": "low"}}
    document = {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}}
    sent = server.bodies[0]["messages"]
    assert sent[0]["content"] == [{"type": "text", "text": "see"}, image, document]
    assert sent[2] == {"role": "tool", "content": "done", "tool_call_id": "c1"}
    assert sent[3] == {"role": "user", "content": [{"type": "text", "text": "[Result of shot]"}, image]}
