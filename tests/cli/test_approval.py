"""Calls that need approval are shown to the person at the terminal, who decides."""

import io
import json

import pytest
from rich.console import Console
from tests.cli.program import (
    Terminal,
    needs_posix,
    respond_call,
    respond_text_deltas,
    run_program,
    run_with_model,
)
from tests.models.chat_server import chat_server

from opposable.cli.approval import QUESTION, TerminalApprover
from opposable.domain.call_context import NO_CONTEXT, ApprovalRequest, Approved, Denied

pytestmark = pytest.mark.anyio

REQUEST = ApprovalRequest(None, "shop.refund", "shop_refund", {"amount": 5, "note": "to \x1b[2J Ann"}, NO_CONTEXT)
SHOUT = {
    "tool_id": "shout",
    "tool_type": "function",
    "module_path": "opposable.builtin_tools.echo",
    "function_name": "echo",
    "needs_approval": True,
}


@pytest.fixture
async def workspace_with_tool(tmp_path):
    """A folder whose store has the tool `shout`, which needs approval."""
    (tmp_path / "shout.json").write_text(json.dumps([SHOUT]))
    for home in ("", str(tmp_path / "cache")):
        added = await run_program(tmp_path, "tools", "add", "shout.json", env={"OPPOSABLE_HOME": home})
        assert added.code == 0, added.err
    return tmp_path


def create_approver(*lines: str, **options) -> tuple[TerminalApprover, io.StringIO]:
    output, pending = io.StringIO(), list(lines)
    console = Console(file=output, width=200)
    return TerminalApprover(console, lambda: None, read_line=lambda: pending.pop(0), **options), output


@pytest.mark.parametrize(
    ("lines", "decision"),
    [
        (["y\n"], Approved()),
        (["Yes\n"], Approved()),
        (["是\n"], Approved()),
        (["n\n"], Denied()),
        (["no too expensive\n"], Denied("too expensive")),
        (["what?\n", "\n", "y\n"], Approved()),
        ([""], Denied()),
    ],
)
async def test_the_person_decides(lines, decision):
    approver, output = create_approver(*lines)
    assert await approver(REQUEST) == decision
    shown = output.getvalue()
    assert "? shop_refund needs approval:\n    amount: 5\n    note: to ␛[2J Ann\n" in shown
    assert shown.count(QUESTION) == len(lines)


async def test_always_holds_for_the_tool_in_this_run():
    approver, output = create_approver("a\n", "n\n")
    other = ApprovalRequest(None, "shop.close", "shop_close", {}, NO_CONTEXT)
    assert [await approver(request) for request in (REQUEST, REQUEST, other)] == [Approved(), Approved(), Denied()]
    assert output.getvalue().count(QUESTION) == 2


@pytest.mark.parametrize(("options", "code"), [((), 1), (("--download",), 1), (("--yes",), 0)])
async def test_without_a_terminal_only_yes_runs_the_call(workspace_with_tool, options, code):
    answers = [respond_call("shout", text="hello"), respond_text_deltas("Done.")]
    async with run_with_model(workspace_with_tool, "run", "shout", *options, answers=answers) as (done, server):
        assert (done.code, done.out) == (code, "Done.\n")
    result = server.bodies[1]["messages"][-1]["content"]
    assert ("hello" if code == 0 else "did not approve this call of shout: there is no terminal to ask at") in result
    assert ("shout needs approval. Run the command in a terminal, or pass --yes." in done.err) == (code == 1)


@needs_posix
async def test_the_terminal_asks_before_the_call(workspace_with_tool):
    answers = [
        *(respond_call("shout", text="first"), respond_text_deltas("It was loud.")),
        *(respond_call("shout", text="second"), respond_text_deltas("It was quiet.")),
    ]
    async with chat_server(*answers) as server:
        terminal = Terminal()
        await terminal.open(workspace_with_tool, "chat", "--model", f"{server.url}#m", "--tool", "shout")
        await terminal.shows("> ")
        terminal.type("shout\n")
        await terminal.shows("text: first")
        await terminal.shows(QUESTION)
        terminal.type("y\n")
        await terminal.shows("It was loud.")
        await terminal.shows("> ")
        terminal.type("again\n")
        await terminal.shows(QUESTION)
        terminal.type("n too loud\n")
        await terminal.shows("It was quiet.")
        await terminal.shows("> ")
        terminal.type("\x04")
        assert await terminal.close() == 0
    assert "did not approve this call of shout: too loud" in server.bodies[3]["messages"][-1]["content"]
