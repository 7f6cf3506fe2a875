"""Simulated environments: a state, tools that change it, and a record of every executed call."""

import copy
import functools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from opposable.domain.errors import ToolUnavailable
from opposable.domain.specs import FunctionToolSpec
from opposable.tools.function import FunctionTool
from opposable.tools.library import ToolLibrary
from opposable.tools.retries import ToolRetryOptions

EnvironmentState = dict[str, Any]
ToolFunction = Callable[..., Awaitable[Any]]
FAST_RETRIES = ToolRetryOptions(first_wait_seconds=0.001, max_wait_seconds=0.002)


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call that reached its tool.

    Attributes:
        arguments: The arguments as JSON with sorted keys.
        error: The message of the exception the tool raised; None if it succeeded.
        is_transient: Whether the same call may succeed later.
    """

    name: str
    arguments: bytes
    error: str | None
    is_transient: bool = False


@dataclass(slots=True)
class Environment:
    """A state and the tools that read and change it.

    Attributes:
        tools: The tool functions by name.
        spec_fields: Additional fields of a tool's spec, by tool name.
        initial_state: A deep copy of the state at construction.
    """

    state: EnvironmentState
    tools: dict[str, ToolFunction] = field(default_factory=dict)
    spec_fields: dict[str, dict[str, Any]] = field(default_factory=dict)
    recorded_calls: list[RecordedCall] = field(default_factory=list)
    initial_state: EnvironmentState = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.initial_state = copy.deepcopy(self.state)

    @property
    def is_unchanged(self) -> bool:
        """Whether the state equals the initial state."""
        return self.state == self.initial_state

    def add_tool(self, function: ToolFunction, **spec_fields: Any) -> None:
        """Add a tool and record its calls."""
        name = function.__name__

        @functools.wraps(function)
        async def call_and_record(*args: Any, **kwargs: Any) -> Any:
            arguments = orjson.dumps(kwargs, option=orjson.OPT_SORT_KEYS, default=str)
            try:
                value = await function(*args, **kwargs)
            except Exception as error:
                is_transient = isinstance(error, ToolUnavailable | TimeoutError | ConnectionError)
                self.recorded_calls.append(RecordedCall(name, arguments, str(error), is_transient))
                raise
            self.recorded_calls.append(RecordedCall(name, arguments, None))
            return value

        self.tools[name] = call_and_record
        self.spec_fields[name] = spec_fields

    def build_library(self) -> ToolLibrary:
        """Return a library with the tools."""
        library = ToolLibrary(retries=FAST_RETRIES)
        for name, function in self.tools.items():
            tool, spec_fields = FunctionTool(function), self.spec_fields[name]
            if not spec_fields:
                library.register(tool)
                continue
            spec = FunctionToolSpec(
                tool_id=name,
                description=tool.definition.description,
                module_path=__name__,
                function_name=name,
                **spec_fields,
            )
            library.register(spec, [tool])
        return library

    @property
    def repeated_failure_count(self) -> int:
        """The number of calls that failed exactly as an earlier one, transient failures excluded."""
        failed_calls = [call for call in self.recorded_calls if call.error is not None and not call.is_transient]
        return len(failed_calls) - len(set(failed_calls))
