"""Responses of OpenAI's API over any model."""

import openai
import orjson
import pytest
from tests.models.chat_server import build_completion, chat_server, respond_events, respond_json
from tests.web.api.chat_serving import create_settings
from tests.web.gateway.test_relay import post
from tests.web.serving import serve_app, serve_models

from opposable.domain.content import FilePart, ImagePart, TextPart
from opposable.domain.errors import ModelUnavailable
from opposable.domain.events import Reply, TextDelta
from opposable.domain.messages import assistant_message, system_message, tool_message, user_message
from opposable.domain.tools import ToolCall
from opposable.domain.usage import Usage
from opposable.models.base import ForcedTool, ModelOptions
from opposable.models.openai_compatible import CHAT_APIS, OpenAICompatibleModel, ServerQuirks
from opposable.models.scripted import ScriptedModel, reply_with_calls, tool_call
from opposable.service.service import open_service
from opposable.web.gateway.responses_request import parse_response_request
from opposable.web.openai_errors import GatewayError
from opposable.web.server import create_app

pytestmark = pytest.mark.anyio

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
ADD = {"type": "function", "name": "add", "description": "Add.", "parameters": SCHEMA, "strict": True}
PATCH = {
    "type": "custom",
    "name": "patch",
    "description": "Patch a file.",
    "format": {"type": "grammar", "syntax": "lark", "definition": "start: X"},
}


def parse(**body):
    return parse_response_request({"model": "m", "input": "hi", **body})


