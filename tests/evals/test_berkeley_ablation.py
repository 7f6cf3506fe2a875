"""Replies that are stored for ablations."""

import importlib
from pathlib import Path

import pytest

from opposable.domain.events import Reply, Token
from opposable.domain.messages import assistant_message, user_message
from opposable.models.base import ModelOptions
from opposable.models.scripted import ScriptedModel

pytestmark = pytest.mark.anyio

REPLY = Reply(assistant_message("pass"), tokens=(Token("pass", (("pass", -0.1), ("get", -2.0))),))


@pytest.fixture
def ablation(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "evals"))
    return importlib.import_module("berkeley_ablation")


async def request_reply(model, grammar: str) -> Reply:
    options = ModelOptions(top_logprobs=20, extra_body={"grammar": grammar})
    return [part async for part in model.stream((user_message("Hello"),), (), options)][-1]


async def test_a_stored_reply_is_not_requested_again(ablation, tmp_path):
    path, inner = tmp_path / "replies.jsonl", ScriptedModel(REPLY)
    model = ablation.RecordedModel(inner, path)
    assert [await request_reply(model, grammar) for grammar in ("a", "b", "a")] == [REPLY] * 3
    assert await request_reply(ablation.RecordedModel(inner, path), "b") == REPLY
    assert len(inner.requests) == 2


def test_the_table_has_the_share_of_right_answers(ablation):
    table = ablation.format_table({"all steps": {"simple": [True, True], "parallel": [True, False]}})
    assert table.splitlines()[1].split() == ["all", "steps", "100.0%", "50.0%", "75.0%"]
    assert table.splitlines()[2] == "questions: simple 2, parallel 2"
