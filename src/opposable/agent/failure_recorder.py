"""Records a run's failed calls and their corrections, and reports what corrected the same failure before."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from opposable.agent.failure_fingerprints import find_correction, format_correction
from opposable.agent.failure_memory import NO_PATTERNS, FailurePatterns, ScopedMemory
from opposable.agent.policy import RunPolicy, Step
from opposable.domain.language import Language
from opposable.domain.localized_text import LocalizedText, localize
from opposable.domain.records import Failure
from opposable.domain.tools import ToolCall, ToolResult
from opposable.tools.library import ToolLibrary

_MAX_OPEN_FAILURES = 20
"""Failed calls of one tool that a later call may correct, the latest ones."""


@dataclass(frozen=True, slots=True)
class _OpenFailure:
    """A recorded failure that no later call has corrected yet."""

    arguments: dict[str, Any]
    error_text: str
    failure: Failure


class FailureRecorder:
    """Records the failures of one run, each once, and what a later call of the same tool says about them."""

    def __init__(self, library: ToolLibrary, memory: ScopedMemory, patterns: FailurePatterns = NO_PATTERNS) -> None:
        self._library = library
        self._memory = memory
        self._patterns = patterns
        self._open: dict[str, list[_OpenFailure]] = {}
        self._recorded: set[tuple[str, str, str]] = set()

    def find_correction(self, name: str, arguments: dict[str, Any]) -> dict[str, Any] | None:
        """Return the known correction of this call, or of one with the same failing arguments."""
        tool = self._library.find_tool(name) if self._patterns.failures else None
        if tool is None:
            return None
        known = self._patterns.find_exact(tool.tool_id, arguments)
        if known is None or not known.correction:
            known = self._patterns.find_similar(tool.tool_id, arguments)
        return None if known is None else known.correction

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
            waiting = self._open.setdefault(name, [])
            waiting.append(_OpenFailure(arguments, result.content, failure))
            del waiting[:-_MAX_OPEN_FAILURES]

    def record_success(self, name: str, arguments: dict[str, Any]) -> None:
        """Record the corrections that follow from a successful call, and forget that it failed before."""
        for one in self._open.pop(name, ()):
            right = find_correction(
                one.arguments, arguments, one.error_text, allow_larger_numbers=one.failure.kind == "timeout"
            )
            if right is not None:
                self._memory.memory.correct(one.failure, right)
        tool = self._library.find_tool(name) if self._patterns.failures else None
        known = None if tool is None else self._patterns.find_exact(tool.tool_id, arguments)
        if known is not None:
            self._memory.memory.forget(known)


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
