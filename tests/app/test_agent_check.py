"""Agents that can act on untrusted text are found."""

import pytest
from tests.agent.mail_tools import get_balance, read_mail

from opposable.app.agent_check import find_agent_warnings
from opposable.domain.specs import AgentSpec
from opposable.tools.library import ToolLibrary


def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@pytest.mark.parametrize(
    ("tools", "after_untrusted", "warned"),
    [
        ([read_mail, get_balance, pay], "allow", [{"readers": "read_mail", "actors": "pay"}]),
        ([read_mail, get_balance, pay], "approve", []),
        ([read_mail, get_balance, pay], "refuse", []),
        ([read_mail, get_balance], "allow", []),
        ([get_balance, pay], "allow", []),
    ],
)
def test_an_agent_is_warned_of_untrusted_text_where_nothing_restricts_it(tools, after_untrusted, warned):
    agent = AgentSpec(agent_id="a", name="A", after_untrusted=after_untrusted)
    assert [warning.parameters for warning in find_agent_warnings(agent, ToolLibrary(tools))] == warned
