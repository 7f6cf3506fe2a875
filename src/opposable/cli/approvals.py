"""The commands for calls that wait for human approval: list, approve, deny."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from opposable.app.stored_tools import COMMAND_LINE
from opposable.cli.help import HelpGroup
from opposable.cli.options import JsonOption, out
from opposable.cli.rendering import style_text, to_json
from opposable.cli.stored_records import (
    SHORT_ID_CHARACTERS,
    LimitOption,
    RecordIdArgument,
    find_by_id_prefix,
    format_minute,
    read_page,
    run_with_store,
)
from opposable.domain.errors import BadInput
from opposable.domain.json_forms import approval_to_json
from opposable.domain.records import Approval, ApprovalStatus

if TYPE_CHECKING:
    from opposable.store.store import Store

cli = typer.Typer(cls=HelpGroup, no_args_is_help=True)


@cli.command("list")
def list_approvals(
    decided: Annotated[bool, typer.Option("--all", help="Include the calls that were decided")] = False,
    limit: LimitOption = 50,
    json: JsonOption = False,
) -> None:
    """List the calls that wait for approval with their whole arguments, the latest first.

    Example: opposable approvals list
    """
    status: ApprovalStatus | None = None if decided else "pending"
    approvals = read_page(lambda store: store.approvals.list(status=status, limit=limit))
    if json:
        print(to_json({"approvals": [approval_to_json(approval) for approval in approvals]}))
    elif approvals:
        for approval in approvals:
            _print_approval(approval)
    else:
        out.print(style_text("No approval is stored." if decided else "No call waits for approval."))


@cli.command("approve")
def approve_call(approval_id: RecordIdArgument, json: JsonOption = False) -> None:
    """Approve a waiting call with exactly the arguments that the list shows.

    Example: opposable approvals approve 3fa9
    """
    _decide(approval_id, "approved", "", json)


@cli.command("deny")
def deny_call(
    approval_id: RecordIdArgument,
    reason: Annotated[str, typer.Option("--reason", help="Reason, which the model receives")] = "",
    json: JsonOption = False,
) -> None:
    """Deny a waiting call.

    Example: opposable approvals deny 3fa9 --reason "Ask the customer first"
    """
    _decide(approval_id, "denied", reason, json)


def _decide(approval_id: str, status: Literal["approved", "denied"], reason: str, json: bool) -> None:
    async def decide(store: "Store") -> Approval:
        repository = store.approvals
        approval = await find_by_id_prefix(
            repository.list_by_id_prefix, approval_id, lambda one: one.approval_id, "approval"
        )
        decided = await repository.decide(approval.approval_id, status, decided_by=COMMAND_LINE, reason=reason)
        if decided is None:
            raise BadInput(
                f"The approval {approval.approval_id} is not pending: it was decided, or its run has ended. "
                "See: opposable approvals list --all"
            )
        return decided

    decided = run_with_store(decide)
    if json:
        print(to_json(approval_to_json(decided)))
    else:
        out.print(style_text((decided.status, "bold"), f": {decided.tool_id} {to_json(decided.arguments)}"))


def _print_approval(approval: Approval) -> None:
    head = f"  {format_minute(approval.created_at)}  {approval.status}  {approval.tool_id}"
    out.print(style_text((approval.approval_id[:SHORT_ID_CHARACTERS], "bold"), head))
    for name, value in approval.arguments.items():
        out.print(style_text(f"    {name}: {to_json(value)}"))
