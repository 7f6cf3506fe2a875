"""The commands for batches, without a worker."""

import asyncio
import codecs
import errno
import json
import time
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import pytest
from tests.cli.program import run_program
from tests.servers import postgresql  # noqa: F401 - a fixture

from opposable.cli import batch as batch_commands
from opposable.domain.batches import BatchProgress, RunOutcome
from opposable.domain.errors import BadInput, OpposableError
from opposable.domain.specs import AgentSpec
from opposable.service.batches import create_batch, parse_tasks
from opposable.store.factory import open_store

pytestmark = pytest.mark.anyio

TASK = b'{"id": "1", "task": "one"}\n'


async def test_a_batch_is_shown_paused_and_its_results_are_written(tmp_path, postgresql):  # noqa: F811
    url = postgresql.new_database()
    env = {"OPPOSABLE_DATABASE_URL": url}
    async with open_store(url) as store:
        batch = await create_batch(store, AgentSpec(agent_id="a"), parse_tasks([TASK, b'{"id": "2", "task": "two"}']))
        [run_id, _] = await store.queued_runs.list_ready_tasks()
        await store.queued_runs.finish(run_id, RunOutcome("finished", "done"))
    paused = await run_program(tmp_path, "batch", "pause", batch.batch_id, env=env)
    shown = await run_program(tmp_path, "batch", "show", batch.batch_id[:8], "--json", env=env)
    listed = await run_program(tmp_path, "batch", "list", env={**env, "COLUMNS": "80"})
    assert f"│ {batch.batch_id[:8]} │ a     │ paused │ 1 of 2 │" in listed.out
    assert max(map(len, listed.out.splitlines())) <= 80
    table = (await run_program(tmp_path, "batch", "show", batch.batch_id[:8], env={**env, "TZ": "Asia/Tokyo"})).out
    assert f"{batch.created_at.astimezone(ZoneInfo('Asia/Tokyo')):%m-%d %H:%M} " in table
    assert ("finished: 1, queued: 1" in table, "None" in table, "cost" in table) == (True, False, False)
    written = await run_program(tmp_path, "batch", "results", batch.batch_id, "--out", "r.jsonl", env=env)
    assert [result.code for result in (paused, shown, written)] == [0, 0, 0], written.err
    assert (shown.json["status"], shown.json["counts"]) == ("paused", {"finished": 1, "queued": 1})
    [line] = (tmp_path / "r.jsonl").read_text().splitlines()
    assert (json.loads(line)["id"], json.loads(line)["text"]) == ("1", "done")
    again = await run_program(tmp_path, "batch", "results", batch.batch_id, "--out", "r.jsonl", env=env)
    assert (again.code, "r.jsonl already exists" in again.err) == (2, True)
    cancelled = [await run_program(tmp_path, "batch", "cancel", batch.batch_id, env=env) for _ in range(2)]
    assert [(result.code, result.err.strip()) for result in cancelled] == [
        (0, "Cancelled."),
        (2, f"Error: The batch '{batch.batch_id}' has ended."),
    ]
    postgresql.drop_database(url)


@pytest.mark.parametrize("problem", ["File exists", "No space left on device"])
async def test_results_that_cannot_be_written_replace_nothing_and_say_how_to_get_them(tmp_path, problem):
    path = tmp_path / "r.jsonl"

    async def iterate_results(batch_id):
        yield {"id": "1"}
        if problem == "File exists":
            path.write_text("of another batch")
        else:
            raise OSError(errno.ENOSPC, problem)

    store = SimpleNamespace(batches=SimpleNamespace(iterate_results=iterate_results))
    with pytest.raises(OpposableError) as caught:
        await batch_commands._write_results(store, "b1", path)
    hint = "Get the results: opposable batch results b1 --out FILE"
    assert str(caught.value) == f"Cannot write {path}: {problem}. {hint}"
    assert not isinstance(caught.value, BadInput)
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == (
        {"r.jsonl": "of another batch"} if problem == "File exists" else {}
    )


async def test_the_answers_to_an_evaluation_set_are_graded(tmp_path, postgresql):  # noqa: F811
    url = postgresql.new_database()
    lines = [f'{{"id": "{number}", "task": "x", "expected": "Paris"}}' for number in (1, 2, 3)]
    async with open_store(url) as store:
        batch = await create_batch(store, AgentSpec(agent_id="a"), parse_tasks([*lines, TASK.replace(b"1", b"4")]))
        outcomes = [
            RunOutcome("finished", "It is PARIS."),
            RunOutcome("finished", "It is Rome."),
            RunOutcome("failed", "Paris"),
            RunOutcome("finished", "done"),
        ]
        for run_id, outcome in zip(await store.queued_runs.list_ready_tasks(), outcomes, strict=True):
            await store.queued_runs.finish(run_id, outcome)
    arguments = ("batch", "results", batch.batch_id, "--out", "r.jsonl")
    written = await run_program(tmp_path, *arguments, env={"OPPOSABLE_DATABASE_URL": url})
    results = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    assert [result.get("correct") for result in results] == [True, False, False, None]
    assert "1 of 3 answers are correct (33.3%)." in written.err
    postgresql.drop_database(url)


@pytest.mark.parametrize(
    ("content", "arguments", "reason"),
    [
        (b"{}", (), "Line 1 is not a task"),
        (TASK, ("--tool-rate", "search"), "--tool-rate takes TOOL=CALLS/SECONDS"),
        (TASK, ("--tool-concurrency", "search=0"), "--tool-concurrency takes TOOL=CALLS from 1 to 1000"),
        (TASK, ("--out", "tasks.jsonl"), "tasks.jsonl already exists. Pass another file, or move it away."),
        (TASK, ("--out", "none/r.jsonl"), "The folder none does not exist. Create it, or pass another file."),
        (codecs.BOM_UTF8 + TASK, (), "Set OPPOSABLE_DATABASE_URL to postgresql://"),
        (TASK, (), "Set OPPOSABLE_DATABASE_URL to postgresql://"),
    ],
)
async def test_wrong_input_is_explained(tmp_path, content, arguments, reason):
    (tmp_path / "tasks.jsonl").write_bytes(content)
    result = await run_program(tmp_path, "batch", "run", "tasks.jsonl", "--agent", "a", *arguments)
    assert (result.code, reason in result.err, "Traceback" in result.err) == (2, True, False), result.err


async def test_the_progress_of_a_large_batch_is_read_rarely(monkeypatch):
    class SlowBatches:
        reads = 0

        async def get_progress(self, batch_id):
            self.reads += 1
            await asyncio.sleep(0.05)
            return BatchProgress({"finished": 1} if self.reads == 3 else {"submitted": 1})

    monkeypatch.setattr(batch_commands, "POLL_SECONDS", 0.01)
    store = SimpleNamespace(batches=SlowBatches())
    started_at = time.monotonic()
    assert (await batch_commands._follow(store, "b")).ended == 1
    assert time.monotonic() - started_at > 2 * 10 * 0.05
