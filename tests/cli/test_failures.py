"""The commands on failures that are remembered, and on measuring runs."""

import asyncio

import orjson
import pytest
from typer.testing import CliRunner

from opposable.agent.failure_memory import FailureMemory
from opposable.cli import cli
from opposable.domain.errors import BadInput
from opposable.store import open_store


@pytest.fixture
def said(tmp_path, monkeypatch):
    """Runs a command over a store in which one failure is remembered."""
    url = f"sqlite:///{tmp_path / 'kept.sqlite'}"
    monkeypatch.setenv("OPPOSABLE_DATABASE_URL", url)

    async def remember():
        async with open_store(url) as store, FailureMemory(store.failures) as memory:
            failure = memory.with_scope("shop").record_failure(
                "cancel", "", "failed", {"order": "17"}, "There is no order '17'."
            )
            memory.correct(failure, {"given": {"order": "17"}, "right": {"order": "A-17"}})
            return failure

    failure = asyncio.run(remember())

    def run(*words: str):
        done = CliRunner().invoke(cli, ["failures", *words])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.output

    return run, failure


def test_a_failure_is_listed_shown_pinned_and_forgotten(said):
    run, failure = said
    [listed] = orjson.loads(run("list", "--json"))["failures"]
    assert (listed["failure_id"], listed["tool_id"], listed["agent_id"]) == (failure, "cancel", "shop")
    assert orjson.loads(run("list", "--tool", "other", "--json")) == {"failures": []}
    shown = orjson.loads(run("show", failure[:6], "--json"))
    assert shown["correction"] == {"given": {"order": "17"}, "right": {"order": "A-17"}}
    assert (shown["about"], shown["said"]) == ('{"order":"17"}', "There is no order '17'.")
    run("pin", failure[:6])
    assert orjson.loads(run("show", failure, "--json"))["pinned"] is True
    assert "cancel" in run("list")
    assert run("forget", "--tool", "cancel", "--agent", "other").startswith("0 failures")
    run("forget", failure[:8])
    assert orjson.loads(run("list", "--json")) == {"failures": []}


def test_what_cannot_be_meant_is_told(said):
    run, _ = said
    with pytest.raises(BadInput, match="There is no failure 'zz'"):
        run("show", "zz")
    with pytest.raises(BadInput, match="either the id"):
        run("forget")
    with pytest.raises(BadInput, match="goes with --tool"):
        run("forget", "3f", "--agent", "shop")
    assert "0 failures of other are forgotten" in run("forget", "--tool", "other")


def test_runs_are_measured_by_kind_and_variant():
    done = CliRunner().invoke(cli, ["eval", "runs", "--kind", "switching tool", "--only", "all guards", "--json"])
    assert done.exit_code == 0
    row = orjson.loads(done.stdout)["all guards"]
    assert (row["success %"], row["repeats"], row["failed"]) == (100.0, 0, [])


@pytest.mark.parametrize(
    ("options", "told"),
    [(("--only", "some guards"), "--only takes one of 'all guards'"), (("--raw",), "name one with --model")],
)
def test_what_cannot_be_measured_is_told(options, told):
    done = CliRunner().invoke(cli, ["eval", "runs", *options])
    assert isinstance(done.exception, BadInput)
    assert told in str(done.exception)
