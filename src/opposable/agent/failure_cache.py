"""An in-process cache of failures: a bounded number for each tool and scope."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator

from opposable.domain.records import SHARED_SCOPE, Failure

MAX_CACHED_FAILURES = 10_000
"""Failures in the cache."""
MAX_FAILURES_PER_TOOL = 20
"""Failures of one tool and scope, the latest ones; pinned failures do not count.

Failures that occurred once and have no correction are dropped first.
"""


OWNER_SCOPE_PREFIX = "owner:"
"""The beginning of the scopes of an API key's owner, whose values no one else may see."""


def get_owner_scope(owner: str, agent_id: str = "") -> str:
    """Return the scope of an owner's failures, of all their agents or of one; the shared one without an owner."""
    if not owner:
        return agent_id or SHARED_SCOPE
    return f"{OWNER_SCOPE_PREFIX}{owner}/{agent_id}" if agent_id else f"{OWNER_SCOPE_PREFIX}{owner}"


def list_read_scopes(scope: str) -> tuple[str, ...]:
    """Return the scopes whose failures a run reads: its own, and the shared one unless a key's owner asks."""
    if scope == SHARED_SCOPE or scope.startswith(OWNER_SCOPE_PREFIX):
        return (scope,)
    return (scope, SHARED_SCOPE)


class FailureCache:
    """Failures indexed by id, and by scope and tool."""

    def __init__(self) -> None:
        self._failures_by_id: OrderedDict[str, Failure] = OrderedDict()
        self._failures_by_tool: dict[str, dict[str, dict[str, Failure]]] = {}
        self._changed_tools: dict[str, set[str]] = {}

    def __len__(self) -> int:
        return len(self._failures_by_id)

    def get(self, failure_id: str) -> Failure | None:
        """Return the failure of an id, if cached."""
        return self._failures_by_id.get(failure_id)

    def put(self, failure_id: str, failure: Failure) -> None:
        """Add a failure as the latest one; drop the oldest if there are too many."""
        tool_id = get_qualified_tool_id(failure)
        tool_failures = self._failures_by_tool.setdefault(failure.scope, {}).setdefault(tool_id, {})
        tool_failures.pop(failure_id, None)
        tool_failures[failure_id] = failure
        self._failures_by_id[failure_id] = failure
        self._failures_by_id.move_to_end(failure_id)
        self._mark_changed(failure.scope, tool_id)
        if len(tool_failures) > MAX_FAILURES_PER_TOOL:
            unpinned = [other_id for other_id, other in tool_failures.items() if not other.pinned]
            if len(unpinned) > MAX_FAILURES_PER_TOOL:
                self.drop(
                    next(
                        (other_id for other_id in unpinned[:-1] if not _is_useful(tool_failures[other_id])), unpinned[0]
                    )
                )
        if len(self._failures_by_id) > MAX_CACHED_FAILURES:
            self.drop(next(iter(self._failures_by_id)))

    def drop(self, failure_id: str) -> None:
        """Remove a failure."""
        failure = self._failures_by_id.pop(failure_id)
        tool_id = get_qualified_tool_id(failure)
        failures_by_tool = self._failures_by_tool[failure.scope]
        del failures_by_tool[tool_id][failure_id]
        if not failures_by_tool[tool_id]:
            del failures_by_tool[tool_id]
        self._mark_changed(failure.scope, tool_id)

    def list_for_tool(self, scope: str, tool: str) -> tuple[Failure, ...]:
        """Return the failures of a tool in a scope, then the shared ones, the latest first."""
        scopes = list_read_scopes(scope)
        return tuple(
            failure
            for each_scope in scopes
            for failure in reversed(tuple(self._failures_by_tool.get(each_scope, {}).get(tool, {}).values()))
        )

    def iter_useful_ids(self, scopes: Iterable[str], owners: Iterable[str]) -> Iterator[str]:
        """Yield the ids of the failures of these tools that are worth a warning."""
        owner_ids = set(owners)
        for scope in scopes:
            for tool_failures in self._failures_by_tool.get(scope, {}).values():
                if next(iter(tool_failures.values())).tool_id in owner_ids:
                    yield from (failure_id for failure_id, failure in tool_failures.items() if _is_useful(failure))

    def list_tools(self, scope: str) -> set[str]:
        """Return the tools with failures in a scope or in the shared scope."""
        return {tool for each in list_read_scopes(scope) for tool in self._failures_by_tool.get(each, ())}

    def take_changed_tools(self, scope: str) -> set[str]:
        """Return the tools whose failures have changed since the last call.

        All of them at first.
        """
        changed_tools = self._changed_tools.get(scope)
        if changed_tools is None:
            changed_tools = self.list_tools(scope)
            self._changed_tools[scope] = set()
        elif changed_tools:
            self._changed_tools[scope] = set()
        return changed_tools

    def stop_tracking(self, scope: str) -> None:
        """Stop tracking the changes of a scope until the next `take_changed_tools`."""
        self._changed_tools.pop(scope, None)

    def _mark_changed(self, scope: str, tool: str) -> None:
        if scope != SHARED_SCOPE:
            if scope in self._changed_tools:
                self._changed_tools[scope].add(tool)
            return
        for changed_tools in self._changed_tools.values():
            changed_tools.add(tool)


def _is_useful(failure: Failure) -> bool:
    return failure.count > 1 or failure.correction is not None or failure.pinned


def get_qualified_tool_id(failure: Failure) -> str:
    """Return the id of the tool with its action."""
    return f"{failure.tool_id}.{failure.action}" if failure.action else failure.tool_id
