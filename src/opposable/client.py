"""A typed client of the service: chats, streams, conversations, runs, approvals, tools, agents."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass, field, fields
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

import aiohttp
import orjson

from opposable.domain.errors import OpposableError

T = TypeVar("T")

REQUEST_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=60)
"""Seconds: a stream that is silent for a minute, comments included, is dead."""


class ServiceError(OpposableError):
    """The service refused or failed: `status` is HTTP's, `kind` a word for programs, 0 and "" where nothing answered."""

    def __init__(self, message: str, status: int = 0, kind: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind


@dataclass(frozen=True, slots=True)
class ChatResult:
    """An answer, with the calls made on the way: `tool`, `arguments` and `result` of each."""

    response: str
    conversation_id: str = ""
    trace_id: str = ""
    success: bool = True
    tool_calls: tuple[dict[str, Any], ...] = ()
    meta: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServiceEvent:
    """What happened in a run. `kind` is "text" for a piece of the answer, which `content` is; `id` resumes a stream.

    The other kinds: run_started, thinking, model_replied, tool_started, tool_delta, tool_finished, decided,
    data_answered, approval_needed, approval_decided, run_finished, error.
    """

    kind: str
    data: dict[str, Any]
    id: str = ""

    @property
    def content(self) -> str:
        """The piece of the answer, "" where this is none."""
        return str(self.data.get("content", ""))

    @property
    def run_id(self) -> str:
        """The run it is of."""
        return self.id.partition(":")[0]


@dataclass(frozen=True, slots=True)
class RunInfo:
    """A run as it stands; moments are ISO 8601 in UTC."""

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
    """A call that waits for a person, with the exact arguments it will be made with, or was decided."""

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

    Every method raises `ServiceError`: with the service's own sentence, its status and kind.
    """

    def __init__(self, url: str = "http://127.0.0.1:8000", key: str = "") -> None:
        self._url = url.rstrip("/").removesuffix("/v1")
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
        """Ask an agent (by default the default one) and wait for the whole answer; leaving stops the run."""
        body = _build_chat_body(message, conversation_id, max_tool_calls, max_tokens)
        return _from_json(
            ChatResult, await self._request_json("POST", "/agent/chat", body=body, headers=_build_agent_headers(agent))
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
        """Ask an agent and see the answer as it comes. Leaving stops the run, unless `detach` lets it go on."""
        body = {**_build_chat_body(message, conversation_id, max_tool_calls, max_tokens), "detach": detach}
        async with self._request("POST", "/api/agent", body=body, headers=_build_agent_headers(agent)) as response:
            async for event in _iter_events(response):
                yield event

    async def follow_run(self, run_id: str, after: str = "") -> AsyncGenerator[ServiceEvent, None]:
        """A run's events, or those behind the event of id `after`, until it ends. Leaving stops nothing."""
        headers = {"last-event-id": after} if after else {}
        async with self._request("GET", f"/api/runs/{run_id}/events", headers=headers) as response:
            async for event in _iter_events(response):
                yield event

    async def get_run(self, run_id: str) -> RunInfo:
        """A run as it stands."""
        return _from_json(RunInfo, await self._request_json("GET", f"/api/runs/{run_id}"))

    def list_runs(self, **filters: str) -> AsyncIterator[RunInfo]:
        """One's own runs, newest first; `which` may give agent_id, conversation_id, status."""
        return self._iter_pages(RunInfo, "/api/runs", filters)

    async def cancel_run(self, run_id: str) -> bool:
        """Stop a run, whichever process it goes on in. False where it has ended already."""
        return bool((await self._request_json("POST", f"/api/runs/{run_id}/cancel"))["cancelled"])

    def list_conversations(self) -> AsyncIterator[ConversationInfo]:
        """One's own conversations, the last continued first, without their messages."""
        return self._iter_pages(ConversationInfo, "/agent/conversations", {})

    async def get_conversation(self, conversation_id: str) -> ConversationInfo:
        """A conversation and what was said in it."""
        return _from_json(ConversationInfo, await self._request_json("GET", f"/agent/conversations/{conversation_id}"))

    async def delete_conversation(self, conversation_id: str) -> None:
        """Forget a conversation."""
        await self._request_json("DELETE", f"/agent/conversations/{conversation_id}")

    def list_approvals(self, status: str = "pending") -> AsyncIterator[ApprovalInfo]:
        """Calls that wait for a person; `status` may be approved, denied or expired instead."""
        return self._iter_pages(ApprovalInfo, "/api/approvals", {"status": status})

    async def decide_approval(
        self, approval: ApprovalInfo, decision: Literal["approve", "deny"], reason: str = ""
    ) -> ApprovalInfo:
        """Approve or deny a call with exactly the arguments of `approval`."""
        body = {"decision": decision, "reason": reason, "sha256": approval.sha256}
        return _from_json(
            ApprovalInfo, await self._request_json("POST", f"/api/approvals/{approval.approval_id}", body=body)
        )

    def list_tools(self) -> AsyncIterator[dict[str, Any]]:
        """The tools, as the service describes them."""
        return self._iter_pages(dict, "/api/tools", {})

    def list_agents(self) -> AsyncIterator[dict[str, Any]]:
        """The agents, as the service describes them."""
        return self._iter_pages(dict, "/api/agents", {})

    async def aclose(self) -> None:
        """Hang up."""
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
        after = ""
        while True:
            part = await self._request_json("GET", path, params={**filters, "after": after})
            for one in part["items"]:
                yield _from_json(item_type, one)
            after = part["next"]
            if not after:
                return

    async def _request_json(self, method: str, path: str, **request_options: Any) -> Any:
        async with self._request(method, path, **request_options) as response:
            return orjson.loads(await response.read())

    def _request(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> "_ResponseContext":
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0)  # streams are long: none waits for another to end
            self._session = aiohttp.ClientSession(timeout=REQUEST_TIMEOUT, headers=self._headers, connector=connector)
        sent = dict(headers or {})
        if body is not None:
            sent["content-type"] = "application/json"
        asking = self._session.request(
            method, self._url + path, data=None if body is None else orjson.dumps(body), params=params, headers=sent
        )
        return _ResponseContext(asking)


class _ResponseContext:
    """An answer while it is read: errors of the wire and of the service become `ServiceError`."""

    def __init__(self, request: Any) -> None:
        self._request = request

    async def __aenter__(self) -> aiohttp.ClientResponse:
        try:
            response: aiohttp.ClientResponse = await self._request.__aenter__()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ServiceError(f"The service cannot be reached: {error or type(error).__name__}.") from error
        if response.status >= 400:
            raw = await response.read()
            response.release()
            raise _parse_error(response.status, raw)
        return response

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._request.__aexit__(kind, error, trace)
        if isinstance(error, aiohttp.ClientError | TimeoutError):
            raise ServiceError(f"The service broke off: {error or type(error).__name__}.") from error


async def _iter_events(response: aiohttp.ClientResponse) -> AsyncIterator[ServiceEvent]:
    given: dict[str, str] = {}
    buffer = b""
    async for piece in response.content.iter_any():
        *lines, buffer = (buffer + piece).split(b"\n")
        for raw in lines:
            name, colon, value = raw.decode().partition(": ")
            if colon and name:
                given[name] = value
            elif not raw and given:
                if given.get("data") == "[DONE]":
                    return
                yield _parse_event(given)
                given = {}
    raise ServiceError("The stream ended before the run did; follow it by its last event's id.")


def _parse_event(event_fields: Mapping[str, str]) -> ServiceEvent:
    data = orjson.loads(event_fields.get("data") or "{}")
    kind = event_fields.get("event", "text")
    return ServiceEvent(
        kind, data["error"] if kind == "error" and "error" in data else data, event_fields.get("id", "")
    )


def _parse_error(status: int, raw: bytes) -> ServiceError:
    try:
        error = orjson.loads(raw)["error"]
        return ServiceError(str(error["message"]), status, str(error.get("kind", "")))
    except (ValueError, KeyError, TypeError):
        return ServiceError(f"The service answered with status {status}.", status)


def _build_chat_body(
    message: str, conversation_id: str, max_tool_calls: int | None, max_tokens: int | None
) -> dict[str, Any]:
    given = {"conversation_id": conversation_id or None, "max_tool_calls": max_tool_calls, "max_tokens": max_tokens}
    return {"message": message, **{name: value for name, value in given.items() if value is not None}}


def _build_agent_headers(agent: str) -> dict[str, str]:
    return {"x-agent-id": agent} if agent else {}


def _from_json(item_type: type[T], data: Any) -> T:
    """A result from what the service told; what this version does not know is passed over."""
    if item_type is dict:
        return data  # type: ignore[no-any-return]
    known = {one.name for one in fields(item_type)}  # type: ignore[arg-type]
    return item_type(
        **{name: tuple(value) if isinstance(value, list) else value for name, value in data.items() if name in known}
    )
