"""The client of the responses API against a real server on loopback, and against the gateway."""

from typing import Any

import pytest
from anthropic import AsyncAnthropic
from openai.types.responses.response_create_params import ResponseCreateParams
from pydantic import TypeAdapter
from tests.models.chat_server import chat_server, respond_json
from tests.models.responses_server import (
    build_events,
    build_response,
    call_item,
    message_item,
    number_events,
    reasoning_item,
    respond_response,
    respond_response_events,
)
from tests.web.serving import serve_models

from opposable import Agent
from opposable.agent.limits import Limits
from opposable.domain.content import FilePart, ImagePart, TextPart
from opposable.domain.errors import ContextFull, ModelError, ModelRejected, ModelUnavailable
from opposable.domain.events import CallDelta, Reply, TextDelta, ThinkingDelta
from opposable.domain.json_forms import message_from_json, message_to_json
from opposable.domain.messages import (
    Message,
    NativeReply,
    assistant_message,
    system_message,
    tool_message,
    user_message,
)
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.domain.usage import Price, Usage
from opposable.models.base import ForcedTool, ModelOptions
from opposable.models.http_client import RetryPolicy
from opposable.models.openai_responses import OpenAIResponsesModel
from opposable.models.scripted import ScriptedModel
from opposable.models.text_protocol import TextProtocolModel

pytestmark = pytest.mark.anyio

REQUEST: TypeAdapter[Any] = TypeAdapter(ResponseCreateParams)
WHOLE, STREAMED = ModelOptions(stream=False), ModelOptions()
BOTH = pytest.mark.parametrize("options", [WHOLE, STREAMED], ids=["whole", "streamed"])
QUICK = RetryPolicy(initial_wait_seconds=0.01, read_timeout_seconds=2.0, connect_timeout_seconds=1.0)
ADD = ToolDefinition("add", "Add.", {"type": "object", "properties": {"a": {"type": "integer"}}})
CALL = ToolCall.from_json("c1", "add", '{"a": 1}')
USAGE = Usage(20, 30, 1, cached_tokens=8, reasoning_tokens=25)


def connect(server, **more) -> OpenAIResponsesModel:
    return OpenAIResponsesModel("gpt-5", server.url, "sk-secret-key", retry_policy=QUICK, **more)


async def collect_parts(server, options=STREAMED, tools=(), messages=(user_message("hi"),), **more):
    model = connect(server, **more)
    try:
        return [part async for part in model.stream(messages, tools, options)]
    finally:
        await model.aclose()
        for body in server.bodies:
            REQUEST.validate_python(body)


@BOTH
async def test_a_reply_has_text_reasoning_calls_and_usage(options):
    items = (reasoning_item("key", "First.", "Then."), message_item("Let me add."), call_item("c1", '{"a": 1}'))
    async with chat_server(respond_response(*items)) as server:
        parts = await collect_parts(server, options, (ADD,))
    message = Message(
        "assistant", "Let me add.", (CALL,), thinking="First.\n\nThen.", native=NativeReply("gpt-5", items, "responses")
    )
    assert parts[-1] == Reply(message, "tool_calls", USAGE)
    deltas = [ThinkingDelta("First."), ThinkingDelta("\n\n"), ThinkingDelta("Then.")]
    deltas += [TextDelta("Let me"), TextDelta(" add."), CallDelta(0, "c1", "add")]
    deltas += [CallDelta(0, arguments='{"a"'), CallDelta(0, arguments=": 1}")]
    assert parts[:-1] == ([] if options is WHOLE else deltas)
    assert server.headers[0]["Authorization"] == "Bearer sk-secret-key"


@BOTH
async def test_the_request_stores_nothing_and_asks_for_encrypted_reasoning(options):
    messages = (system_message("Be brief."), user_message("hi"))
    settings = ModelOptions(
        options.stream, ForcedTool("add"), 99, extra_body={"reasoning_effort": "low", "verbosity": "low", "top_p": 0.9}
    )
    async with chat_server(respond_response(message_item("hello"))) as server:
        await collect_parts(server, settings, (ADD,), messages)
    function = {"name": "add", "description": "Add.", "parameters": ADD.parameters, "strict": False}
    assert server.bodies[0] == {
        "model": "gpt-5",
        "store": False,
        "include": ["reasoning.encrypted_content"],
        **({"stream": True} if options.stream else {}),
        "max_output_tokens": 99,
        "reasoning": {"effort": "low"},
        "text": {"verbosity": "low"},
        "top_p": 0.9,
        "tools": [{"type": "function", **function}],
        "tool_choice": {"type": "function", "name": "add"},
        "input": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
    }


