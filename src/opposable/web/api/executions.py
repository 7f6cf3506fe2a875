"""The routes of executions: the calls that were made, filtered, in parts, or all in one stream."""

import csv
import io
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter, Depends, Path, Query
from pydantic import BaseModel, Field
from starlette.responses import StreamingResponse

from opposable.domain.records import Execution, ExecutionFilter
from opposable.domain.tools import FailureKind
from opposable.service.service import Service
from opposable.web.api.dependencies import Needs, ThePrincipal, TheService
from opposable.web.api.pagination import After, Limit, Part
from opposable.web.errors import documented, forbidden, not_found
from opposable.web.principal import Principal

router = APIRouter(prefix="/api/executions", tags=["executions"], dependencies=[Depends(Needs("tools:read"))])
COLUMNS = (
    *("execution_id", "at", "tool_id", "name", "failure", "seconds", "attempts", "cached", "arguments", "result"),
    *("run_id", "call_id", "agent_id", "conversation_id", "trace_id", "handle", "repairs"),
)
NDJSON = "application/x-ndjson"
STREAMS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "One execution a line.",
        "content": {
            NDJSON: {"schema": {"type": "string"}},
            "text/csv": {"schema": {"type": "string"}},
        },
    }
}
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the beginning of a formula."""


class KeptExecution(BaseModel):
    """A call as it was made. Secrets in `arguments` were redacted before they were kept."""

    execution_id: str
    at: datetime
    tool_id: str
    name: str
    arguments: dict[str, Any]
    result: str = Field(description="What the model was told.")
    failure: FailureKind | None
    seconds: float
    attempts: int
    cached: bool
    repairs: list[str]
    handle: str
    run_id: str
    call_id: str
    trace_id: str
    agent_id: str
    conversation_id: str


async def wanted(
    tool_id: Annotated[str, Query(max_length=200)] = "",
    agent_id: Annotated[str, Query(max_length=200)] = "",
    run_id: Annotated[str, Query(max_length=200)] = "",
    conversation_id: Annotated[str, Query(max_length=200)] = "",
    failure: Annotated[FailureKind | Literal["any"] | None, Query(description="A kind, or any.")] = None,
    since: Annotated[datetime | None, Query(description="The first moment meant; UTC where no zone is given.")] = None,
    until: Annotated[datetime | None, Query(description="The first moment not meant any more.")] = None,
) -> ExecutionFilter:
    """Which executions are meant: all that is given must fit."""
    return ExecutionFilter(tool_id, agent_id, run_id, conversation_id, failure, _utc(since), _utc(until))


Which = Annotated[ExecutionFilter, Depends(wanted)]


@router.get("", responses=documented(404), summary="Calls that were made, newest first")
async def list_executions(
    service: TheService, principal: ThePrincipal, which: Which, after: After = "", limit: Limit = 100
) -> Part[KeptExecution]:
    """The calls that fit. A key without the scope `admin` names a run or a conversation of its own."""
    await _own(service, principal, which)
    page = await service.store.executions.list(which, after=after, limit=limit)
    return Part(items=[_shown(one) for one in page.items], next=page.next)


@router.get(
    "/export", responses=documented(404) | STREAMS, response_class=StreamingResponse, summary="All calls that fit"
)
async def export_executions(
    service: TheService,
    principal: ThePrincipal,
    which: Which,
    format: Annotated[Literal["ndjson", "csv"], Query()] = "ndjson",
) -> StreamingResponse:
    """Every call that fits, newest first, as lines of JSON or as CSV, sent as they are read."""
    await _own(service, principal, which)
    await service.store.executions.list(which, limit=1)  # a store that is away is told before the stream begins
    lines = _csv(service, which) if format == "csv" else _ndjson(service, which)
    named = {"content-disposition": f'attachment; filename="executions.{format}"'}
    return StreamingResponse(lines, headers=named, media_type="text/csv" if format == "csv" else NDJSON)


@router.get("/{execution_id}", responses=documented(404), summary="One call")
async def get_execution(
    service: TheService, principal: ThePrincipal, execution_id: Annotated[str, Path(max_length=200)]
) -> KeptExecution:
    """The call of that id, if it is of a run of the key's own."""
    one = await service.store.executions.get(execution_id)
    if one is None or not await _may_see(service, principal, one.run_id, one.conversation_id):
        raise not_found(f"There is no execution {execution_id!r}.")
    return _shown(one)


async def _own(service: Service, principal: Principal, which: ExecutionFilter) -> None:
    """Refuse what would show another key's calls. Raises: `ApiError` 403 or 404."""
    if principal.may("admin"):
        return
    if not which.run_id and not which.conversation_id:
        raise forbidden("Without the scope 'admin', name a run_id or a conversation_id of your own.")
    if not await _may_see(service, principal, which.run_id, which.conversation_id):
        raise not_found("There is no such run or conversation.")


async def _may_see(service: Service, principal: Principal, run_id: str, conversation_id: str) -> bool:
    if principal.may("admin"):
        return True
    if run_id:
        run = await service.store.runs.get(run_id)
        return run is not None and run.owner == principal.key_id
    return bool(conversation_id) and await service.conversation(conversation_id, principal.key_id) is not None


async def _ndjson(service: Service, which: ExecutionFilter) -> AsyncIterator[bytes]:
    lines: list[bytes] = []
    async for one in service.store.executions.export(which):
        lines.append(orjson.dumps(one, option=orjson.OPT_APPEND_NEWLINE))
        if len(lines) == 200:
            yield b"".join(lines)
            lines.clear()
    yield b"".join(lines)


async def _csv(service: Service, which: ExecutionFilter) -> AsyncIterator[bytes]:
    page = io.StringIO()
    writer = csv.writer(page)
    writer.writerow(COLUMNS)
    async for one in service.store.executions.export(which):
        writer.writerow([_cell(getattr(one, name)) for name in COLUMNS])
        if page.tell() > 60_000:
            yield page.getvalue().encode("utf-8", "replace")
            page.seek(0)
            page.truncate()
    yield page.getvalue().encode("utf-8", "replace")


def _cell(value: Any) -> str:
    """A value as text that no spreadsheet runs."""
    match value:
        case None:
            return ""
        case datetime():
            return value.isoformat()
        case str():
            text = value
        case dict() | tuple():
            text = orjson.dumps(value, default=str).decode()
        case _:
            return str(value)
    return f"'{text}" if text.startswith(FORMULA) else text


def _shown(one: Execution) -> KeptExecution:
    return KeptExecution(**{name: getattr(one, name) for name in KeptExecution.model_fields})


def _utc(moment: datetime | None) -> datetime | None:
    if moment is None or moment.tzinfo is not None:
        return moment
    return moment.replace(tzinfo=UTC)
