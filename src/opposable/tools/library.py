"""The tool library: register, find, describe and call tools."""

import asyncio
import copy
import dataclasses
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, overload

from opposable.domain.call_context import NO_CONTEXT, ApprovalHandler, CallContext, ResultScope
from opposable.domain.errors import BadInput, ToolRegistrationError
from opposable.domain.language import Language
from opposable.domain.rate_limits import InProcessRateLimiter, RateLimiter
from opposable.domain.tools import ToolDefinition, ToolResult, new_call_id
from opposable.tools import failure_messages
from opposable.tools.base import Tool
from opposable.tools.bindings import BoundRegistry, BuildTools
from opposable.tools.call_policies import PolicyContext, call_tool
from opposable.tools.circuit_breaker import CircuitBreakerOptions
from opposable.tools.descriptions import Detail, describe_entries, get_examples
from opposable.tools.disclosure import ToolDisclosure
from opposable.tools.health import ToolHealthReport, create_health_report
from opposable.tools.invocation import CheckedArguments
from opposable.tools.meta_tools import SEARCH_TOOLS, MetaTools
from opposable.tools.registry import RESERVED_NAMES, RegisteredTool, Registry, RegistryEntry
from opposable.tools.result_cache import ResultCache
from opposable.tools.result_media import find_media
from opposable.tools.result_store import ResultStore, get_max_characters, truncate_result
from opposable.tools.retries import ToolRetryOptions
from opposable.tools.spec_registration import register_spec, register_tool, to_tool
from opposable.tools.tool_match import ToolMatch, find_alternatives, search_by_meaning, search_by_words
from opposable.tools.tool_names import find_nearest_names
from opposable.tools.traits import ToolTraits

if TYPE_CHECKING:  # pydantic is loaded only where specs are used
    from opposable.domain.specs import AgentToolBinding, AnyToolSpec, Example, Registration, ToolType

DEFAULT_TIMEOUT_SECONDS = 60.0
DEFAULT_CIRCUIT_BREAKER = CircuitBreakerOptions()
DEFAULT_RETRIES = ToolRetryOptions()
DEFAULT_DISCLOSURE = ToolDisclosure()

MAX_COMPARED_NAMES = 500
"""In a larger library, names similar to an unknown one are found by the search index, not letter by letter."""