async def test_a_schema_is_sent_as_the_format_of_the_text():
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    async with chat_server(respond_response(message_item("{}"))) as server:
        await collect_parts(server, ModelOptions(response_schema=schema), reasoning=False)
    assert server.bodies[0]["text"] == {
        "format": {"type": "json_schema", "name": "reply", "schema": schema, "strict": True}
    }
    assert "include" not in server.bodies[0]


@pytest.mark.parametrize("is_stored", [False, True])
async def test_reasoning_is_passed_back_to_its_model_only(is_stored):
    items = (reasoning_item(), call_item("c1", '{"a": 1}'), reasoning_item("more"), call_item("c2", "{}"))
    async with chat_server(respond_response(*items), respond_response(message_item("1"))) as server:
        message = (await collect_parts(server, WHOLE, (ADD,)))[-1].message
        if is_stored:
            message = message_from_json(message_to_json(message, include_parsing=True))
            assert "native" not in message_to_json(message)
        history = (user_message("hi"), message, tool_message("c1", "add", "1"), tool_message("c2", "add", "2"))
        await collect_parts(server, WHOLE, (ADD,), history)
        other = OpenAIResponsesModel("o3", server.url)
        [part async for part in other.stream(history, (ADD,), WHOLE)]
        await other.aclose()
    outputs = [
        {"type": "function_call_output", "call_id": "c1", "output": "1"},
        {"type": "function_call_output", "call_id": "c2", "output": "2"},
    ]
    assert server.bodies[1]["input"][1:] == [*items, *outputs]
    assert [item["type"] for item in server.bodies[2]["input"][1:]] == ["function_call"] * 2 + [
        "function_call_output"
    ] * 2


async def test_a_reply_whose_calls_were_changed_is_sent_without_its_reasoning():
    native = NativeReply("gpt-5", (reasoning_item(), call_item("c1", "{}"), call_item("c2", "{}")))
    message = Message("assistant", "So:", (CALL,), native=native)
    async with chat_server(respond_response(message_item("1"))) as server:
        await collect_parts(server, WHOLE, (ADD,), (user_message("hi"), message, tool_message("c1", "add", "1")))
    call = {"type": "function_call", "call_id": "c1", "name": "add", "arguments": '{"a": 1}'}
    assert server.bodies[0]["input"][1:3] == [{"role": "assistant", "content": "So:"}, call]


HOSTED = {"type": "mcp_call", "id": "m1", "name": "roll", "server_label": "dice", "arguments": "{}", "output": "6"}


@BOTH
@pytest.mark.parametrize("item", [HOSTED, {**message_item("I add."), "phase": "commentary"}])
async def test_what_the_servers_tools_did_and_the_phase_of_a_text_are_sent_back_without_reasoning_too(options, item):
    answers = respond_response(item, call_item("c1", '{"a": 1}')), respond_response(message_item("1"))
    async with chat_server(*answers) as server:
        message = (await collect_parts(server, options, (ADD,)))[-1].message
        await collect_parts(server, WHOLE, (ADD,), (user_message("hi"), message, tool_message("c1", "add", "1")))
    assert server.bodies[1]["input"][1:3] == [item, call_item("c1", '{"a": 1}')]


@BOTH
@pytest.mark.parametrize(
    "items",
    [
        [message_item("First:"), call_item("c1", '{"a": 1}'), message_item("Second:"), call_item("c2", "{}")],
        [call_item("c1", '{"a": 1}'), message_item("That was it.")],
        [message_item("One."), message_item("Two."), call_item("c1", '{"a": 1}')],
    ],
)
async def test_texts_after_a_call_are_sent_back_after_it(options, items):
    async with chat_server(respond_response(*items), respond_response(message_item("1"))) as server:
        message = (await collect_parts(server, options, (ADD,)))[-1].message
        results = [tool_message(call.id, "add", "1") for call in message.tool_calls]
        await collect_parts(server, WHOLE, (ADD,), (user_message("hi"), message, *results))
    assert server.bodies[1]["input"][1 : 1 + len(items)] == items


