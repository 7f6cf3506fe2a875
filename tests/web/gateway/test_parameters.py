"""Every known parameter is honored, refused with a sentence, or named in a header: none is dropped silently."""

import aiohttp
import orjson
import pytest
from tests.models.chat_server import build_completion, chat_server, respond_json
from tests.web.gateway.test_relay import connect
from tests.web.serving import serve_models

from opposable.models.anthropic import AnthropicModel
from opposable.models.callable import CallableModel
from opposable.models.http_client import RetryPolicy
from opposable.models.scripted import ScriptedModel
from opposable.models.text_protocol import TextProtocolModel

pytestmark = pytest.mark.anyio

HI = [{"role": "user", "content": "hi"}]
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
BODIES = {
    "chat/completions": {
        "messages": HI,
        "tools": [{"type": "function", "function": {"name": "add", "strict": True, "parameters": SCHEMA}}],
    },
    "responses": {
        "input": "hi",
        "tools": [{"type": "function", "name": "add", "strict": True, "parameters": SCHEMA}],
    },
    "messages": {"messages": HI, "max_tokens": 9, "tools": [{"name": "add", "strict": True, "input_schema": SCHEMA}]},
}

CHAT = "chat/completions"
HONORED = [
    (CHAT, {"parallel_tool_calls": False}),
    (CHAT, {"tool_choice": "none"}),
    (CHAT, {"stop": ["x"]}),
    (CHAT, {"n": 1, "logprobs": False, "top_logprobs": 0, "top_p": 1, "store": False, "service_tier": "auto"}),
    (CHAT, {"response_format": {"type": "text"}}),
    (CHAT, {"presence_penalty": 0, "frequency_penalty": 0, "logit_bias": {}, "modalities": ["text"]}),
    ("responses", {"parallel_tool_calls": False, "tool_choice": "none", "metadata": {"a": "b"}, "store": False}),
    ("responses", {"truncation": "disabled", "text": {"format": {"type": "text"}}, "service_tier": "default"}),
    ("messages", {"stop_sequences": ["x"], "thinking": {"type": "disabled"}, "service_tier": "auto"}),
    ("messages", {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}),
]
REFUSED = [
    (CHAT, {"n": 2}),
    (CHAT, {"logprobs": True}),
    (CHAT, {"top_logprobs": 2}),
    (CHAT, {"modalities": ["audio"]}),
    (CHAT, {"audio": {"voice": "a"}}),
    (CHAT, {"prediction": {"type": "content"}}),
    (CHAT, {"web_search_options": {}}),
    (CHAT, {"functions": [{"name": "add"}]}),
    ("responses", {"background": True}),
    ("responses", {"conversation": "c"}),
    ("responses", {"prompt": {"id": "p"}}),
    ("responses", {"include": ["message.output_text.logprobs"]}),
    ("responses", {"top_logprobs": 2}),
    ("responses", {"tools": [{"type": "web_search"}]}),
    ("messages", {"tools": [{"type": "web_search_20250305", "name": "web_search"}]}),
]
REFUSED_WITHOUT_A_SERVER = [
    (CHAT, {"top_p": 0.5}),
    (CHAT, {"presence_penalty": 1}),
    (CHAT, {"frequency_penalty": 1}),
    (CHAT, {"logit_bias": {"1": 2}}),
    (CHAT, {"made_up": 1}),
    ("responses", {"top_p": 0.5}),
    ("responses", {"made_up": 1}),
    ("messages", {"top_p": 0.5}),
    ("messages", {"top_k": 5}),
    ("messages", {"container": "c"}),
    ("messages", {"mcp_servers": [{"type": "url"}]}),
]
FAILED_CALL = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "42", "is_error": True}]},
]
IGNORED = [
    ("responses", {"include": ["reasoning.encrypted_content"]}, "include"),
    ("responses", {"truncation": "auto"}, "truncation"),
    ("responses", {"prompt_cache_key": "k"}, "prompt_cache_key"),
    ("responses", {"user": "u", "safety_identifier": "s"}, "user, safety_identifier"),
    ("responses", {"max_tool_calls": 3}, "max_tool_calls"),
    ("responses", {"client_metadata": {"a": "b"}}, "client_metadata"),
    ("responses", {"reasoning": {"summary": "auto"}}, "reasoning.summary"),
    ("messages", {"thinking": {"type": "enabled", "budget_tokens": 1024}}, "thinking"),
    ("messages", {"metadata": {"user_id": "u"}}, "metadata"),
    ("messages", {"service_tier": "standard_only"}, "service_tier"),
    ("messages", {"context_management": {"edits": []}}, "context_management"),
    ("messages", {"cache_control": {"type": "ephemeral"}}, "cache_control"),
    ("messages", {"output_config": {"effort": "high"}}, "output_config.effort"),
    ("messages", {"messages": FAILED_CALL}, "messages.tool_result.is_error"),
]
IGNORED_WITHOUT_A_SERVER = [
    (CHAT, {"user": "u"}, "user"),
    (CHAT, {"metadata": {"a": "b"}}, "metadata"),
    (CHAT, {"store": True}, "store"),
    (CHAT, {"service_tier": "flex"}, "service_tier"),
    (CHAT, {"safety_identifier": "s"}, "safety_identifier"),
    (CHAT, {"reasoning_effort": "low", "verbosity": "low"}, "reasoning_effort, verbosity"),
    (CHAT, {"prompt_cache_key": "k", "prompt_cache_retention": "24h"}, "prompt_cache_key, prompt_cache_retention"),
    ("responses", {"reasoning": {"effort": "low"}}, "reasoning.effort"),
    ("responses", {"text": {"verbosity": "low"}}, "text.verbosity"),
    ("responses", {"service_tier": "flex"}, "service_tier"),
]
IGNORED_BY_A_FUNCTION = [
    (CHAT, {"temperature": 0.5}, "temperature"),
    (CHAT, {"seed": 1, "max_tokens": 5}, "seed, max_tokens"),
    (CHAT, {"max_completion_tokens": 5}, "max_completion_tokens"),
    ("responses", {"max_output_tokens": 5}, "max_output_tokens"),
    ("messages", {"temperature": 0.5}, "max_tokens, temperature"),
]


