"""The tool library: find a tool by name, run it under its limits, and tell what came of it."""

import asyncio
import dataclasses
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import orjson

from opposable.domain.errors import (
    InvalidArguments,
    ToolFailed,
    ToolRefused,
    ToolRegistrationError,
    ToolUnavailable,
)
from opposable.domain.tools import FailureKind, ToolDefinition, ToolResult
from opposable.tools import sentences
from opposable.tools.base import NO_CONTEXT, CallContext, Tool
from opposable.tools.function import FunctionTool
from opposable.tools.names import folded, nearest

DEFAULT_TIMEOUT = 60.0
DEFAULT_CAP = 20_000


class ToolLibrary:
    """Tools by name.

    `timeout` is in seconds for tools that set none, `cap` the most characters of a result a model is told. A failing
    tool never raises out of `call`: the failure is in the result.
    """

    def __init__(
        self,
        tools: Iterable[Tool | Callable[..., Any]] = (),
        *,
        timeout: float = DEFAULT_TIMEOUT,
        cap: int = DEFAULT_CAP,
    ) -> None:
        self._timeout = timeout
        self._cap = cap
        self._by_name: dict[str, Tool] = {}
        self._by_folded: dict[str, str | None] = {}  # None: two tools fold to the same, so neither is meant
        self._definitions: tuple[ToolDefinition, ...] | None = None
        for one in tools:
            self.register(one)

    def register(self, tool: Tool | Callable[..., Any]) -> None:
        """Add a tool; a plain function becomes one.

        Raises: `ToolRegistrationError` when the name is taken or the function cannot be described.
        """
        made = _as_tool(tool)
        name = made.definition.name
        if name in self._by_name:
            raise ToolRegistrationError(f"There is a tool named {name!r} already; give this one another name.")
        self._by_name[name] = made
        for alias in {folded(name), folded(made.tool_id)}:
            self._by_folded[alias] = None if alias in self._by_folded else name
        self._definitions = None

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """What a model is told of all tools: the same object until a tool is added."""
        if self._definitions is None:
            self._definitions = tuple(tool.definition for tool in self._by_name.values())
        return self._definitions

    @property
    def tools(self) -> tuple[Tool, ...]:
        """All tools in the order they were added."""
        return tuple(self._by_name.values())

    @property
    def names(self) -> tuple[str, ...]:
        """The names models know the tools by, in the order they were added."""
        return tuple(self._by_name)

    def find(self, name: str) -> Tool | None:
        """The tool meant by `name`: its name, its id, or either as models miswrite it, where only one can be meant."""
        tool = self._by_name.get(name)
        if tool is not None:
            return tool
        meant = self._by_folded.get(folded(name))
        return self._by_name[meant] if meant is not None else None

    def nearest(self, name: str) -> list[str]:
        """The names of tools most like an unknown one, best first."""
        return nearest(name, self._by_name)

    async def call(self, name: str, arguments: dict[str, Any], context: CallContext = NO_CONTEXT) -> ToolResult:
        """Run one tool and tell what came of it. Raises nothing but cancellation."""
        tool = self.find(name)
        if tool is None:
            told = sentences.unknown_tool(name, self.nearest(name), tuple(self._by_name), context.language)
            return ToolResult(context.call_id, name, told, "unknown_tool")
        limit = tool.timeout if tool.timeout is not None else self._timeout
        started = time.perf_counter()
        data: Any = None
        failure: FailureKind | None = None
        try:
            async with asyncio.timeout(limit) as scope:
                data = await tool.run(arguments, context)
            content = text_of(data)
        except InvalidArguments as error:
            failure = "invalid_arguments"
            content = sentences.invalid_arguments(tool.definition.name, error.problems, context.language)
        except TimeoutError as error:
            failure = "timeout"
            own = sentences.timed_out(tool.definition.name, limit, context.language)
            content = own if scope.expired() else sentences.broke(tool.definition.name, error, context.language)
        except ToolRefused as error:
            failure, content = "refused", str(error)
        except ToolUnavailable as error:
            failure, content = "unavailable", str(error)
        except ToolFailed as error:
            failure, content = "failed", str(error)
        except Exception as error:  # noqa: BLE001 - whatever a tool raises is told to the model, not to the caller
            failure, content = "failed", sentences.broke(tool.definition.name, error, context.language)
        content, cut = capped(content, self._cap, context.language)
        seconds = time.perf_counter() - started
        return ToolResult(context.call_id, tool.definition.name, content, failure, data, cut, seconds)

    async def call_many(
        self, calls: Sequence[tuple[str, dict[str, Any]]], context: CallContext = NO_CONTEXT, at_once: int = 16
    ) -> list[ToolResult]:
        """Run several calls, at most `at_once` together; the results in the calls' order."""
        gate = asyncio.Semaphore(at_once)

        async def one(name: str, arguments: dict[str, Any]) -> ToolResult:
            async with gate:
                return await self.call(name, arguments, context)

        return list(await asyncio.gather(*(one(name, arguments) for name, arguments in calls)))


def _as_tool(given: Any) -> Tool:
    if hasattr(given, "definition") and hasattr(given, "run"):
        return cast("Tool", given)
    if callable(given):
        return FunctionTool(given)
    raise ToolRegistrationError(f"{given!r} is no tool: give a function, or an object with `definition` and `run`.")


def text_of(value: Any) -> str:
    """A tool's value as text: text as it is, the rest as JSON, nothing as "null"."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode() if _has_surrogates(value) else value
    if isinstance(value, bytes | bytearray):
        return f"<{len(value)} bytes>"
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_SUBCLASS).decode()
    except TypeError:
        return orjson.dumps(_jsonable(value), default=str, option=orjson.OPT_NON_STR_KEYS).decode()


def capped(text: str, cap: int, language: str) -> tuple[str, int]:
    """`text` with its middle left out where it is longer than `cap`, said in its place; and how much was left out."""
    if len(text) <= cap:
        return text, 0
    head = cap * 3 // 4
    tail = cap - head
    cut = len(text) - cap
    return f"{text[:head]}\n{sentences.left_out(cut, len(text), language)}\n{text[-tail:]}", cut


def _has_surrogates(text: str) -> bool:
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _jsonable(value: Any) -> Any:
    """What orjson does not know, in what it knows."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, dict):
        return {str(key): _jsonable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_jsonable(inner) for inner in value]
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, bytes | bytearray):
        return f"<{len(value)} bytes>"
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return str(value)
    return value
