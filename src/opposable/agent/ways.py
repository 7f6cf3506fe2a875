"""What a run knows of the tools it could go on with: which only read, which wait, which may bring what is missing."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from opposable.agent.context import ExecutionContext
from opposable.agent.evidence import things
from opposable.models.base import Named
from opposable.tools.library import ToolLibrary

if TYPE_CHECKING:  # specs are pydantic's, and only a run in trouble asks for them
    from opposable.domain.specs import AnyToolSpec

POLLING = "polling"
"""In a spec's metadata, true: the tool is asked again and again on purpose."""


_VERBS = frozenset("get list read show find search look fetch load view check all".split())  # noqa: SIM905
"""What tools that read do, whatever it is they read."""


class Ways:
    """Questions to a library, by the names of tools; `context` is what the run has been through."""

    def __init__(self, library: ToolLibrary, context: ExecutionContext) -> None:
        self._library = library
        self._context = context

    def tool_id(self, name: str) -> str:
        """The id of a tool with its action."""
        tool = self._library.find(name)
        return name if tool is None else tool.tool_id

    def parameters(self, name: str) -> dict[str, Any]:
        """A tool's JSON Schema."""
        tool = self._library.find(name)
        return {} if tool is None else tool.definition.parameters

    def owner(self, tool_id: str) -> tuple[str, str]:
        """The id a tool is registered by, and its action."""
        parts = tool_id.split(".")
        for size in range(len(parts), 0, -1):
            owner = ".".join(parts[:size])
            if self._library.get(owner) is not None:
                return owner, ".".join(parts[size:])
        return tool_id, ""

    def spec(self, name: str) -> "AnyToolSpec | None":
        """A tool's spec."""
        return self._library.get(self.owner(self.tool_id(name))[0])

    def polls(self, name: str) -> bool:
        """Whether a tool is asked again and again on purpose."""
        spec = self.spec(name)
        return spec is not None and bool(spec.metadata.get(POLLING))

    def only_reads(self, name: str) -> bool:
        """Whether a tool changes nothing."""
        spec = self.spec(name)
        return spec is not None and spec.idempotent

    def called(self, name: str) -> bool:
        """Whether a call of a tool was wanted in this run."""
        return any(step.call.name == name for step in self._context.steps)

    def worked(self, name: str) -> int:
        """How many calls of a tool worked in this run."""
        return sum(step.call.name == name and step.result.failure is None for step in self._context.steps)

    def missing(self, name: str) -> tuple[str, ...]:
        """What a tool depends on that is not there."""
        owner = self.owner(self.tool_id(name))[0]
        return () if self._library.get(owner) is None else self._library.health(owner).missing

    def look(self, arguments: Mapping[str, Any]) -> Named | None:
        """The call of the one tool that tells how things stand, with what arguments it has in common with another."""
        polling = [tool.definition for tool in self._library.tools if self.polls(tool.definition.name)]
        if len(polling) != 1:
            return None
        known = polling[0].parameters.get("properties", {})
        return Named(polling[0].name, {name: value for name, value in arguments.items() if name in known})

    def other(self, call: Named) -> Named | None:
        """The same call of another tool, where both only read and no call of the other was made."""
        if not self.only_reads(call.name):
            return None
        made = {step.call.name for step in self._context.steps}
        needs = f"{call.name} {self._context.task[:500]}"
        owner = self.owner(self.tool_id(call.name))[0]
        for found in self._library.alternatives(owner, needs, most=8):
            schema = self.parameters(found.name)
            fits = set(schema.get("required", ())) <= set(call.arguments) <= set(schema.get("properties", {}))
            if found.name not in made and call.arguments and fits and self.only_reads(found.name):
                return Named(found.name, dict(call.arguments))
        return None

    def sources(self, call: Named, field: str, *, asking: bool = False) -> list[Named]:
        """Calls of tools not used yet that only read and whose names say that they may bring an argument's value.

        They can be made with what the call has besides; `asking` takes those too that need to be told more.
        """
        made = {step.call.name for step in self._context.steps}
        about = things(field)
        found = []
        for tool in self._library.tools:
            name, schema = tool.definition.name, tool.definition.parameters
            required = set(schema.get("required", ()))
            if name in made or name == call.name or field in required or about.isdisjoint(things(name)):
                continue
            known = {one: call.arguments[one] for one in schema.get("properties", {}) if one in call.arguments}
            if self.only_reads(name) and (asking or required <= set(known)):
                found.append(Named(name, known))
        return found

    def view(self, request: str) -> Named | None:
        """The call of a tool that only reads, needs no argument and is about something that a request names."""
        about = things(request) - _VERBS
        for tool in self._library.tools:
            name, schema = tool.definition.name, tool.definition.parameters
            if not schema.get("required") and self.only_reads(name) and things(name) & about:
                return Named(name)
        return None