async def test_a_reply_with_a_call_that_gets_no_result_is_sent_as_its_text():
    shell = {"type": "shell_call", "id": "s1", "call_id": "s", "action": {"commands": ["ls"]}, "status": "completed"}
    output = {"type": "shell_call_output", "id": "o1", "call_id": "s", "output": [], "status": "completed"}
    custom = {"type": "custom_tool_call", "id": "x1", "call_id": "x", "name": "draw", "input": "circle"}
    async with chat_server(respond_response(message_item("1"))) as server:
        for items in ([shell, output], [custom]):
            message = Message("assistant", "So:", native=NativeReply("gpt-5", (reasoning_item(), *items)))
            await collect_parts(server, WHOLE, (), (user_message("hi"), message))
    assert server.bodies[0]["input"][1:] == [reasoning_item(), shell, output]
    assert server.bodies[1]["input"][1:] == [{"role": "assistant", "content": "So:"}]


async def test_a_reply_of_a_model_of_the_same_name_in_another_api_is_sent_as_its_text():
    native = NativeReply("gpt-5", ({"type": "reply", "reasoning_content": "hm"},), "chat")
    async with chat_server(respond_response(message_item("1"))) as server:
        await collect_parts(server, WHOLE, (), (user_message("hi"), Message("assistant", "Hello.", native=native)))
    assert server.bodies[0]["input"][1:] == [{"role": "assistant", "content": "Hello."}]


@BOTH
@pytest.mark.parametrize("hosted", [[], [HOSTED]])
async def test_reasoning_that_only_the_server_could_read_is_not_sent_back(options, hosted):
    async with chat_server(respond_response(reasoning_item(None, "Hm."), *hosted, message_item("1"))) as server:
        assert (await collect_parts(server, options))[-1].message == assistant_message("1", thinking="Hm.")


@BOTH
@pytest.mark.parametrize(
    ("reason", "finish"),
    [("max_output_tokens", "length"), ("content_filter", "content_filter"), ("steered", "incomplete")],
)
async def test_a_reply_that_was_cut_has_no_call_to_run(options, reason, finish):
    items = (reasoning_item(), call_item("c1", '{"a": 1}'), call_item("c2", '{"a', "incomplete"))
    cut = respond_response(*items, status="incomplete", incomplete_details={"reason": reason})
    ran = []

    def add(a: int) -> None:
        """Add."""
        ran.append(a)

    async with chat_server(cut) as server:
        reply = (await collect_parts(server, options, (ADD,)))[-1]
        async with Agent(connect(server), [add], limits=Limits(turns=1)) as agent:
            await agent.run("hi")
    assert (reply.finish, [call.truncated for call in reply.message.tool_calls]) == (finish, [False, True])
    assert reply.message.native is None
    assert ran == []


@pytest.mark.parametrize("length", [3, 4, 7, 8, 9])
async def test_a_stream_without_its_end_is_incomplete(length):
    items = (message_item("Let me add."), call_item("c1", '{"a": 1}'))
    events = build_events(build_response(*items))[:length]
    async with chat_server(respond_response_events(events)) as server:
        parts = await collect_parts(server, tools=(ADD,))
    assert parts[-1].finish == "incomplete"
    text = "".join(part.text for part in parts if type(part) is TextDelta)
    assert (parts[-1].message.content, text) == ("Let me" if length == 3 else "Let me add.",) * 2
    assert [call.truncated for call in parts[-1].message.tool_calls] == ([] if length < 7 else [length < 9])


FAILURES = [
    ("server_error", "on fire", ModelUnavailable),
    ("rate_limit_exceeded", "slow down", ModelUnavailable),
    ("invalid_prompt", "refused", ModelRejected),
    ("invalid_prompt", "Your input exceeds the context window of this model.", ContextFull),
]


@BOTH
@pytest.mark.parametrize(("code", "message", "kind"), FAILURES)
async def test_a_failed_response_raises(options, code, message, kind):
    failed = respond_response(status="failed", error={"code": code, "message": f"{message} sk-secret-key"})
    async with chat_server(failed) as server:
        with pytest.raises(kind, match=r"\*\*\*"):
            await collect_parts(server, options)


async def test_an_error_event_raises():
    event = {"type": "error", "code": "server_error", "message": "away", "param": None}
    async with chat_server(respond_response_events(number_events([event]))) as server:
        with pytest.raises(ModelUnavailable, match="away"):
            await collect_parts(server)


@pytest.mark.parametrize("body", [{}, {"output": 3}, {"output": [{"type": "message"}]}, [], {"output": [None]}])
async def test_what_is_no_response_is_rejected(body):
    async with chat_server(respond_json(body)) as server:
        with pytest.raises(ModelError, match="sent no response"):
            await collect_parts(server, WHOLE)


