"""Further fields of calls return to their server through APIs that have no place for them."""

import aiohttp
import pytest
from tests.models.chat_server import build_completion, build_delta, chat_server, respond_events, respond_json
from tests.web.gateway.test_stored_responses import serve_keys
from tests.web.serving import serve_models

from opposable.domain.messages import Message, NativeReply, tool_message, user_message
from opposable.domain.tools import ToolCall
from opposable.models.anthropic import AnthropicModel
from opposable.models.openai_compatible import OpenAICompatibleModel, ServerQuirks
from opposable.models.openai_responses import OpenAIResponsesModel
from opposable.web.gateway.call_signatures import MAX_BYTES, MAX_CALLS, CallSignatures

pytestmark = pytest.mark.anyio

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
SIGNATURE = {"extra_content": {"google": {"thought_signature": "c2ln"}}}
CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}


async def exchange_messages(client, body):
    """Let a client of Anthropic's API send the first call of a reply back."""
    tools = [{"name": "add", "input_schema": SCHEMA}]
    url, headers = str(client.base_url).removesuffix("/"), {"authorization": f"Bearer {client.api_key}"}
    messages = [{"role": "user", "content": "add"}]
    options = {"model": "m", "max_tokens": 9, "tools": tools, "stream": False, **body}
    async with aiohttp.ClientSession(headers=headers) as session:
        async with session.post(f"{url}/messages", json={**options, "messages": messages}) as response:
            await response.read()
        use = {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}}
        result = {"type": "tool_result", "tool_use_id": "c1", "content": "1"}
        messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
        async with session.post(f"{url}/messages", json={**options, "messages": messages}) as response:
            await response.read()


async def exchange_responses(client, body):
    """Let a client of the responses API send the first call of a reply back."""
    options = {"model": "m", "tools": [{"type": "function", "name": "add", "parameters": SCHEMA}], **body}
    first = await client.responses.create(input="add", **options)
    if body.get("stream"):
        assert [event async for event in first]
    items = [
        {"role": "user", "content": "add"},
        {"type": "function_call", "call_id": "c1", "name": "add", "arguments": '{"a":1}'},
        {"type": "function_call_output", "call_id": "c1", "output": "1"},
    ]
    second = await client.responses.create(input=items, **options)
    if body.get("stream"):
        assert [event async for event in second]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("exchange", [exchange_messages, exchange_responses])
async def test_the_signature_of_a_call_returns_to_its_server(exchange, stream, tmp_path):
    whole = build_completion(None, [{**CALL, **SIGNATURE}], "tool_calls")
    streamed = respond_events(build_delta("tool_calls", tool_calls=[{"index": 0, **CALL, **SIGNATURE}]))
    async with (
        chat_server(streamed if stream else whole) as server,
        serve_keys(tmp_path, {"m": OpenAICompatibleModel("upstream", server.url)}) as (_, ann, bob),
    ):
        await exchange(ann, {"stream": stream})
        [sent] = next(m for m in server.bodies[1]["messages"] if m["role"] == "assistant")["tool_calls"]
        assert {name: sent[name] for name in ("id", "extra_content")} == {"id": "c1", **SIGNATURE}
        server.answers = [build_completion("done")] if not stream else [respond_events(build_delta("stop"))]
        server.bodies.clear()
        await exchange(bob, {"stream": stream})
        [sent] = next(m for m in server.bodies[1]["messages"] if m["role"] == "assistant")["tool_calls"]
        assert "extra_content" not in sent


