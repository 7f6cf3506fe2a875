"""Stored responses: those of the gateway, and those that the server of a model stores."""

from contextlib import AsyncExitStack, asynccontextmanager

import aiohttp
import openai
import orjson
import pytest
from aiohttp import web
from tests.http_server import serve_aiohttp_app
from tests.models.chat_server import chat_server, respond_events, respond_json
from tests.web.api.chat_serving import create_settings
from tests.web.serving import serve_app, serve_models

from opposable.domain.messages import assistant_message
from opposable.models.anthropic import AnthropicModel
from opposable.models.fallback import FallbackModel
from opposable.models.openai_compatible import CHAT_APIS, OpenAICompatibleModel, ServerQuirks
from opposable.models.scripted import ScriptedModel, reply_with_calls, tool_call
from opposable.service.service import open_service
from opposable.store.keys import generate_key
from opposable.web.server import create_app

pytestmark = pytest.mark.anyio

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
ADD = {"type": "function", "name": "add", "description": "Add.", "parameters": SCHEMA}
USAGE = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}


class ResponsesServer:
    """Stores responses as OpenAI does; `requests` are the methods and paths that came."""

    def __init__(self):
        self.url = ""
        self.requests = []
        self.responses = {}

    async def create(self, request):
        body = orjson.loads(await request.read())
        self.requests.append((request.method, request.path_qs, body.get("previous_response_id")))
        response = {"id": f"resp_{len(self.responses)}", "object": "response", "status": "completed", "usage": USAGE}
        reasoning = {"type": "reasoning", "id": f"rs_{len(self.responses)}", "summary": []}
        response |= {"output": [reasoning], "made_up": 1.0, "model": body["model"]}
        conversation = body.get("conversation")
        response["conversation"] = {"id": conversation} if isinstance(conversation, str) else conversation
        self.responses[response["id"]] = response
        if not body.get("stream"):
            return web.json_response(response)
        events = [
            {"type": "response.created", "response": {**response, "output": []}},
            {"type": "response.output_item.done", "output_index": 0, "item": reasoning},
            {"type": "response.completed", "response": response},
        ]
        raw = "".join(f"event: {event['type']}\ndata: {orjson.dumps(event).decode()}\n\n" for event in events)
        return web.Response(text=raw, content_type="text/event-stream")

    async def answer_below(self, request):
        body = orjson.loads(await request.read())
        self.requests.append((request.method, request.path_qs, body))
        if request.path.endswith("/input_tokens"):
            return web.json_response({"object": "response.input_tokens", "input_tokens": 7, "made_up": 1})
        output = [{"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA"}]
        return web.json_response({"id": "resp_c", "object": "response.compaction", "output": output, "usage": USAGE})

    async def handle(self, request):
        self.requests.append((request.method, request.path_qs, await request.text()))
        response = self.responses.get(request.match_info["id"])
        if response is None:
            error = {"error": {"message": "Not found upstream.", "type": "invalid_request_error", "code": None}}
            return web.json_response(error, status=404)
        if request.query.get("stream") == "true":
            return web.Response(text='data: {"type": "response.completed"}\n\n', content_type="text/event-stream")
        if request.method == "DELETE":
            del self.responses[response["id"]]
            return web.json_response({"id": response["id"], "deleted": True, "made_up": 1})
        if request.path.endswith("/input_items"):
            data = [{"id": f"msg_{response['id']}", "type": "message", "role": "user", "content": []}]
            return web.json_response({"object": "list", "data": data, "made_up": 1})
        return web.json_response({**response, "status": "cancelled"} if request.method == "POST" else response)


@asynccontextmanager
async def responses_server():
    server = ResponsesServer()
    app = web.Application()
    app.router.add_post("/v1/responses", server.create)
    app.router.add_post("/v1/responses/{path:input_tokens|compact}", server.answer_below)
    app.router.add_get("/v1/responses/{id}", server.handle)
    app.router.add_delete("/v1/responses/{id}", server.handle)
    app.router.add_get("/v1/responses/{id}/input_items", server.handle)
    app.router.add_post("/v1/responses/{id}/cancel", server.handle)
    async with serve_aiohttp_app(app) as url:
        server.url = f"{url}/v1"
        yield server


def connect(server):
    return OpenAICompatibleModel("upstream", server.url, quirks=ServerQuirks(apis=CHAT_APIS | {"responses"}))


def open_client(url, key="none"):
    return openai.AsyncOpenAI(base_url=url, api_key=key, max_retries=0)


