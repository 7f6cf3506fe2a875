"""Bodies that are almost valid: every API answers, or says in a sentence of its own format what is wrong."""

import copy
import json
import logging
import re
from typing import Any

import aiohttp
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.models.chat_server import build_completion, chat_server, respond_json
from tests.models.responses_server import build_response, call_item, message_item
from tests.web.api.chat_serving import serve_service
from tests.web.serving import serve_models

from opposable.models.anthropic import AnthropicModel
from opposable.models.calling_modes import apply_calling_mode
from opposable.models.http_client import RetryPolicy
from opposable.models.openai_compatible import CHAT_APIS, OpenAICompatibleModel, ServerQuirks
from opposable.models.profile import set_images
from opposable.models.scripted import ScriptedModel
from opposable.models.text_protocol import TextProtocolModel

pytestmark = pytest.mark.anyio

EXAMPLES = 80
PIXEL = "data:image/png;base64,iVBORw0KGgo="
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"anyOf": [{"$ref": "#/$defs/c"}, {"enum": ["x", None]}]}},
    "required": ["a"],
    "$defs": {"c": {"type": "array", "items": {"type": "string", "maxLength": 3}}},
}
FUNCTION = {"name": "add", "description": "Add.", "parameters": SCHEMA, "strict": True}
CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
CHAT: dict[str, Any] = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "add"}]},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "1"},
        {"role": "user", "content": "again"},
    ],
    "tools": [{"type": "function", "function": FUNCTION}],
    "tool_choice": {"type": "function", "function": {"name": "add"}},
    "parallel_tool_calls": False,
    "stream_options": {"include_usage": True},
    "max_completion_tokens": 9,
    "temperature": 0.5,
    "stop": ["END"],
    "seed": 3,
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}
IMAGE = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": PIXEL, "detail": "low"}}]}
MESSAGES: dict[str, Any] = {
    "model": "m",
    "max_tokens": 9,
    "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "add"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}}]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "1"}]}],
        },
    ],
    "tools": [{"name": "add", "description": "Add.", "input_schema": SCHEMA}],
    "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
    "stop_sequences": ["END"],
    "temperature": 0.5,
    "thinking": {"type": "enabled", "budget_tokens": 1024},
}
SOURCE = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
RESPONSES: dict[str, Any] = {
    "model": "m",
    "instructions": "Be brief.",
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "add"}]},
        {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "function_call", "call_id": "c1", "name": "add", "arguments": '{"a": 1}'},
        {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "1"}]},
        {"type": "custom_tool_call", "call_id": "c2", "name": "sh", "input": "ls"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": "a"},
    ],
    "tools": [
        {"type": "function", **FUNCTION},
        {"type": "custom", "name": "sh", "format": {"type": "grammar", "syntax": "lark", "definition": "start: /a/"}},
        {"type": "namespace", "name": "n", "tools": [{"type": "function", **FUNCTION}]},
    ],
    "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "add"}]},
    "max_output_tokens": 9,
    "reasoning": {"effort": "low"},
    "include": ["reasoning.encrypted_content"],
    "store": True,
    "metadata": {"k": "v"},
}
SEEDS: dict[str, list[dict[str, Any]]] = {
    "chat/completions": [CHAT, {"model": "m", "messages": [IMAGE], "response_format": FORMAT, "n": 1, "user": "u"}],
    "messages": [
        MESSAGES,
        {**MESSAGES, "messages": [{"role": "user", "content": [{"type": "image", "source": SOURCE}]}]},
    ],
    "messages/count_tokens": [MESSAGES],
    "responses": [
        RESPONSES,
        {"model": "m", "input": "hi", "text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}}},
        {"model": "m", "input": "hi", "previous_response_id": "resp_1"},
    ],
    "embeddings": [{"model": "m", "input": ["a", [1, 2]], "dimensions": 8, "encoding_format": "float"}],
    "completions": [{"model": "m", "prompt": ["a"], "max_tokens": 3, "logprobs": 1, "suffix": "b", "echo": True}],
}
SERVER_RESPONSE = {
    **build_response(message_item("hi"), call_item("c1", '{"a": 1}')),
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
    "content": [{"type": "text", "text": "hi"}],
    "data": [],
}
WORDS = [
    "",
    "user",
    "tool",
    "function",
    "object",
    "add",
    "c1",
    "auto",
    "none",
    "text",
    "json_object",
    "#/$defs/c",
    "\ud800",
]
NUMBERS = st.sampled_from([0, -1, 1, 2**63, 10**30, -0.5, 1e308, 3.7])
SCALARS = st.none() | st.booleans() | NUMBERS | st.sampled_from(WORDS) | st.text(max_size=5)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "text", "name", "id"]), inner),
    max_leaves=8,
)
NEW_KEYS = [
    "functions",
    "function_call",
    "n",
    "logprobs",
    "logit_bias",
    "background",
    "prompt",
    "reasoning_effort",
    "x",
]


def list_places(node: Any) -> list[tuple[Any, Any]]:
    """Every container in a body with each of its keys or indexes."""
    keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    return [place for key in keys for place in [(node, key), *list_places(node[key])]]


