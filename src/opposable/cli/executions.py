"""The commands for stored tool executions: list, show."""

from typing import Annotated

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
from opposable.domain.json_forms import execution_to_json
from opposable.domain.records import Execution, ExecutionFilter

cli = typer.Typer(cls=HelpGroup, no_args_is_help=True)


@cli.command("list")
def list_executions(
    tool: Annotated[str, typer.Option("--tool", "-t", help="Only executions of this tool")] = "",
    agent: Annotated[str, typer.Option("--agent", help="Only executions of this agent")] = "",
    failed: Annotated[bool, typer.Option("--failed", help="Only failed executions")] = False,
    limit: LimitOption = 50,
    json: JsonOption = False,
) -> None:
    """List the stored tool executions, the latest first.

    Example: opposable executions list --tool calculator --failed
    """
    criteria = ExecutionFilter(tool_id=tool, agent_id=agent, failure="any" if failed else None)
    executions = read_page(lambda store: store.executions.list(criteria, limit=limit))
    if json:
        print(to_json({"executions": [execution_to_json(execution) for execution in executions]}))
    elif executions:
        rows = [_to_row(execution) for execution in executions]
        out.print(render_table(("id", "ended", "tool", "result", "seconds"), rows, limit))
    else:
        out.print(style_text("No execution matches."))


@cli.command("show")
def show_execution(execution_id: RecordIdArgument, json: JsonOption = False) -> None:
    """Show a stored tool execution: its arguments, repairs and result.

    Example: opposable executions show 3fa9
    """
    execution = run_with_store(
        lambda store: find_by_id_prefix(
            store.executions.list_by_id_prefix, execution_id, lambda one: one.execution_id, "execution"
        )
    )
    text = to_json(execution_to_json(execution))
    print(text) if json else out.print_json(text)


def _to_row(execution: Execution) -> tuple[str, ...]:
    return (
        execution.execution_id[:SHORT_ID_CHARACTERS],
        format_minute(execution.at),
        fit_cell(execution.name, 20),
        execution.failure or "ok",
        f"{execution.seconds:.2f}",
    )
