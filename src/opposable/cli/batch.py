"""The commands for batches: run, list, show, pause, resume, retry, cancel, results."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from opposable.app.default_store import open_default_store, require_postgresql
from opposable.cli.errors import run_async
from opposable.cli.help import HelpGroup
from opposable.cli.options import (
    JsonOption,
    err,
    out,
    parse_rate,
    read_file,
    read_settings,
    require_new_file,
)
from opposable.cli.rendering import render_table, to_json
from opposable.cli.stored_records import (
    SHORT_ID_CHARACTERS,
    RecordIdArgument,
    find_by_id_prefix,
    fit_cell,
    format_minute,
)
from opposable.domain.batches import Batch, BatchProgress
from opposable.domain.errors import BadInput, OpposableError, StoreUnavailable
from opposable.domain.json_text import dump_json, split_json_lines
from opposable.domain.specs import RateLimit
from opposable.safety.filesystem.drafts import open_draft
from opposable.store.store import Store

cli = typer.Typer(cls=HelpGroup, no_args_is_help=True)

POLL_SECONDS = 0.5
MIN_PAUSE_FACTOR = 10
"""The pause between two queries is at least this many times as long as a query: it reads all tasks of the batch."""
NO_WORKER_NOTE_SECONDS = 10
T = TypeVar("T")


@cli.command()
def run(
    file: Annotated[Path, typer.Argument(help='JSON lines {"id", "task"}', metavar="FILE.jsonl")],
    agent: Annotated[str, typer.Option("--agent", "-a", help="Id of the stored agent")] = "default",
    output: Annotated[Path, typer.Option("--out", "-o", help="New file for the result lines")] = Path("results.jsonl"),
    concurrency: Annotated[int, typer.Option(min=1, max=10_000, help="Tasks at a time, over all workers")] = 50,
    model_rate: Annotated[str, typer.Option(metavar="CALLS/SECONDS", help="Rate limit of model requests")] = "",
    model_concurrency: Annotated[
        int | None, typer.Option(min=1, max=1000, help="Model requests at a time", show_default=False)
    ] = None,
    tool_rate: Annotated[
        list[str] | None, typer.Option(metavar="TOOL=CALLS/SECONDS", help="Rate limit of a tool (repeatable)")
    ] = None,
    tool_concurrency: Annotated[
        list[str] | None, typer.Option(metavar="TOOL=CALLS", help="Calls of a tool at a time (repeatable)")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run a file of tasks and write one result line for each.

    The tasks are executed by `opposable worker` processes on the same PostgreSQL database. Ctrl-C leaves them running.
    Create the agent in the console of `opposable serve` or with POST /api/agents.

    Example: opposable batch run tasks.jsonl --agent support --out results.jsonl
    """
    from opposable.service.batches import create_batch, parse_tasks  # lazy: needs the extra "store"

    require_new_file(output)
    tasks = parse_tasks(split_json_lines(read_file(file), file))
    tool_rates = _parse_tool_rates(tool_rate or ())
    tool_limits = _parse_tool_concurrency(tool_concurrency or ())

    async def run_batch(store: Store) -> tuple[BatchProgress, dict[str, Any]]:
        record = await store.agents.get(agent)
        if record is None:
            raise BadInput(f"There is no agent {agent!r}. Pass the id of a stored agent to --agent.")
        batch = await create_batch(
            store,
            record.spec,
            tasks,
            concurrency=concurrency,
            model_rate=parse_rate(model_rate),
            tool_rates=tool_rates,
            model_concurrency=model_concurrency,
            tool_concurrency=tool_limits,
        )
        err.print(f"Batch {batch.batch_id}: {len(tasks)} tasks")
        try:
            progress = await _follow(store, batch.batch_id)
        except asyncio.CancelledError:
            err.print(f"The batch goes on. Get its results: opposable batch results {batch.batch_id} --out {output}")
            raise
        await _write_results(store, batch.batch_id, output)
        return progress, await _describe(store, await _get_batch(store, batch.batch_id))

    progress, description = _with_store(run_batch)
    if as_json:
        print(to_json(description | {"results": output}))
    finished = progress.counts.get("finished", 0)
    err.print(f"{finished} of {progress.total} tasks finished. The results are in {output}.")
    if finished < progress.total:
        raise typer.Exit(1)