@asynccontextmanager
async def serve_keys(tmp_path, models):
    """Serve models with two keys, and yield a client with the key of the server, and one with each of them."""
    async with open_service(create_settings(tmp_path), models) as service:
        secrets = ["server"]
        for name in ("ann", "bob"):
            secret, record = generate_key(name, ("chat",))
            await service.store.keys.add(record)
            secrets.append(secret)
        async with AsyncExitStack() as stack:
            for model in models.values():
                stack.push_async_callback(model.aclose)
            url = await stack.enter_async_context(serve_app(create_app(service, api_key="server")))
            yield [await stack.enter_async_context(open_client(f"{url}/v1", secret)) for secret in secrets]


async def check_isolation(owner, others, response_id):
    """Check that the other clients can neither read, list, cancel, delete nor continue a response of the owner."""
    for other in others:
        for request in (
            other.responses.retrieve(response_id),
            other.responses.input_items.list(response_id),
            other.responses.cancel(response_id),
            other.responses.delete(response_id),
            other.responses.create(model="m", input="go on", previous_response_id=response_id),
        ):
            with pytest.raises(openai.NotFoundError, match="There is no response"):
                await request
    assert (await owner.responses.retrieve(response_id)).id == response_id


async def test_a_stored_response_is_read_listed_and_deleted():
    model = ScriptedModel(reply_with_calls(tool_call("add", '{"a": 1}', "c1"), text="I add."), "done", "again")
    async with serve_models(model) as url, open_client(url) as client:
        first = await client.responses.create(model="m", input="one", tools=[ADD], instructions="be kind")
        assert (await client.responses.retrieve(first.id)).model_dump() == first.model_dump()
        output = {"type": "function_call_output", "call_id": "c1", "output": "2"}
        options = {"model": "m", "input": [output], "tools": [ADD], "previous_response_id": first.id}
        async with client.responses.stream(**options) as events:
            second = await events.get_final_response()
        stored = await client.responses.retrieve(second.id, include=["reasoning.encrypted_content"])
        assert (stored.output_text, stored.usage) == ("done", second.usage)
        items = [item async for item in client.responses.input_items.list(second.id, order="asc", limit=2)]
        kinds = ["message", "message", "function_call", "function_call_output"]
        assert [item.type for item in items] == kinds
        assert (items[0].content[0].text, items[3].output) == ("one", "2")
        assert all(item.id for item in items)
        newest = await client.responses.input_items.list(second.id, limit=1)
        assert ([item.type for item in newest.data], newest.has_more) == (["function_call_output"], True)
        with pytest.raises(openai.BadRequestError, match="background"):
            await client.responses.cancel(second.id)
        with pytest.raises(openai.BadRequestError, match="cannot be streamed"):
            await client.responses.retrieve(second.id, stream=True)
        with pytest.raises(openai.BadRequestError, match="from 1 to 100"):
            await client.responses.input_items.list(second.id, limit=0)
        with pytest.raises(openai.BadRequestError, match="from 1 to 100"):
            await client.responses.input_items.list(second.id, extra_query={"limit": "9" * 5000})
        await client.responses.delete(second.id)
        with pytest.raises(openai.NotFoundError, match="There is no response"):
            await client.responses.retrieve(second.id)


async def test_a_response_that_is_not_stored_cannot_be_read():
    async with serve_models(ScriptedModel("a")) as url, open_client(url) as client:
        response = await client.responses.create(model="m", input="one", store=False)
        with pytest.raises(openai.NotFoundError):
            await client.responses.retrieve(response.id)


@pytest.mark.parametrize("stream", [False, True])
async def test_requests_about_a_response_of_the_server_are_relayed(stream):
    async with (
        responses_server() as server,
        serve_models(connect(server)) as url,
        aiohttp.ClientSession() as session,
    ):

        async def send(method, path, **options):
            async with session.request(method, f"{url}/responses{path}", **options) as response:
                return response.status, await response.read()

        await send("POST", "", json={"model": "m", "input": "hi", "stream": stream})
        raw = orjson.dumps(server.responses["resp_0"])
        status, content = await send("GET", "/resp_0?include=a&include=b")
        assert (status, orjson.loads(content)) == (200, orjson.loads(raw))
        assert await send("GET", "/resp_0?stream=true") == (200, b'data: {"type": "response.completed"}\n\n')
        assert b"made_up" in (await send("GET", "/resp_0/input_items?limit=3&order=asc"))[1]
        assert orjson.loads((await send("POST", "/resp_0/cancel"))[1])["status"] == "cancelled"
        assert orjson.loads((await send("DELETE", "/resp_0"))[1]) == {"id": "resp_0", "deleted": True, "made_up": 1}
        assert (await send("GET", "/resp_0"))[0] == 404
    assert [(method, path) for method, path, _ in server.requests] == [
        ("POST", "/v1/responses"),
        ("GET", "/v1/responses/resp_0?include=a&include=b"),
        ("GET", "/v1/responses/resp_0?stream=true"),
        ("GET", "/v1/responses/resp_0/input_items?limit=3&order=asc"),
        ("POST", "/v1/responses/resp_0/cancel"),
        ("DELETE", "/v1/responses/resp_0"),
    ]


