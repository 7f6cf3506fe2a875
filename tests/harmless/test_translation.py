"""Requests between APIs of different providers: what both can express arrives, and no reply loses its numbers."""

import aiohttp
import anthropic
import openai
import orjson
import pytest
from tests.models.chat_server import build_completion, build_delta, chat_server, respond_events, respond_json
from tests.web.serving import serve_models

from opposable.agent.agent import Agent
from opposable.domain.errors import ModelUnavailable
from opposable.domain.messages import assistant_message, user_message
from opposable.domain.tools import ToolCall
from opposable.models.anthropic import AnthropicModel
from opposable.models.base import ModelOptions
from opposable.models.fallback import FallbackModel
from opposable.models.openai_compatible import OpenAICompatibleModel
from opposable.models.openai_responses import OpenAIResponsesModel
from opposable.models.scripted import ScriptedModel
from opposable.web.gateway.relay_meter import RelayMeter
from opposable.web.openai_errors import to_gateway_error

pytestmark = pytest.mark.anyio

CHAT = "chat/completions"
HI = [{"role": "user", "content": "hi"}]
PARAMETERS = {
    "type": "object",
    "properties": {"a": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}
ADD = {"type": "function", "function": {"name": "add", "strict": True, "parameters": PARAMETERS}}
OPTIONAL = {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False}
MESSAGES_ADD = {"name": "add", "strict": True, "input_schema": OPTIONAL}
"""A strict tool of Anthropic's API, which may have optional parameters: OpenAI rejects such a schema as strict."""
RESPONSES_ADD = {"type": "function", "name": "add", "strict": True, "parameters": PARAMETERS}
RESPONSES_SQL = {"type": "custom", "name": "sql", "description": "Run SQL."}
NESTED = {**PARAMETERS, "properties": {"a": {"type": "object", "properties": {}}}}
"""A schema with an object that is not closed, which OpenAI rejects as strict."""

LIMITED = {"type": "object", "properties": {"a": {"type": "integer", "maximum": 2**70}}}


def build_format(schema, *, is_strict):
    return {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema, "strict": is_strict}}


DOCUMENTS = [
    {
        "role": "user",
        "content": [
            {
                "type": "document",
                "title": "Note",
                "context": "old",
                "citations": {"enabled": True},
                "source": {"type": "text", "media_type": "text/plain", "data": "A body."},
            },
            {
                "type": "search_result",
                "title": "Prices",
                "source": "https://x.test",
                "content": [{"type": "text", "text": "1.10"}],
            },
            {
                "type": "document",
                "source": {
                    "type": "content",
                    "content": [{"type": "text", "text": "Part 1"}, {"type": "text", "text": "Part 2"}],
                },
            },
        ],
    }
]
SEARCHED = {
    "role": "assistant",
    "content": [
        {"type": "text", "text": "Let me look."},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": [{"type": "web_search_result", "title": "T", "url": "https://x.test", "encrypted_content": "e"}],
        },
        {"type": "text", "text": "It is 5", "citations": [{"type": "web_search_result_location"}]},
        {"type": "text", "text": " (five)"},
        {"type": "text", "text": " or 6", "citations": [{"type": "web_search_result_location"}]},
        {"type": "text", "text": ", I think."},
    ],
}
"""A reply of Claude with a web search that Anthropic ran. A citation splits a sentence into blocks."""
COMPACTED = [{"role": "assistant", "content": [{"type": "compaction", "content": "So far: hi."}]}, *HI]
"""A conversation whose beginning Anthropic has replaced by a summary."""
FOUND_TOOLS = [
    *HI,
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "find_tools", "input": {}}]},
    {
        "role": "user",
        "content": [
            {
                "type": "tool_result",
                "tool_use_id": "t1",
                "content": [{"type": "tool_reference", "tool_name": name} for name in ("add", "sub")],
            }
        ],
    },
]
"""A conversation with a search for tools that the client runs: the result names deferred tools."""
SEARCHING = {**SEARCHED, "content": SEARCHED["content"][1:3]}
"""A reply of Claude that was paused after a web search."""
FOUND = [
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
    {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "It is 5.", "annotations": []}],
    },
]
"""A reply of a model of OpenAI with a web search that OpenAI ran."""
USAGE = {"input_tokens": 3, "output_tokens": 2, "cache_read_input_tokens": 70, "cache_creation_input_tokens": 4}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "content": [{"type": "text", "text": "Hello"}],
    "stop_reason": "end_turn",
    "usage": USAGE,
}


