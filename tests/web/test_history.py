"""Conversations put in order before a model sees them."""

import pytest

from opposable.domain.messages import assistant, tool, user
from opposable.domain.tools import ToolCall
from opposable.web.history import NO_RESULT, paired

A, B = ToolCall("a", "find", "{}"), ToolCall("b", "sum", "{}")
ASK = user("do it")

CASES = {
    "what is in order stays": (
        [ASK, assistant("", (A, B)), tool("a", "find", "1"), tool("b", "sum", "2"), user("next")],
        [ASK, assistant("", (A, B)), tool("a", "find", "1"), tool("b", "sum", "2"), user("next")],
    ),
    "results take the order and the names of their calls": (
        [ASK, assistant("", (A, B)), tool("b", "", "2"), tool("a", "", "1")],
        [ASK, assistant("", (A, B)), tool("a", "find", "1"), tool("b", "sum", "2")],
    ),
    "a call without a result gets one that says so": (
        [ASK, assistant("", (A, B)), tool("b", "", "2"), user("next")],
        [ASK, assistant("", (A, B)), tool("a", "find", NO_RESULT), tool("b", "sum", "2"), user("next")],
    ),
    "a late result is moved up": (
        [ASK, assistant("", (A,)), user("well?"), tool("a", "", "1")],
        [ASK, assistant("", (A,)), tool("a", "find", "1"), user("well?")],
    ),
    "a result without a call is told as a message": (
        [ASK, tool("a", "", "1"), user("next")],
        [ASK, user("Tool result: 1"), user("next")],
    ),
    "a second result of a call is left out": (
        [ASK, assistant("", (A,)), tool("a", "", "1"), tool("a", "", "2")],
        [ASK, assistant("", (A,)), tool("a", "find", "1")],
    ),
    "an id used twice belongs to the nearest call before": (
        [assistant("", (A,)), tool("a", "", "1"), assistant("", (A,)), tool("a", "", "2")],
        [assistant("", (A,)), tool("a", "find", "1"), assistant("", (A,)), tool("a", "find", "2")],
    ),
}


@pytest.mark.parametrize(("given", "right"), CASES.values(), ids=CASES)
def test_every_call_has_its_result_behind_it(given, right):
    assert paired(given) == right
