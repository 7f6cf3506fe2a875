"""The commands over stored runs, executions, approvals and agents."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import orjson
import pytest
from rich.cells import cell_len
from typer.testing import CliRunner

from opposable.cli import cli
from opposable.cli.stored_records import fit_cell
from opposable.domain.errors import BadInput
from opposable.domain.records import Approval, Execution, Run, canonical_sha256
from opposable.domain.specs import AgentSpec
from opposable.store import open_store

AT = datetime(2026, 11, 20, 8, 30, tzinfo=UTC)
RUN_IDS = ("3fa9" + "0" * 28, "3fb1" + "1" * 28)
ARGUMENTS = {"order": "A-17", "note": "\x1b[2Jfirst\nsecond"}


def run_command(*words: str) -> str:
    done = CliRunner().invoke(cli, list(words))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.output


def run_json(*words: str) -> dict:
    return orjson.loads(run_command(*words, "--json"))


@pytest.fixture
def store_url(tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path / 'store.sqlite'}"
    monkeypatch.setenv("OPPOSABLE_DATABASE_URL", url)
    return url


@pytest.fixture
def stored(store_url):
    """Store two runs, two executions, two pending approvals and an agent; return a reader of an approval."""

    async def fill():
        async with open_store(store_url) as store:
            await store.runs.save(
                Run(RUN_IDS[0], AT, "finished", agent_id="clerk" * 7, task="取消订单 A-17 " * 20, text="done"),
                Run(RUN_IDS[1], AT, "failed", owner="key1"),
            )
            call = Execution("e1" + "0" * 30, RUN_IDS[0], "c1", "cancel", "cancel" * 10, ARGUMENTS, "ok", AT, 0.5)
            call = replace(call, conversation_id="c1~key1")
            failure = "invalid_arguments"
            other = Execution("e2" + "0" * 30, RUN_IDS[1], "c2", "pay", "pay", {}, "no", AT, 12345.5, failure=failure)
            await store.executions.add([call, other])
            for approval_id in ("a1" + "0" * 30, "a2" + "0" * 30):
                sha256, ids = canonical_sha256(ARGUMENTS), {"conversation_id": "c1~key1", "owner": "key1"}
                approval = Approval(approval_id, RUN_IDS[0], "c1", "cancel" * 5, ARGUMENTS, sha256, AT, **ids)
                await store.approvals.add(approval)
            await store.agents.add(AgentSpec(agent_id="a" * 36, model="openai:gpt-5-mini", instructions="Be kind."))

    asyncio.run(fill())

    async def load(approval_id):
        async with open_store(store_url) as store:
            return await store.approvals.get(approval_id)

    return lambda approval_id: asyncio.run(load(approval_id))


def test_runs_are_listed_and_shown_with_their_calls(stored):
    assert {run["run_id"] for run in run_json("runs", "list")["runs"]} == set(RUN_IDS)
    assert [run["run_id"] for run in run_json("runs", "list", "--status", "failed")["runs"]] == [RUN_IDS[1]]
    shown = run_json("runs", "show", "3FA")
    assert (shown["run_id"], shown["text"]) == (RUN_IDS[0], "done")
    assert [call["arguments"] for call in shown["executions"]] == [ARGUMENTS]
    with pytest.raises(BadInput, match="More than one run begins with '3f'"):
        run_command("runs", "show", "3f")
    with pytest.raises(BadInput, match=r"There is no run '%'\. See: opposable runs list"):
        run_command("runs", "show", "%")


def test_executions_are_listed_and_shown(stored):
    assert len(run_json("executions", "list")["executions"]) == 2
    [failed] = run_json("executions", "list", "--failed")["executions"]
    assert (failed["tool_id"], failed["failure"]) == ("pay", "invalid_arguments")
    assert run_json("executions", "list", "--tool", "other") == {"executions": []}
    shown = run_json("executions", "show", "e1")
    assert (shown["arguments"], shown["conversation_id"]) == (ARGUMENTS, "c1")


def test_waiting_calls_are_approved_and_denied_once(stored):
    listed = run_json("approvals", "list")["approvals"]
    assert [(one["status"], one["arguments"]) for one in listed] == [("pending", ARGUMENTS)] * 2
    assert ("owner" in listed[0], listed[0]["conversation_id"]) == (False, "c1")
    output = run_command("approvals", "approve", "a1")
    assert "approved" in output
    assert "A-17" in output
    assert "\x1b" not in output
    denied = run_json("approvals", "deny", "a2", "--reason", "Ask first")
    assert (denied["status"], denied["reason"]) == ("denied", "Ask first")
    assert (stored("a1" + "0" * 30).status, stored("a2" + "0" * 30).reason) == ("approved", "Ask first")
    with pytest.raises(BadInput, match="is not pending"):
        run_command("approvals", "deny", "a1")
    assert stored("a1" + "0" * 30).status == "approved"
    assert run_command("approvals", "list") == "No call waits for approval.\n"
    assert len(run_json("approvals", "list", "--all")["approvals"]) == 2


def test_agents_are_listed_and_shown(stored):
    [listed] = run_json("agents", "list")["agents"]
    assert (listed["agent_id"], listed["version"]) == ("a" * 36, 1)
    assert run_json("agents", "show", "a" * 36)["instructions"] == "Be kind."
    with pytest.raises(BadInput, match="There is no agent 'b'"):
        run_command("agents", "show", "b")


def test_waiting_calls_are_listed_with_their_whole_arguments(store_url):
    arguments = {"note": "very " * 60 + "long\x1b[2J", "lines": [1, 2], "text": "a\nb"}

    async def fill():
        async with open_store(store_url) as store:
            await store.approvals.add(
                Approval("a" * 32, RUN_IDS[0], "c1", "cancel" * 5, arguments, canonical_sha256(arguments), AT)
            )

    asyncio.run(fill())
    head, *lines = run_command("approvals", "list").splitlines()
    assert head.split() == ["a" * 8, *head.split()[1:3], "pending", "cancel" * 5]
    assert "\n".join(lines) == (
        f'    note: "{"very " * 60}long\\u001b[2J"\n    lines: [\n  1,\n  2\n]\n    text: "a\\nb"'
    )


@pytest.mark.parametrize("group", ["runs", "executions", "agents"])
def test_lists_fit_80_columns_and_ids_stay_on_one_line(stored, monkeypatch, group):
    monkeypatch.setenv("COLUMNS", "80")
    lines = run_command(group, "list").splitlines()
    ids = {"runs": "3fa90000", "executions": "e1000000", "agents": "a" * 36}
    assert any(ids[group] in line for line in lines)
    rows = 1 if group == "agents" else 2
    assert len(lines) == 4 + rows
    assert max(map(cell_len, lines)) <= 80


@pytest.mark.parametrize("group", ["runs", "executions", "approvals", "agents"])
def test_reading_without_a_store_creates_none(store_url, tmp_path, group):
    assert run_json(group, "list") == {group: []}
    command = ("approvals", "approve", "a1") if group == "approvals" else (group, "show", "a1")
    with pytest.raises(BadInput, match="Nothing is stored yet"):
        run_command(*command)
    assert list(tmp_path.iterdir()) == []


def test_cell_is_cut_to_the_width_of_the_terminal():
    assert fit_cell("取消订单\n第二行", 7) == "取消订…"
    assert fit_cell("short", 7) == "short"


@pytest.mark.parametrize("words", [("runs", "list"), ("executions", "list"), ("approvals", "list"), ("keys", "list")])
def test_records_of_the_database_are_read_while_the_valkey_server_is_away(stored, words, monkeypatch):
    monkeypatch.setenv("OPPOSABLE_REDIS_URL", "redis://127.0.0.1:9/0")
    assert run_json(*words).keys() == {words[0]}