async def exchange(create_model, answer, path, body):
    """Return the status and the JSON that the client received, and the bodies that the server received."""
    async with (
        chat_server(answer) as server,
        serve_models(create_model("c", "k", server.url)) as url,
        aiohttp.ClientSession() as session,
        session.post(f"{url}/{path}", json={"model": "m", **body}) as response,
    ):
        return response.status, orjson.loads(await response.read()), server.bodies


def create_chat(name, key, url):
    return OpenAICompatibleModel(name, url, key)


def create_responses(name, key, url):
    return OpenAIResponsesModel(name, url, key)


@pytest.mark.parametrize(
    ("create_model", "path", "body", "sent"),
    [
        (
            AnthropicModel,
            CHAT,
            {"messages": HI, "tools": [ADD], "parallel_tool_calls": False},
            {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
        ),
        (
            AnthropicModel,
            CHAT,
            {"messages": HI, "tools": [ADD], "parallel_tool_calls": False, "tool_choice": "required"},
            {"tool_choice": {"type": "any", "disable_parallel_tool_use": True}},
        ),
        (
            AnthropicModel,
            CHAT,
            {"messages": HI, "tools": [ADD], "parallel_tool_calls": False, "tool_choice": "none"},
            {"tool_choice": {"type": "none"}},
        ),
        (
            create_chat,
            "messages",
            {
                "messages": HI,
                "max_tokens": 9,
                "tools": [MESSAGES_ADD],
                "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
            },
            {
                "tools": [{"type": "function", "function": {"name": "add", "description": "", "parameters": OPTIONAL}}],
                "parallel_tool_calls": False,
            },
        ),
        (
            create_chat,
            "responses",
            {"input": "hi", "tools": [RESPONSES_ADD], "parallel_tool_calls": False},
            {"tools": [{**ADD, "function": {**ADD["function"], "description": ""}}], "parallel_tool_calls": False},
        ),
        (
            create_responses,
            "messages",
            {"messages": HI, "max_tokens": 9, "tools": [MESSAGES_ADD]},
            {"tools": [{**RESPONSES_ADD, "description": "", "parameters": OPTIONAL, "strict": False}]},
        ),
        (
            AnthropicModel,
            CHAT,
            {"messages": [*HI, {"role": "assistant", "content": None, "refusal": "I can't."}, *HI]},
            {"messages": [
                {"role": "user", "content": [{"type": "text", "text": "hi"}]},
                {"role": "assistant", "content": [{"type": "text", "text": "I can't."}]},
                {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            ]},
        ),
        (AnthropicModel, CHAT, {"messages": HI, "reasoning_effort": "high", "verbosity": "low"}, {"max_tokens": 8192}),
        (create_chat, "messages", {"messages": HI, "max_tokens": 9, "stop_sequences": ["END"], "top_p": 0.5, "top_k": 4},
         {"max_tokens": 9, "stop": ["END"], "top_p": 0.5, "top_k": 4}),
        (create_chat, "messages", {"messages": DOCUMENTS, "max_tokens": 9},
         {"messages": [{"role": "user", "content": "Note\nold\nA body.\nPrices\nhttps://x.test\n1.10\nPart 1\nPart 2"}]}),
        (create_chat, "messages", {"messages": [*HI, SEARCHED, *HI], "max_tokens": 9},
         {"messages": [*HI, {"role": "assistant", "content": "Let me look.\nIt is 5 (five) or 6, I think."}, *HI]}),
        (create_chat, "messages", {"messages": [*HI, SEARCHING], "max_tokens": 9}, {"messages": HI}),
        (create_chat, "messages", {"messages": COMPACTED, "max_tokens": 9},
         {"messages": [{"role": "assistant", "content": "So far: hi."}, *HI]}),
        (create_chat, "messages", {"messages": FOUND_TOOLS, "max_tokens": 9}, {"messages": [*HI,
         {"role": "assistant", "content": None, "tool_calls": [
             {"id": "t1", "type": "function", "function": {"name": "find_tools", "arguments": "{}"}}]},
         {"role": "tool", "content": "add\nsub", "tool_call_id": "t1"}]}),
        (create_chat, "responses", {"input": [*HI, *FOUND, *HI]},
         {"messages": [*HI, {"role": "assistant", "content": "It is 5."}, *HI]}),
        (create_chat, "responses", {"input": "JSON", "text": {"format": {"type": "json_object"}}},
         {"response_format": {"type": "json_object"}}),
        (create_responses, "messages", {"messages": HI, "max_tokens": 9, "output_format": {"schema": {"type": "object"}}},
         {"text": {"format": {"type": "json_object"}}}),
        (create_chat, "messages", {"messages": HI, "max_tokens": 9, "output_format": {"schema": PARAMETERS}},
         {"response_format": build_format(PARAMETERS, is_strict=True)}),
        (create_chat, "messages", {"messages": HI, "max_tokens": 9, "output_format": {"schema": OPTIONAL}},
         {"response_format": build_format(OPTIONAL, is_strict=False)}),
        (create_chat, "responses", {"input": "hi", "text": {"format": {"type": "json_schema", "schema": NESTED}}},
         {"response_format": build_format(NESTED, is_strict=False)}),
        (create_chat, "responses",
         {"input": "hi", "tools": [RESPONSES_SQL, RESPONSES_ADD], "tool_choice": {
             "type": "allowed_tools", "mode": "required", "tools": [{"type": "custom", "name": "sql"}]}},
         {"tool_choice": "required", "tools": [{"type": "function", "function": {
             "name": "sql", "description": "Run SQL.", "parameters": {
                 "type": "object",
                 "properties": {"input": {"type": "string", "description": "The whole input of the tool, as text."}},
                 "required": ["input"], "additionalProperties": False}}}]}),
    ],
)  # fmt: skip
async def test_what_both_providers_can_express_arrives(create_model, path, body, sent):
    answers = {AnthropicModel: respond_json(MESSAGE), create_chat: build_completion("Hello")}
    items = [{"type": "message", "content": [{"type": "output_text", "text": "Hello"}]}]
    answer = answers.get(create_model, respond_json({"status": "completed", "output": items}))
    status, _, bodies = await exchange(create_model, answer, path, body)
    assert (status, len(bodies)) == (200, 1)
    assert {name: bodies[0].get(name) for name in sent} == sent
    assert "parallel_tool_calls" in sent or "parallel_tool_calls" not in bodies[0]
    assert "reasoning_effort" not in bodies[0]


@pytest.mark.parametrize(
    ("path", "body", "ignored"),
    [
        (
            "messages",
            {"max_tokens": 9, "messages": [*HI, SEARCHED, *HI]},
            "messages.server_tool_use, messages.web_search_tool_result",
        ),
        ("responses", {"input": [*HI, *FOUND, *HI]}, "input.web_search_call"),
    ],
)
async def test_searches_that_another_provider_ran_are_reported_as_ignored(path, body, ignored):
    async with (
        serve_models(ScriptedModel("ok")) as url,
        aiohttp.ClientSession() as session,
        session.post(f"{url}/{path}", json={"model": "m", **body}) as response,
    ):
        assert (response.status, response.headers["opposable-ignored-parameters"]) == (200, ignored)


@pytest.mark.parametrize(
    ("block", "path"),
    [
        ({"type": "search_result", "source": "s", "title": "t"}, "messages[0].content[1].content"),
        ({"type": "document", "source": {"type": "file", "file_id": "f"}}, "messages[0].content[1].source"),
        ({"type": "video"}, "messages[0].content[1]"),
    ],
)
async def test_the_path_of_a_wrong_block_is_its_own(block, path):
    content = [{"type": "tool_result", "tool_use_id": "t", "content": "5"}, block]
    body = {"max_tokens": 9, "messages": [{"role": "user", "content": content}]}
    status, answer, _ = await exchange(create_chat, build_completion("ok"), "messages", body)
    assert (status, answer["error"]["message"].split()[0]) == (400, path)


async def test_the_tokens_of_a_cache_are_counted():
    _, completion, _ = await exchange(AnthropicModel, respond_json(MESSAGE), CHAT, {"messages": HI})
    assert completion["usage"] == {
        "prompt_tokens": 77,
        "completion_tokens": 2,
        "total_tokens": 79,
        "prompt_tokens_details": {"cached_tokens": 70},
    }


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_cached_and_reasoning_tokens_are_counted_apart_in_messages(is_streamed):
    usage = {"prompt_tokens": 77, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 70}}
    usage["completion_tokens_details"] = {"reasoning_tokens": 3}
    message = {"role": "assistant", "content": "Hello"}
    whole = respond_json({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage})
    answer = respond_events(build_delta("stop", content="Hello"), {"choices": [], "usage": usage})
    async with (
        chat_server(answer if is_streamed else whole) as server,
        serve_models(create_chat("c", "k", server.url)) as url,
        anthropic.AsyncAnthropic(base_url=url.removesuffix("/v1"), api_key="x", max_retries=0) as client,
    ):
        if is_streamed:
            async with client.messages.stream(model="m", max_tokens=9, messages=HI) as stream:
                counted = (await stream.get_final_message()).usage
        else:
            counted = (await client.messages.create(model="m", max_tokens=9, messages=HI)).usage
    assert (counted.input_tokens, counted.cache_read_input_tokens, counted.output_tokens) == (7, 70, 5)
    assert counted.output_tokens_details.thinking_tokens == 3


@pytest.mark.parametrize(
    ("create_model", "path", "body"),
    [
        (
            AnthropicModel,
            CHAT,
            {"messages": HI, "tools": [{**ADD, "function": {"name": "add", "parameters": LIMITED}}]},
        ),
        (create_chat, "messages", {"messages": HI, "max_tokens": 9, "tools": [{"name": "a", "input_schema": LIMITED}]}),
        (AnthropicModel, "responses", {"input": "hi", "text": {"format": {"type": "json_schema", "schema": LIMITED}}}),
        (create_chat, "responses", {"input": "hi", "text": {"format": {"type": "json_schema", "schema": LIMITED}}}),
    ],
)
async def test_numbers_beyond_64_bits_of_a_schema_arrive(create_model, path, body):
    answer = respond_json(MESSAGE) if create_model is AnthropicModel else build_completion("Hello")
    status, _, bodies = await exchange(create_model, answer, path, body)
    assert status == 200
    assert str(2**70) in str(bodies[0])


async def test_counts_that_are_missing_at_the_end_of_a_stream_stay_those_of_its_start():
    deltas = [
        {"type": "message_start", "message": {**MESSAGE, "content": [], "usage": {**USAGE, "output_tokens": 1}}},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {**dict.fromkeys(USAGE), "output_tokens": 2},
        },
        {"type": "message_stop"},
    ]
    async with chat_server(respond_events(*deltas, done=False)) as server:
        model = AnthropicModel("c", "k", server.url)
        parts = [part async for part in model.stream([user_message("hi")])]
        await model.aclose()
    usage = parts[-1].usage
    assert (usage.input_tokens, usage.cached_tokens, usage.output_tokens) == (77, 70, 2)


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize("raw", ["delete ,," + "x" * 5000, "[1, 2]"])
async def test_arguments_that_are_no_object_are_not_emptied(raw, is_streamed):
    call = {"id": "c1", "type": "function", "function": {"name": "sql", "arguments": raw}}
    whole = build_completion(calls=[call], finish="tool_calls")
    answer = respond_events(build_delta("tool_calls", tool_calls=[{"index": 0, **call}])) if is_streamed else whole
    message_tool = {"name": "sql", "input_schema": {"type": "object"}}
    async with (
        chat_server(answer) as server,
        serve_models(create_chat("c", "k", server.url)) as url,
        anthropic.AsyncAnthropic(base_url=url.removesuffix("/v1"), api_key="x", max_retries=0) as messages,
        openai.AsyncOpenAI(base_url=url, api_key="x", max_retries=0) as responses,
    ):
        message_body = {"model": "m", "max_tokens": 9, "messages": HI, "tools": [message_tool]}
        response_body = {"model": "m", "input": "hi", "tools": [RESPONSES_SQL]}
        if is_streamed:
            async with messages.messages.stream(**message_body) as stream:
                message = await stream.get_final_message()
            async with responses.responses.stream(**response_body) as stream:
                response = await stream.get_final_response()
        else:
            message = await messages.messages.create(**message_body)
            response = await responses.responses.create(**response_body)
    assert [block.input for block in message.content] == [{"unreadable": raw}]
    assert [item.input for item in response.output] == [raw]


