"""A typed HTTP client of the service."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from types import TracebackType
from typing import Any, Literal, Self, TypeVar
from urllib.parse import quote

import aiohttp

from opposable.domain.errors import BadInput, OpposableError
from opposable.domain.json_text import dump_json, parse_json
from opposable.domain.records import RunStatus

T = TypeVar("T")

REQUEST_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=60)
"""A stream that is silent for 60 seconds, heartbeats included, is broken."""

ANSWER_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=10)
"""A whole answer may take as long as the limits of the agent allow; until then the service sends nothing."""


class ServiceError(OpposableError):
    """The service rejected a request, failed, or cannot be reached.

    Attributes:
        status: The HTTP status, or 0 without a response.
        kind: The kind of error for programs, or "".
    """

    def __init__(self, message: str, status: int = 0, kind: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind


@dataclass(frozen=True, slots=True)
class ChatResult:
    """The answer to a message.

    Attributes:
        tool_calls: The calls made for it, each with `tool`, `arguments` and `result`.
    """

    response: str
    conversation_id: str = ""
    trace_id: str = ""
    success: bool = True
    tool_calls: tuple[dict[str, Any], ...] = ()
    meta: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServiceEvent:
    """An event of a run.

    Kinds: text, commentary, run_started, thinking, model_replied, tool_started, tool_delta, tool_finished, decided,
    data_answered, approval_needed, approval_decided, resumed, run_finished, error.

    Attributes:
        kind: The kind of event; a "text" event has a delta of the answer in `content`.
        data: The data of the event.
        id: The id with which a stream is resumed.
    """

    kind: str
    data: dict[str, Any]
    id: str = ""

    @property
    def content(self) -> str:
        """The delta of the answer, or "" for other events."""
        return str(self.data.get("content", ""))

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self.id.partition(":")[0]


@dataclass(frozen=True, slots=True)
class RunInfo:
    """A run; times are ISO 8601 in UTC."""

    run_id: str
    status: str
    started_at: str
    ended_at: str | None = None
    agent_id: str = ""
    conversation_id: str = ""
    trace_id: str = ""
    task: str = ""
    text: str = ""
    reason: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    turns: int = 0
    tool_calls: int = 0


@dataclass(frozen=True, slots=True)
class ConversationInfo:
    """A conversation; `messages` is empty in lists."""

    conversation_id: str
    agent_id: str = ""
    title: str = ""
    messages_count: int = 0
    created_at: str | None = None
    updated_at: str | None = None
    messages: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class ApprovalInfo:
    """A call that waits for approval or was decided, with its exact arguments."""

    approval_id: str
    run_id: str
    call_id: str
    tool_id: str
    arguments: dict[str, Any]
    sha256: str
    status: str
    created_at: str
    agent_id: str = ""
    conversation_id: str = ""
    decided_by: str = ""
    decided_at: str | None = None
    reason: str = ""


class Client:
    """A client of the service at `url`: `async with Client(url, key) as client`.

    Every method raises `ServiceError` with the message, status and kind that the service returns.

    Raises:
        BadInput: The key cannot be sent.
    """

    def __init__(self, url: str = "http://127.0.0.1:8000", key: str = "") -> None:
        self._url = url.rstrip("/").removesuffix("/v1")
        key = key.strip()  # of a file with a line break at its end
        if not key.isprintable():
            raise BadInput("The API key has a line break or another control character in it.")
        self._headers = {"authorization": f"Bearer {key}"} if key else {}
        self._session: aiohttp.ClientSession | None = None

    async def chat(
        self,
        message: str,
        *,
        agent: str = "",
        conversation_id: str = "",
        max_tool_calls: int | None = None,
        max_tokens: int | None = None,
    ) -> ChatResult:
        """Send a message to an agent and wait for the whole answer.

        Cancelling the call cancels the run, except on a service with durable runs.
        """
        body = _build_chat_body(message, conversation_id, max_tool_calls, max_tokens)
        headers = _build_agent_headers(agent)
        return await self._request_json(
            partial(_from_json, ChatResult), "POST", "/agent/chat", body=body, headers=headers, timeout=ANSWER_TIMEOUT
        )

    async def stream(
        self,
        message: str,
        *,
        agent: str = "",
        conversation_id: str = "",
        max_tool_calls: int | None = None,
        max_tokens: int | None = None,
        detach: bool = False,
    ) -> AsyncGenerator[ServiceEvent, None]:
        """Send a message to an agent and stream the answer.

        Closing the stream cancels the run unless `detach` is set, or the service has durable runs.
        """
        body = {**_build_chat_body(message, conversation_id, max_tool_calls, max_tokens), "detach": detach}
        async with self._request("POST", "/api/agent", body=body, headers=_build_agent_headers(agent)) as response:
            async for event in _iter_events(response):
                yield event

    async def follow_run(self, run_id: str, after: str = "") -> AsyncGenerator[ServiceEvent, None]:
        """Stream the events of a run, or those after the event with the id `after`.

        Closing it cancels nothing.
        """
        headers = {"last-event-id": after} if after else {}
        async with self._request("GET", f"/api/runs/{_quote_id(run_id)}/events", headers=headers) as response:
            async for event in _iter_events(response):
                yield event

    async def get_run(self, run_id: str) -> RunInfo:
        """Return a run."""
        return await self._request_json(partial(_from_json, RunInfo), "GET", f"/api/runs/{_quote_id(run_id)}")

    def list_runs(
        self, *, agent_id: str = "", conversation_id: str = "", status: RunStatus | None = None
    ) -> AsyncIterator[RunInfo]:
        """List your runs, newest first."""
        filters = {"agent_id": agent_id, "conversation_id": conversation_id, "status": status}
        return self._iter_pages(RunInfo, "/api/runs", {name: value for name, value in filters.items() if value})

    async def cancel_run(self, run_id: str) -> bool:
        """Cancel a run, in whichever process it is; return False if it has already ended."""
        path = f"/api/runs/{_quote_id(run_id)}/cancel"
        return await self._request_json(lambda data: bool(data["cancelled"]), "POST", path)

    def list_conversations(self) -> AsyncIterator[ConversationInfo]:
        """List your conversations without their messages, the latest first."""
        return self._iter_pages(ConversationInfo, "/agent/conversations", {})

    async def get_conversation(self, conversation_id: str) -> ConversationInfo:
        """Return a conversation with its messages."""
        path = f"/agent/conversations/{_quote_id(conversation_id)}"
        return await self._request_json(partial(_from_json, ConversationInfo), "GET", path)

    async def delete_conversation(self, conversation_id: str) -> None:
        """Delete a conversation."""
        path = f"/agent/conversations/{_quote_id(conversation_id)}"
        await self._request_json(lambda data: data["deleted"], "DELETE", path)

    def list_approvals(self, status: str = "pending") -> AsyncIterator[ApprovalInfo]:
        """List calls that wait for approval.

        `status` may also be approved, denied or expired.
        """
        return self._iter_pages(ApprovalInfo, "/api/approvals", {"status": status})

    async def decide_approval(
        self, approval: ApprovalInfo, decision: Literal["approve", "deny"], reason: str = ""
    ) -> ApprovalInfo:
        """Approve or deny a call with exactly the arguments of `approval`."""
        body = {"decision": decision, "reason": reason, "sha256": approval.sha256}
        path = f"/api/approvals/{_quote_id(approval.approval_id)}"
        return await self._request_json(partial(_from_json, ApprovalInfo), "POST", path, body=body)

    def list_tools(self) -> AsyncIterator[dict[str, Any]]:
        """List the tools as the service describes them."""
        return self._iter_pages(dict, "/api/tools", {})

    def list_agents(self) -> AsyncIterator[dict[str, Any]]:
        """List the agents as the service describes them."""
        return self._iter_pages(dict, "/api/agents", {})

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _iter_pages(self, item_type: type[T], path: str, filters: Mapping[str, str]) -> AsyncIterator[T]:
        def read_page(data: Any) -> tuple[list[T], str]:
            return [_from_json(item_type, item) for item in data["items"]], data["next"]

        after = ""
        while True:
            items, after = await self._request_json(read_page, "GET", path, params={**filters, "after": after})
            for item in items:
                yield item
            if not after:
                return

    async def _request_json(self, read: Callable[[Any], T], method: str, path: str, **request_options: Any) -> T:
        async with self._request(method, path, **request_options) as response:
            raw = await response.read()
        try:
            return read(parse_json(raw))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise ServiceError(
                f"The response of {response.url} is not one of the service. Check the URL of the client.",
                response.status,
            ) from error

    def _request(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: aiohttp.ClientTimeout | None = None,
    ) -> "_ResponseContext":
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0)  # no limit, because streams stay open for long
            self._session = aiohttp.ClientSession(headers=self._headers, connector=connector)
        request_headers = dict(headers or {})
        if body is not None:
            request_headers["content-type"] = "application/json"
        request = self._session.request(
            method,
            self._url + path,
            data=None if body is None else dump_json(body),
            params=params,
            headers=request_headers,
            timeout=timeout or REQUEST_TIMEOUT,
        )
        return _ResponseContext(request)


class _ResponseContext:
    """A response context that turns transport and status errors into `ServiceError`."""

    def __init__(self, request: Any) -> None:
        self._request = request

    async def __aenter__(self) -> aiohttp.ClientResponse:
        try:
            response: aiohttp.ClientResponse = await self._request.__aenter__()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ServiceError(f"The service cannot be reached: {error or type(error).__name__}.") from error
        if response.status >= 400:
            try:
                raw = await response.read()
            except (aiohttp.ClientError, TimeoutError):
                raw = b""
            response.release()
            raise _parse_error(response.status, raw)
        return response

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._request.__aexit__(kind, error, trace)
        if isinstance(error, aiohttp.ClientError | TimeoutError):
            raise ServiceError(f"The connection to the service broke: {error or type(error).__name__}.") from error


async def _iter_events(response: aiohttp.ClientResponse) -> AsyncIterator[ServiceEvent]:
    event_fields: dict[str, str] = {}
    buffer = b""
    async for chunk in response.content.iter_any():
        *lines, buffer = (buffer + chunk).split(b"\n")
        for raw in lines:
            name, colon, value = raw.decode().partition(": ")
            if colon and name:
                event_fields[name] = value
            elif not raw and event_fields:
                if event_fields.get("data") == "[DONE]":
                    return
                yield _parse_event(event_fields)
                event_fields = {}
    raise ServiceError("The stream ended before the run did. Resume it with `follow_run` and the id of the last event.")


def _parse_event(event_fields: Mapping[str, str]) -> ServiceEvent:
    data = parse_json(event_fields.get("data") or "{}")
    kind = event_fields.get("event", "text")
    return ServiceEvent(
        kind, data["error"] if kind == "error" and "error" in data else data, event_fields.get("id", "")
    )


def _parse_error(status: int, raw: bytes) -> ServiceError:
    try:
        error = parse_json(raw)["error"]
        return ServiceError(str(error["message"]), status, str(error.get("kind", "")))
    except (ValueError, KeyError, TypeError):
        return ServiceError(f"The service returned status {status} without a message.", status)


def _build_chat_body(
    message: str, conversation_id: str, max_tool_calls: int | None, max_tokens: int | None
) -> dict[str, Any]:
    options = {"conversation_id": conversation_id or None, "max_tool_calls": max_tool_calls, "max_tokens": max_tokens}
    return {"message": message, **{name: value for name, value in options.items() if value is not None}}


def _build_agent_headers(agent: str) -> dict[str, str]:
    return {"x-agent-id": quote(agent)} if agent else {}


def _quote_id(record_id: str) -> str:
    """Quote an id for a path, where `../` and `?` would lead to another route."""
    return quote(record_id, safe="")


def _from_json(item_type: type[T], data: Any) -> T:
    """Create a result from JSON; fields that this version does not know are ignored."""
    if item_type is dict:
        return data  # type: ignore[no-any-return]
    field_names = {dataclass_field.name for dataclass_field in fields(item_type)}  # type: ignore[arg-type]
    return item_type(
        **{
            name: tuple(value) if isinstance(value, list) else value
            for name, value in data.items()
            if name in field_names
        }
    )
