"""Every request to a model counts for the token budget of its key, also one that is cut."""

import asyncio
from contextlib import aclosing

import pytest

from opposable.domain.errors import ModelRejected, ModelUnavailable
from opposable.domain.events import Reply, TextDelta
from opposable.domain.messages import assistant_message, user_message
from opposable.domain.usage import Usage
from opposable.models.base import ModelOptions
from opposable.models.scripted import ScriptedModel
from opposable.web.middleware.authentication import CURRENT_CALLER, Caller
from opposable.web.middleware.request_limits import TokenUsageRecorder
from opposable.web.principal import Principal
from opposable.web.telemetry.metered_model import MeteredModel

pytestmark = pytest.mark.anyio

QUESTION = (user_message("x" * 400),)  # about 108 tokens


@pytest.fixture
def token_usage():
    """The tokens of a key with a budget of 1000 tokens, of which other processes used 400."""
    recorder = TokenUsageRecorder(keys=None)
    token = CURRENT_CALLER.set(Caller(Principal("k", token_budget=1000), recorder, 400))
    yield recorder
    CURRENT_CALLER.reset(token)


class BrokenModel(ScriptedModel):
    """A model whose stream breaks off after a text, or before it."""

    def __init__(self, *texts: str) -> None:
        super().__init__("")
        self._texts = texts

    async def stream(self, messages, tools=(), options=None):
        for text in self._texts:
            yield TextDelta(text)
        raise ModelUnavailable("gone")


async def test_a_request_that_is_cut_counts_its_prompt_and_what_was_streamed(token_usage):
    model = MeteredModel(ScriptedModel("y" * 800, chunk_size=200), ())
    async with aclosing(model.stream(QUESTION)) as parts:
        await anext(parts)
        await anext(parts)
    assert token_usage.get_recorded_tokens("k") == 108 + 100


async def test_a_request_that_is_cancelled_before_its_first_token_counts_its_prompt(token_usage):
    class SilentModel(ScriptedModel):
        async def stream(self, messages, tools=(), options=None):
            await asyncio.Event().wait()
            yield TextDelta("never")

    task = asyncio.create_task(anext(MeteredModel(SilentModel(""), ()).stream(QUESTION)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert token_usage.get_recorded_tokens("k") == 108


@pytest.mark.parametrize(("texts", "tokens"), [((), 0), (("y" * 40,), 108 + 10), (("计算",), 108 + 2)])
async def test_a_stream_that_breaks_off_counts_only_after_its_first_token(token_usage, texts, tokens):
    parts = MeteredModel(BrokenModel(*texts), ()).stream(QUESTION)
    assert [(await anext(parts)).text for _ in texts] == list(texts)
    with pytest.raises(ModelUnavailable):
        await anext(parts)
    assert token_usage.get_recorded_tokens("k") == tokens


async def test_a_whole_reply_counts_once_and_closing_after_it_changes_nothing(token_usage):
    reply = Reply(assistant_message("hello"), "stop", Usage(60, 40, 1))
    async with aclosing(MeteredModel(ScriptedModel(reply), ()).stream(QUESTION)) as parts:
        async for part in parts:
            if type(part) is Reply:
                break
    assert token_usage.get_recorded_tokens("k") == 100


async def test_the_rest_of_the_budget_bounds_a_reply_until_it_is_used_up(token_usage):
    inner = ScriptedModel(Reply(assistant_message("hello"), "stop", Usage(300, 300, 1)))
    model = MeteredModel(inner, ())

    async def request(options=ModelOptions()):
        return [part async for part in model.stream(QUESTION, (), options)]

    await request()
    assert inner.requests[0].options.max_tokens == 1000 - 400 - 108
    with pytest.raises(ModelRejected, match="has used its budget"):
        await request()