@pytest.mark.parametrize(
    "usages",
    [
        [USAGE],
        [{**USAGE, "output_tokens": 1}, {"output_tokens": 2}],
        [{**USAGE, "output_tokens": 1}, {"input_tokens": 3, "output_tokens": 2, "cache_read_input_tokens": None}],
        [{"prompt_tokens": 77, "completion_tokens": 2, "cache_read_input_tokens": 70}],
        [{"input_tokens": 77, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 70}}],
    ],
)
def test_relayed_requests_count_the_tokens_of_a_cache(usages):
    meter = RelayMeter(ScriptedModel(), {})
    for usage in usages:
        meter.read_usage(usage)
    assert (meter.usage.input_tokens, meter.usage.output_tokens) == (77, 2)


async def test_the_tool_runner_of_anthropic_works_with_any_model():
    @anthropic.beta_async_tool
    async def add(a: int) -> str:
        """Add one."""
        return str(a + 1)

    model = ScriptedModel(assistant_message("I add.", (ToolCall("c1", "add", {"a": 1}),)), "It is 2.")
    async with (
        serve_models(model) as url,
        anthropic.AsyncAnthropic(base_url=url.removesuffix("/v1"), api_key="x", max_retries=0) as client,
    ):
        runner = client.beta.messages.tool_runner(model="m", max_tokens=9, messages=HI, tools=[add])
        replies = [[block.type for block in message.content] async for message in runner]
    assert replies == [["text", "tool_use"], ["text"]]
    assert [(message.role, message.content) for message in model.requests[1].messages] == [
        ("user", "hi"),
        ("assistant", "I add."),
        ("tool", "2"),
    ]


