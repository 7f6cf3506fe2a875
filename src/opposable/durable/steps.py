"""A model and a tool library whose requests and calls are steps of a workflow.

A step that has finished is not executed again: after a takeover its recorded result is returned. The agent loop runs
unchanged between the two.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import replace
from typing import Any

from dbos import DBOS

from opposable.agent.tool_execution import assign_unique_ids
from opposable.domain.call_context import NO_CONTEXT, CallContext
from opposable.domain.errors import ModelError, error_from_name
from opposable.domain.events import ModelEvent, Reply
from opposable.domain.messages import Message
from opposable.domain.tools import ToolDefinition, ToolResult
from opposable.durable.calls import CallGuard
from opposable.durable.step_forms import reply_from_json, reply_to_json, tool_result_from_json, tool_result_to_json
from opposable.models.base import DEFAULT_OPTIONS, Model, ModelOptions, ModelWrapper
from opposable.tools.invocation import CheckedArguments
from opposable.tools.library import ToolLibrary

LimitCall = Callable[[str], AbstractAsyncContextManager[None]]
"""Opened around a call of the tool with this id, or "" for a request to the model; waits until it may begin."""


class DurableModel(ModelWrapper):
    """A model whose replies are recorded as steps. Deltas are streamed only when the request is really made."""

    def __init__(self, inner: Model, limit_call: LimitCall) -> None:
        super().__init__(inner)
        self._limit_call = limit_call

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ModelEvent, None]:
        """Stream the reply, or only yield the recorded one. Raises: as the inner model."""
        if DBOS.step_id is not None:  # a tool asks the model: the request is a part of the tool's step
            async with aclosing(self.inner.stream(messages, tools, options)) as parts:
                async for part in parts:
                    yield part
            return
        deltas: asyncio.Queue[ModelEvent | None] = asyncio.Queue()
        reservation = DBOS.reserve_step()
        request = self._request(messages, tools, options, deltas)
        step = asyncio.create_task(reservation.run_async({"name": "model"}, request))
        step.add_done_callback(lambda _: deltas.put_nowait(None))
        try:
            while (delta := await deltas.get()) is not None:
                yield delta
        finally:
            if not step.done():
                step.cancel()
                await asyncio.wait({step})
        recorded = step.result()
        if "error" in recorded:
            raise error_from_name(recorded["error"], recorded["message"])
        yield reply_from_json(recorded)

    async def aclose(self) -> None:
        """Do nothing: the service closes the inner model."""

    def _request(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolDefinition],
        options: ModelOptions,
        deltas: "asyncio.Queue[ModelEvent | None]",
    ) -> Callable[[], Coroutine[Any, Any, dict[str, Any]]]:
        async def request() -> dict[str, Any]:
            reply = None
            try:
                async with self._limit_call(""), aclosing(self.inner.stream(messages, tools, options)) as parts:
                    async for part in parts:
                        if type(part) is Reply:
                            reply = part
                        else:
                            deltas.put_nowait(part)
            except ModelError as error:  # recorded by its name, which a replay can raise again
                return {"error": type(error).__name__, "message": str(error)}
            if reply is None:
                return {"error": "ModelError", "message": f"The stream of model {self.name!r} ended without a reply."}
            calls = assign_unique_ids(reply.message.tool_calls)  # the ids are part of idempotency keys
            return reply_to_json(replace(reply, message=replace(reply.message, tool_calls=calls)))

        return request


class DurableToolLibrary(ToolLibrary):
    """A view of a library whose calls are recorded as steps."""

    def __init__(self, inner: ToolLibrary, guard: CallGuard, limit_call: LimitCall) -> None:
        self.__dict__.update(vars(inner))
        self._guard = guard
        self._limit_call = limit_call

    async def call(
        self,
        name: str,
        arguments: dict[str, Any],
        context: CallContext = NO_CONTEXT,
        checked: CheckedArguments | None = None,
    ) -> ToolResult:
        """Call a tool, or return the recorded result of the call."""
        if DBOS.step_id is not None:  # a tool calls another one: the call is a part of the tool's step
            return await super().call(name, arguments, context, checked)
        reservation = DBOS.reserve_step()  # before the first wait: concurrent calls get their numbers in order
        recorded = await reservation.run_async({"name": "tool"}, self._execute_call, name, arguments, context, checked)
        return tool_result_from_json(recorded)

    async def _execute_call(
        self, name: str, arguments: dict[str, Any], context: CallContext, checked: CheckedArguments | None
    ) -> dict[str, Any]:
        tool_id = self.get_tool_id(name)
        async with (
            self._limit_call(tool_id),
            self._guard.open_call(context, tool_id, arguments, repeatable=self._is_repeatable(name)) as call,
        ):
            if call.refusal is not None:
                return tool_result_to_json(call.refusal)
            result = await super().call(name, arguments, replace(context, approve=call.approve), checked)
        return tool_result_to_json(result)

    def _is_repeatable(self, name: str) -> bool:
        """Return whether a call may be made again when the outcome of the first one is unknown."""
        tool = self.find_registered_tool(name)
        return tool is None or tool.traits.idempotent
