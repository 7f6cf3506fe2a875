"""What happens to calls after untrusted text was read."""

import pytest
from tests.agent.mail_tools import get_balance, read_mail

from opposable.agent.agent import Agent
from opposable.domain.call_context import Approved, CallContext, Denied
from opposable.domain.messages import assistant_message, tool_message, user_message
from opposable.models.scripted import ScriptedModel, reply_with_calls, tool_call
from opposable.tools.library import ToolLibrary

pytestmark = pytest.mark.anyio


class Shop:
    def __init__(self):
        self.paid: list[int] = []

    def library(self) -> ToolLibrary:
        def pay(amount: int) -> str:
            """Pay."""
            self.paid.append(amount)
            return "paid"

        return ToolLibrary([read_mail, get_balance, pay])


PAY = tool_call("pay", '{"amount": 500}', "p")
READ = reply_with_calls(tool_call("read_mail"))


async def run_agent(shop, model, after_untrusted, task="go", approve=None, **options):
    agent = Agent(model, shop.library(), after_untrusted=after_untrusted, **options)
    finished = await agent.run(task, CallContext(approve=approve))
    return [message.content for message in finished.messages if message.role == "tool"]


async def approve_all(request):
    return Approved()


async def deny_all(request):
    return Denied("not now")


@pytest.mark.parametrize("assistance", [False, True])
@pytest.mark.parametrize(
    ("after_untrusted", "approve", "paid", "result"),
    [
        ("allow", None, [500], "paid"),
        ("refuse", approve_all, [], "Not run: the conversation contains untrusted text"),
        ("approve", approve_all, [500], "paid"),
        ("approve", deny_all, [], "not now"),
        ("approve", None, [], "Not run: pay needs a person's approval"),
    ],
)
async def test_acting_after_untrusted_text(after_untrusted, approve, paid, result, assistance):
    shop = Shop()
    model = ScriptedModel(READ, reply_with_calls(PAY), "done", "done")
    task = "Read my mail, then pay 500."
    results = await run_agent(shop, model, after_untrusted, task, approve=approve, assistance=assistance)
    assert shop.paid == paid
    assert any(result in content for content in results)


async def test_reading_goes_on_after_untrusted_text():
    model = ScriptedModel(READ, reply_with_calls(tool_call("get_balance")), "7")
    assert (await run_agent(Shop(), model, "refuse"))[1] == "7"


async def test_calls_run_after_a_reading_call_that_was_not_run():
    shop = Shop()
    invalid = reply_with_calls(tool_call("read_mail", '{"folder": "in"}'))
    await run_agent(shop, ScriptedModel(invalid, reply_with_calls(PAY), "done"), "refuse")
    assert shop.paid == [500]


async def test_calls_before_untrusted_text_run():
    shop = Shop()
    await run_agent(shop, ScriptedModel(reply_with_calls(PAY), READ, "done"), "refuse")
    assert shop.paid == [500]


async def test_calls_of_the_same_reply_run():
    shop = Shop()
    await run_agent(shop, ScriptedModel(reply_with_calls(tool_call("read_mail"), PAY), "done"), "refuse")
    assert shop.paid == [500]


@pytest.mark.parametrize("name", ["read_mail", "a_removed_tool"])
async def test_untrusted_text_of_an_earlier_turn_counts(name):
    shop = Shop()
    conversation = [
        user_message("查看邮件"),
        assistant_message("", (tool_call(name, "{}", "c1"),)),
        tool_message("c1", name, "text of another person"),
        assistant_message("看过了。"),
        user_message("付款"),
    ]
    results = await run_agent(shop, ScriptedModel(reply_with_calls(PAY), "done"), "refuse", conversation)
    assert shop.paid == []
    assert results == ["没有执行：对话中包含不可信的文本，因此不允许调用可能更改内容的工具 pay。"]


async def test_trusted_results_of_an_earlier_turn_do_not_count():
    shop = Shop()
    conversation = [
        user_message("balance"),
        assistant_message("", (tool_call("get_balance", "{}", "c1"),)),
        tool_message("c1", "get_balance", "7"),
        assistant_message("7"),
        user_message("pay"),
    ]
    await run_agent(shop, ScriptedModel(reply_with_calls(PAY), "done"), "refuse", conversation)
    assert shop.paid == [500]


async def test_a_misspelt_tool_is_no_untrusted_text():
    shop = Shop()
    model = ScriptedModel(reply_with_calls(tool_call("transfer")), reply_with_calls(PAY), "done")
    await run_agent(shop, model, "refuse")
    assert shop.paid == [500]
