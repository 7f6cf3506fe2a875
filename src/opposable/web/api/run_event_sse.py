"""The events of a run as server-sent events, live or from the store."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from opposable.domain.errors import OpposableError
from opposable.domain.records import RunEvent
from opposable.service.service import Service
from opposable.web.api.serializers import dump_json
from opposable.web.errors import bad_input_error, to_api_error
from opposable.web.sse_response import DONE_EVENT, SseResponse, escape_line_ends


def format_sse_event(event: RunEvent) -> bytes:
    """Return an event with the id `run_id:sequence`.

    A delta of the answer is an unnamed event with `content`; other events have a name and no `content`.
    """
    head = f"id: {event.run_id}:{event.sequence}\n"
    data = event.data
    if event.kind != "text":
        head += f"event: {event.kind}\n"
        data = {"error": data} if event.kind == "error" else data
    return head.encode() + b"data: " + escape_line_ends(dump_json(data)) + b"\n\n"


async def stream_run_events(service: Service, run_id: str, after: int) -> AsyncGenerator[bytes, None]:
    """Yield the events of a run after number `after`, and the end marker."""
    try:
        async with aclosing(service.runner.follow(run_id, after)) as events:
            async for event in events:
                yield format_sse_event(event)
    except OpposableError as error:
        yield _format_error(to_api_error(error).to_json())
        return
    yield DONE_EVENT


def respond_with_run_events(
    service: Service, run_id: str, after: int, on_end: Callable[[], None] | None = None
) -> SseResponse:
    """Return the response with the events of a run after number `after`."""
    return SseResponse(stream_run_events(service, run_id, after), to_api_error, on_end or (lambda: None), _format_error)


def _format_error(error: bytes) -> bytes:
    return b"event: error\ndata: " + error + b"\n\n" + DONE_EVENT


def parse_last_event_id(last_event_id: str | None, run_id: str = "") -> tuple[str, int]:
    """Return the run id and event number in a `Last-Event-ID` header.

    Without the header, return `run_id` and 0.

    Raises:
        ApiError: 400, if the id is malformed or not of the run `run_id`.
    """
    if not last_event_id:
        return run_id, 0
    run, _, number = last_event_id.strip().rpartition(":")
    if not run or not number.isascii() or not number.isdigit() or len(number) > 9 or (run_id and run != run_id):
        raise bad_input_error("Last-Event-ID is not an event id of this run. Event ids have the form RUN_ID:NUMBER.")
    return run, int(number)
