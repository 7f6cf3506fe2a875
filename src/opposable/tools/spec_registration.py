"""Registration of tools: of code, which raises on a problem, and of specs, which reports it."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from opposable.domain.errors import BadInput, ToolRegistrationError
from opposable.domain.json_text import dump_json
from opposable.tools.base import Tool
from opposable.tools.function import FunctionTool, bind_class_method
from opposable.tools.json_schema_validation import compile_validator
from opposable.tools.registry import TOOL_ID_PATTERN, Registry, RegistryEntry, ToolState, create_policy

if TYPE_CHECKING:  # pydantic is loaded only where specs are used
    from opposable.domain.specs import AnyToolSpec, Registration


def to_tool(value: Tool | Callable[..., Any]) -> Tool:
    """Return a tool as it is, and a function as a `FunctionTool`.

    Raises:
        ToolRegistrationError: `value` is neither.
    """
    value = bind_class_method(value)
    if isinstance(value, FunctionTool) or (hasattr(value, "definition") and hasattr(value, "run")):
        return cast("Tool", value)
    if callable(value):
        return FunctionTool(value)
    raise ToolRegistrationError(f"{value!r} is not a tool. Pass a function, or an object with `definition` and `run`.")


def register_tool(registry: Registry, tool: Tool) -> None:
    """Register a tool that was written in code.

    Raises:
        ToolRegistrationError: Its id is taken or invalid.
    """
    if not TOOL_ID_PATTERN.fullmatch(tool.tool_id):
        raise ToolRegistrationError(
            f"{tool.tool_id!r} is not a valid tool id. Use 1 to 100 letters, digits, dots, dashes and underscores."
        )
    spec = getattr(tool, "spec", None)
    spec = spec if spec is not None and spec.tool_id == tool.tool_id else None
    state = ToolState(enabled=spec is None or spec.enabled)
    policy = None if spec is None else create_policy(spec, tool)
    registry.add(RegistryEntry(tool.tool_id, state, spec), (tool,), (policy,))


def register_spec(
    registry: Registry, spec: "AnyToolSpec", tools: Sequence[Tool], replaced_entry: RegistryEntry | None = None
) -> "Registration":
    """Register a spec with its tools and report what was rejected.

    `replaced_entry` stays registered if none of the new tools can be used. Otherwise the new entry takes over its
    state: its counts and its circuit breaker.
    """
    from opposable.domain.specs import Registration  # lazy: pydantic

    problem = _find_spec_problem(spec, tools, registry, replaced_entry)
    if problem:
        return Registration(tool_id=spec.tool_id, rejected={spec.tool_id: problem})
    accepted: dict[str, Tool] = {}
    rejected: dict[str, str] = {}
    for tool in tools:
        problem = "there is another action of this name" if tool.tool_id in accepted else _find_tool_problem(tool, spec)
        owner = registry.find_owner(tool.tool_id)
        if not problem and owner is not None and owner is not replaced_entry:
            problem = f"its id is taken by an action of {owner.tool_id!r}"
        if problem:
            rejected[tool.tool_id] = problem
        else:
            accepted[tool.tool_id] = tool
    if not accepted:
        return Registration(tool_id=spec.tool_id, rejected=rejected)
    if replaced_entry is not None:
        registry.remove(spec.tool_id)
    state = ToolState() if replaced_entry is None else replaced_entry.state
    state.enabled = spec.enabled
    entry = RegistryEntry(spec.tool_id, state, spec)
    registry.add(entry, accepted.values(), [create_policy(spec, tool) for tool in accepted.values()])
    names = tuple(tool.name for tool in entry.tools)
    return Registration(tool_id=spec.tool_id, accepted=names, rejected=rejected)


def _find_spec_problem(
    spec: "AnyToolSpec", tools: Sequence[Tool], registry: Registry, replaced_entry: RegistryEntry | None
) -> str:
    """Return why a spec cannot be registered at all, "" if it can."""
    if replaced_entry is None and spec.tool_id in registry.entries:
        return f"There is already a tool named {spec.tool_id!r}. Replace it, or give this one another id."
    missing = [tool_id for tool_id in spec.dependencies if tool_id not in registry.entries or tool_id == spec.tool_id]
    if missing:
        return f"It depends on {', '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not registered."
    return "" if tools else "The spec defines no callable tool."


def _find_tool_problem(tool: Tool, spec: "AnyToolSpec") -> str:
    """Return why one tool of a spec cannot be sent to a model, "" if it can."""
    if tool.tool_id != spec.tool_id and not tool.tool_id.startswith(f"{spec.tool_id}."):
        return f"its id must be {spec.tool_id!r} or begin with '{spec.tool_id}.'"
    if isinstance(tool, FunctionTool):
        return ""
    try:
        compile_validator(tool.definition.parameters)
        dump_json(tool.definition.parameters)
    except (BadInput, TypeError) as error:
        return str(error)
    return ""
