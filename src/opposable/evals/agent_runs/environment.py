"""Worlds to work in: a state, tools that change it, and a note of every call that was really made."""

import copy
import functools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from opposable.domain.errors import ToolUnavailable
from opposable.domain.specs import FunctionToolSpec
from opposable.tools.call_policies import ToolRetryOptions
from opposable.tools.function import FunctionTool
from opposable.tools.library import ToolLibrary

EnvironmentState = dict[str, Any]
ToolFunction = Callable[..., Awaitable[Any]]
FAST_RETRIES = ToolRetryOptions(first_wait_seconds=0.001, max_wait_seconds=0.002)


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call that reached its tool; `said` is how it failed, None where it worked. `passing` failures may be gone later."""

    name: str
    arguments: bytes
    error: str | None
    is_transient: bool = False


@dataclass(slots=True)
class Environment:
    """A state with its tools by name. `rules` are fields of a tool's spec, by the tool's name."""

    state: EnvironmentState
    tools: dict[str, ToolFunction] = field(default_factory=dict)
    spec_fields: dict[str, dict[str, Any]] = field(default_factory=dict)
    recorded_calls: list[RecordedCall] = field(default_factory=list)
    initial_state: EnvironmentState = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.initial_state = copy.deepcopy(self.state)

    @property
    def is_unchanged(self) -> bool:
        """Whether nothing has been changed."""
        return self.state == self.initial_state

    def add_tool(self, function: ToolFunction, **spec_fields: Any) -> None:
        """Add a tool whose every call is noted."""
        name = function.__name__

        @functools.wraps(function)
        async def noted(*args: Any, **given: Any) -> Any:
            arguments = orjson.dumps(given, option=orjson.OPT_SORT_KEYS, default=str)
            try:
                value = await function(*args, **given)
            except Exception as error:
                passing = isinstance(error, ToolUnavailable | TimeoutError | ConnectionError)
                self.recorded_calls.append(RecordedCall(name, arguments, str(error), passing))
                raise
            self.recorded_calls.append(RecordedCall(name, arguments, None))
            return value

        self.tools[name] = noted
        self.spec_fields[name] = spec_fields

    def build_library(self) -> ToolLibrary:
        """The tools in a library."""
        library = ToolLibrary(retries=FAST_RETRIES)
        for name, function in self.tools.items():
            tool, rules = FunctionTool(function), self.spec_fields[name]
            if not rules:
                library.register(tool)
                continue
            about = tool.definition.description
            spec = FunctionToolSpec(tool_id=name, description=about, module_path=__name__, function_name=name, **rules)
            library.register(spec, [tool])
        return library

    @property
    def repeated_failure_count(self) -> int:
        """Calls that failed just as the same call had failed before, other than such as may pass."""
        failed = [one for one in self.recorded_calls if one.error is not None and not one.is_transient]
        return len(failed) - len(set(failed))
