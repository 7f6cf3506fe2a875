"""Keywords for a need, from a model."""

import logging

import pytest

from opposable.agent.query_expansion import MAX_NEED_CHARACTERS, expand_query
from opposable.domain.errors import ModelUnavailable
from opposable.models.scripted import ScriptedModel

pytestmark = pytest.mark.anyio


async def test_the_model_gets_examples_and_the_beginning_of_the_need():
    model = ScriptedModel(" clock, time \n")
    assert await expand_query(model, "现在\n几点 " + "x" * 1000) == "clock, time"
    [request] = model.requests
    assert request.messages[-1].content.startswith("现在 几点 xxx")
    assert len(request.messages[-1].content) <= MAX_NEED_CHARACTERS
    assert request.tools == ()


async def test_a_model_that_fails_adds_nothing_and_the_log_says_why(caplog):
    with caplog.at_level(logging.WARNING):
        assert await expand_query(ScriptedModel(ModelUnavailable("no answer")), "现在几点") == ""
    assert caplog.messages == ["The search for tools uses the words of the task alone: no answer"]