def test_every_kind_of_item_is_parsed():
    request = parse(
        instructions="be kind",
        input=[
            {"role": "developer", "content": "short"},
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "see"},
                    {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo=", "detail": "low"},
                ],
            },
            {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "hm"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I add."}]},
            {"type": "function_call", "call_id": "c1", "name": "add", "arguments": '{"a": 1}'},
            {"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": "x"},
            {"type": "function_call_output", "call_id": "c1", "output": "2"},
            {"type": "custom_tool_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "done"}]},
        ],
        tools=[ADD, PATCH],
        tool_choice={"type": "function", "name": "add"},
        parallel_tool_calls=False,
        max_output_tokens=9,
        temperature=0.5,
        top_p=0.5,
        text={"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}},
        reasoning={"effort": "low"},
        include=["reasoning.encrypted_content"],
        store=False,
    )
    image = ImagePart("", b"\x89PNG\r\n\x1a\n", "image/png", "low")
    calls = (ToolCall.from_json("c1", "add", '{"a": 1}'), ToolCall.from_json("c2", "patch", '{"input":"x"}'))
    assert request.completion.messages == (
        system_message("be kind"),
        system_message("short"),
        user_message("see", (TextPart("see"), image)),
        assistant_message("I add.", calls, "hm"),
        tool_message("c1", "add", "2"),
        tool_message("c2", "patch", "done"),
    )
    assert request.completion.options == ModelOptions(
        stream=False, tool_choice=ForcedTool("add"), max_tokens=9, temperature=0.5, response_schema=SCHEMA
    )
    assert (request.completion.single_call_only, request.completion.extra) == (True, {"top_p": 0.5})
    assert (request.custom_tools, request.is_stored) == ({"patch"}, False)
    assert "start: X" in request.completion.tools[1].description


REFUSED = {
    "no input": ({"input": None}, "input"),
    "an item that is none": ({"input": [3]}, "input[0]"),
    "an unknown item": ({"input": [{"type": "computer_call"}]}, "input[0]"),
    "an unknown role": ({"input": [{"role": "root", "content": "a"}]}, "input[0].role"),
    "an unknown part": ({"input": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "input[0].content[0]"),
    "a call without a name": ({"input": [{"type": "function_call", "call_id": "a"}]}, "input[0]"),
    "a result without an id": ({"input": [{"type": "function_call_output", "output": "a"}]}, "input[0].call_id"),
    "a tool of the server": ({"tools": [{"type": "web_search"}]}, "tools[0]"),
    "in the background": ({"background": True}, "background"),
    "a stored conversation": ({"conversation": "conv_1"}, "conversation"),
    "an unknown format": ({"text": {"format": {"type": "xml"}}}, "text.format"),
    "a previous response that is no text": ({"previous_response_id": 3}, "previous_response_id"),
}


@pytest.mark.parametrize(("body", "param"), REFUSED.values(), ids=REFUSED)
def test_invalid_parameters_are_reported_with_their_path(body, param):
    with pytest.raises(GatewayError) as caught:
        parse(**body)
    assert (caught.value.status, caught.value.body["error"]["param"]) == (400, param)


@pytest.mark.parametrize("stream", [False, True])
async def test_text_reasoning_and_calls_become_items(stream):
    calls = (tool_call("add", '{"a": 1}'), tool_call("patch", '{"input": "x"}'))
    model = ScriptedModel(Reply(assistant_message("I add.", calls, "hm"), "tool_calls", Usage(10, 5, 1)))
    options = {"model": "m", "input": "hi", "tools": [ADD, PATCH], "instructions": "be kind"}
    async with serve_models(model) as url, openai.AsyncOpenAI(base_url=url, api_key="none") as sdk:
        if stream:
            async with sdk.responses.stream(**options) as events:
                said = await events.get_final_response()
        else:
            said = await sdk.responses.create(**options)
    thought, message, call, custom = said.output
    assert (thought.summary[0].text, message.content[0].text) == ("hm", "I add.")
    assert (call.type, call.call_id, call.name, call.arguments) == ("function_call", "call_add", "add", '{"a": 1}')
    assert (custom.type, custom.name, custom.input) == ("custom_tool_call", "patch", "x")
    assert (said.status, said.model, said.instructions, said.output_text) == ("completed", "m", "be kind", "I add.")
    assert (said.usage.input_tokens, said.usage.total_tokens) == (10, 15)


async def test_tools_of_a_namespace_are_called_by_their_names_in_it():
    tool = {"type": "namespace", "name": "crm", "description": "Customers.", "tools": [ADD]}
    model = ScriptedModel(reply_with_calls(tool_call("crm__add", '{"a": 1}')), "done")
    async with serve_models(model) as url, openai.AsyncOpenAI(base_url=url, api_key="none") as sdk:
        said = await sdk.responses.create(model="m", input="hi", tools=[tool])
        [call] = said.output
        assert (call.namespace, call.name) == ("crm", "add")
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "2"}
        await sdk.responses.create(model="m", input=[{"role": "user", "content": "hi"}, call, result], tools=[tool])
    assert model.requests[1].messages[-1] == tool_message("call_crm__add", "crm__add", "2")


async def test_long_names_of_a_namespace_stay_apart():
    names = [f"search_calendar_events_by_attendee_and_{last}" for last in ("date", "location")]
    namespace = {"type": "namespace", "name": "mcp__codex_apps__google_calendar", "description": "Events."}
    tool = {**namespace, "tools": [{**ADD, "name": name} for name in names]}
    model = ScriptedModel(lambda messages: reply_with_calls(tool_call(model.requests[-1].tools[1].name, '{"a": 1}')))
    async with serve_models(model) as url, openai.AsyncOpenAI(base_url=url, api_key="none") as sdk:
        [call] = (await sdk.responses.create(model="m", input="hi", tools=[tool])).output
        assert (call.namespace, call.name) == (namespace["name"], names[1])
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "2"}
        await sdk.responses.create(model="m", input=[{"role": "user", "content": "hi"}, call, result], tools=[tool])
    sent = [definition.name for definition in model.requests[1].tools]
    assert len(set(sent)) == 2
    assert max(map(len, sent)) <= 64
    assert model.requests[1].messages[1].tool_calls[0].name == sent[1]


async def test_the_events_of_a_stream_are_numbered_and_in_order():
    model = ScriptedModel(reply_with_calls(tool_call("add", '{"a": 1}'), text="I add."))
    async with serve_models(model) as url:
        _, raw, _ = await post(url, {"input": "hi", "tools": [ADD], "stream": True}, "responses")
    events = [orjson.loads(frame.partition(b"data: ")[2]) for frame in raw.split(b"\n\n") if frame]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert [event["type"].removeprefix("response.") for event in events] == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]
    assert len({event["response"]["id"] for event in events if "response" in event}) == 1