async def test_a_malformed_event_is_rejected():
    broken = {"type": "response.function_call_arguments.delta", "output_index": 7, "delta": "{"}
    async with chat_server(respond_response_events([broken])) as server:
        with pytest.raises(ModelError, match="malformed event"):
            await collect_parts(server)


async def test_a_refusal_is_the_text():
    refusal = {**message_item(""), "content": [{"type": "refusal", "refusal": "I cannot help with that."}]}
    async with chat_server(respond_response(refusal)) as server:
        assert (await collect_parts(server, WHOLE))[-1].message.content == "I cannot help with that."


async def test_images_and_files_are_sent_also_in_results():
    image = ImagePart("", b"\x89PNG\r\n\x1a\n", "image/png", "low")
    files = (FilePart("", b"%PDF", "application/pdf", "a.pdf"), FilePart("https://a.example/b.pdf"))
    messages = (
        user_message("see", (TextPart("see"), image, *files)),
        assistant_message("", (CALL,)),
        tool_message("c1", "add", "chart", (TextPart("chart"), image)),
    )
    async with chat_server(respond_response(message_item("1"))) as server:
        await collect_parts(server, WHOLE, messages=messages)
    url = "data:image/png;base64,iVBORw0KGgo="
    sent = {"type": "input_image", "image_url": url, "detail": "low"}
    assert server.bodies[0]["input"][0]["content"] == [
        {"type": "input_text", "text": "see"},
        sent,
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="},
        {"type": "input_file", "file_url": "https://a.example/b.pdf"},
    ]
    assert server.bodies[0]["input"][2]["output"] == [{"type": "input_text", "text": "chart"}, sent]


async def test_an_agent_works_through_its_tools_within_its_budget():
    """Two calls one after the other, their reasoning sent back each time, and the price of all tokens."""

    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    first = (reasoning_item("one"), call_item("c1", '{"a": 5, "b": 7}'))
    second = (reasoning_item("two"), call_item("c2", '{"a": 12, "b": 1}'))
    script = [respond_response(*first), respond_response(*second), respond_response(message_item("It is 13."))]
    async with chat_server(*script) as server:
        async with Agent(connect(server), [add], limits=Limits(cost=1.0, price=Price(1.0, 2.0))) as agent:
            end = await agent.run("What is 5 + 7 + 1?")
        async with Agent(connect(server), [add], limits=Limits(tokens=40)) as agent:
            bounded = await agent.run("What is 5 + 7 + 1?")
    assert (end.text, end.tool_calls, end.usage) == ("It is 13.", 2, USAGE + USAGE + USAGE)
    assert end.cost == pytest.approx((60 * 1.0 + 90 * 2.0) / 1_000_000)
    reasoning = [
        [i["encrypted_content"] for i in body["input"] if i.get("type") == "reasoning"] for body in server.bodies
    ]
    assert reasoning[:3] == [[], ["one"], ["one", "two"]]
    assert bounded.usage.total_tokens <= 50


@BOTH
async def test_the_gateway_serves_the_client_with_a_model_that_writes_its_calls_as_text(options):
    call = '<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>'
    upstream = ScriptedModel(call, "It is 1.")
    async with serve_models(TextProtocolModel(upstream)) as url:
        model = OpenAIResponsesModel("m", url, retry_policy=QUICK)
        reply = [part async for part in model.stream((user_message("add"),), (ADD,), options)][-1]
        assert [(made.name, made.arguments) for made in reply.message.tool_calls] == [("add", {"a": 1})]
        result = tool_message(reply.message.tool_calls[0].id, "add", "1")
        history = (user_message("add"), reply.message, result)
        end = [part async for part in model.stream(history, (ADD,), options)][-1]
        await model.aclose()
    assert (end.message.content, end.finish) == ("It is 1.", "stop")
    assert upstream.requests[1].messages[-1].content == "1"


async def test_the_gateway_passes_messages_of_other_apis_through_the_client():
    upstream = respond_response(reasoning_item(), call_item("c1", '{"a": 1}'))
    async with (
        chat_server(upstream) as server,
        serve_models(connect(server)) as url,
        AsyncAnthropic(base_url=url.removesuffix("/v1"), api_key="none") as sdk,
    ):
        tool = {"name": "add", "description": "Add.", "input_schema": ADD.parameters}
        asked = [{"role": "user", "content": "hi"}]
        message = await sdk.messages.create(model="m", max_tokens=99, messages=asked, tools=[tool])
    assert (message.content[0].name, message.content[0].input) == ("add", {"a": 1})
    assert server.bodies[0]["max_output_tokens"] == 99