@pytest.mark.parametrize("kind", ["stored here", "stored by the server"])
async def test_no_key_reads_or_continues_the_response_of_another(tmp_path, kind):
    async with responses_server() as server:
        model = connect(server) if kind == "stored by the server" else ScriptedModel("a", "b")
        async with serve_keys(tmp_path, {"m": model}) as (server_owner, ann, bob):
            first = await ann.responses.create(model="m", input="one")
            await check_isolation(ann, [bob, server_owner], first.id)
            second = await ann.responses.create(model="m", input="two", previous_response_id=first.id)
            assert second.id != first.id
            with pytest.raises(openai.NotFoundError):
                await bob.responses.create(model="m", input="two", previous_response_id="resp_unknown")
    assert [path for method, path, _ in server.requests if method == "DELETE"] == []


async def test_a_response_is_read_from_the_server_that_created_it():
    async with responses_server() as first, responses_server() as second:
        models = {"m": FallbackModel("m", [connect(first), connect(second)]), "own": ScriptedModel("a")}
        async with serve_models(models) as url, open_client(url) as client:
            created = await client.responses.create(model="m", input="hi")
            with pytest.raises(openai.NotFoundError, match="There is no response"):
                await client.responses.create(model="own", input="go on", previous_response_id=created.id)
            own = await client.responses.create(model="own", input="hi")
            with pytest.raises(openai.NotFoundError, match="There is no response"):
                await client.responses.create(model="m", input="go on", previous_response_id=own.id)
            await client.responses.retrieve(created.id)
    assert [method for method, _, _ in first.requests] == ["POST", "GET"]
    assert second.requests == []


@pytest.mark.parametrize("stream", [False, True])
async def test_no_key_refers_to_an_item_of_the_response_of_another(tmp_path, stream):
    async with responses_server() as server, serve_keys(tmp_path, {"m": connect(server)}) as (server_owner, ann, bob):

        async def refer(client, **item):
            path = {"create": client.responses.create, "count": client.responses.input_tokens.count}
            for send in path.values():
                await send(model="m", input=[item, {"role": "user", "content": "go on"}])

        created = await ann.responses.create(model="m", input="one", stream=stream)
        if stream:
            assert [event.type async for event in created][-1] == "response.completed"
        await ann.responses.input_items.list("resp_0")
        for item in ("rs_0", "msg_resp_0"):
            await refer(ann, type="item_reference", id=item)
            for other in (bob, server_owner):
                for reference in ({"type": "item_reference"}, {}, {"type": "reasoning", "summary": []}):
                    with pytest.raises(openai.NotFoundError, match=f"There is no item '{item}'"):
                        await refer(other, id=item, **reference)
        with pytest.raises(openai.NotFoundError, match="There is no item 'rs_unknown'"):
            await refer(bob, type="item_reference", id="rs_unknown")
        await refer(bob, type="reasoning", id="rs_of_another_server", summary=[])
        await refer(bob, type="reasoning", id="rs_0", summary=[], encrypted_content="gAAAA")


