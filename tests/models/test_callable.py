"""Functions as models."""

import threading

import pytest

from opposable.agent.agent import Agent
from opposable.agent.limits import Limits
from opposable.domain.errors import BadInput, ModelError
from opposable.domain.messages import user_message
from opposable.domain.tools import ToolDefinition
from opposable.models.callable import CallableModel
from opposable.models.text_protocol import TextProtocolModel

pytestmark = pytest.mark.anyio


async def ask(answer, model_type=lambda model: model, tools=()):
    model = model_type(CallableModel(lambda prompt: answer))
    return [part async for part in model.stream([user_message("hi")], tools)][-1].message.content


def test_a_plain_function_as_the_model_of_an_agent_is_refused_with_the_way_to_pass_it():
    with pytest.raises(BadInput, match=r"is no model.*TextProtocolModel\(CallableModel\(function\)\)"):
        Agent(lambda prompt: "hi")


ANSWERS = [
    ({"response": "hi"}, "hi"),
    ('{"response": "hi"}', "hi"),
    ({"content": "hi"}, "hi"),
    ('{"content": "hi"}', "hi"),
    ({"action": "finish", "content": 5}, "5"),
    ('{"reasoning": "r", "action": "finish", "content": 5}', "5"),
    ('{"action": "finish", "content": {"a": 1}}', '{"a":1}'),
    ({"action": "finish", "sql": "SELECT 1"}, "SELECT 1"),
    ('{"action": "finish", "sql": "SELECT 1"}', "SELECT 1"),
    ('{"name": "Ann", "text": "hi"}', '{"name": "Ann", "text": "hi"}'),
    ("{not json", "{not json"),
    ("plain", "plain"),
]


@pytest.mark.parametrize(("answer", "text"), ANSWERS)
async def test_the_text_is_found_in_a_dict_and_in_its_json(answer, text):
    assert await ask(answer) == text


@pytest.mark.parametrize("answer", [None, 5, ["a"], 1.5, b"x"])
async def test_an_answer_that_is_neither_text_nor_a_dict_is_a_model_error(answer):
    with pytest.raises(ModelError, match="Return text or a dict with one of the fields response, result"):
        await ask(answer)


async def test_a_sync_function_does_not_stop_the_event_loop():
    is_called, may_return = threading.Event(), threading.Event()

    def reply(prompt: str) -> str:
        is_called.set()
        assert may_return.wait(10)
        return "hi"

    agent = Agent(TextProtocolModel(CallableModel(reply)), limits=Limits(seconds=0.1))
    try:
        assert (await agent.run("Hi")).reason == "time"
        assert is_called.is_set()
    finally:
        may_return.set()


@pytest.mark.parametrize("is_object", [False, True])
async def test_an_async_function_runs_in_the_event_loop(is_object):
    class Replier:
        async def __call__(self, prompt: str) -> str:
            return f"hi from {threading.current_thread().name}"

    replier = Replier()
    model = CallableModel(replier if is_object else replier.__call__)
    reply = [part async for part in model.stream([user_message("hi")])][-1]
    assert reply.message.content == f"hi from {threading.current_thread().name}"


FINISHES = [
    ('{"action": "finish", "content": 5}', "5"),
    ('{"action": "finish", "content": {"a": [1]}}', '{"a":[1]}'),
    ('{"reasoning": "r", "action": "finish", "sql": "SELECT 1"}', "SELECT 1"),
]


@pytest.mark.parametrize(("answer", "text"), FINISHES)
async def test_a_final_answer_in_the_text_protocol_may_be_a_number_an_object_or_sql(answer, text):
    tools = [ToolDefinition("stock", "Stock.", {"type": "object", "properties": {}})]
    assert await ask("Done.\n" + answer, lambda model: TextProtocolModel(model, "protocol"), tools) in (
        text,
        f"Done.\n{text}",
    )


@pytest.mark.parametrize("placeholder", ["…", "..."])
async def test_the_placeholder_of_the_protocol_is_no_answer(placeholder):
    tools = [ToolDefinition("stock", "Stock.", {"type": "object", "properties": {}})]
    answer = f'{{"action": "finish", "content": "{placeholder}"}}'
    assert await ask(answer, lambda model: TextProtocolModel(model, "protocol"), tools) == ""
