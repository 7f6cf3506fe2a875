"""Python functions and objects as tools."""

import asyncio
import contextvars
import functools
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from types import AsyncGeneratorType, GeneratorType
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack, cast, overload

from opposable.domain.call_context import CallContext
from opposable.domain.errors import InvalidArguments, ToolRegistrationError
from opposable.domain.tools import ToolDefinition
from opposable.tools.base import ToolOutline
from opposable.tools.function_schema import get_output_form, get_signature, unwrap_partial
from opposable.tools.streaming import collect_stream, get_thread_pool
from opposable.tools.tool_names import to_safe_name

if TYPE_CHECKING:  # pydantic is loaded only where specs are used
    from opposable.domain.specs import FunctionToolSpec, RateLimit


class ToolOptions(TypedDict, total=False):
    """Fields of `ToolSpec` that can be set for a function."""

    display_name: str
    tags: tuple[str, ...]
    version: str
    category: str
    priority: int
    dependencies: tuple[str, ...]
    read_only: bool
    idempotent: bool
    untrusted_output: bool
    failure_when: dict[str, Any]
    needs_approval: bool
    rate_limit: "RateLimit"
    cache_seconds: float
    metadata: dict[str, Any]


class FunctionTool:
    """A function as a tool: sync or async, with a value or a stream of deltas as its result.

    The schema comes from the signature and the docstring. A parameter annotated `CallContext` receives the call's
    context and is not part of the schema. A sync function runs in a thread. A generator's deltas are reported as they
    are yielded. `keywords` are further words that a search finds the tool by; models do not get them.
    `aliases` are further names that it can be called by. `parameter_aliases` are further names of parameters, "" for one
    that is ignored; they count only in arguments that are not valid without them. `calls_any_host` is set where the
    arguments name the server: one that does not answer does not take the tool out of service for the others.
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
        """Create the tool.

        Args:
            function: The function, method or callable object.
            tool_id: The tool's id (default: the function's name).
            description: The description sent to the model (default: from the docstring).
            timeout: Seconds a call may take (default: the library's).
            **options: Fields of the spec under which the function is registered.

        Raises:
            ToolRegistrationError: The function cannot be described to a model.
        """
        if not callable(function):
            raise ToolRegistrationError(f"{function!r} is not callable. Pass a function or a method.")
        if timeout is not None and not timeout > 0:
            raise ToolRegistrationError(f"The timeout of a tool is more than 0 seconds, not {timeout!r}.")
        self._signature = get_signature(function)
        self.function = function
        self.tool_id = tool_id or self._signature.name
        self.outline = ToolOutline(
            to_safe_name(self.tool_id), description or self._signature.description, self._signature.descriptions
        )
        self.timeout = timeout
        self.keywords: tuple[str, ...] = ()
        self.aliases: tuple[str, ...] = ()
        self.parameter_aliases: Mapping[str, str] = {}
        self.calls_any_host = False
        call_method = getattr(function, "__call__", None)  # noqa: B004 - its kind is inspected, not its presence
        self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call_method)
        self._yields_deltas = _is_generator(function) or _is_generator(call_method)
        self.spec = _create_spec(self, options) if options else None

    def __get__(self, obj: object, owner: type | None = None) -> "FunctionTool":
        """Return the tool of a method of an object; the tool itself where a class is asked for it."""
        if obj is None or not hasattr(self.function, "__get__"):
            return self
        return create_tool(self, self.tool_id, function=self.function.__get__(obj))

    @functools.cached_property
    def definition(self) -> ToolDefinition:
        """The definition sent to the model, made when it is first needed."""
        return ToolDefinition(self.outline.name, self.outline.description, self._signature.parameters)

    @property
    def streams(self) -> bool:
        """Whether the tool may report deltas: a generator, or a function that takes the context."""
        return self._yields_deltas or self.takes_context

    @property
    def takes_context(self) -> bool:
        """Whether the function has a parameter for the context of the call."""
        return self._signature.context_name is not None

    @property
    def complete_parameters(self) -> dict[str, Any]:
        """The JSON Schema of all arguments that `check` accepts; that of the definition has no null for top-level defaults."""
        return self._signature.complete_parameters

    @property
    def output_schema(self) -> dict[str, Any] | None:
        """The JSON Schema of the results if the annotation says that they are objects, else None."""
        return self._output_form[0] if self._output_form else None

    def to_output(self, value: Any) -> Any:
        """Return a result in the form of `output_schema`."""
        return self._output_form[1](value) if self._output_form else value

    @functools.cached_property
    def _output_form(self) -> tuple[dict[str, Any], Callable[[Any], Any]] | None:
        return None if self._yields_deltas else get_output_form(self.function)

    def check(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the keyword arguments for the function: converted to its types, with defaults filled in.

        Raises:
            InvalidArguments: The arguments do not fit the signature.
        """
        try:
            return self._signature.validate(arguments)
        except InvalidArguments:
            renamed = {self.parameter_aliases.get(name, name): value for name, value in arguments.items()}
            renamed.pop("", None)
            if renamed.keys() == arguments.keys():
                raise
            return self._signature.validate(renamed)

    async def run(self, arguments: dict[str, Any], context: CallContext) -> Any:
        """Call the function with the keyword arguments that `check` returned.

        A generator's deltas are joined if all are text, and returned as a list otherwise.
        """
        context_name = self._signature.context_name
        if context_name is not None:
            arguments = {**arguments, context_name: context}
        if self._yields_deltas:
            return await collect_stream(self.function(**arguments), context.report)
        if self._is_async:
            result = await self.function(**arguments)
        else:
            call = functools.partial(contextvars.copy_context().run, _call, self.function, arguments)
            result = await asyncio.get_running_loop().run_in_executor(get_thread_pool(), call)
            if inspect.isawaitable(result):
                result = await result
        if isinstance(result, GeneratorType | AsyncGeneratorType):  # a decorated function may return one
            return await collect_stream(result, context.report)
        if isinstance(result, Iterator):  # of zip or map: becomes a list, in a thread that stops with the call
            return [item for (item,) in await collect_stream(((item,) for item in result), None)]
        return result


def _call(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Call a function in a thread.

    Raises:
        RuntimeError: It raised `StopIteration`, which a future cannot hold.
    """
    try:
        return function(**arguments)
    except StopIteration as error:
        raise RuntimeError("the function raised StopIteration") from error


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
    """Turn a function into a tool: `@tool`, or `@tool(name=…, timeout=…, read_only=True, cache_seconds=60)`.

    Args:
        function: The function, if the decorator is used without parentheses.
        name: The tool's id (default: the function's name).
        description: The description sent to the model (default: from the docstring).
        timeout: Seconds a call may take (default: the library's).
        **options: Fields of `ToolSpec`.

    Raises:
        ToolRegistrationError: The function cannot be described to a model.
    """
    if function is not None:
        return FunctionTool(function)
    return lambda wrapped: FunctionTool(wrapped, tool_id=name, description=description, timeout=timeout, **options)


def tools_from_object(
    obj: object,
    tool_id: str,
    *,
    timeout: float | None = None,
    read_only: Collection[str] = (),
    untrusted_output: bool = False,
) -> list[FunctionTool]:
    """Create one tool from each public method of an object, with the id `tool_id.method`.

    A method with the name `tool_id` gets the id `tool_id` alone. Class methods, cached methods and methods with the
    decorator `tool` count. The decorator's description, timeout and options have precedence.

    Args:
        obj: The object.
        tool_id: The id that precedes the methods.
        timeout: Seconds a call may take (default: the library's).
        read_only: The methods that change nothing.
        untrusted_output: Whether the methods return texts of other people.

    Raises:
        ToolRegistrationError: The object has no public method, or one cannot be described to a model.
    """
    if inspect.isclass(obj):
        raise ToolRegistrationError(f"{tool_id}: {obj.__name__} is a class. Pass an object, such as {obj.__name__}(…).")
    methods = list_methods(type(obj))
    if not methods:
        raise ToolRegistrationError(
            f"{tool_id}: {type(obj).__name__} has no public method. Each public method becomes an action."
        )
    tools = []
    for name in methods:
        options: ToolOptions = {}
        if name in read_only:
            options["read_only"] = True
        if untrusted_output:
            options["untrusted_output"] = True
        method, action_id = getattr(obj, name), to_action_id(tool_id, name)
        tools.append(create_tool(method, action_id, timeout=timeout, **options))
    return tools


def to_action_id(tool_id: str, method: str) -> str:
    """Return the id of the tool of a method."""
    return tool_id if method == tool_id else f"{tool_id}.{method}"


def list_methods(cls: type) -> list[str]:
    """Return the names of the public methods of a class that can be tools."""
    return [name for name, _ in inspect.getmembers(cls, _is_method) if not name.startswith("_")]


def _is_method(member: Any) -> bool:
    """Return whether a member of a class is a method written in Python, also a class method, a cached one or a tool."""
    is_cached = inspect.ismethoddescriptor(member) and hasattr(member, "__wrapped__")
    return is_cached or inspect.isfunction(member) or inspect.ismethod(member) or isinstance(member, FunctionTool)


def bind_class_method(function: Any) -> Any:
    """Return the tool of a class method with the decorator `tool`, which Python binds itself before 3.13; else the value."""
    if inspect.ismethod(function) and isinstance(function.__func__, FunctionTool):
        return function.__func__.__get__(function.__self__)
    return function


def create_tool(
    source: Callable[..., Any] | FunctionTool,
    tool_id: str,
    *,
    function: Callable[..., Any] | None = None,
    description: str = "",
    timeout: float | None = None,
    **options: Unpack[ToolOptions],
) -> FunctionTool:
    """Create the tool of a function under an id. With the decorator `tool`, its time-out and options have precedence.

    `function` is called in place of that of the decorator. The other arguments are those of `FunctionTool`.

    Raises:
        ToolRegistrationError: The function cannot be described to a model.
    """
    source = bind_class_method(source)
    if not isinstance(source, FunctionTool):
        return FunctionTool(source, tool_id=tool_id, description=description, timeout=timeout, **options)
    if source.spec is not None:
        names = source.spec.model_fields_set & ToolOptions.__annotations__.keys()
        options = cast("ToolOptions", {**options, **{name: getattr(source.spec, name) for name in names}})
    return FunctionTool(
        function or source.function,
        tool_id=tool_id,
        description=description or source.outline.description,
        timeout=timeout if source.timeout is None else source.timeout,
        **options,
    )


def _create_spec(tool: FunctionTool, options: ToolOptions) -> "FunctionToolSpec":
    from pydantic import ValidationError

    from opposable.domain.specs import FunctionToolSpec  # lazy: pydantic specs double the import time
    from opposable.domain.validation_problems import describe_problems  # lazy: see above

    function = unwrap_partial(tool.function)
    try:
        return FunctionToolSpec(
            tool_id=tool.tool_id,
            description=tool.outline.description,
            timeout=tool.timeout,
            module_path=getattr(function, "__module__", "") or "",
            function_name=getattr(function, "__name__", ""),
            mode="streamable" if tool.streams else "invokable",
            **options,
        )
    except ValidationError as error:
        problems = describe_problems(error, FunctionToolSpec)
        raise ToolRegistrationError(f"{tool.tool_id}: {problems}") from error


def _is_generator(function: Any) -> bool:
    return inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function)
