"""The gateway as the real OpenAI SDK sees it."""

import anthropic
import openai
import orjson
import pytest
from pydantic import BaseModel
from tests.models.chat_server import build_completion, build_delta, chat_server, respond_events
from tests.models.responses_server import build_response, message_item, respond_response
from tests.web.serving import serve_models

from opposable.domain.errors import ContextFull, ModelRefusedKey, ModelRejected, ModelUnavailable
from opposable.domain.messages import assistant_message
from opposable.models.base import ForcedTool
from opposable.models.openai_compatible import OpenAICompatibleModel, ServerQuirks
from opposable.models.openai_responses import OpenAIResponsesModel
from opposable.models.scripted import ScriptedModel
from opposable.models.text_protocol import TextProtocolModel

pytestmark = pytest.mark.anyio

HI = [{"role": "user", "content": "What is 1 + 2?"}]
INTEGER = {"type": "integer"}
ADD = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Add two numbers.",
        "parameters": {"type": "object", "properties": {"a": INTEGER, "b": INTEGER}, "required": ["a", "b"]},
    },
}
WRITTEN = 'I add them. <tool_call>\n{"name": "add", "arguments": {"a": "1", "b": 2}}\n</tool_call>'
TWICE = WRITTEN + '\n<tool_call>\n{"name": "add", "arguments": {"a": 3, "b": 4}}\n</tool_call>'


def open_client(url):
    return openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0)


@pytest.fixture
def text_model():
    """A model that knows nothing of tools and writes its calls as text."""
    return TextProtocolModel(ScriptedModel(WRITTEN), "protocol")


async def test_a_call_written_as_text_comes_as_a_tool_call(text_model):
    async with serve_models(text_model) as url, open_client(url) as sdk:
        said = await sdk.chat.completions.create(model="m", messages=HI, tools=[ADD])
    [choice] = said.choices
    [made] = choice.message.tool_calls
    assert (made.type, made.function.name, made.function.arguments) == ("function", "add", '{"a":1,"b":2}')
    assert made.id.startswith("call_")
    assert (choice.message.content, choice.finish_reason, choice.index) == ("I add them.", "tool_calls", 0)
    assert (said.object, said.model, said.id[:9]) == ("chat.completion", "m", "chatcmpl-")
    assert (said.usage.prompt_tokens, said.usage.completion_tokens, said.usage.total_tokens) == (10, 5, 15)