@pytest.mark.parametrize("stream", [False, True])
async def test_a_reference_to_an_item_stored_here_is_resolved(tmp_path, stream):
    """As the AI SDK of Vercel sends the conversation by default."""
    made = assistant_message("I add.", (tool_call("add", '{"a": 1}', "c1"),), "Sum.")
    model = ScriptedModel(made, "done")
    async with serve_keys(tmp_path, {"m": model}) as (_, ann, bob):
        created = await ann.responses.create(model="m", input="one", tools=[ADD], stream=stream)
        if stream:
            created = [event async for event in created][-1].response
        references = [{"type": "item_reference", "id": item.id} for item in created.output]
        output = {"type": "function_call_output", "call_id": "c1", "output": "2"}
        items = [{"role": "user", "content": "one"}, *references, output]
        for client, sent in ((bob, items), (ann, [{"id": f"{references[0]['id']}0"}])):
            with pytest.raises(openai.NotFoundError, match="There is no item"):
                await client.responses.create(model="m", input=sent, tools=[ADD])
        await ann.responses.create(model="m", input=items, tools=[ADD])
    _, reply, result = model.requests[1].messages
    assert (reply.thinking, reply.content, reply.tool_calls[0].id) == ("Sum.", "I add.", "c1")
    assert (result.content, len({item.id for item in created.output})) == ("2", 3)


@pytest.mark.parametrize("conversation", ["conv_1", {"id": "conv_1"}])
async def test_no_key_continues_the_conversation_of_another(tmp_path, conversation):
    async with responses_server() as server, serve_keys(tmp_path, {"m": connect(server)}) as (server_owner, ann, bob):
        for _ in range(2):
            await ann.responses.create(model="m", input="one", conversation=conversation)
        for other in (bob, server_owner):
            with pytest.raises(openai.NotFoundError, match="There is no conversation 'conv_1'"):
                await other.responses.create(model="m", input="go on", conversation=conversation)
        await bob.responses.create(model="m", input="one", conversation="conv_2")
    assert len(server.requests) == 3


@pytest.mark.parametrize("stream", [False, True])
async def test_no_key_continues_the_thread_of_another(tmp_path, stream):
    answer = {"id": "msg_1", "type": "message", "content": [], "stop_reason": "end_turn", "usage": USAGE}
    started = {"type": "message_start", "message": answer}
    respond = respond_events(started, {"type": "message_stop"}, done=False) if stream else respond_json(answer)
    async with (
        chat_server(respond) as server,
        serve_keys(tmp_path, {"m": AnthropicModel("claude", "k", server.url)}) as clients,
    ):

        async def send(client, **thread):
            body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], "stream": stream}
            headers = {"authorization": f"Bearer {client.api_key}"}
            async with (
                aiohttp.ClientSession(headers=headers) as session,
                session.post(f"{client.base_url}messages", json={**body, "thread": thread}) as response,
            ):
                return response.status, await response.text()

        server_owner, ann, bob = clients
        assert (await send(ann, type="create"))[0] == 200
        for other in (bob, server_owner):
            status, text = await send(other, type="continue", previous_message_id="msg_1")
            assert (status, orjson.loads(text)["error"]["details"]) == (404, {"error_code": "thread_not_found"})
        assert (await send(bob, type="continue", previous_message_id="msg_unknown"))[0] == 404
        assert (await send(ann, type="continue", previous_message_id="msg_1"))[0] == 200
        assert (await send(server_owner, type="continue", previous_message_id="msg_unknown"))[0] == 200
    assert len(server.bodies) == 3


async def test_input_tokens_and_compaction_are_relayed_to_a_server_that_has_them(tmp_path):
    async with responses_server() as server, serve_keys(tmp_path, {"m": connect(server)}) as (_, ann, bob):
        assert (await ann.responses.input_tokens.count(model="m", input="hi")).input_tokens == 7
        compacted = await ann.responses.compact(model="m", input="hi")
        assert (compacted.id, compacted.output[0].type) == ("resp_c", "compaction")
        assert server.requests == [
            ("POST", "/v1/responses/input_tokens", {"model": "upstream", "input": "hi"}),
            ("POST", "/v1/responses/compact", {"model": "upstream", "input": "hi"}),
        ]
        for request in (bob.responses.input_tokens.count, bob.responses.compact):
            with pytest.raises(openai.NotFoundError, match="There is no response"):
                await request(model="m", input="hi", previous_response_id="resp_c")
            with pytest.raises(openai.NotFoundError, match="There is no model"):
                await request(model="other", input="hi")


async def test_input_tokens_are_estimated_and_compaction_refused_for_other_models():
    async with serve_models(ScriptedModel("a")) as url, open_client(url) as client:
        short = await client.responses.input_tokens.count(model="m", input="hi")
        long = await client.responses.input_tokens.count(model="m", input="hi " * 400, tools=[ADD])
        assert (short.object, short.input_tokens) == ("response.input_tokens", 8)
        assert long.input_tokens > 300
        with pytest.raises(openai.BadRequestError, match="cannot compact a conversation"):
            await client.responses.compact(model="m", input="hi")
