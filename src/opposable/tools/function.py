"""Python functions and objects as tools."""

import asyncio
import contextvars
import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack, overload

from opposable.domain.call_context import CallContext
from opposable.domain.errors import ToolRegistrationError
from opposable.domain.tools import ToolDefinition
from opposable.tools.function_schema import get_signature
from opposable.tools.streaming import collect_stream, get_thread_pool
from opposable.tools.tool_names import to_safe_name

if TYPE_CHECKING:  # see tools/base.py
    from opposable.domain.specs import FunctionToolSpec, RateLimit


class ToolOptions(TypedDict, total=False):
    """What may be said of a function beside its name: fields of `ToolSpec`, as there."""

    display_name: str
    tags: tuple[str, ...]
    version: str
    category: str
    priority: int
    dependencies: tuple[str, ...]
    idempotent: bool
    needs_approval: bool
    rate_limit: "RateLimit"
    cache_seconds: float
    metadata: dict[str, Any]


class FunctionTool:
    """A function, sync or async, as a tool; of a generator each piece is told as it comes.

    The schema comes from the signature and the docstring. A sync function runs in a thread. A parameter annotated
    `CallContext` is given the context and not told to the model. `rules` say how calls of it are governed where it is
    registered without a spec. Raises: `ToolRegistrationError`.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        tool_id: str = "",
        description: str = "",
        timeout: float | None = None,
        **options: Unpack[ToolOptions],
    ) -> None:
        if not callable(function):
            raise ToolRegistrationError(f"{function!r} is no function; a tool is made from a function or a method.")
        self._signature = get_signature(function)
        self.function = function
        self.tool_id = tool_id or getattr(function, "__name__", type(function).__name__)
        self.definition = ToolDefinition(
            to_safe_name(self.tool_id), description or self._signature.description, self._signature.parameters
        )
        self.timeout = timeout
        called = getattr(function, "__call__", None)  # noqa: B004 - the question is what kind of function it is
        self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)
        self._yields_deltas = _is_generator(function) or _is_generator(called)
        self.spec = _create_spec(self, options) if options else None

    @property
    def streams(self) -> bool:
        """Whether pieces may be told while it runs: of a generator, and of a function that takes the context."""
        return self._yields_deltas or self._signature.context_name is not None

    def check(self, arguments: dict[str, Any]) -> None:
        """Do nothing where the arguments fit. Raises: `InvalidArguments`."""
        self._signature.validate(arguments)

    async def run(self, arguments: dict[str, Any], context: CallContext) -> Any:
        """Validate, call, and give back what the function returns. Raises: as `Tool.run`.

        A generator's pieces are joined where all are text, and else make a list.
        """
        signature = self._signature
        values = signature.validate(arguments)
        if signature.context_name is not None:
            values[signature.context_name] = context
        if self._yields_deltas:
            return await collect_stream(self.function(**values), context.report)
        if self._is_async:
            return await self.function(**values)
        call = functools.partial(contextvars.copy_context().run, self.function, **values)
        outcome = await asyncio.get_running_loop().run_in_executor(get_thread_pool(), call)
        return await outcome if inspect.isawaitable(outcome) else outcome


F = TypeVar("F", bound=Callable[..., Any])


@overload
def tool(function: F, /) -> FunctionTool: ...


@overload
def tool(
    *, name: str = "", description: str = "", timeout: float | None = None, **rules: Unpack[ToolOptions]
) -> Callable[[F], FunctionTool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str = "",
    description: str = "",
    timeout: float | None = None,
    **options: Unpack[ToolOptions],
) -> FunctionTool | Callable[[Callable[..., Any]], FunctionTool]:
    """Make a function a tool: `@tool`, or `@tool(name=…, timeout=…, idempotent=True, cache_seconds=60)`.

    The rules are those of a `ToolSpec`. Raises: `ToolRegistrationError`.
    """
    if function is not None:
        return FunctionTool(function)
    return lambda wrapped: FunctionTool(wrapped, tool_id=name, description=description, timeout=timeout, **options)


def tools_from_object(obj: object, tool_id: str, *, timeout: float | None = None) -> list[FunctionTool]:
    """The public methods of an object as one tool's actions, named `tool_id.method`.

    A method of the tool's own name is called `tool_id` alone. Raises: `ToolRegistrationError` when there is none.
    """
    methods = [name for name, _ in inspect.getmembers(type(obj), inspect.isfunction) if not name.startswith("_")]
    if not methods:
        raise ToolRegistrationError(f"{tool_id}: {type(obj).__name__} has no public method to offer as an action.")
    own = {name: tool_id if name == tool_id else f"{tool_id}.{name}" for name in methods}
    return [FunctionTool(getattr(obj, name), tool_id=own[name], timeout=timeout) for name in methods]


def _create_spec(tool: FunctionTool, options: ToolOptions) -> "FunctionToolSpec":
    from pydantic import ValidationError

    from opposable.domain.specs import FunctionToolSpec

    function = tool.function
    try:
        return FunctionToolSpec(
            tool_id=tool.tool_id,
            description=tool.definition.description,
            timeout=tool.timeout,
            module_path=getattr(function, "__module__", "") or "",
            function_name=getattr(function, "__name__", ""),
            mode="streamable" if tool.streams else "invokable",
            **options,
        )
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        raise ToolRegistrationError(f"{tool.tool_id}: {wrong}") from error


def _is_generator(function: Any) -> bool:
    return inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function)
