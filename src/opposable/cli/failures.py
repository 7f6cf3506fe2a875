"""The commands on failures that are remembered."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opposable.app.stored_tools import open_default_store, store_exists
from opposable.cli.options import JsonOption, out, read_settings
from opposable.cli.rendering import render_table, shorten, style_text, to_json
from opposable.domain.errors import BadInput
from opposable.domain.records import Failure

if TYPE_CHECKING:
    from opposable.store.store import Store

cli = typer.Typer(help="What earlier runs learnt of failing calls: read it, pin it, forget it.", no_args_is_help=True)
FailureIdArgument = Annotated[str, typer.Argument(help="The failure's id, or its first digits.", metavar="ID")]


@cli.command("list")
def list_failures(
    tool: Annotated[str, typer.Option("--tool", "-t", help="Only those of this tool.")] = "",
    agent: Annotated[
        str | None, typer.Option("--agent", help='Only those of this agent; "" is what all share.')
    ] = None,
    limit: Annotated[int, typer.Option("--number", "-n", min=1, max=1000, help="So many at most.")] = 50,
    json: JsonOption = False,
) -> None:
    """List the failures that are remembered, the last seen first.

    Example: opposable failures list --tool browser_navigator
    """

    async def work(store: "Store") -> None:
        found = (await store.failures.list(tool_id=tool, scope=agent, limit=limit)).items
        if json:
            print(to_json({"failures": [_to_json(one) for one in found]}))
            return
        columns = ("id", "tool", "kind", "times", "last seen", "what", "right")
        out.print(render_table(columns, [_to_row(one) for one in found], limit=limit))

    if not store_exists(read_settings()):
        print(to_json({"failures": []})) if json else out.print(style_text("Nothing is remembered yet."))
        return
    _run_with_store(work)


@cli.command("show")
def show_failure(failure_id: FailureIdArgument, json: JsonOption = False) -> None:
    """Show a failure whole: the arguments it is about, what the tool said, what put it right.

    Example: opposable failures show 3fa9
    """

    async def work(store: "Store") -> None:
        told = to_json(_to_json(await _require_failure(store, failure_id)))
        print(told) if json else out.print_json(told)

    _run_with_store(work)


@cli.command("pin")
def pin_failure(
    failure_id: FailureIdArgument,
    off: Annotated[bool, typer.Option("--off", help="Let it be forgotten again.")] = False,
) -> None:
    """Keep a failure for good: its call is refused from then on, whatever came of it before.

    Example: opposable failures pin 3fa9
    """

    async def work(store: "Store") -> None:
        one = await _require_failure(store, failure_id)
        await store.failures.set_pinned(one.failure_id, not off)
        out.print(style_text(f"{one.failure_id} is {'no longer pinned' if off else 'pinned'}."))

    _run_with_store(work)


@cli.command("forget")
def forget_failures(
    failure_id: Annotated[str, typer.Argument(help="The failure's id, or its first digits.", metavar="[ID]")] = "",
    tool: Annotated[str, typer.Option("--tool", "-t", help="Forget all of this tool.")] = "",
    agent: Annotated[
        str | None, typer.Option("--agent", help='Only what this agent knows of it; "" is what all share.')
    ] = None,
) -> None:
    """Forget a failure, or all of a tool.

    Example: opposable failures forget --tool browser_navigator
    """
    if bool(failure_id) == bool(tool):
        raise BadInput("Give either the id of a failure or --tool.")
    if agent is not None and not tool:
        raise BadInput("--agent goes with --tool.")

    async def work(store: "Store") -> None:
        if tool:
            out.print(style_text(f"{await store.failures.forget_tool(tool, agent)} failures of {tool} are forgotten."))
            return
        one = await _require_failure(store, failure_id)
        await store.failures.forget(one.failure_id)
        out.print(style_text(f"{one.failure_id} is forgotten."))

    _run_with_store(work)


def _run_with_store(operation: "Callable[[Store], Awaitable[None]]") -> None:
    async def opened() -> None:
        async with open_default_store(read_settings()) as store:
            await operation(store)

    asyncio.run(opened())


async def _require_failure(store: "Store", id_prefix: str) -> Failure:
    """The failure of that id, or the only one whose id begins so. Raises: `BadInput`."""
    like = await store.failures.list_by_id_prefix(id_prefix.lower()) if id_prefix else ()
    if len(like) != 1:
        said = f"More than one failure begins with {id_prefix!r}" if like else f"There is no failure {id_prefix!r}"
        raise BadInput(f"{said}; opposable failures list shows them.")
    return like[0]


def _to_row(failure: Failure) -> tuple[Any, ...]:
    name = f"{failure.tool_id}.{failure.action}" if failure.action else failure.tool_id
    seen = failure.last_seen.strftime("%Y-%m-%d %H:%M") if failure.last_seen else ""
    right = to_json(failure.correction["right"]) if failure.correction and "right" in failure.correction else ""
    pinned = " (pinned)" if failure.pinned else ""
    return (
        failure.failure_id[:8] + pinned,
        name,
        failure.kind,
        failure.count,
        seen,
        shorten(failure.message),
        shorten(right),
    )


def _to_json(failure: Failure) -> dict[str, Any]:
    given, _, said = failure.message.partition("\n")
    return {
        "failure_id": failure.failure_id,
        "tool_id": failure.tool_id,
        "action": failure.action,
        "agent_id": failure.scope,
        "kind": failure.kind,
        "count": failure.count,
        "first_seen": failure.first_seen.isoformat() if failure.first_seen else None,
        "last_seen": failure.last_seen.isoformat() if failure.last_seen else None,
        "about": given,
        "said": said,
        "correction": failure.correction,
        "pinned": failure.pinned,
        "fingerprint": failure.fingerprint,
    }
