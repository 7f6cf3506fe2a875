"""The commands for stored failures: list, show, pin, forget."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from opposable.cli.help import HelpGroup
from opposable.cli.options import JsonOption, out
from opposable.cli.rendering import render_table, shorten, style_text, to_json
from opposable.cli.stored_records import LimitOption, RecordIdArgument, find_by_id_prefix, read_page, run_with_store
from opposable.domain.errors import BadInput
from opposable.domain.records import Failure

if TYPE_CHECKING:
    from opposable.store.store import Store

cli = typer.Typer(cls=HelpGroup, no_args_is_help=True)


@cli.command("list")
def list_failures(
    tool: Annotated[str, typer.Option("--tool", "-t", help="Only failures of this tool")] = "",
    agent: Annotated[
        str | None, typer.Option("--agent", help="Only failures of this agent or scope (see --json)")
    ] = None,
    limit: LimitOption = 50,
    json: JsonOption = False,
) -> None:
    """List the stored failures, the latest first.

    Example: opposable failures list --tool browser_navigator
    """
    failures = read_page(lambda store: store.failures.list(tool_id=tool, scope=agent, limit=limit))
    if json:
        print(to_json({"failures": [_to_json(failure) for failure in failures]}))
    elif failures:
        columns = ("id", "tool", "kind", "times", "last seen", "message", "correction")
        out.print(render_table(columns, [_to_row(failure) for failure in failures], limit=limit))
    else:
        out.print(style_text("No failure is stored yet."))


@cli.command("show")
def show_failure(failure_id: RecordIdArgument, json: JsonOption = False) -> None:
    """Show a stored failure: its arguments, the tool's message, the correction.

    Example: opposable failures show 3fa9
    """
    text = to_json(_to_json(run_with_store(lambda store: _require_failure(store, failure_id))))
    print(text) if json else out.print_json(text)


@cli.command("pin")
def pin_failure(
    failure_id: RecordIdArgument,
    off: Annotated[bool, typer.Option("--off", help="Unpin the failure")] = False,
) -> None:
    """Pin a failure: assisted models are always warned of it, and it never expires.

    Example: opposable failures pin 3fa9
    """

    async def set_pinned(store: "Store") -> None:
        failure = await _require_failure(store, failure_id)
        await store.failures.set_pinned(failure.failure_id, not off)
        out.print(style_text(f"{failure.failure_id} is {'no longer pinned' if off else 'pinned'}."))

    run_with_store(set_pinned)


@cli.command("forget")
def forget_failures(
    failure_id: RecordIdArgument = "",
    tool: Annotated[str, typer.Option("--tool", "-t", help="Delete all failures of this tool")] = "",
    agent: Annotated[
        str | None, typer.Option("--agent", help="With --tool: only failures of this agent or scope")
    ] = None,
) -> None:
    """Delete one stored failure, or all of a tool.

    Example: opposable failures forget --tool browser_navigator
    """
    if bool(failure_id) == bool(tool):
        raise BadInput("Pass either the id of a failure or --tool.")
    if agent is not None and not tool:
        raise BadInput("--agent needs --tool. Pass both, or leave --agent out.")

    async def delete(store: "Store") -> None:
        if tool:
            out.print(style_text(f"{await store.failures.forget_tool(tool, agent)} failures of {tool} are deleted."))
            return
        failure = await _require_failure(store, failure_id)
        await store.failures.forget(failure.failure_id)
        out.print(style_text(f"{failure.failure_id} is deleted."))

    run_with_store(delete)


async def _require_failure(store: "Store", id_prefix: str) -> Failure:
    return await find_by_id_prefix(
        store.failures.list_by_id_prefix, id_prefix, lambda failure: failure.failure_id, "failure"
    )


def _to_row(failure: Failure) -> tuple[Any, ...]:
    last_seen = failure.last_seen.astimezone().strftime("%Y-%m-%d %H:%M") if failure.last_seen else ""
    correction = to_json(failure.correction["right"]) if failure.correction and "right" in failure.correction else ""
    pin_note = " (pinned)" if failure.pinned else ""
    return (
        failure.failure_id[:8] + pin_note,
        failure.qualified_tool_id,
        failure.kind,
        failure.count,
        last_seen,
        shorten(failure.message),
        shorten(correction),
    )


def _to_json(failure: Failure) -> dict[str, Any]:
    arguments, _, error = failure.message.partition("\n")
    return {
        "failure_id": failure.failure_id,
        "tool_id": failure.tool_id,
        "action": failure.action,
        "scope": failure.scope,
        "kind": failure.kind,
        "count": failure.count,
        "first_seen": failure.first_seen.isoformat() if failure.first_seen else None,
        "last_seen": failure.last_seen.isoformat() if failure.last_seen else None,
        "arguments": arguments,
        "error": error,
        "correction": failure.correction,
        "pinned": failure.pinned,
        "fingerprint": failure.fingerprint,
    }
