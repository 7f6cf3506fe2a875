"""The commands for stored runs: list, show."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from opposable.cli.help import HelpGroup
from opposable.cli.options import JsonOption, out
from opposable.cli.rendering import render_table, style_text, to_json
from opposable.cli.stored_records import (
    SHORT_ID_CHARACTERS,
    LimitOption,
    RecordIdArgument,
    find_by_id_prefix,
    fit_cell,
    format_minute,
    read_page,
    run_with_store,
)
from opposable.domain.json_forms import execution_to_json, run_to_json
from opposable.domain.records import ExecutionFilter, Run, RunStatus

if TYPE_CHECKING:
    from opposable.store.store import Store

cli = typer.Typer(cls=HelpGroup, no_args_is_help=True)


@cli.command("list")
def list_runs(
    agent: Annotated[str, typer.Option("--agent", help="Only runs of this agent")] = "",
    status: Annotated[RunStatus | None, typer.Option("--status", help="Only runs in this state")] = None,
    limit: LimitOption = 50,
    json: JsonOption = False,
) -> None:
    """List the stored runs, the latest first.

    Example: opposable runs list --status failed
    """
    runs = read_page(lambda store: store.runs.list(agent_id=agent, status=status, limit=limit))
    if json:
        print(to_json({"runs": [run_to_json(run) for run in runs]}))
    elif runs:
        out.print(render_table(("id", "started", "status", "agent", "task"), [_to_row(run) for run in runs], limit))
    else:
        out.print(style_text("No run matches."))


@cli.command("show")
def show_run(run_id: RecordIdArgument, json: JsonOption = False) -> None:
    """Show a stored run with its tool calls.

    Example: opposable runs show 3fa9
    """

    async def load(store: "Store") -> dict[str, Any]:
        run = await find_by_id_prefix(store.runs.list_by_id_prefix, run_id, lambda one: one.run_id, "run")
        page = await store.executions.list(ExecutionFilter(run_id=run.run_id), limit=1000)
        return run_to_json(run) | {"executions": [execution_to_json(call) for call in reversed(page.items)]}

    text = to_json(run_with_store(load))
    print(text) if json else out.print_json(text)


def _to_row(run: Run) -> tuple[str, ...]:
    return (
        run.run_id[:SHORT_ID_CHARACTERS],
        format_minute(run.started_at),
        run.status,
        fit_cell(run.agent_id, 12),
        fit_cell(run.task, 24),
    )