async def test_streamed_calls_have_ids_indexes_and_names_once():
    model = TextProtocolModel(ScriptedModel(TWICE, chunk_size=3), "protocol")
    async with serve_models(model) as url, open_client(url) as sdk:
        stream = await sdk.chat.completions.create(
            model="m", messages=HI, tools=[ADD], stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-1].choices == []
    assert chunks[-1].usage.total_tokens == 15
    assert [chunk.usage for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert len({chunk.id for chunk in chunks}) == 1
    deltas = [chunk.choices[0].delta for chunk in chunks[:-1]]
    assert "".join(d.content or "" for d in deltas).strip() == "I add them."
    pieces = [piece for d in deltas for piece in d.tool_calls or ()]
    assert [(p.index, p.function.name, p.function.arguments) for p in pieces] == [
        (0, "add", ""),
        (0, None, '{"a":1,"b":2}'),
        (1, "add", ""),
        (1, None, '{"a":3,"b":4}'),
    ]
    assert [bool(p.id) for p in pieces] == [True, False, True, False]
    assert [chunk.choices[0].finish_reason for chunk in chunks[:-1]] == [None] * (len(chunks) - 2) + ["tool_calls"]


async def test_the_stream_of_the_sdk_assembles_the_calls(text_model):
    async with (
        serve_models(text_model) as url,
        open_client(url) as sdk,
        sdk.chat.completions.stream(model="m", messages=HI, tools=[ADD]) as stream,
    ):
        said = await stream.get_final_completion()
    [made] = said.choices[0].message.tool_calls
    assert orjson.loads(made.function.arguments) == {"a": 1, "b": 2}


CHOICES = {
    "none": ("none", "none", "I add them.", None),
    "auto": ("auto", "auto", "I add them.", ["add"]),
    "required": ("required", "required", "I add them.", ["add"]),
    "named": ({"type": "function", "function": {"name": "add"}}, ForcedTool("add"), "I add them.", ["add"]),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("choice", "tool_choice", "text", "names"), CHOICES.values(), ids=CHOICES)
async def test_every_tool_choice_is_respected(text_model, choice, tool_choice, text, names, stream):
    async with serve_models(text_model) as url, open_client(url) as sdk:
        if stream:
            async with sdk.chat.completions.stream(model="m", messages=HI, tools=[ADD], tool_choice=choice) as made:
                said = await made.get_final_completion()
        else:
            said = await sdk.chat.completions.create(model="m", messages=HI, tools=[ADD], tool_choice=choice)
    [asked] = text_model.inner.requests
    assert asked.options.tool_choice == tool_choice
    got = said.choices[0].message
    assert (got.content.strip(), [c.function.name for c in got.tool_calls] if got.tool_calls else None) == (text, names)
    assert said.choices[0].finish_reason == ("tool_calls" if names else "stop")


async def test_only_one_call_is_returned_without_parallel_calls():
    async with serve_models(TextProtocolModel(ScriptedModel(TWICE))) as url, open_client(url) as sdk:
        said = await sdk.chat.completions.create(model="m", messages=HI, tools=[ADD], parallel_tool_calls=False)
    assert [c.function.arguments for c in said.choices[0].message.tool_calls] == ['{"a":1,"b":2}']


async def test_a_result_goes_back_to_the_model_as_text():
    inner = ScriptedModel(WRITTEN, "It is 3.")
    async with serve_models(TextProtocolModel(inner, "protocol")) as url, open_client(url) as sdk:
        first = await sdk.chat.completions.create(model="m", messages=HI, tools=[ADD])
        said = first.choices[0].message
        result = {"role": "tool", "tool_call_id": said.tool_calls[0].id, "content": "3"}
        history = [*HI, said.model_dump(exclude_none=True), result]
        last = await sdk.chat.completions.create(model="m", messages=history, tools=[ADD])
    assert last.choices[0].message.content == "It is 3."
    assert inner.requests[1].messages[-1].content == "Result of add:\n3"


async def test_reasoning_comes_apart_from_the_answer():
    async with serve_models(ScriptedModel(assistant_message("3", (), "1 + 2"))) as url, open_client(url) as sdk:
        whole = await sdk.chat.completions.create(model="m", messages=HI)
        stream = await sdk.chat.completions.create(model="m", messages=HI, stream=True)
        deltas = [chunk.choices[0].delta.model_dump() async for chunk in stream]
    assert (whole.choices[0].message.content, whole.choices[0].message.reasoning_content) == ("3", "1 + 2")
    assert "".join(d.get("reasoning_content", "") for d in deltas) == "1 + 2"
    assert "".join(d["content"] or "" for d in deltas) == "3"


TEXTS = [
    "Hello, 世界 👋\n",
    "a <tool_call> is <think>quoted</think>",
    '{"name": "add", "arguments": {}}',
    "```json\n{}\n```\n",
]


@pytest.mark.parametrize("text", TEXTS)
async def test_without_tools_text_is_streamed_unchanged(text):
    pieces = [text[at : at + 2] for at in range(0, len(text), 2)]
    async with chat_server(
        build_completion(text), respond_events(*[build_delta(content=piece) for piece in pieces], build_delta("stop"))
    ) as server:
        model = TextProtocolModel(OpenAICompatibleModel("up", server.url))
        async with serve_models(model) as url, open_client(url) as sdk:
            whole = await sdk.chat.completions.create(model="m", messages=HI)
            stream = await sdk.chat.completions.create(model="m", messages=HI, stream=True)
            said = [chunk.choices[0].delta.content async for chunk in stream]
        await model.aclose()
    assert whole.choices[0].message.content == text
    assert [piece for piece in said if piece] == pieces


async def test_native_calls_have_arguments_of_the_right_types():
    odd = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": "1", "b": 2.0}'}}
    async with chat_server(build_completion(None, [odd], "tool_calls")) as server:
        model = TextProtocolModel(OpenAICompatibleModel("up", server.url))
        async with serve_models(model) as url, open_client(url) as sdk:
            said = await sdk.chat.completions.create(model="m", messages=HI, tools=[ADD], temperature=0.5, seed=7)
        await model.aclose()
    [made] = said.choices[0].message.tool_calls
    assert (made.id, made.function.arguments) == ("c1", '{"a":1,"b":2.0}')  # 2.0 is a valid integer: it stays
    assert server.bodies[0] == {
        "model": "up",
        "temperature": 0.5,
        "seed": 7,
        "messages": HI,
        "tools": [ADD],
    }


ERRORS = {
    "no room": (ContextFull("too long"), openai.BadRequestError, 400, "context_length_exceeded"),
    "refused": (ModelRejected("no"), openai.BadRequestError, 400, "rejected_by_model_server"),
    "away": (ModelUnavailable("away"), openai.InternalServerError, 503, "model_unavailable"),
    "locked out": (ModelRefusedKey("key"), openai.InternalServerError, 502, "model_server_refused_key"),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("error", "kind", "status", "code"), ERRORS.values(), ids=ERRORS)
async def test_errors_of_the_model_raise_the_errors_of_the_sdk(error, kind, status, code, stream):
    async with serve_models(ScriptedModel(error)) as url, open_client(url) as sdk:
        with pytest.raises(kind) as caught:
            await sdk.chat.completions.create(model="m", messages=HI, stream=stream)
    assert (caught.value.status_code, caught.value.code) == (status, code)
    assert str(error) in caught.value.message
    assert caught.value.response.headers.get("retry-after") == ("2" if status == 503 else None)


class FailingModel(ScriptedModel):
    """Breaks off in the middle of a reply."""

    def __init__(self, error):
        super().__init__("never said")
        self.error = error

    async def stream(self, messages, tools=(), options=None):
        async for part in super().stream(messages, tools, options):
            yield part
            raise self.error


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ModelUnavailable("The connection broke."), "The connection broke."),
        (ZeroDivisionError("secret"), "Internal error"),
    ],
)
async def test_an_error_during_a_stream_is_its_last_event(error, message, caplog):
    async with serve_models(FailingModel(error)) as url, open_client(url) as sdk:
        stream = await sdk.chat.completions.create(model="m", messages=HI, stream=True)
        got = [(await anext(stream)).choices[0].delta.content for _ in range(2)]
        with pytest.raises(openai.APIError) as caught:
            await anext(stream)
    assert got == ["", "never sa"]
    assert message in caught.value.message
    assert ("ZeroDivisionError" in caplog.text) == isinstance(error, ZeroDivisionError)


