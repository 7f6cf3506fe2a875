"""Records a run's failed calls and their corrections, and reports what corrected the same failure before."""

from collections.abc import Sequence
from typing import Any

from opposable.agent.failure_fingerprints import find_correction, format_correction
from opposable.agent.failure_memory import NO_PATTERNS, FailurePatterns, ScopedMemory
from opposable.agent.policy import RunPolicy, Step
from opposable.domain.language import Language
from opposable.domain.localized_text import LocalizedText, localize
from opposable.domain.records import Failure
from opposable.domain.tools import ToolCall, ToolResult
from opposable.tools.library import ToolLibrary

_MAX_UNCORRECTED = 20
"""Failed calls of one tool that a later call may correct, the latest ones."""


class FailureRecorder:
    """Records the failures of one run, each once, and what a later call of the same tool says about them."""

    def __init__(self, library: ToolLibrary, memory: ScopedMemory, patterns: FailurePatterns = NO_PATTERNS) -> None:
        self._library = library
        self._memory = memory
        self._patterns = patterns
        self._uncorrected: dict[str, list[tuple[Failure, dict[str, Any], str]]] = {}  # with arguments and error
        self._recorded: set[tuple[str, str, str]] = set()

    def find_correction(self, name: str, arguments: dict[str, Any]) -> dict[str, Any] | None:
        """Return the known correction of this call, or of one with the same failing arguments."""
        return self._patterns.find_correction(self._get_tool_id(name), arguments)

    def record_failure(self, call: ToolCall, arguments: dict[str, Any], result: ToolResult) -> None:
        """Record a failed call. One that was cut off says nothing about its arguments."""
        name = call.name
        tool = None if call.truncated else self._library.find_registered_tool(name)
        once = (name, repr(sorted(arguments.items(), key=lambda pair: pair[0])), str(result.failure))
        if tool is None or result.failure is None or once in self._recorded:
            return
        self._recorded.add(once)
        failure = self._memory.record_failure(
            tool.entry.tool_id, tool.action, result.failure, arguments, result.content
        )
        if failure is not None:
            uncorrected = self._uncorrected.setdefault(name, [])
            uncorrected.append((failure, arguments, result.content))
            del uncorrected[:-_MAX_UNCORRECTED]

    def record_success(self, name: str, arguments: dict[str, Any]) -> None:
        """Record the corrections that follow from a successful call, and forget that it failed before."""
        for failure, failed_arguments, error in self._uncorrected.pop(name, ()):
            right = find_correction(failed_arguments, arguments, error, allow_larger_numbers=failure.kind == "timeout")
            if right is not None:
                self._memory.memory.correct(failure, right)
        known = self._patterns.find_exact(self._get_tool_id(name), arguments)
        if known is not None:
            self._memory.memory.forget(known)

    def _get_tool_id(self, name: str) -> str:
        tool = self._library.find_tool(name) if self._patterns.failures else None
        return "" if tool is None else tool.tool_id


class FailureNotes(RunPolicy):
    """Records failures, and notes in a failed result what corrected it before.

    A remembered failure blocks nothing.
    """

    def __init__(self, recorder: FailureRecorder, language: Language) -> None:
        self._recorder = recorder
        self._language: Language = language

    def annotate(self, step: Step, steps: Sequence[Step]) -> str:
        """Record a call, and note a known correction."""
        arguments = dict(step.call.arguments)
        if step.result.failure is None:
            self._recorder.record_success(step.call.name, arguments)
            return ""
        failed, worked = format_correction(self._recorder.find_correction(step.call.name, arguments))
        self._recorder.record_failure(step.call, arguments, step.result)
        if not worked:
            return ""
        note = LocalizedText(
            f"[Note: before, {worked} worked in place of {failed}.]", f"[注意：以前用 {worked} 代替 {failed} 成功过。]"
        )
        return localize(note, self._language)
