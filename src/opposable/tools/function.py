"""Python functions and objects as tools."""

import asyncio
import contextvars
import functools
import inspect
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, overload

from opposable.domain.errors import ToolRegistrationError
from opposable.domain.tools import ToolDefinition
from opposable.tools.base import CallContext
from opposable.tools.names import safe_name
from opposable.tools.schema import signature_of

THREADS = 64
"""Sync tools at work at once; asyncio's own pool would give six on two cores."""


class FunctionTool:
    """A function, sync or async, as a tool.

    The schema comes from the signature and the docstring. A sync function runs in a thread. A parameter annotated
    `CallContext` is given the context and not told to the model. Raises: `ToolRegistrationError`.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        tool_id: str = "",
        description: str = "",
        timeout: float | None = None,
    ) -> None:
        if not callable(function):
            raise ToolRegistrationError(f"{function!r} is no function; a tool is made from a function or a method.")
        self._signature = signature_of(function)
        self.function = function
        self.tool_id = tool_id or getattr(function, "__name__", type(function).__name__)
        self.definition = ToolDefinition(
            safe_name(self.tool_id), description or self._signature.description, self._signature.parameters
        )
        self.timeout = timeout
        self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 - the question is whether it is a coroutine function
        )

    async def run(self, arguments: dict[str, Any], context: CallContext) -> Any:
        """Validate, call, and give back what the function returns. Raises: as `Tool.run`."""
        signature = self._signature
        values = signature.validate(arguments)
        if signature.context_name is not None:
            values[signature.context_name] = context
        if self._is_async:
            return await self.function(**values)
        call = functools.partial(contextvars.copy_context().run, self.function, **values)
        outcome = await asyncio.get_running_loop().run_in_executor(_threads(), call)
        return await outcome if inspect.isawaitable(outcome) else outcome


F = TypeVar("F", bound=Callable[..., Any])


@overload
def tool(function: F, /) -> FunctionTool: ...


@overload
def tool(*, name: str = "", description: str = "", timeout: float | None = None) -> Callable[[F], FunctionTool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str = "",
    description: str = "",
    timeout: float | None = None,
) -> FunctionTool | Callable[[Callable[..., Any]], FunctionTool]:
    """Make a function a tool: `@tool`, or `@tool(name=…, timeout=…)`."""
    if function is not None:
        return FunctionTool(function)
    return lambda wrapped: FunctionTool(wrapped, tool_id=name, description=description, timeout=timeout)


def actions(subject: object, tool_id: str, *, timeout: float | None = None) -> list[FunctionTool]:
    """The public methods of an object as one tool's actions, named `tool_id.method`.

    A method of the tool's own name is called `tool_id` alone. Raises: `ToolRegistrationError` when there is none.
    """
    methods = [name for name, _ in inspect.getmembers(type(subject), inspect.isfunction) if not name.startswith("_")]
    if not methods:
        raise ToolRegistrationError(f"{tool_id}: {type(subject).__name__} has no public method to offer as an action.")
    own = {name: tool_id if name == tool_id else f"{tool_id}.{name}" for name in methods}
    return [FunctionTool(getattr(subject, name), tool_id=own[name], timeout=timeout) for name in methods]


@functools.cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, thread_name_prefix="tool")
