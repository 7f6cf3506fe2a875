"""Values that a program passes to the library."""

import math

import pytest

from opposable.agent.agent import Agent
from opposable.agent.limits import Limits
from opposable.domain.errors import BadInput
from opposable.models.factory import create_model
from opposable.models.scripted import ScriptedModel
from opposable.tools.library import ToolLibrary


@pytest.mark.parametrize(
    ("create", "message"),
    [
        (lambda: Limits(turns=-1), "The limit `turns` must be at least 0, not -1."),
        (lambda: Limits(seconds=math.nan), "The limit `seconds` must be at least 0, not nan."),
        (lambda: ToolLibrary(timeout=-1), "The timeout of a library must be more than 0 seconds, not -1."),
        (
            lambda: Agent(ScriptedModel("hi"), after_untrusted="ask"),
            "There is no value of `after_untrusted` 'ask'. Use one of these: allow, approve, refuse.",
        ),
        (lambda: Agent(ScriptedModel("hi"), limits=5), "`limits` must be Limits, not 5."),
        (lambda: Agent(ScriptedModel("hi"), options={"seed": 1}), "`options` must be ModelOptions, not {'seed': 1}."),
        (
            lambda: Agent(ScriptedModel("hi"), assistance="on"),
            "`assistance` must be bool or GuardOptions or None, not 'on'.",
        ),
        (
            lambda: create_model("http://host/v1#m", api="completions"),
            "There is no API 'completions'. Use one of these: chat, responses.",
        ),
    ],
)
def test_an_invalid_value_is_reported_before_it_is_used(create, message):
    with pytest.raises(BadInput) as raised:
        create()
    assert str(raised.value) == message


def test_zero_and_no_limit_are_valid():
    assert Limits(turns=0, seconds=math.inf, tokens=None).turns == 0
