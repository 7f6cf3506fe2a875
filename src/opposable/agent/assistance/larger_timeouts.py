"""Rule: after a time-out, enlarge the arguments that the spec of the tool names."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from opposable.agent.assistance.rule import AssistanceRule, AssistedRun
from opposable.agent.policy import Step
from opposable.agent.tool_execution import ResolvedCall

ADJUSTABLE_METADATA_KEY = "adjustable"
"""In the metadata of a spec: arguments to double after a time-out, with their maximum."""


class LargerTimeouts(AssistanceRule):
    """Double an adjustable argument after a time-out, or use the value that was enough in an earlier run."""

    def __init__(self, run: AssistedRun) -> None:
        super().__init__(run)
        self._timed_out_arguments: dict[str, dict[str, Any]] = {}

    def annotate(self, step: Step, steps: Sequence[Step]) -> str:
        """Record the arguments of a call that timed out."""
        if step.result.failure == "timeout" and step.call.id not in self.run.blocked_ids:
            self._timed_out_arguments[step.call.name] = self.run.arguments[step.call.id]
        return ""

    def screen(self, call: ResolvedCall, steps: Sequence[Step]) -> ResolvedCall:
        """Return the call with larger arguments, listed in its repairs."""
        name = call.call.name
        too_small = self._timed_out_arguments.get(name)
        sufficient = self._find_sufficient_arguments(name) if too_small is None else {}
        if call.failure is not None or not (too_small or sufficient):
            return call
        spec, tool = self.run.get_spec(name), self.run.library.find_tool(name)
        maxima = spec.metadata.get(ADJUSTABLE_METADATA_KEY) if spec is not None else None
        if tool is None or not isinstance(maxima, dict):
            return call
        properties = tool.definition.parameters.get("properties", {})
        enlarged, changes = dict(call.arguments), []
        for field, maximum in maxima.items():
            default = about.get("default") if isinstance(about := properties.get(field), dict) else None
            current = enlarged.get(field, default)
            failed = None if too_small is None else too_small.get(field, default)
            value = _enlarge_number(current, failed, sufficient.get(field), maximum)
            if value is not None:
                enlarged[field] = value
                changes.append(f"{field} {current} → {value}: it took longer before")
        if not changes:
            return call
        larger = replace(call.call, arguments=enlarged, raw=None, repairs=(*call.call.repairs, *changes))
        return replace(call, call=larger, arguments=enlarged, checked=None)

    def _find_sufficient_arguments(self, name: str) -> dict[str, Any]:
        """Return the arguments that corrected a time-out in an earlier run."""
        known = self.run.patterns.get_failures(self.run.library.get_tool_id(name))
        corrections = (one.correction["right"] for one in known if one.kind == "timeout" and one.correction)
        return next(corrections, {})


def _enlarge_number(value: Any, too_small: Any, sufficient: Any, maximum: Any) -> float | int | None:
    """Return a number larger than the failed one and at most `maximum`; None to leave it."""
    if not isinstance(value, int | float) or not isinstance(maximum, int | float) or isinstance(value, bool):
        return None
    larger = value
    if isinstance(too_small, int | float) and value <= too_small:
        larger = too_small * 2
    elif isinstance(sufficient, int | float) and value < sufficient:
        larger = sufficient
    return min(larger, maximum) if larger > value and maximum > value else None
