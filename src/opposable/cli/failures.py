"""The commands on failures that are remembered."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opposable.app.stored_tools import is_kept, kept_store
from opposable.cli.options import JsonOption, out, read_settings
from opposable.cli.rendering import as_json, short, styled, table
from opposable.domain.errors import BadInput
from opposable.domain.records import Failure

if TYPE_CHECKING:
    from opposable.store.store import Store

cli = typer.Typer(help="What earlier runs learnt of failing calls: read it, pin it, forget it.", no_args_is_help=True)
Id = Annotated[str, typer.Argument(help="The failure's id, or its first digits.", metavar="ID")]


@cli.command("list")
def failures_list(
    tool: Annotated[str, typer.Option("--tool", "-t", help="Only those of this tool.")] = "",
    agent: Annotated[
        str | None, typer.Option("--agent", help='Only those of this agent; "" is what all share.')
    ] = None,
    number: Annotated[int, typer.Option("--number", "-n", min=1, max=1000, help="So many at most.")] = 50,
    json: JsonOption = False,
) -> None:
    """List the failures that are remembered, the last seen first.

    Example: opposable failures list --tool browser_navigator
    """

    async def work(store: "Store") -> None:
        found = (await store.failures.list(tool_id=tool, scope=agent, limit=number)).items
        if json:
            print(as_json({"failures": [_as_json(one) for one in found]}))
            return
        columns = ("id", "tool", "kind", "times", "last seen", "what", "right")
        out.print(table(columns, [_row(one) for one in found], most=number))

    if not is_kept(read_settings()):
        print(as_json({"failures": []})) if json else out.print(styled("Nothing is remembered yet."))
        return
    _with_store(work)


@cli.command("show")
def failures_show(failure_id: Id, json: JsonOption = False) -> None:
    """Show a failure whole: the arguments it is about, what the tool said, what put it right.

    Example: opposable failures show 3fa9
    """

    async def work(store: "Store") -> None:
        told = as_json(_as_json(await _found(store, failure_id)))
        print(told) if json else out.print_json(told)

    _with_store(work)


@cli.command("pin")
def failures_pin(
    failure_id: Id,
    off: Annotated[bool, typer.Option("--off", help="Let it be forgotten again.")] = False,
) -> None:
    """Keep a failure for good: its call is refused from then on, whatever came of it before.

    Example: opposable failures pin 3fa9
    """

    async def work(store: "Store") -> None:
        one = await _found(store, failure_id)
        await store.failures.pin(one.failure_id, not off)
        out.print(styled(f"{one.failure_id} is {'no longer pinned' if off else 'pinned'}."))

    _with_store(work)


@cli.command("forget")
def failures_forget(
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
            out.print(styled(f"{await store.failures.forget_tool(tool, agent)} failures of {tool} are forgotten."))
            return
        one = await _found(store, failure_id)
        await store.failures.forget(one.failure_id)
        out.print(styled(f"{one.failure_id} is forgotten."))

    _with_store(work)


def _with_store(work: "Callable[[Store], Awaitable[None]]") -> None:
    async def opened() -> None:
        async with kept_store(read_settings()) as store:
            await work(store)

    asyncio.run(opened())


async def _found(store: "Store", given: str) -> Failure:
    """The failure of that id, or the only one whose id begins so. Raises: `BadInput`."""
    like = await store.failures.beginning(given.lower()) if given else ()
    if len(like) != 1:
        said = f"More than one failure begins with {given!r}" if like else f"There is no failure {given!r}"
        raise BadInput(f"{said}; opposable failures list shows them.")
    return like[0]


def _row(one: Failure) -> tuple[Any, ...]:
    name = f"{one.tool_id}.{one.action}" if one.action else one.tool_id
    seen = one.last_seen.strftime("%Y-%m-%d %H:%M") if one.last_seen else ""
    right = as_json(one.correction["right"]) if one.correction and "right" in one.correction else ""
    pinned = " (pinned)" if one.pinned else ""
    return one.failure_id[:8] + pinned, name, one.kind, one.count, seen, short(one.message), short(right)


def _as_json(one: Failure) -> dict[str, Any]:
    given, _, said = one.message.partition("\n")
    return {
        "failure_id": one.failure_id,
        "tool_id": one.tool_id,
        "action": one.action,
        "agent_id": one.scope,
        "kind": one.kind,
        "count": one.count,
        "first_seen": one.first_seen.isoformat() if one.first_seen else None,
        "last_seen": one.last_seen.isoformat() if one.last_seen else None,
        "about": given,
        "said": said,
        "correction": one.correction,
        "pinned": one.pinned,
        "fingerprint": one.fingerprint,
    }