class ToolLibrary:
    """A set of tools that can be searched, described and called by name.

    A failing tool never raises out of `call`: the failure is part of the result.
    """

    def __init__(
        self,
        tools: Iterable[Tool | Callable[..., Any]] = (),
        *,
        timeout: float = DEFAULT_TIMEOUT_SECONDS,
        max_result_characters: int | None = None,
        approve: ApprovalHandler | None = None,
        rate_limiter: RateLimiter | None = None,
        circuit_breaker: CircuitBreakerOptions | None = DEFAULT_CIRCUIT_BREAKER,
        retries: ToolRetryOptions = DEFAULT_RETRIES,
        disclosure: ToolDisclosure = DEFAULT_DISCLOSURE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create a library.

        Args:
            tools: Tools and functions to register.
            timeout: Seconds a call may take, for tools that set no time-out.
            max_result_characters: Characters of a result that a model gets at once; None for as many bytes as its context
                window has tokens, at most 100,000, or for 20,000 characters if these are more.
            approve: Asks for human approval, if the call's context has no handler of its own.
            rate_limiter: Counts calls (default: within this process).
            circuit_breaker: When a tool that does not answer is taken out of service; None for never.
            retries: How calls of idempotent tools are retried.
            disclosure: When a model gets only some of the tools.
            clock: A monotonic clock in seconds.

        Raises:
            BadInput: `timeout` is not more than 0.
            ToolRegistrationError: A tool cannot be registered.
        """
        if not timeout > 0:
            raise BadInput(f"The timeout of a library must be more than 0 seconds, not {timeout!r}.")
        if not isinstance(tools, Iterable):
            raise ToolRegistrationError(f"The tools must be a list, such as [function], not {tools!r}.")
        self.disclosure = disclosure
        self._context_window: int | None = None
        self._max_result_characters = max_result_characters
        self._result_store = ResultStore()
        self._source: Registry | BoundRegistry = Registry()
        self._meta_tools: dict[str, RegisteredTool] | None = None
        self._policy_context = PolicyContext(
            rate_limiter or InProcessRateLimiter(clock),
            ResultCache(clock),
            retries,
            circuit_breaker,
            clock,
            timeout,
            approve,
            self._find_alternative_names,
        )
        for tool in tools:
            self.register(tool)
        if self._registry.min_definition_tokens > self.max_definition_tokens:
            _ = self._registry.index  # built here, so that the first run does not wait for it

    # Registration

    @overload
    def register(self, tool_or_spec: Tool | Callable[..., Any], /) -> None: ...

    @overload
    def register(self, tool_or_spec: "AnyToolSpec", tools: Sequence[Tool], /) -> "Registration": ...

    def register(self, tool_or_spec: Any, tools: Sequence[Tool] | None = None, /) -> "Registration | None":
        """Register a tool or function, or a spec with the tools made from it.

        Registering code raises. Registering a spec returns a report: which tools can be called, and why others were
        rejected.

        Raises:
            ToolRegistrationError: The id of a tool or function is taken, or it cannot be described to a model.
        """
        registry = self._get_writable_registry()
        if tools is not None:
            return register_spec(registry, tool_or_spec, tools)
        register_tool(registry, to_tool(tool_or_spec))
        return None

    def replace(self, spec: "AnyToolSpec", tools: Sequence[Tool]) -> "Registration":
        """Replace the tools of a spec's id, or add them if there are none.

        Running calls go on. Counts and circuit breaker are taken over. If none of the new tools can be used, the old
        ones stay.
        """
        registry = self._get_writable_registry()
        return register_spec(registry, spec, tools, registry.entries.get(spec.tool_id))

    def unregister(self, tool_id: str) -> bool:
        """Remove a tool with all its actions; running calls go on. Return False if there is no such tool."""
        return self._get_writable_registry().remove(tool_id) is not None

    def enable(self, tool_id: str) -> bool:
        """Enable a tool. Return False if there is no such tool."""
        return self._set_enabled(tool_id, enabled=True)

    def disable(self, tool_id: str) -> bool:
        """Disable a tool: models do not see it and cannot call it. Return False if there is no such tool."""
        return self._set_enabled(tool_id, enabled=False)

    def with_bindings(
        self,
        bindings: "Sequence[AgentToolBinding]",
        build_tools: BuildTools | None = None,
        own_tools: Sequence[Tool] = (),
    ) -> "ToolLibrary":
        """Return a view with the tools of one agent, each with its binding's `config` merged into the spec.

        The view follows the changes of this library. It shares health, circuit breakers, rate limits and stored
        results. `rejected_bindings` says which bindings cannot be used.

        Args:
            bindings: The agent's tools.
            build_tools: Creates the tools of a changed spec, if the change affects how a tool is made.
            own_tools: Tools that this library does not have. Bindings name them as they name others.
        """
        view = copy.copy(self)
        view._source = BoundRegistry(self._source, bindings, build_tools, own_tools)  # noqa: SLF001
        view._meta_tools = None  # noqa: SLF001
        find_alternative_names = view._find_alternative_names  # noqa: SLF001
        view._policy_context = dataclasses.replace(  # noqa: SLF001
            self._policy_context, find_alternative_names=find_alternative_names
        )
        return view

    def for_model(self, context_window: int | None, disclosure: ToolDisclosure | None = None) -> "ToolLibrary":
        """Return a view for one model; it follows the changes of this library.

        Args:
            context_window: Tokens of the model's context window, None if unknown.
            disclosure: When the model gets only some of the tools (default: as in this library).
        """
        disclosure = disclosure or self.disclosure
        if (context_window, disclosure) == (self._context_window, self.disclosure):
            return self
        view = copy.copy(self)
        view.disclosure = disclosure
        view._context_window, view._meta_tools = context_window, None  # noqa: SLF001
        return view

    @property
    def rejected_bindings(self) -> dict[str, str]:
        """The ids of bindings that cannot be used, each with the reason; empty for a library without bindings."""
        return self._source.rejected_bindings if isinstance(self._source, BoundRegistry) else {}

    # Queries

    @property
    def specs(self) -> "tuple[AnyToolSpec, ...]":
        """The specs of all tools, enabled or not, in the order they were added."""
        return tuple(entry.spec for entry in self._registry.entries.values())

    def get_spec(self, tool_id: str) -> "AnyToolSpec | None":
        """Return the spec of a tool."""
        entry = self._registry.entries.get(tool_id)
        return None if entry is None else entry.spec

    def get_specs_by_type(self, tool_type: "ToolType") -> "tuple[AnyToolSpec, ...]":
        """Return the specs of one type."""
        return tuple(spec for spec in self.specs if spec.tool_type == tool_type)

    def get_specs_by_tags(self, tags: Iterable[str], *, match_all: bool = False) -> "tuple[AnyToolSpec, ...]":
        """Return the specs with at least one of the tags, or with all of them."""
        wanted_tags = set(tags)
        if match_all:
            return tuple(spec for spec in self.specs if wanted_tags <= set(spec.tags))
        return tuple(spec for spec in self.specs if not wanted_tags.isdisjoint(spec.tags))

    def search(self, query: str, limit: int = 10) -> list[ToolMatch]:
        """Return the enabled tools that match best, by names, descriptions, tags, actions and parameters.

        Among equal scores the higher `priority` comes first.
        """
        return search_by_words(self._registry, query, limit)

    async def search_by_meaning(self, need: str, limit: int = 10) -> list[ToolMatch]:
        """As `search`, also by meaning and across languages if the extra `search` is installed."""
        return await search_by_meaning(self._registry, need, limit)

    def find_alternatives(
        self, tool_id: str, query: str = "", failed_tool_ids: Iterable[str] = (), limit: int = 3
    ) -> list[ToolMatch]:
        """Return tools that may replace one, best first.

        Args:
            tool_id: The tool to replace.
            query: What the tool should do (default: the tool's own description).
            failed_tool_ids: Tools to leave out. Tools out of service are left out too.
            limit: The number of matches.
        """
        return find_alternatives(self._registry, tool_id, query, failed_tool_ids, limit)

    def describe(self, tool_id: str = "", detail: Detail = "short", language: Language = "en") -> str:
        """Describe one tool, or all enabled ones, as text.

        Args:
            tool_id: The tool; "" for all.
            detail: "short" for one line per action, "full" for all parameters and an example.
            language: The language of the labels.

        Raises:
            BadInput: There is no such tool.
        """
        if tool_id:
            return describe_entries([self._get_entry(tool_id)], detail, language)
        enabled = [entry for entry in self._registry.entries.values() if entry.state.enabled]
        return describe_entries(enabled, detail, language)

    def get_examples(self, tool_id: str, action: str = "") -> "tuple[Example, ...]":
        """Return the example calls of one action, or of all. Raises: `BadInput` if there is no such tool."""
        return get_examples(self._get_entry(tool_id).spec, action)

    def get_health(self, tool_id: str) -> ToolHealthReport:
        """Return the health of a tool. Raises: `BadInput` if there is no such tool."""
        return create_health_report(self._get_entry(tool_id), self._registry.entries)

    @property
    def approval_handler(self) -> ApprovalHandler | None:
        """The handler that asks for human approval where the context of a call has none."""
        return self._policy_context.approve

    @property
    def version(self) -> int:
        """A number that grows with each change of the tools."""
        return self._registry.version

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """The definitions of all enabled tools: the same object until something changes."""
        return self._registry.definitions

    @property
    def is_large(self) -> bool:
        """Whether the library is too large to send every definition to a model; see `disclosure`."""
        registry, max_tokens = self._registry, self.max_definition_tokens
        return registry.min_definition_tokens > max_tokens or registry.definition_tokens > max_tokens

    @property
    def max_definition_tokens(self) -> int:
        """Tokens of definitions that are sent to the model; see `disclosure` and `for_model`."""
        return self.disclosure.get_max_tokens(self._context_window)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """All enabled tools, in the order they were added."""
        return tuple(tool.effective_tool for tool in self._registry.enabled_tools)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all enabled tools, as models know them, in the order they were added."""
        return tuple(tool.name for tool in self._registry.enabled_tools)

    def find_tool(self, name: str) -> Tool | None:
        """Return the tool with this name, else with this id, else the only one that a misspelled name can mean."""
        tool = self.find_registered_tool(name)
        return None if tool is None else tool.effective_tool

    def get_tool_id(self, name: str) -> str:
        """Return the id of the tool that `find_tool` finds, or the name of an unknown tool."""
        tool = self.find_registered_tool(name)
        return name if tool is None else tool.tool_id

    def get_registered_tools(self, tool_id: str) -> tuple[RegisteredTool, ...]:
        """Return the tools of a spec with their names and actions; none if it is unknown or disabled."""
        entry = self._registry.entries.get(tool_id)
        return tuple(entry.tools) if entry is not None and entry.state.enabled else ()

    def get_traits(self, name: str) -> ToolTraits | None:
        """Return what is declared about a tool's calls, None if there is no such tool."""
        tool = self.find_registered_tool(name)
        return None if tool is None else tool.traits

    def suggest_names(self, name: str) -> list[str]:
        """Return the names of tools most similar to an unknown one, best first."""
        names = self.names
        if len(names) > MAX_COMPARED_NAMES:
            return [match.name for match in self.search(name, 3)]
        return find_nearest_names(name, names)

    def get_unknown_tool_message(self, name: str, language: Language = "en") -> str:
        """Return the message for a model that called a tool that does not exist."""
        all_names = (SEARCH_TOOLS,) if self.is_large else self.names
        return failure_messages.unknown_tool_message(name, self.suggest_names(name), all_names, language)

    def read_result(self, scope: ResultScope, handle: str) -> str | None:
        """Return a whole result that was truncated; None if it is not stored (any more). See `CallContext.result_scope`."""
        return self._result_store.get(scope, handle)

    # Calls

    async def call(
        self,
        name: str,
        arguments: dict[str, Any],
        context: CallContext = NO_CONTEXT,
        checked: CheckedArguments | None = None,
    ) -> ToolResult:
        """Call a tool by name, else by id (see `call_action`). Only a cancellation of the caller is raised.

        `checked` is what `check_call` returned for these arguments, so that they are not validated again.
        """
        tool = self.find_registered_tool(name)
        if tool is None:
            message = self.get_unknown_tool_message(name, context.language)
            return ToolResult(context.call_id, name, message, "unknown_tool")
        return await self._call_tool(tool, arguments, context, checked)

    async def call_action(
        self, tool_id: str, action: str, arguments: dict[str, Any], context: CallContext = NO_CONTEXT
    ) -> ToolResult:
        """Call an action of a tool by its exact id; `action` is "" for the only tool of a spec."""
        registry = self._registry
        tool = registry.find_action(tool_id, action)
        if tool is not None:
            return await self._call_tool(tool, arguments, context)
        if action or tool_id not in registry.entries:
            return await self.call(f"{tool_id}.{action}" if action else tool_id, arguments, context)
        names, language = [tool.action for tool in self.get_registered_tools(tool_id)], context.language
        missing_action = failure_messages.missing_action_message(tool_id, names, language) if names else ""
        message = missing_action or self.get_unknown_tool_message(tool_id, language)
        return ToolResult(context.call_id, tool_id, message, "unknown_tool")

    async def call_many(
        self, calls: Sequence[tuple[str, dict[str, Any]]], context: CallContext = NO_CONTEXT, max_concurrency: int = 16
    ) -> list[ToolResult]:
        """Call several tools concurrently.

        Args:
            calls: Pairs of a tool's name and its arguments.
            context: The context of all calls; each gets a call id of its own.
            max_concurrency: The number of calls that run at once.

        Returns:
            The results in the order of `calls`.
        """
        semaphore = asyncio.Semaphore(max_concurrency)

        async def call_one(number: int, name: str, arguments: dict[str, Any]) -> ToolResult:
            key = context.idempotency_key and f"{context.idempotency_key}-{number}"
            call_context = dataclasses.replace(context, call_id=new_call_id(), idempotency_key=key)
            async with semaphore:
                return await self.call(name, arguments, call_context)

        return list(await asyncio.gather(*(call_one(number, *call) for number, call in enumerate(calls))))

    async def _call_tool(
        self,
        tool: RegisteredTool,
        arguments: dict[str, Any],
        context: CallContext,
        checked: CheckedArguments | None = None,
    ) -> ToolResult:
        """Call a tool, truncate a long result, and store the whole text for the run."""
        result, seconds = await call_tool(tool, arguments, context, checked, self._policy_context)
        content, cut, handle = result.content, 0, ""
        max_characters = self._get_max_result_characters(content)
        if len(content) > max_characters:
            if context.result_scope:
                handle = self._result_store.put(context.result_scope, content)
            content, cut = truncate_result(content, max_characters, context.language, handle)
        return ToolResult(
            context.call_id,
            tool.name,
            content,
            result.failure,
            result.data,
            cut,
            seconds,
            attempts=result.attempts,
            cached=result.cached,
            handle=handle,
            media=find_media(result.data),
            outcome_unknown=result.outcome_unknown,
        )

    # Internals

    def _get_max_result_characters(self, text: str) -> int:
        limit = self._max_result_characters
        return get_max_characters(text, self._context_window) if limit is None else limit

    @property
    def _registry(self) -> Registry:
        return self._source.get_current_registry()

    def _get_writable_registry(self) -> Registry:
        if isinstance(self._source, BoundRegistry):
            raise ToolRegistrationError(
                "This library is a view with the tools of one agent. Change the library that it was made from."
            )
        return self._source

    def _set_enabled(self, tool_id: str, *, enabled: bool) -> bool:
        registry = self._get_writable_registry()
        entry = registry.entries.get(tool_id)
        if entry is not None:
            registry.set_enabled(entry, enabled)
        return entry is not None

    def _get_entry(self, tool_id: str) -> RegistryEntry:
        entry = self._registry.entries.get(tool_id)
        if entry is None:
            raise BadInput(f"There is no tool with the id {tool_id!r}.")
        return entry

    def find_registered_tool(self, name: str) -> RegisteredTool | None:
        """Return the tool that `find_tool` finds, with its entry and rules."""
        if name not in RESERVED_NAMES:
            return self._registry.find_tool(name)
        if self._meta_tools is None:
            meta_tools = MetaTools(self._search_tools, self._result_store, self._get_max_result_characters)
            self._meta_tools = meta_tools.to_registered_tools()
        return self._meta_tools[name]

    async def _search_tools(self, need: str) -> list[RegisteredTool]:
        matches = await self.search_by_meaning(need, self.disclosure.max_matches)
        tools_by_name = self._registry.tools_by_name
        return [tools_by_name[match.name] for match in matches if match.name in tools_by_name]

    def _find_alternative_names(self, tool: RegisteredTool) -> list[str]:
        return [match.name for match in self.find_alternatives(tool.entry.tool_id)]
