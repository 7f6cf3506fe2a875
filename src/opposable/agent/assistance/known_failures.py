"""Rule: use the failures of earlier runs, and record those of this run."""

from collections.abc import Sequence
from dataclasses import replace

from opposable.agent.assistance import prompts
from opposable.agent.assistance.rule import AssistanceRule, AssistedRun
from opposable.agent.failure_fingerprints import format_correction
from opposable.agent.policy import Step
from opposable.domain.tools import ToolDefinition


class KnownFailures(AssistanceRule):
    """Warn in the tool's description, and note what corrected the same failure before."""

    def __init__(self, run: AssistedRun) -> None:
        super().__init__(run)
        self._given: tuple[ToolDefinition, ...] | None = None
        self._extended: tuple[ToolDefinition, ...] = ()

    def extend_definitions(self, definitions: tuple[ToolDefinition, ...]) -> tuple[ToolDefinition, ...]:
        """Add the warnings below the descriptions, once for the same definitions; without any, return the same tuple."""
        if self._given is not definitions:
            extended = tuple(map(self._add_warnings, definitions))
            is_changed = any(new is not old for new, old in zip(extended, definitions, strict=True))
            self._given, self._extended = definitions, extended if is_changed else definitions
        return self._extended

    def annotate(self, step: Step, steps: Sequence[Step]) -> str:
        """Record an outcome, and note what corrected the same failure in an earlier run."""
        run = self.run
        if run.recorder is None:
            return ""
        is_made = step.call.id not in run.blocked_ids
        correction = run.recorder.record(step, run.arguments[step.call.id], is_made=is_made)
        failed, worked = format_correction(correction)
        if correction and worked and not run.patterns.shapes_only:
            run.suggested_arguments[step.call.id] = dict(correction["right"])
        note = prompts.KNOWN_CORRECTION if failed else prompts.KNOWN_ARGUMENTS
        return note.format(failed=failed, worked=worked) if worked and is_made else ""

    def _add_warnings(self, definition: ToolDefinition) -> ToolDefinition:
        warnings = self.run.patterns.get_warnings(self.run.library.get_tool_id(definition.name), self.run.language)
        return replace(definition, description=f"{definition.description}\n{warnings}") if warnings else definition
