"""Real clients do a task of two steps through the gateway with a model that writes its calls as text."""

import orjson
import pytest
from tests.web.gateway.clients import CLIENTS, ORDER, STATUS, ToolLog
from tests.web.serving import serve_models

from opposable.models.scripted import ScriptedModel
from opposable.models.text_protocol import TextProtocolModel

pytestmark = pytest.mark.anyio

WAYS = {
    "hermes": '<tool_call>\n{{"name": "{0}", "arguments": {{"{1}": "{2}"}}}}\n</tool_call>',
    "seed protocol": '{{"reasoning": "r", "action": "tool_call", "tool_calls": [{{"name": "{0}", "arguments": {{"{1}": "{2}"}}}}]}}',
    "fenced JSON": 'I call it now.\n```json\n{{"name": "{0}", "arguments": {{"{1}": "{2}"}}}}\n```',
}


def written(way, messages):
    """What a model without tools writes next: each step needs what the one before brought."""
    results = [message.content for message in messages if message.content.startswith("Result of")]
    if not results:
        return WAYS[way].format("find_order", "customer", "Ada Byron")
    if len(results) == 1:
        order = results[0].rpartition(" ")[2]
        return WAYS[way].format("order_status", "order_number", order)
    return f"The order was {results[1].rpartition(': ')[2]}."


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
async def test_each_client_completes_both_steps(client, way):
    model = TextProtocolModel(ScriptedModel(lambda messages: written(way, messages), chunk_size=5), "protocol")
    log = ToolLog()
    async with serve_models(model) as url:
        answer = await client(url, "m", "none", log)
    assert log.calls == [("find_order", "Ada Byron"), ("order_status", ORDER)]
    assert answer == f"The order was {STATUS}."
    assert len(model.inner.requests) == 3


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
async def test_a_hallucinated_tool_does_not_end_the_run(client):
    """Clients that raise at a tool they do not know never hear of it."""
    lines = [orjson.dumps({"name": "search_web", "arguments": {"q": "x"}}).decode(), "I cannot look that up."]
    async with serve_models(TextProtocolModel(ScriptedModel(*lines), "protocol")) as url:
        answer = await client(url, "m", "none", log := ToolLog())
    assert (answer, log.calls) == ("I cannot look that up.", [])