@cli.command(name="list")
def list_batches(as_json: JsonOption = False) -> None:
    """List the batches, newest first.

    Example: opposable batch list
    """
    from opposable.service.batches import batch_to_json  # lazy: needs the extra "store"

    async def load(store: Store) -> list[dict[str, Any]]:
        batches = (await store.batches.list()).items
        progress = await store.batches.get_progress_by_batch([batch.batch_id for batch in batches])
        return [batch_to_json(batch, progress[batch.batch_id]) for batch in batches]

    batches = _with_store(load)
    if as_json:
        print(to_json({"batches": batches}))
    elif not batches:
        out.print("No batch is stored yet.")
    else:
        columns = ("id", "agent", "status", "ended", "cost", "created")
        out.print(render_table(columns, [_to_row(batch) for batch in batches], limit=len(batches)))


@cli.command()
def show(batch: RecordIdArgument, as_json: JsonOption = False) -> None:
    """Show the progress and the cost of a batch.

    Example: opposable batch show 3fa9c0d1
    """

    async def load(store: Store) -> dict[str, Any]:
        return await _describe(store, await _get_batch(store, batch))

    description = _with_store(load)
    if as_json:
        print(to_json(description))
    else:
        known = {name: value for name, value in description.items() if name != "cost" or value}  # 0.0 without a price
        out.print(render_table(("field", "value"), [[name, _to_cell(value)] for name, value in known.items()]))


@cli.command()
def pause(batch: RecordIdArgument) -> None:
    """Start no further task of a batch. Active tasks end.

    Example: opposable batch pause 3fa9c0d1
    """
    _set_paused(batch, paused=True)


@cli.command()
def resume(batch: RecordIdArgument) -> None:
    """Continue a paused batch.

    Example: opposable batch resume 3fa9c0d1
    """
    _set_paused(batch, paused=False)


@cli.command()
def retry(batch: RecordIdArgument) -> None:
    """Run the failed and cancelled tasks of a batch again.

    Example: opposable batch retry 3fa9c0d1
    """

    async def retry_failed(store: Store) -> int:
        return await store.batches.retry_failed((await _get_batch(store, batch)).batch_id)

    err.print(f"{_with_store(retry_failed)} tasks run again.")


@cli.command()
def cancel(batch: RecordIdArgument) -> None:
    """Cancel the tasks of a batch that have not ended.

    Example: opposable batch cancel 3fa9c0d1
    """

    async def cancel_batch(store: Store) -> bool:
        stored = await _get_batch(store, batch)
        await store.batches.cancel(stored.batch_id)
        return stored.ended_at is None

    if not _with_store(cancel_batch):
        raise BadInput(f"The batch {batch!r} has ended.")
    err.print("Cancelled.")


@cli.command()
def results(
    batch: RecordIdArgument,
    output: Annotated[Path, typer.Option("--out", "-o", help="New file for the result lines")] = Path("results.jsonl"),
) -> None:
    """Write one result line for each task that has ended.

    Example: opposable batch results 3fa9c0d1 --out results.jsonl
    """
    require_new_file(output)

    async def write(store: Store) -> int:
        return await _write_results(store, (await _get_batch(store, batch)).batch_id, output)

    err.print(f"{_with_store(write)} results are in {output}.")


def _with_store(action: Callable[[Store], Awaitable[T]]) -> T:
    settings = read_settings()
    require_postgresql(settings)

    async def run_action() -> T:
        async with open_default_store(settings) as store:
            return await action(store)

    return run_async(run_action())


def _set_paused(batch_id: str, *, paused: bool) -> None:
    async def change(store: Store) -> bool:
        return await store.batches.set_paused((await _get_batch(store, batch_id)).batch_id, paused=paused)

    if not _with_store(change):
        raise BadInput(f"The batch {batch_id!r} has ended.")
    err.print("Paused." if paused else "Resumed.")


