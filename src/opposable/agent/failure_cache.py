"""Failures kept in the process: a bounded number of each tool, apart for each agent."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator

from opposable.domain.records import SHARED_SCOPE, Failure

MAX_CACHED_FAILURES = 10_000
"""Failures kept in the process."""
MAX_FAILURES_PER_TOOL = 20
"""Failures of one tool that are kept there for each scope, the last ones; pinned ones come on top.

What came once and was not put right goes first.
"""


class FailureCache:
    """Failures by id, and by scope and tool."""

    def __init__(self) -> None:
        self._failures_by_id: OrderedDict[str, Failure] = OrderedDict()
        self._failures_by_tool: dict[str, dict[str, dict[str, Failure]]] = {}
        self._changed_tools: dict[str, set[str]] = {}

    def __len__(self) -> int:
        return len(self._failures_by_id)

    def get(self, failure_id: str) -> Failure | None:
        """The failure of that id."""
        return self._failures_by_id.get(failure_id)

    def put(self, failure_id: str, failure: Failure) -> None:
        """Keep a failure as the last one; the oldest goes where there are too many."""
        tool = get_qualified_tool_id(failure)
        own = self._failures_by_tool.setdefault(failure.scope, {}).setdefault(tool, {})
        own.pop(failure_id, None)
        own[failure_id] = failure
        self._failures_by_id[failure_id] = failure
        self._failures_by_id.move_to_end(failure_id)
        self._mark_changed(failure.scope, tool)
        if len(own) > MAX_FAILURES_PER_TOOL:
            loose = [one for one, kept in own.items() if not kept.pinned]
            if len(loose) > MAX_FAILURES_PER_TOOL:
                self.drop(next((one for one in loose[:-1] if not _is_useful(own[one])), loose[0]))
        if len(self._failures_by_id) > MAX_CACHED_FAILURES:
            self.drop(next(iter(self._failures_by_id)))

    def drop(self, failure_id: str) -> None:
        """Keep a failure no longer."""
        failure = self._failures_by_id.pop(failure_id)
        tool = get_qualified_tool_id(failure)
        tools = self._failures_by_tool[failure.scope]
        del tools[tool][failure_id]
        if not tools[tool]:
            del tools[tool]
        self._mark_changed(failure.scope, tool)

    def list_for_tool(self, scope: str, tool: str) -> tuple[Failure, ...]:
        """What a scope knows of a tool's action, and what all share of it: its own first, each the last one first."""
        scopes = (scope,) if scope == SHARED_SCOPE else (scope, SHARED_SCOPE)
        return tuple(
            one
            for each in scopes
            for one in reversed(tuple(self._failures_by_tool.get(each, {}).get(tool, {}).values()))
        )

    def iter_useful_ids(self, scopes: Iterable[str], owners: Iterable[str]) -> Iterator[str]:
        """The ids of what teaches these scopes something of these tools, whatever their action."""
        wanted = set(owners)
        for scope in scopes:
            for own in self._failures_by_tool.get(scope, {}).values():
                if next(iter(own.values())).tool_id in wanted:
                    yield from (failure_id for failure_id, one in own.items() if _is_useful(one))

    def list_tools(self, scope: str) -> set[str]:
        """The tools of which a scope, or all, know something."""
        return set(self._failures_by_tool.get(scope, ())) | set(self._failures_by_tool.get(SHARED_SCOPE, ()))

    def take_changed_tools(self, scope: str) -> set[str]:
        """The tools of which a scope knows something else than when this was last asked; the first time, all of them."""
        found = self._changed_tools.get(scope)
        if found is None:
            found = self.list_tools(scope)
            self._changed_tools[scope] = set()
        elif found:
            self._changed_tools[scope] = set()
        return found

    def stop_tracking(self, scope: str) -> None:
        """Note no longer what changes for a scope, until it is asked for again."""
        self._changed_tools.pop(scope, None)

    def _mark_changed(self, scope: str, tool: str) -> None:
        if scope != SHARED_SCOPE:
            if scope in self._changed_tools:
                self._changed_tools[scope].add(tool)
            return
        for noted in self._changed_tools.values():
            noted.add(tool)


def _is_useful(failure: Failure) -> bool:
    return failure.count > 1 or failure.correction is not None or failure.pinned


def get_qualified_tool_id(failure: Failure) -> str:
    """The id of the tool's action that failed."""
    return f"{failure.tool_id}.{failure.action}" if failure.action else failure.tool_id