REASONED_CALLS = [{**CALL, "id": call_id} for call_id in ("c1", "c2")]
THOUGHT = {"type": "thinking", "thinking": "Add.", "signature": "c2ln"}
USES = [{"type": "tool_use", "id": call_id, "name": "add", "input": {"a": 1}} for call_id in ("c1", "c2")]
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ZW5j"}
COMMENTARY = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "I add."}],
    "phase": "commentary",
}
FUNCTION_CALLS = [
    {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": "add", "arguments": '{"a": 1}'}
    for call_id in ("c1", "c2")
]


def create_chat(url):
    return OpenAICompatibleModel("upstream", url)


def create_anthropic(url):
    return AnthropicModel("upstream", "k", url)


def create_responses(url):
    return OpenAIResponsesModel("upstream", url)


def create_chatless(url):
    """A model that also gets chat completions by the responses API."""
    return OpenAIResponsesModel("upstream", url, quirks=ServerQuirks(apis=frozenset()))


async def send_message_back(url):
    """Let a client of Anthropic's API send a whole reply back with the results of its calls."""
    options = {"model": "m", "max_tokens": 9, "tools": [{"name": "add", "input_schema": SCHEMA}]}
    messages = [{"role": "user", "content": "add"}]
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{url}/messages", json={**options, "messages": messages}) as response:
            content = (await response.json())["content"]
        results = [{"type": "tool_result", "tool_use_id": call_id, "content": "1"} for call_id in ("c1", "c2")]
        messages += [{"role": "assistant", "content": content}, {"role": "user", "content": results}]
        async with session.post(f"{url}/messages", json={**options, "messages": messages}) as response:
            assert response.status == 200


async def send_response_back(url):
    """Let a client of the responses API send all items of a reply back with the results of its calls."""
    options = {"model": "m", "tools": [{"type": "function", "name": "add", "parameters": SCHEMA}], "store": False}
    items = [{"role": "user", "content": "add"}]
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{url}/responses", json={**options, "input": items}) as response:
            items += (await response.json())["output"]
        items += [{"type": "function_call_output", "call_id": call_id, "output": "1"} for call_id in ("c1", "c2")]
        async with session.post(f"{url}/responses", json={**options, "input": items}) as response:
            assert response.status == 200


async def send_completion_back(url):
    """Let a client of chat completions send a whole reply back with the results of its calls."""
    tools = [{"type": "function", "function": {"name": "add", "parameters": SCHEMA}}]
    messages = [{"role": "user", "content": "add"}]
    async with aiohttp.ClientSession() as session:
        body = {"model": "m", "tools": tools, "messages": messages}
        async with session.post(f"{url}/chat/completions", json=body) as response:
            messages.append((await response.json())["choices"][0]["message"])
        messages += [{"role": "tool", "tool_call_id": call_id, "content": "1"} for call_id in ("c1", "c2")]
        async with session.post(f"{url}/chat/completions", json=body) as response:
            assert response.status == 200


@pytest.mark.parametrize("field", [{"reasoning_content": "Add."}, {"reasoning_details": [{"type": "x", "data": "e"}]}])
@pytest.mark.parametrize("send_back", [send_message_back, send_response_back])
async def test_the_reasoning_of_calls_returns_to_a_server_of_chat_completions(send_back, field):
    """DeepSeek, Kimi and OpenRouter reject calls without it."""
    answer = build_completion("I add.", REASONED_CALLS, "tool_calls", **field)
    async with chat_server(answer) as server, serve_models(create_chat(server.url)) as url:
        await send_back(url)
    reply = server.bodies[1]["messages"][1]
    assert {name: reply.get(name) for name in field} == field
    assert [call["id"] for call in reply["tool_calls"]] == ["c1", "c2"]


@pytest.mark.parametrize(
    ("create_model", "answer", "send_back", "key", "sent"),
    [
        (
            create_anthropic,
            {"content": [THOUGHT, {"type": "text", "text": "I add."}, *USES], "stop_reason": "tool_use"},
            send_response_back,
            "messages",
            [{"role": "assistant", "content": [THOUGHT, {"type": "text", "text": "I add."}, *USES]}],
        ),
        (
            create_responses,
            {"status": "completed", "output": [REASONING, COMMENTARY, *FUNCTION_CALLS]},
            send_message_back,
            "input",
            [REASONING, COMMENTARY, *FUNCTION_CALLS],
        ),
        (
            create_anthropic,
            {"content": [THOUGHT, {"type": "text", "text": "I add."}, *USES], "stop_reason": "tool_use"},
            send_completion_back,
            "messages",
            [{"role": "assistant", "content": [THOUGHT, {"type": "text", "text": "I add."}, *USES]}],
        ),
        (
            create_chatless,
            {"status": "completed", "output": [REASONING, COMMENTARY, *FUNCTION_CALLS]},
            send_completion_back,
            "input",
            [REASONING, COMMENTARY, *FUNCTION_CALLS],
        ),
    ],
)
async def test_encrypted_reasoning_returns_to_its_server(create_model, answer, send_back, key, sent):
    async with chat_server(respond_json(answer)) as server, serve_models(create_model(server.url)) as url:
        await send_back(url)
    assert server.bodies[1][key][1 : 1 + len(sent)] == sent


def test_an_edited_reply_is_sent_as_edited():
    signatures = CallSignatures()
    items = (REASONING, COMMENTARY, FUNCTION_CALLS[0])
    signatures.save(build_reply("c1", 1, NativeReply("m", items), "I add."), [])
    assert signatures.restore([build_reply("c1", 1, text="I add.")])[0].get_native_items("m", "chat") == items
    assert signatures.restore([build_reply("c1", 1, text="Edited.")])[0].get_native_items("m", "chat") == ()


async def test_a_text_that_the_client_changed_is_sent_with_its_call():
    answer = {"content": [THOUGHT, {"type": "text", "text": "I add. "}, USES[0]], "stop_reason": "tool_use"}
    call = {"type": "function_call", "call_id": "c1", "name": "add", "arguments": '{"a": 1}'}
    result = {"type": "function_call_output", "call_id": "c1", "output": "1"}
    items = [{"role": "user", "content": "add"}, {"role": "assistant", "content": "I add."}, call, result]
    async with (
        chat_server(respond_json(answer)) as server,
        serve_models(create_anthropic(server.url)) as url,
        aiohttp.ClientSession() as session,
    ):
        for sent in ("add", items):
            async with session.post(f"{url}/responses", json={"model": "m", "input": sent, "store": False}) as response:
                assert response.status == 200
    assert server.bodies[1]["messages"][1]["content"] == [{"type": "text", "text": "I add."}, USES[0]]


def test_the_size_of_stored_replies_is_bounded():
    signatures = CallSignatures()
    for call_id in ("c1", "c2", "c2"):
        items = ({"type": "reply", "reasoning_content": "x" * (MAX_BYTES * 3 // 5)},)
        signatures.save(build_reply(call_id, 1, NativeReply("m", items)), [])
    assert signatures.restore([build_reply("c1", 1)])[0].native is None
    assert signatures.restore([build_reply("c2", 1)])[0].native is not None


def build_reply(call_id, value, native=None, text=""):
    return Message("assistant", text, tool_calls=(ToolCall(call_id, "add", {"a": value}),), native=native)


def test_numbers_beyond_64_bits_have_fields_too():
    signatures = CallSignatures()
    items = ({"type": "function", "id": "c1", "x": 1},)
    signatures.save(build_reply("c1", 2**70, NativeReply("m", items)), [])
    assert signatures.restore([build_reply("c1", 2**70 + 1)])[0].native is None
    assert signatures.restore([build_reply("c1", 2**70)])[0].get_native_items("m", "chat") == items


def test_the_fields_of_changed_calls_and_of_old_ones_are_gone():
    signatures = CallSignatures()

    def save(call_id):
        signatures.save(build_reply(call_id, 1, NativeReply("m", ({"type": "function", "id": call_id, "x": 1},))), [])

    save("c1")
    assert signatures.restore([build_reply("c1", 2)]) == (build_reply("c1", 2),)
    [restored] = signatures.restore([build_reply("c1", 1)])
    assert restored.get_native_items("m", "chat") == ({"type": "function", "id": "c1", "x": 1},)
    for n in range(MAX_CALLS):
        save(f"later{n}")
    assert signatures.restore([build_reply("c1", 1)])[0].native is None


def test_calls_of_other_conversations_with_the_same_id_have_their_own_fields():
    """Kimi numbers the calls of each conversation (`add:0`), other servers those of each reply."""
    signatures = CallSignatures()
    alice, bob = [user_message("I am Alice. Add 1.")], [user_message("I am Bob. Add 1.")]
    again = [*alice, build_reply("add:0", 1), tool_message("add:0", "add", "0, try again")]
    for history, thought in ((alice, "Alice asks."), (bob, "Bob asks."), (again, "Once more.")):
        items = ({"type": "reply", "reasoning_content": thought},)
        signatures.save(build_reply("add:0", 1, NativeReply("m", items)), history)

    def restore(*history):
        replies = signatures.restore([*history, build_reply("add:0", 1)])
        native = [message.native for message in replies if message.role == "assistant"]
        return [one and one.items[0]["reasoning_content"] for one in native]

    assert restore(*bob) == ["Bob asks."]
    assert restore(*again) == ["Alice asks.", "Once more."]
    assert restore(user_message("Somebody else asks.")) == [None]


def test_a_call_has_its_fields_after_the_client_changed_earlier_messages():
    signatures = CallSignatures()
    items = ({"type": "function", "id": "c1", "x": 1},)
    signatures.save(build_reply("c1", 1, NativeReply("m", items)), [user_message("A long question.")])
    [_, restored] = signatures.restore([user_message("[cut]"), build_reply("c1", 1)])
    assert restored.get_native_items("m", "chat") == items
