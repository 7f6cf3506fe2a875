"""Records a run's failed calls and their corrections, and reports what corrected the same failure before."""

from collections.abc import Sequence
from typing import Any

from opposable.agent.failure_fingerprints import compute_error_fingerprint, find_correction, format_correction
from opposable.agent.failure_memory import FailurePatterns, ScopedMemory
from opposable.agent.policy import RunPolicy, Step
from opposable.domain.localized_text import LocalizedText
from opposable.domain.records import Failure
from opposable.tools.library import ToolLibrary
from opposable.tools.registry import RegisteredTool
from opposable.tools.result_cache import canonicalize_arguments

_MAX_UNCORRECTED = 20
"""Failed calls of one tool that a later call may correct, the latest ones."""
_KNOWN_CORRECTION = LocalizedText(
    "[Note: before, {worked} worked in place of {failed}.]", "[注意：以前用 {worked} 代替 {failed} 成功过。]"
)


class FailureRecorder(RunPolicy):
    """Records the failures of one run, each once, and what a later call of the same tool says about them.

    As a policy it notes in a failed result what corrected it before. A remembered failure blocks nothing.
    """

    def __init__(self, library: ToolLibrary, memory: ScopedMemory, patterns: FailurePatterns) -> None:
        self._library = library
        self._memory = memory
        self._patterns = patterns
        self._uncorrected: dict[str, list[tuple[Failure, dict[str, Any], str]]] = {}  # with arguments and error
        self._recorded: set[tuple[str, ...]] = set()

    def annotate(self, step: Step, steps: Sequence[Step]) -> str:
        """Record a call, and note a known correction."""
        failed, worked = format_correction(self.record(step, dict(step.call.arguments)))
        return _KNOWN_CORRECTION.format(worked=worked, failed=failed) if worked else ""

    def record(self, step: Step, arguments: dict[str, Any], *, is_made: bool = True) -> dict[str, Any] | None:
        """Record a call with these arguments, unless it was not made. Return the known correction of a failed one."""
        tool = self._library.find_registered_tool(step.call.name)
        tool_id = "" if tool is None else tool.tool_id
        if step.result.failure is None:
            self._record_success(step.call.name, tool_id, arguments)
            return None
        if tool is not None and is_made:
            self._record_failure(step, tool, arguments)
        return self._patterns.find_correction(tool_id, step.result.failure, arguments, step.result.content)

    def _record_failure(self, step: Step, tool: RegisteredTool, arguments: dict[str, Any]) -> None:
        """Record a failed call. One that was cut off or refused before it ran says nothing about its arguments."""
        name, result = step.call.name, step.result
        error = compute_error_fingerprint(arguments, result.content)
        once = (name, canonicalize_arguments(arguments), str(result.failure), error)
        was_refused = result.failure == "refused" and not result.attempts
        if step.call.truncated or result.failure is None or was_refused or once in self._recorded:
            return
        self._recorded.add(once)
        failure = self._memory.record_failure(
            tool.entry.tool_id, tool.action, result.failure, arguments, result.content
        )
        if failure is not None:
            uncorrected = self._uncorrected.setdefault(name, [])
            uncorrected.append((failure, arguments, result.content))
            del uncorrected[:-_MAX_UNCORRECTED]

    def _record_success(self, name: str, tool_id: str, arguments: dict[str, Any]) -> None:
        """Record the corrections that follow from a successful call, and forget that it failed before."""
        for failure, failed_arguments, error in self._uncorrected.pop(name, ()):
            right = find_correction(failed_arguments, arguments, error, allow_larger_numbers=failure.kind == "timeout")
            if right is not None:
                self._memory.record_correction(failure, right)
        for known in self._patterns.find_exact(tool_id, arguments):
            self._memory.memory.forget(known)