@st.composite
def mutate(draw: Any, seeds: list[dict[str, Any]]) -> bytes:
    """A valid body with a few changes, or a part of its bytes."""
    body = copy.deepcopy(draw(st.sampled_from(seeds)))
    body["stream"] = draw(st.booleans())
    for _ in range(draw(st.integers(1, 3))):
        container, key = draw(st.sampled_from(list_places(body) or [(body, "model")]))
        match draw(st.sampled_from(["replace", "replace", "delete", "repeat", "wrap", "add"])):
            case "replace":
                container[key] = draw(VALUES)
            case "delete":
                del container[key]
            case "repeat" if isinstance(container, list):
                container += copy.deepcopy(container)
            case "wrap":
                container[key] = draw(st.sampled_from([[container[key]], {"text": container[key]}]))
            case _:
                body[draw(st.sampled_from(NEW_KEYS))] = draw(VALUES)
    raw = json.dumps(body).encode()
    if draw(st.integers(0, 9)) == 0:
        raw = raw[: draw(st.integers(0, len(raw)))] + draw(st.sampled_from([b"", b"\xff", b"[" * 5000]))
    return raw


def draw_examples(strategy: st.SearchStrategy[bytes], count: int) -> list[bytes]:
    drawn: list[bytes] = []

    @settings(max_examples=count, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def draw(value: bytes) -> None:
        drawn.append(value)

    draw()
    return drawn


async def send_bodies(url: str, path: str, caplog: pytest.LogCaptureFixture) -> dict[int, int]:
    """Send changed bodies, check every answer, and return how many had which status."""
    statuses: dict[int, int] = {}
    async with aiohttp.ClientSession(headers={"content-type": "application/json"}) as session:
        for raw in draw_examples(mutate(SEEDS[path]), EXAMPLES):
            async with session.post(f"{url}/{path}", data=raw) as response:
                text = await response.text()
            assert response.status < 500, (raw, text)
            assert not [record for record in caplog.records if record.exc_info], (raw, text)
            statuses[response.status] = statuses.get(response.status, 0) + 1
            if response.status != 200:
                check_error(json.loads(text), path)
    return statuses


def check_error(body: dict[str, Any], path: str) -> None:
    """Check that an error has the format of its API, and a message in plain words."""
    if path.startswith("messages"):
        assert (body["type"], set(body["error"])) == ("error", {"type", "message"})
    else:
        assert set(body["error"]) == {"message", "type", "param", "code"}
    message = body["error"]["message"]
    assert re.search(r"^[\w'\"].*\w.*[.…:)\"']$", message, re.DOTALL), message
    assert not re.search(r"Traceback|NoneType|object has no attribute|pydantic|KeyError", message), message


def create_text_model() -> TextProtocolModel:
    call = '<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>'
    model = TextProtocolModel(ScriptedModel(call, "done"))
    set_images(model, "placeholder")
    return model


TEXT_PATHS = ["chat/completions", "messages", "messages/count_tokens", "responses"]


@pytest.mark.parametrize("path", TEXT_PATHS)
async def test_a_model_that_writes_its_calls_as_text_answers_or_refuses(tmp_path, caplog, path):
    caplog.set_level(logging.ERROR)
    async with serve_service(tmp_path, create_text_model()) as (session, _):
        statuses = await send_bodies(f"{session._base_url}/v1", path, caplog)
    assert min(statuses.get(200, 0), statuses.get(400, 0)) > 2, statuses


@pytest.mark.parametrize(
    ("path", "mode"),
    [(path, mode) for path in ("chat/completions", "messages", "responses") for mode in ("native", "auto", "prompted")]
    + [("embeddings", "native"), ("completions", "native")],
)
async def test_a_model_of_a_server_answers_or_refuses(caplog, path, mode):
    caplog.set_level(logging.ERROR)
    async with chat_server(respond_json(SERVER_RESPONSE)) as server:
        quirks = ServerQuirks(apis=CHAT_APIS | {"responses"})
        inner = OpenAICompatibleModel("m", server.url, quirks=quirks, retry_policy=RetryPolicy(max_attempts=1))
        async with serve_models(apply_calling_mode(mode, inner)) as url:
            statuses = await send_bodies(url, path, caplog)
    assert statuses.get(200, 0) > 5, statuses


async def test_a_model_of_anthropic_answers_or_refuses(caplog):
    caplog.set_level(logging.ERROR)
    async with chat_server(respond_json(SERVER_RESPONSE)) as server:
        model = AnthropicModel("m", "key", server.url, retry_policy=RetryPolicy(max_attempts=1))
        async with serve_models(model) as url:
            for path in ("chat/completions", "messages", "responses"):
                await send_bodies(url, path, caplog)


async def test_an_embedding_of_a_model_without_them_is_refused(caplog):
    async with chat_server(build_completion("hi")), serve_models(create_text_model()) as url:
        for path in ("embeddings", "completions"):
            assert set(await send_bodies(url, path, caplog)) <= {400, 404}
