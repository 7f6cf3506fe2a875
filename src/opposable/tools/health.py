"""Health reports of tools."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from opposable.domain.tools import FailureKind
from opposable.tools.circuit_breaker import CircuitState
from opposable.tools.registry import RegisteredTool, RegistryEntry


@dataclass(frozen=True, slots=True)
class ToolHealthReport:
    """The calls of a tool since it was registered, and whether it is in service.

    `state` is "open" while the tool or one of its actions is out of service, for another `retry_after_seconds`. It is
    "half_open" until the next call shows whether the tool answers again. `calls`, `failures` and `mean_seconds` cover every call, like
    the recorded calls and the metrics: also one that was refused before the tool ran, such as a denied one.
    `missing_dependencies` are ids of tools that the spec depends on and that are no longer registered.
    """

    tool_id: str
    state: Literal["ok", "disabled", "open", "half_open"]
    calls: int
    failures: Mapping[FailureKind, int]
    mean_seconds: float
    last_failure: str = ""
    retry_after_seconds: float = 0.0
    missing_dependencies: tuple[str, ...] = ()


def create_health_report(entry: RegistryEntry, registered_ids: Mapping[str, object]) -> ToolHealthReport:
    """Return the health of an entry, given the ids that are registered now."""
    state, breakers = entry.state, entry.state.circuit_breakers.values()
    circuits = {breaker.state for breaker in breakers}
    circuit: CircuitState = "open" if "open" in circuits else "half_open" if "half_open" in circuits else "closed"
    dependencies = entry.declared_spec.dependencies if entry.declared_spec else ()
    return ToolHealthReport(
        entry.tool_id,
        "disabled" if not state.enabled else "ok" if circuit == "closed" else circuit,
        state.calls,
        dict(state.failures),
        state.total_seconds / state.calls if state.calls else 0.0,
        state.last_failure,
        max((breaker.get_wait_seconds() for breaker in breakers), default=0.0),
        tuple(tool_id for tool_id in dependencies if tool_id not in registered_ids),
    )


def is_in_service(tool: RegisteredTool) -> bool:
    """Return whether the circuits of the tool are closed."""
    return all(breaker.state == "closed" for breaker in tool.circuit_breakers.values())
