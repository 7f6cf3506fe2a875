"""Failures kept in the process: a bounded number of each tool, apart for each agent."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator

from opposable.domain.records import SHARED, Failure

ROOM = 10_000
"""Failures kept in the process."""
EACH = 20
"""Failures of one tool that are kept there for each scope, the last ones; pinned ones come on top.

What came once and was not put right goes first.
"""


class Remembered:
    """Failures by id, and by scope and tool."""

    def __init__(self) -> None:
        self._all: OrderedDict[str, Failure] = OrderedDict()
        self._own: dict[str, dict[str, dict[str, Failure]]] = {}
        self._changed: dict[str, set[str]] = {}

    def __len__(self) -> int:
        return len(self._all)

    def get(self, failure_id: str) -> Failure | None:
        """The failure of that id."""
        return self._all.get(failure_id)

    def put(self, failure_id: str, failure: Failure) -> None:
        """Keep a failure as the last one; the oldest goes where there are too many."""
        tool = whole_id(failure)
        own = self._own.setdefault(failure.scope, {}).setdefault(tool, {})
        own.pop(failure_id, None)
        own[failure_id] = failure
        self._all[failure_id] = failure
        self._all.move_to_end(failure_id)
        self._note(failure.scope, tool)
        if len(own) > EACH:
            loose = [one for one, kept in own.items() if not kept.pinned]
            if len(loose) > EACH:
                self.drop(next((one for one in loose[:-1] if not _teaches(own[one])), loose[0]))
        if len(self._all) > ROOM:
            self.drop(next(iter(self._all)))

    def drop(self, failure_id: str) -> None:
        """Keep a failure no longer."""
        failure = self._all.pop(failure_id)
        tool = whole_id(failure)
        tools = self._own[failure.scope]
        del tools[tool][failure_id]
        if not tools[tool]:
            del tools[tool]
        self._note(failure.scope, tool)

    def of_tool(self, scope: str, tool: str) -> tuple[Failure, ...]:
        """What a scope knows of a tool's action, and what all share of it: its own first, each the last one first."""
        scopes = (scope,) if scope == SHARED else (scope, SHARED)
        return tuple(one for each in scopes for one in reversed(tuple(self._own.get(each, {}).get(tool, {}).values())))

    def teaching(self, scopes: Iterable[str], owners: Iterable[str]) -> Iterator[str]:
        """The ids of what teaches these scopes something of these tools, whatever their action."""
        wanted = set(owners)
        for scope in scopes:
            for own in self._own.get(scope, {}).values():
                if next(iter(own.values())).tool_id in wanted:
                    yield from (failure_id for failure_id, one in own.items() if _teaches(one))

    def tools(self, scope: str) -> set[str]:
        """The tools of which a scope, or all, know something."""
        return set(self._own.get(scope, ())) | set(self._own.get(SHARED, ()))

    def changes(self, scope: str) -> set[str]:
        """The tools of which a scope knows something else than when this was last asked; the first time, all of them."""
        found = self._changed.get(scope)
        if found is None:
            found = self.tools(scope)
            self._changed[scope] = set()
        elif found:
            self._changed[scope] = set()
        return found

    def unfollow(self, scope: str) -> None:
        """Note no longer what changes for a scope, until it is asked for again."""
        self._changed.pop(scope, None)

    def _note(self, scope: str, tool: str) -> None:
        if scope != SHARED:
            if scope in self._changed:
                self._changed[scope].add(tool)
            return
        for noted in self._changed.values():
            noted.add(tool)


def _teaches(failure: Failure) -> bool:
    return failure.count > 1 or failure.correction is not None or failure.pinned


def whole_id(failure: Failure) -> str:
    """The id of the tool's action that failed."""
    return f"{failure.tool_id}.{failure.action}" if failure.action else failure.tool_id
