"""The commands for stored failures."""

import asyncio

import orjson
import pytest
from typer.testing import CliRunner

from opposable.agent.failure_memory import FailureMemory
from opposable.cli import cli
from opposable.domain.errors import BadInput
from opposable.store import open_store


@pytest.fixture
def failures_command(tmp_path, monkeypatch):
    """Run a command over a store with one failure; returns the runner and the id of the failure."""
    url = f"sqlite:///{tmp_path / 'store.sqlite'}"
    monkeypatch.setenv("OPPOSABLE_DATABASE_URL", url)

    async def store_failure():
        async with open_store(url) as store, FailureMemory(store.failures) as memory:
            failure = memory.with_scope("shop").record_failure(
                "cancel", "", "failed", {"order": "17"}, "There is no order '17'."
            )
            memory.correct(failure, {"given": {"order": "17"}, "right": {"order": "A-17"}})
            return failure.failure_id

    failure = asyncio.run(store_failure())

    def run(*words: str):
        done = CliRunner().invoke(cli, ["failures", *words])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.output

    return run, failure


def test_a_failure_is_listed_shown_pinned_and_deleted(failures_command):
    run, failure = failures_command
    [listed] = orjson.loads(run("list", "--json"))["failures"]
    assert (listed["failure_id"], listed["tool_id"], listed["scope"]) == (failure, "cancel", "shop")
    assert orjson.loads(run("list", "--tool", "other", "--json")) == {"failures": []}
    shown = orjson.loads(run("show", failure[:6], "--json"))
    assert shown["correction"] == {"given": {"order": "17"}, "right": {"order": "A-17"}}
    assert (shown["arguments"], shown["error"]) == ('{"order":"17"}', "There is no order '17'.")
    run("pin", failure[:6])
    assert orjson.loads(run("show", failure, "--json"))["pinned"] is True
    assert "cancel" in run("list")
    assert run("forget", "--tool", "cancel", "--agent", "other").startswith("0 failures")
    run("forget", failure[:8])
    assert orjson.loads(run("list", "--json")) == {"failures": []}


def test_invalid_input_is_reported(failures_command):
    run, _ = failures_command
    with pytest.raises(BadInput, match="There is no failure 'zz'"):
        run("show", "zz")
    with pytest.raises(BadInput, match="either the id"):
        run("forget")
    with pytest.raises(BadInput, match="--agent needs --tool"):
        run("forget", "3f", "--agent", "shop")
    assert "0 failures of other are deleted" in run("forget", "--tool", "other")
