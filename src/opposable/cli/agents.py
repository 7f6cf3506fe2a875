"""The commands for stored agents: list, show, bind, unbind, check."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from opposable.cli.errors import run_async
from opposable.cli.help import HelpGroup
from opposable.cli.options import JsonOption, out, read_settings
from opposable.cli.rendering import render_table, style_text, to_json
from opposable.cli.stored_records import LimitOption, fit_cell, format_minute, read_page, run_with_store
from opposable.domain.errors import BadInput
from opposable.domain.records import AgentRecord
from opposable.domain.specs import AgentToolBinding

if TYPE_CHECKING:
    from opposable.store.store import Store

AgentArgument = Annotated[str, typer.Argument(help="Id of an agent", metavar="AGENT")]
ToolsArgument = Annotated[list[str], typer.Argument(help="Ids of stored tools", metavar="TOOL")]

cli = typer.Typer(cls=HelpGroup, no_args_is_help=True)


@cli.command("list")
def list_agents(limit: LimitOption = 50, json: JsonOption = False) -> None:
    """List the stored agents, the last changed first.

    Example: opposable agents list
    """
    agents = read_page(lambda store: store.agents.list(limit=limit))
    if json:
        print(to_json({"agents": [_to_json(agent) for agent in agents]}))
    elif agents:
        out.print(render_table(("id", "model", "tools", "changed"), [_to_row(agent) for agent in agents], limit))
    else:
        out.print(style_text("No agent is stored yet."))


@cli.command("show")
def show_agent(agent_id: AgentArgument, json: JsonOption = False) -> None:
    """Show a stored agent.

    Example: opposable agents show clerk
    """

    async def load(store: "Store") -> AgentRecord:
        record = await store.agents.get(agent_id)
        return record or await _report_missing(store, agent_id)

    text = to_json(_to_json(run_with_store(load)))
    print(text) if json else out.print_json(text)


@cli.command("bind")
def bind_tools(agent_id: AgentArgument, tools: ToolsArgument, json: JsonOption = False) -> None:
    """Give an agent stored tools. A running service applies the change.

    Example: opposable agents bind default stock
    """
    record = _change_tools(
        agent_id, tools, lambda store, tool: store.agents.bind(agent_id, AgentToolBinding(tool_id=tool))
    )
    _print_tools(record, json=json)


@cli.command("unbind")
def unbind_tools(agent_id: AgentArgument, tools: ToolsArgument, json: JsonOption = False) -> None:
    """Take tools away from an agent.

    Example: opposable agents unbind default stock
    """
    record = _change_tools(agent_id, tools, lambda store, tool: store.agents.unbind(agent_id, tool))
    _print_tools(record, json=json)


@cli.command("check")
def check(
    agent_ids: Annotated[
        list[str] | None, typer.Argument(help="Ids of agents (default: all)", metavar="AGENT", show_default=False)
    ] = None,
    json: JsonOption = False,
) -> None:
    """Warn about agents that can act on untrusted text, or lack a tool.

    The exit code is 1 if there is a warning.

    Example: opposable agents check
    """
    from opposable.app.agent_check import check_agents  # lazy: the store needs the extra "service"

    warnings = run_async(check_agents(read_settings(), agent_ids or ()))
    if json:
        messages = {name: [warning.message for warning in found] for name, found in warnings.items()}
        print(to_json({"agents": [{"agent_id": name, "warnings": found} for name, found in messages.items()]}))
    elif not warnings:
        out.print(style_text("No agent is stored yet."))
    else:
        for name, found in warnings.items():
            out.print(style_text((name, "bold"), "  ", (("no warnings", "green") if not found else ("", ""))))
            for warning in found:
                out.print(style_text(("  warning  ", "yellow"), warning.message))
    if any(warnings.values()):
        raise typer.Exit(1)


def _change_tools(
    agent_id: str, tools: Sequence[str], change: Callable[["Store", str], Awaitable[AgentRecord | None]]
) -> AgentRecord:
    """Apply a change for each tool, and return the changed agent."""

    async def change_all(store: "Store") -> AgentRecord:
        record = None
        for tool in tools:
            record = await change(store, tool)
        return record or await _report_missing(store, agent_id)

    return run_with_store(change_all)


def _print_tools(agent: AgentRecord, *, json: bool) -> None:
    names = ", ".join(binding.tool_id for binding in agent.spec.tools) or "no tools"
    print(to_json(_to_json(agent))) if json else out.print(style_text(f"{agent.spec.agent_id} has {names}."))


async def _report_missing(store: "Store", agent_id: str) -> NoReturn:
    if (await store.agents.list(limit=1)).items:
        raise BadInput(f"There is no agent {agent_id!r}. See: opposable agents list")
    raise BadInput(
        "No agent is stored yet. The first `opposable serve` stores the agent default with all stored tools."
    )


def _to_row(agent: AgentRecord) -> tuple[str, ...]:
    spec = agent.spec
    return (spec.agent_id, fit_cell(spec.model, 15), str(len(spec.tools)), format_minute(agent.updated_at))


def _to_json(agent: AgentRecord) -> dict[str, Any]:
    times = {"version": agent.version, "created_at": agent.created_at, "updated_at": agent.updated_at}
    return agent.spec.model_dump(mode="json") | times
