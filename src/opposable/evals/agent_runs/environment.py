"""Worlds to work in: a state, tools that change it, and a note of every call that was really made."""

import copy
import functools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from opposable.domain.errors import ToolUnavailable
from opposable.domain.specs import FunctionToolSpec
from opposable.tools.call_policies import Retrying
from opposable.tools.function import FunctionTool
from opposable.tools.library import ToolLibrary

State = dict[str, Any]
Function = Callable[..., Awaitable[Any]]
QUICKLY = Retrying(first=0.001, most=0.002)


@dataclass(frozen=True, slots=True)
class Made:
    """A call that reached its tool; `said` is how it failed, None where it worked. `passing` failures may be gone later."""

    name: str
    arguments: bytes
    said: str | None
    passing: bool = False


@dataclass(slots=True)
class World:
    """A state with its tools by name. `rules` are fields of a tool's spec, by the tool's name."""

    state: State
    tools: dict[str, Function] = field(default_factory=dict)
    rules: dict[str, dict[str, Any]] = field(default_factory=dict)
    made: list[Made] = field(default_factory=list)
    before: State = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.before = copy.deepcopy(self.state)

    @property
    def untouched(self) -> bool:
        """Whether nothing has been changed."""
        return self.state == self.before

    def add(self, function: Function, **rules: Any) -> None:
        """Add a tool whose every call is noted."""
        name = function.__name__

        @functools.wraps(function)
        async def noted(*args: Any, **given: Any) -> Any:
            arguments = orjson.dumps(given, option=orjson.OPT_SORT_KEYS, default=str)
            try:
                value = await function(*args, **given)
            except Exception as error:
                passing = isinstance(error, ToolUnavailable | TimeoutError | ConnectionError)
                self.made.append(Made(name, arguments, str(error), passing))
                raise
            self.made.append(Made(name, arguments, None))
            return value

        self.tools[name] = noted
        self.rules[name] = rules

    def library(self) -> ToolLibrary:
        """The tools in a library."""
        library = ToolLibrary(retrying=QUICKLY)
        for name, function in self.tools.items():
            tool, rules = FunctionTool(function), self.rules[name]
            if not rules:
                library.register(tool)
                continue
            about = tool.definition.description
            spec = FunctionToolSpec(tool_id=name, description=about, module_path=__name__, function_name=name, **rules)
            library.register(spec, [tool])
        return library

    @property
    def repeats(self) -> int:
        """Calls that failed just as the same call had failed before, other than such as may pass."""
        failed = [one for one in self.made if one.said is not None and not one.passing]
        return len(failed) - len(set(failed))