async def _get_batch(store: Store, batch_id: str) -> Batch:
    return await find_by_id_prefix(
        store.batches.list_by_id_prefix, batch_id, lambda batch: batch.batch_id, "batch", group="batch"
    )


async def _describe(store: Store, batch: Batch) -> dict[str, Any]:
    from opposable.service.batches import batch_to_json  # lazy: needs the extra "store"

    return batch_to_json(batch, await store.batches.get_progress(batch.batch_id))


def _to_row(batch: dict[str, Any]) -> tuple[str, ...]:
    return (
        batch["batch_id"][:SHORT_ID_CHARACTERS],
        fit_cell(batch["agent_id"], 15),
        batch["status"],
        f"{batch['ended']} of {batch['total']}",
        f"{batch['cost']:.4f}" if batch["cost"] else "",
        format_minute(batch["created_at"]),
    )


def _to_cell(value: Any) -> str:
    if isinstance(value, datetime):
        return format_minute(value)
    if isinstance(value, dict):
        return ", ".join(f"{name}: {item}" for name, item in value.items())
    return "" if value is None else str(value)


async def _follow(store: Store, batch_id: str) -> BatchProgress:
    """Show the progress of a batch until all its tasks have ended."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    waited_seconds = 0.0
    with Progress(*columns, console=err) as bar:
        line = bar.add_task("tasks", total=None)
        while True:
            started_at = time.monotonic()
            try:
                progress = await store.batches.get_progress(batch_id)
            except StoreUnavailable:  # the workers go on when the database is back
                await asyncio.sleep(POLL_SECONDS)
                continue
            cost = f" · cost {progress.cost:.4f}" if progress.cost else ""
            failed = f" · {progress.counts['failed']} failed" if progress.counts.get("failed") else ""
            bar.update(line, completed=progress.ended, total=progress.total, description=f"tasks{failed}{cost}")
            if progress.ended == progress.total:
                return progress
            pause_seconds = max(POLL_SECONDS, MIN_PAUSE_FACTOR * (time.monotonic() - started_at))
            is_untouched = progress.counts.get("queued", 0) == progress.total
            if is_untouched and waited_seconds < NO_WORKER_NOTE_SECONDS <= waited_seconds + pause_seconds:
                bar.console.print("No worker has started a task yet. Start one with: opposable worker")
            waited_seconds += pause_seconds
            await asyncio.sleep(pause_seconds)


async def _write_results(store: Store, batch_id: str, path: Path) -> int:
    """Write the results to a new file that appears whole, and return their number. Report how many are correct.

    Raises:
        OpposableError: The file cannot be written, or was created meanwhile.
    """
    count = 0
    grades: list[bool] = []
    try:
        with open_draft(path) as file:
            async for result in store.batches.iterate_results(batch_id):
                file.write(dump_json(result, default=str) + b"\n")
                count += 1
                grades += [result["correct"]] if "correct" in result else []
    except OSError as error:
        hint = f"Get the results: opposable batch results {batch_id} --out FILE"
        raise OpposableError(f"Cannot write {path}: {error.strerror}. {hint}") from error
    if grades:
        err.print(f"{sum(grades)} of {len(grades)} answers are correct ({sum(grades) / len(grades):.1%}).")
    return count


def _parse_tool_rates(texts: list[str] | tuple[str, ...]) -> dict[str, RateLimit]:
    rates = {}
    for text in texts:
        tool_id, _, rate = text.partition("=")
        parsed = parse_rate(rate)
        if not tool_id or parsed is None:
            raise BadInput(f"--tool-rate takes TOOL=CALLS/SECONDS, such as search=10/1, not {text!r}.")
        rates[tool_id] = parsed
    return rates


def _parse_tool_concurrency(texts: list[str] | tuple[str, ...]) -> dict[str, int]:
    limits = {}
    for text in texts:
        tool_id, _, number = text.partition("=")
        if not tool_id or not number.isdecimal() or not 1 <= int(number) <= 1000:
            raise BadInput(f"--tool-concurrency takes TOOL=CALLS from 1 to 1000, such as search=4, not {text!r}.")
        limits[tool_id] = int(number)
    return limits
