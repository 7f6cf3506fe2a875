"""The tokens of relayed requests, and the token budget of an API key."""

from contextlib import suppress

import orjson
import pytest
from tests.models.chat_server import chat_server, respond_json
from tests.web.gateway.test_relay import WHOLE, connect, post
from tests.web.serving import serve_models

from opposable.domain.usage import Usage
from opposable.models.scripted import ScriptedModel
from opposable.models.upstream import ClientRequest, find_upstream
from opposable.web.gateway.relay_meter import RelayMeter
from opposable.web.middleware.authentication import CURRENT_CALLER, Caller
from opposable.web.middleware.request_limits import TokenUsageRecorder
from opposable.web.principal import Principal
from opposable.web.telemetry.metered_model import MeteredModel

pytestmark = pytest.mark.anyio

HI = {"messages": [{"role": "user", "content": "hi"}]}
PHOTO = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{'iVBORw0KGgo' * 100_000}"}}
SHOWN = {"messages": [{"role": "user", "content": [PHOTO, {"type": "text", "text": "What is this?"}]}]}


@pytest.mark.parametrize(
    ("budget", "body", "sent"),
    [
        (100_000_000, HI, HI),
        (100_000_000, {**HI, "max_tokens": 20_000}, {**HI, "max_tokens": 20_000}),
        (1_009, HI, {**HI, "max_tokens": 998}),
        (1_013, {**HI, "max_completion_tokens": 5_000}, {**HI, "max_completion_tokens": 995}),
        (100_000, SHOWN, SHOWN),
    ],
    ids=["no limit", "a lower limit", "little left", "a higher limit", "an image"],
)
async def test_a_budget_changes_only_requests_that_may_exceed_it(budget, body, sent):
    async with chat_server(respond_json(WHOLE)) as server:
        model = connect(server)
        principal = Principal("k1", "front end", frozenset({"chat"}), token_budget=budget)
        token = CURRENT_CALLER.set(Caller(principal, TokenUsageRecorder(keys=None)))
        try:
            limited = RelayMeter(model, body).limit_to_budget(
                ClientRequest(body), find_upstream(model, "chat/completions")
            )
        finally:
            CURRENT_CALLER.reset(token)
            await model.aclose()
    assert limited.body == sent


@pytest.mark.parametrize("usage", [None, [1], "none", {"prompt_tokens": None}])
async def test_a_reply_without_counts_passes(usage):
    whole = {**WHOLE, "usage": usage}
    async with chat_server(respond_json(whole)) as server, serve_models(connect(server)) as url:
        status, raw, _ = await post(url, HI)
    assert (status, raw) == (200, orjson.dumps(whole))


@pytest.mark.parametrize(
    ("reported", "counted"),
    [
        ([], Usage(11, 3, 1)),
        ([{}], Usage(11, 503, 1)),
        ([{"input_tokens": 100, "output_tokens": 1}], Usage(100, 4, 1)),
        ([{"input_tokens": 100, "output_tokens": 1}, {"output_tokens": 900}], Usage(100, 903, 1)),
        ([{"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 8}}], Usage(9, 3, 1, 8)),
        ([{"input_tokens": 9, "input_tokens_details": {"cached_tokens": 8}}], Usage(9, 3, 1, 8)),
        ([{"input_tokens": 9, "cache_read_input_tokens": 8, "cache_creation_input_tokens": 7}], Usage(24, 3, 1, 8)),
    ],
    ids=[
        "no usage",
        "no counts",
        "at the beginning",
        "at both ends",
        "chat cache",
        "responses cache",
        "messages cache",
    ],
)
def test_what_was_streamed_after_the_last_usage_of_a_cut_reply_counts(reported, counted):
    model = ScriptedModel("unused")
    calls = []
    with suppress(GeneratorExit), RelayMeter(MeteredModel(model, [calls.append]), HI) as meter:
        for usage in reported:
            meter.count_events(b"data: {}\n\n" * 500)
            meter.read_usage(usage)
        meter.count_events(b"data: {}\n\n" * 3)
        raise GeneratorExit
    assert [call.usage for call in calls] == [counted]