async def test_a_reply_that_was_cut_off_is_incomplete():
    async with serve_models(ScriptedModel(Reply(assistant_message("a"), "length"))) as url:
        _, raw, _ = await post(url, {"input": "hi"}, "responses")
    response = orjson.loads(raw)
    assert (response["status"], response["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})


async def test_an_error_in_a_stream_is_a_failed_response():
    class BreakingModel(ScriptedModel):
        async def stream(self, messages, tools=(), options=None):
            yield TextDelta("a")
            raise ModelUnavailable("away")

    async with serve_models(BreakingModel("")) as url:
        _, raw, _ = await post(url, {"input": "hi", "stream": True}, "responses")
    last = orjson.loads(raw.split(b"\n\n")[-2].partition(b"data: ")[2])
    assert (last["type"], last["response"]["error"]["message"]) == ("response.failed", "away")


async def check_continuation(url, model):
    async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as sdk:
        first = await sdk.responses.create(model="m", input="one", instructions="be kind")
        async with sdk.responses.stream(model="m", input="two", previous_response_id=first.id) as events:
            second = await events.get_final_response()
        assert second.previous_response_id == first.id
        await sdk.responses.create(model="m", input="three", previous_response_id=second.id, store=False)
        assert model.requests[-1].messages == (
            user_message("one"),
            assistant_message("a"),
            user_message("two"),
            assistant_message("b"),
            user_message("three"),
        )
        await sdk.responses.delete(second.id)
        with pytest.raises(openai.NotFoundError, match="There is no response"):
            await sdk.responses.create(model="m", input="four", previous_response_id=second.id)


async def test_a_response_continues_an_earlier_one():
    model = ScriptedModel("a", "b", "c")
    async with serve_models(model) as url:
        await check_continuation(url, model)


async def test_a_result_after_an_earlier_response_has_the_name_of_its_tool():
    model = ScriptedModel(reply_with_calls(tool_call("add", '{"a": 1}', "c1")), "done")
    async with (
        serve_models(model) as url,
        openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as sdk,
    ):
        first = await sdk.responses.create(model="m", input="one", tools=[ADD])
        [call] = first.output
        output = {"type": "function_call_output", "call_id": call.call_id, "output": "2"}
        await sdk.responses.create(model="m", input=[output], tools=[ADD], previous_response_id=first.id)
    last = model.requests[-1].messages[-1]
    assert (last.role, last.name, last.content) == ("tool", "add", "2")


async def test_a_response_continues_an_earlier_one_over_the_store(tmp_path):
    model = ScriptedModel("a", "b", "c")
    async with (
        open_service(create_settings(tmp_path), {"m": model}) as service,
        serve_app(create_app(service)) as url,
    ):
        await check_continuation(f"{url}/v1", model)


async def test_agents_are_models_with_their_own_tools(tmp_path):
    model = ScriptedModel(
        reply_with_calls(tool_call("calculator", '{"expression": "25*4"}'), text="I compute."),
        lambda messages: f"It is {messages[-1].content}.",
    )
    async with (
        open_service(create_settings(tmp_path), {"m": model}) as service,
        serve_app(create_app(service)) as url,
        openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as sdk,
    ):
        assert "agent/default" in [entry.id async for entry in sdk.models.list()]
        history = [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": "hi"},
            {"role": "user", "content": "25 * 4?"},
        ]
        said = await sdk.chat.completions.create(model="agent/default", messages=history)
        assert "100" in said.choices[0].message.content
        assert [message.content for message in model.requests[0].messages[1:]] == ["hello", "hi", "25 * 4?"]
        stream = await sdk.chat.completions.create(model="agent/default", messages=history, stream=True)
        text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])
        assert text == "It is 25 * 4?."
        tool = {"type": "function", "function": {"name": "add", "parameters": SCHEMA}}
        with pytest.raises(openai.BadRequestError, match="uses its own tools"):
            await sdk.chat.completions.create(model="agent/default", messages=history, tools=[tool])
        with pytest.raises(openai.NotFoundError, match="There is no model 'agent/none'"):
            await sdk.chat.completions.create(model="agent/none", messages=history)


@pytest.mark.parametrize("path", ["embeddings", "completions", "responses"])
async def test_other_apis_are_relayed_where_the_server_has_them(path):
    reply = {"object": "any", "usage": {"prompt_tokens": 3}}
    body = {"input": "a", "prompt": "a", "made_up": {"a": None}}
    async with chat_server(respond_json(reply)) as server:
        model = OpenAICompatibleModel("upstream", server.url, quirks=ServerQuirks(apis=CHAT_APIS | {"responses"}))
        async with serve_models(model) as url:
            assert (await post(url, body, path))[:2] == (200, orjson.dumps(reply))
    assert server.bodies == [{**body, "model": "upstream"}]


async def test_a_relayed_response_streams_byte_by_byte():
    events = [{"type": "response.created", "response": {}}, {"type": "response.completed", "response": {"usage": {}}}]
    async with chat_server(respond_events(*events, done=False)) as server:
        model = OpenAICompatibleModel("upstream", server.url, quirks=ServerQuirks(apis=CHAT_APIS | {"responses"}))
        async with serve_models(model) as url:
            _, raw, _ = await post(url, {"input": "a", "stream": True}, "responses")
    assert raw == b"".join(b"data: " + orjson.dumps(event) + b"\n\n" for event in events)


