"""What a run knows of the tools it could go on with: which only read, which wait, which may bring what is missing."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from opposable.agent.execution_context import ExecutionContext
from opposable.agent.grounding import parts, things
from opposable.domain.language import words
from opposable.domain.tools import ToolDefinition
from opposable.models.base import Named
from opposable.tools.library import ToolLibrary

if TYPE_CHECKING:  # specs are pydantic's, and only a run in trouble asks for them
    from opposable.domain.specs import AnyToolSpec

POLLING = "polling"
"""In a spec's metadata, true: the tool is asked again and again on purpose."""


_READ = 2_000
"""Characters of a request that are looked at."""
_TELLING = 4
"""Letters of a word that says enough where it only begins another one."""
_VERBS = frozenset("get list read show find search look fetch load view check all".split())  # noqa: SIM905
"""What tools that read do, whatever it is they read."""
_CHANGING = (
    "add append apply approve assign cancel clear confirm create delete deploy disable drop edit empty enable erase "
    "execute insert install kill merge modify pay publish purge put refund register remove rename replace reset restart "
    "restore revoke rollback save send set shut submit transfer truncate uninstall unlock update upload wipe write"
)
_MAYBE = (
    "book charge close commit copy format grant import lock move note open order patch post push run start stop store "
    "trigger"
)
_CHANGES = frozenset(_CHANGING.split())
"""What tools that change something do, even those that may be called twice."""
_MAY_CHANGE = frozenset(_MAYBE.split())
"""The same, where a name begins with it: elsewhere it may be a thing."""


class Ways:
    """Questions to a library, by the names of tools; `context` is what the run has been through."""

    def __init__(self, library: ToolLibrary, context: ExecutionContext) -> None:
        self._library = library
        self._context = context
        self._by_word: dict[str, list[ToolDefinition]] | None = None
        self._first_words: list[tuple[ToolDefinition, frozenset[str]]] | None = None
        self._told: dict[str, tuple[str, ...]] = {}

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
        levels = tool_id.split(".")
        for size in range(len(levels), 0, -1):
            owner = ".".join(levels[:size])
            if self._library.get(owner) is not None:
                return owner, ".".join(levels[size:])
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
        return name in self._context.tally

    def worked(self, name: str) -> int:
        """How many calls of a tool worked in this run."""
        return self._context.tally.get(name, 0)

    def may_be_asked(self, name: str) -> bool:
        """Whether a run may ask for a call of the tool of its own accord: it only reads, by its owner's word and its name.

        A tool that may be called twice may still change something: `PUT` and `DELETE`, "reset", "set".
        """
        spec = self.spec(name)
        if spec is None or not spec.idempotent or spec.needs_approval:
            return False
        method = getattr(getattr(spec, "endpoint", None), "method", "GET")
        does = parts(name)
        return method in ("GET", "HEAD") and _CHANGES.isdisjoint(does) and _MAY_CHANGE.isdisjoint(does[:1])

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
        if not self.may_be_asked(call.name):
            return None
        needs = f"{call.name} {self._context.task[:500]}"
        owner = self.owner(self.tool_id(call.name))[0]
        for found in self._library.alternatives(owner, needs, most=8):
            schema = self.parameters(found.name)
            fits = set(schema.get("required", ())) <= set(call.arguments) <= set(schema.get("properties", {}))
            if not self.called(found.name) and call.arguments and fits and self.may_be_asked(found.name):
                return Named(found.name, dict(call.arguments))
        return None

    def sources(self, call: Named, field: str, *, asking: bool = False) -> list[Named]:
        """Calls of tools not used yet that only read and whose names say that they may bring an argument's value.

        They can be made with what the call has besides; `asking` takes those too that need to be told more.
        """
        found = []
        about = things(field)
        for tool in self._about(about) or self._telling(about):
            name, schema = tool.name, tool.parameters
            required = set(schema.get("required", ()))
            if name == call.name or field in required or self.called(name) or not self.may_be_asked(name):
                continue
            known = {one: call.arguments[one] for one in schema.get("properties", {}) if one in call.arguments}
            if asking or required <= set(known):
                found.append(Named(name, known))
        return found

    def told_elsewhere(self, name: str) -> tuple[str, ...]:
        """The arguments that a tool which changes something requires and that other tools may tell."""
        if name not in self._told:
            fields = () if self.only_reads(name) else self.parameters(name).get("required", ())
            self._told[name] = tuple(field for field in fields if self.sources(Named(name), field, asking=True))
        return self._told[name]

    def _about(self, about: Iterable[str]) -> list[ToolDefinition]:
        """The tools whose names have one of these words."""
        if self._by_word is None:
            self._by_word = {}
            for tool in self._library.tools:
                for word in things(tool.definition.name):
                    self._by_word.setdefault(word, []).append(tool.definition)
        found = {tool.name: tool for word in sorted(about) for tool in self._by_word.get(word, ())}
        return list(found.values())

    def _telling(self, about: Iterable[str]) -> list[ToolDefinition]:
        """The tools whose descriptions begin with a sentence on one of these things: rainfall, where it is the rain."""
        if self._library.is_large:
            return []
        if self._first_words is None:
            self._first_words = [
                (tool.definition, frozenset(words(_sentence(tool.definition.description))))
                for tool in self._library.tools
            ]
        longer = tuple(word for word in about if len(word) >= _TELLING)
        return [tool for tool, held in self._first_words if longer and any(word.startswith(longer) for word in held)]

    def view(self, request: str) -> Named | None:
        """The call of a tool that only reads, needs no argument and is about something that a request names."""
        for tool in self._about(things(request[:_READ]) - _VERBS):
            if not tool.parameters.get("required") and self.may_be_asked(tool.name):
                return Named(tool.name)
        return None


def _sentence(description: str) -> str:
    """A description's first sentence, as far as it is read."""
    return description[:_READ].strip().partition("\n")[0].partition(". ")[0]