async def test_an_unexpected_error_is_returned_without_its_details(caplog):
    async with serve_models(ScriptedModel(lambda messages: 1 / 0)) as url, open_client(url) as sdk:
        with pytest.raises(openai.InternalServerError) as caught:
            await sdk.chat.completions.create(model="m", messages=HI)
    assert (caught.value.status_code, caught.value.code) == (500, "internal_error")
    assert "ZeroDivisionError" in caplog.text
    assert "division" not in caught.value.message


async def test_bad_requests_and_unknown_models_raise_the_errors_of_the_sdk():
    async with serve_models(ScriptedModel("hi")) as url, open_client(url) as sdk:
        with pytest.raises(openai.BadRequestError) as several:
            await sdk.chat.completions.create(model="m", messages=HI, n=2)
        with pytest.raises(openai.NotFoundError) as unknown:
            await sdk.chat.completions.create(model="gpt-9", messages=HI)
    assert (several.value.param, several.value.type) == ("n", "invalid_request_error")
    assert (unknown.value.code, unknown.value.param) == ("model_not_found", "model")
    assert "Available models: m" in unknown.value.message


async def test_models_are_listed_once_and_found_by_every_name():
    big, small = ScriptedModel("big"), ScriptedModel("small")
    async with serve_models({"big": big, "alias": big, "org/small": small}) as url, open_client(url) as sdk:
        listed = [model.id async for model in sdk.models.list()]
        found = [(await sdk.models.retrieve(name)).id for name in ("big", "alias", "org/small")]
        with pytest.raises(openai.NotFoundError):
            await sdk.models.retrieve("none")
        said = await sdk.chat.completions.create(model="org/small", messages=HI)
    assert listed == ["big", "org/small"]
    assert found == ["big", "alias", "org/small"]
    assert said.choices[0].message.content == "small"