async def stream_and_fall_back(create_model, event, **fallback) -> tuple[ModelUnavailable, str]:
    """Return the error of a stream with this event, and the answer of a run with another model to fall back on."""
    async with chat_server(respond_events(event)) as server:
        first = create_model("c", "k", server.url)
        async with Agent(FallbackModel("m", [first, ScriptedModel("Hello")], **fallback)) as agent:
            with pytest.raises(ModelUnavailable) as raised:
                async for _ in first.stream([user_message("hi")], (), ModelOptions(stream=True)):
                    pass
            events = [event async for event in agent.stream("hi")]
    return raised.value, events[-1].text


@pytest.mark.parametrize(
    ("create_model", "event"),
    [
        (AnthropicModel, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
        (create_chat, {"error": {"message": "try later", "type": "server_error"}}),
        (create_chat, {"error": {"message": "Provider returned error", "code": 502}}),
        (create_responses, {"type": "error", "code": "server_error", "message": "try later"}),
    ],
)
async def test_an_overload_in_a_stream_is_no_fault_of_the_request(create_model, event):
    _, answer = await stream_and_fall_back(create_model, event)
    assert answer == "Hello"


@pytest.mark.parametrize(
    ("create_model", "event"),
    [
        (AnthropicModel, {"type": "error", "error": {"type": "rate_limit_error", "message": "Slow down"}}),
        (create_chat, {"error": {"message": "Slow down", "code": "rate_limit_exceeded"}}),
        (create_chat, {"error": {"message": "Slow down", "code": 429}}),
        (create_responses, {"type": "error", "code": "rate_limit_exceeded", "message": "Slow down"}),
    ],
)
async def test_a_rate_limit_in_a_stream_is_one(create_model, event):
    error, answer = await stream_and_fall_back(create_model, event, kinds=("rate_limited",))
    assert (answer, to_gateway_error(error).status) == ("Hello", 429)


@pytest.mark.parametrize("create_model", [AnthropicModel, create_chat, create_responses])
async def test_tools_that_a_server_runs_are_sent_with_those_of_the_agent(create_model):
    def add(a: int) -> int:
        """Add one."""
        return a + 1

    items = [{"type": "message", "content": [{"type": "output_text", "text": "Hello"}]}]
    whole = {create_chat: build_completion("Hello"), create_responses: respond_json({"output": items})}
    hosted = {"type": "web_search", "name": "web_search"}
    options = ModelOptions(extra_body={"tools": [hosted]})
    async with chat_server(whole.get(create_model, respond_json(MESSAGE))) as server:
        async with Agent(create_model("c", "k", server.url), [add], options=options) as agent:
            await agent.run("hi")
        async with Agent(create_model("c", "k", server.url), options=options) as agent:
            await agent.run("hi")
    sent, alone = (body["tools"] for body in server.bodies)
    assert (sent[0], len(sent), alone) == (hosted, 2, [hosted])