RESPONSE_CALL = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "add", "arguments": '{"a": 1'}
RESPONSE_TEXT = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}


def build_response_events(status):
    response = {"id": "r", "status": status, "output": [RESPONSE_CALL, RESPONSE_TEXT]}
    return [
        {"type": "response.created", "response": {"id": "r", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": RESPONSE_CALL},
        {"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "fc_1", "delta": "{"},
        {"type": "response.output_item.done", "output_index": 0, "item": RESPONSE_CALL},
        {"type": "response.output_item.added", "output_index": 1, "item": RESPONSE_TEXT},
        {"type": f"response.{status}", "response": response},
    ]


@pytest.mark.parametrize("status", ["completed", "incomplete", "failed"])
@pytest.mark.parametrize("stream", [False, True])
async def test_the_calls_of_a_relayed_response_that_was_cut_off_are_not_handed_out(status, stream):
    events = build_response_events(status)
    upstream = respond_events(*events, done=False) if stream else respond_json(events[-1]["response"])
    async with chat_server(upstream) as server:
        model = OpenAICompatibleModel("upstream", server.url, quirks=ServerQuirks(apis=CHAT_APIS | {"responses"}))
        async with serve_models(model) as url:
            _, raw, _ = await post(url, {"input": "a", "stream": stream}, "responses")
    sent = [orjson.loads(line[6:]) for line in raw.split(b"\n") if line.startswith(b"data: ")]
    cut_off = {"id": "r", "status": status, "output": [RESPONSE_TEXT]}
    if status == "completed":
        assert sent == events if stream else raw == orjson.dumps(events[-1]["response"])
    elif stream:
        assert sent == [events[0], {**events[4], "output_index": 0}, {**events[5], "response": cut_off}]
    else:
        assert orjson.loads(raw) == cut_off


async def test_a_model_without_a_server_has_no_embeddings():
    async with serve_models(ScriptedModel("hi")) as url:
        for path in ("embeddings", "completions"):
            status, raw, _ = await post(url, {"input": "a", "prompt": "a"}, path)
            assert (status, orjson.loads(raw)["error"]["code"]) == (400, "unsupported_api")


async def test_hints_reach_a_server_and_are_ignored_without_one():
    hints = {"reasoning": {"effort": "low", "summary": "auto"}, "text": {"verbosity": "low"}, "service_tier": "flex"}
    others = {"prompt_cache_key": "k", "metadata": {"k": "v"}, "truncation": "auto", "include": []}
    async with chat_server(build_completion("hi")) as server:
        model = OpenAICompatibleModel("upstream", server.url)
        async with serve_models(model) as url:
            assert (await post(url, {"input": "hi", **hints, **others}, "responses"))[0] == 200
    sent = {"model", "messages", "reasoning_effort", "verbosity", "service_tier"}
    assert server.bodies[0].keys() == sent
    async with serve_models(ScriptedModel("hi")) as url:
        assert (await post(url, {"input": "hi", **hints, **others}, "responses"))[0] == 200


@pytest.mark.parametrize(
    ("fields", "param"),
    [({"include": ["message.output_text.logprobs"]}, "include"), ({"top_logprobs": 2}, "top_logprobs")],
)
async def test_log_probabilities_are_rejected_by_a_server_without_responses(fields, param):
    async with (
        chat_server(build_completion("hi")) as server,
        serve_models(OpenAICompatibleModel("upstream", server.url)) as url,
    ):
        status, raw, _ = await post(url, {"input": "hi", **fields}, "responses")
    error = orjson.loads(raw)["error"]
    assert (status, error["param"], server.bodies) == (400, param, [])
    assert "parsed from its text" not in error["message"]


async def test_a_file_at_a_url_is_fetched_through_the_guard():
    request = parse(
        input=[{"role": "user", "content": [{"type": "input_file", "file_url": "https://a.example/a.pdf"}]}]
    )
    assert request.completion.messages == (user_message("", (FilePart("https://a.example/a.pdf"),)),)
    content = [{"type": "input_file", "file_url": "http://127.0.0.1/a.pdf"}]
    async with (
        chat_server(build_completion("hi")) as server,
        serve_models(OpenAICompatibleModel("upstream", server.url)) as url,
    ):
        status, raw, _ = await post(url, {"input": [{"role": "user", "content": content}]}, "responses")
    assert (status, b"Cannot fetch" in raw, server.bodies) == (400, True, [])