async def post(model, path, parameters):
    """The status, the body and the ignored parameters, of a whole reply and of a streamed one."""
    body = {"model": "m", **BODIES[path], **parameters}
    seen = []
    async with serve_models(model) as url, aiohttp.ClientSession() as session:
        for stream in (False, True):
            async with session.post(f"{url}/{path}", json={**body, "stream": stream}) as response:
                raw = await response.read()
                seen.append((response.status, response.headers.get("opposable-ignored-parameters", "")))
    assert seen[0] == seen[1]
    return *seen[0], raw


def create_scripted():
    return TextProtocolModel(ScriptedModel("hello", "hello"), "protocol")


def create_function():
    return TextProtocolModel(CallableModel(lambda prompt: "hello"), "protocol")


@pytest.mark.parametrize(("path", "parameters"), HONORED)
async def test_these_are_honored_by_every_model(path, parameters):
    assert (await post(create_scripted(), path, parameters))[:2] == (200, "")


@pytest.mark.parametrize(("path", "parameters"), REFUSED + REFUSED_WITHOUT_A_SERVER)
@pytest.mark.parametrize("create", [create_scripted, create_function])
async def test_these_are_refused_with_a_sentence(create, path, parameters):
    status, _, raw = await post(create(), path, parameters)
    message = orjson.loads(raw)["error"]["message"]
    assert status == 400
    assert message.endswith(".")
    assert (next(iter(parameters)) in message) or "web_search" in message


@pytest.mark.parametrize(("path", "parameters"), REFUSED)
async def test_a_prompted_server_refuses_what_the_text_of_a_reply_cannot_carry(path, parameters):
    async with chat_server(build_completion("hello")) as server:
        assert (await post(connect(server, "prompted"), path, parameters))[0] == 400
    assert server.bodies == []


NEUTRAL_SAMPLING = [(CHAT, {"top_p": 1, "presence_penalty": 0, "frequency_penalty": 0}), ("messages", {"top_p": 1})]


@pytest.mark.parametrize(("path", "parameters"), REFUSED_WITHOUT_A_SERVER + NEUTRAL_SAMPLING)
async def test_a_prompted_server_gets_the_other_parameters(path, parameters):
    async with chat_server(build_completion("hello")) as server:
        await post(connect(server, "prompted"), path, parameters)
    assert parameters.items() <= server.bodies[0].items()