async def test_the_sdk_parses_structured_answers():
    model = ScriptedModel("Three.", '{"sum": 3}')
    shape = {"type": "object", "properties": {"sum": INTEGER}, "required": ["sum"], "additionalProperties": False}
    wanted = {"type": "json_schema", "json_schema": {"name": "sum", "schema": shape, "strict": True}}
    async with serve_models(model) as url, open_client(url) as sdk:
        await sdk.chat.completions.create(model="m", messages=HI, response_format=wanted)
        said = await sdk.chat.completions.create(model="m", messages=HI, response_format=wanted, tools=[ADD])
    assert said.choices[0].message.content == '{"sum": 3}'
    assert [request.options.response_schema for request in model.requests] == [shape, shape]


class Sum(BaseModel):
    sum: int


def respond_refusal(create_model, stream):
    """The answer of a server that refuses, in its API."""
    if create_model is OpenAICompatibleModel and stream:
        return respond_events(build_delta(refusal="I will "), build_delta(refusal="not."), build_delta("stop"))
    if create_model is OpenAICompatibleModel:
        return build_completion(None, refusal="I will not.")
    item = {**message_item(""), "content": [{"type": "refusal", "refusal": "I will not."}]}
    if not stream:
        return respond_response(item)
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0, "sequence_number": 2}
    return respond_events(
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        {"type": "response.refusal.delta", **place, "delta": "I will not."},
        {"type": "response.completed", "response": build_response(item)},
    )


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("create_model", "api"),
    [
        (OpenAIResponsesModel, "chat"),
        (OpenAICompatibleModel, "responses"),
        (OpenAICompatibleModel, "messages"),
        (OpenAIResponsesModel, "messages"),
    ],
)
async def test_a_refusal_stays_one_in_the_other_api(create_model, api, stream):
    async with (
        chat_server(respond_refusal(create_model, stream)) as server,
        serve_models(create_model("m", server.url, quirks=ServerQuirks(apis=frozenset()))) as url,
        open_client(url) as sdk,
        anthropic.AsyncAnthropic(base_url=url.removesuffix("/v1"), api_key="none") as messages_sdk,
    ):
        if api == "chat":
            options = {"model": "m", "messages": HI, "response_format": Sum}
            if stream:
                async with sdk.chat.completions.stream(**options) as events:
                    message = (await events.get_final_completion()).choices[0].message
            else:
                message = (await sdk.chat.completions.parse(**options)).choices[0].message
            assert (message.refusal, message.content or None, message.parsed) == ("I will not.", None, None)
        elif api == "responses":
            options = {"model": "m", "input": "hi", "text_format": Sum}
            if stream:
                async with sdk.responses.stream(**options) as events:
                    response = await events.get_final_response()
            else:
                response = await sdk.responses.parse(**options)
            assert [part.refusal for part in response.output[0].content] == ["I will not."]
        else:
            options = {"model": "m", "messages": HI, "max_tokens": 9}
            if stream:
                async with messages_sdk.messages.stream(**options) as events:
                    message = await events.get_final_message()
            else:
                message = await messages_sdk.messages.create(**options)
            assert (message.stop_reason, message.content[0].text) == ("refusal", "I will not.")


async def test_a_call_without_its_result_does_not_spoil_the_conversation():
    inner = ScriptedModel("It is 3.")
    made = {"id": "a", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    history = [*HI, {"role": "assistant", "content": None, "tool_calls": [made]}, *HI]
    async with serve_models(TextProtocolModel(inner)) as url, open_client(url) as sdk:
        said = await sdk.chat.completions.create(model="m", messages=history, tools=[ADD])
    assert said.choices[0].message.content == "It is 3."
    assert (
        inner.requests[0].messages[2].content
        == "There is no result: the call was not finished, but it may have taken effect."
    )