@pytest.mark.parametrize(("path", "parameters", "ignored"), IGNORED + IGNORED_WITHOUT_A_SERVER)
@pytest.mark.parametrize("create", [create_scripted])
async def test_these_are_ignored_and_named(create, path, parameters, ignored):
    assert (await post(create(), path, parameters))[:2] == (200, ignored)


@pytest.mark.parametrize(("path", "parameters", "ignored"), IGNORED)
async def test_these_are_ignored_and_named_for_a_prompted_server(path, parameters, ignored):
    async with chat_server(build_completion("hello")) as server:
        assert (await post(connect(server, "prompted"), path, parameters))[:2] == (200, ignored)


@pytest.mark.parametrize(("path", "parameters", "ignored"), IGNORED_BY_A_FUNCTION)
async def test_a_function_ignores_and_names_what_it_has_no_argument_for(path, parameters, ignored):
    assert (await post(create_function(), path, parameters))[:2] == (200, ignored)


@pytest.mark.parametrize("path", BODIES)
async def test_the_reply_of_a_function_ends_at_a_stop_text(path):
    model = CallableModel(lambda prompt: "one END two")
    name = "stop_sequences" if path == "messages" else "stop"
    status, _, raw = await post(TextProtocolModel(model, "protocol"), path, {name: ["END"]})
    assert (status, b"one" in raw, b"two" in raw) == (
        (400, False, False) if path == "responses" else (200, True, False)
    )


@pytest.mark.parametrize("tools", [False, True])
async def test_a_schema_that_a_model_cannot_enforce_is_requested_in_the_prompt(tools):
    said = [{"type": "text", "text": 'Sure: {"a": 1}'}], [{"type": "text", "text": '{"a": 1}'}]
    replies = [respond_json({"content": content, "stop_reason": "end_turn", "usage": {}}) for content in said]
    schema = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}
    body = {
        "model": "m",
        "messages": HI,
        "response_format": schema,
        **({"tools": BODIES[CHAT]["tools"]} if tools else {}),
    }
    async with (
        chat_server(*replies) as server,
        serve_models(AnthropicModel("claude", "key", server.url, retry_policy=RetryPolicy(1))) as url,
        aiohttp.ClientSession() as session,
        session.post(f"{url}/{CHAT}", json=body) as response,
    ):
        reply = await response.json()
    assert reply["choices"][0]["message"]["content"] == '{"a": 1}'
    assert [orjson.dumps(SCHEMA).decode() in body["system"] for body in server.bodies] == [True, True]


@pytest.mark.parametrize(
    ("model", "parameters", "ignored"),
    [("claude", {"seed": 1}, "seed"), ("claude-opus-4-7", {"temperature": 0.2, "top_p": 1}, "temperature")],
)
async def test_the_options_that_a_model_of_anthropic_lacks_are_named(model, parameters, ignored):
    reply = respond_json({"content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn", "usage": {}})
    async with (
        chat_server(reply) as server,
        serve_models(AnthropicModel(model, "key", server.url, retry_policy=RetryPolicy(1))) as url,
        aiohttp.ClientSession() as session,
        session.post(f"{url}/{CHAT}", json={"model": "m", "messages": HI, **parameters}) as response,
    ):
        assert (response.status, response.headers["opposable-ignored-parameters"]) == (200, ignored)
    assert server.bodies[0].keys().isdisjoint(parameters)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("path", "body", "ignored"),
    [
        ("messages", {"output_config": {"强度": 1, "a\r\nb: c": 1}}, "output_config.%E5%BC%BA%E5%BA%A6, output_config.a%0D%0Ab%3A%20c"),
        ("responses", {"reasoning": {"强": 1}}, "reasoning.%E5%BC%BA"),
    ],
)  # fmt: skip
async def test_ignored_parameters_may_have_any_name(path, body, ignored, stream):
    async with serve_models(ScriptedModel("hello")) as url, aiohttp.ClientSession() as session:
        request = {"model": "m", **BODIES[path], **body, "stream": stream}
        async with session.post(f"{url}/{path}", json=request) as response:
            assert (response.status, b"hello" in await response.read()) == (200, True)
            assert response.headers["opposable-ignored-parameters"].endswith(ignored)
