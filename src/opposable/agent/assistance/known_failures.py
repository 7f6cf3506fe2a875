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
        """Add the warnings below the descriptions, once for the same definitions."""
        if not self.run.patterns.warnings:
            return definitions
        if self._given is not definitions:
            self._given, self._extended = definitions, tuple(map(self._add_warnings, definitions))
        return self._extended

    def annotate(self, step: Step, steps: Sequence[Step]) -> str:
        """Record an outcome, and note what corrected the same failure in an earlier run."""
        run, name = self.run, step.call.name
        arguments = run.calls[step.call.id][1]
        if run.recorder is None:
            return ""
        if step.result.failure is None:
            run.recorder.record_success(name, arguments)
            return ""
        correction = run.recorder.find_correction(name, arguments)
        failed, worked = format_correction(correction)
        if correction and worked:
            run.suggested_arguments[step.call.id] = dict(correction["right"])
        if step.call.id in run.blocked_ids:
            return ""
        run.recorder.record_failure(step.call, arguments, step.result)
        return prompts.suggest_known_correction(failed, worked, run.language) if worked else ""

    def _add_warnings(self, definition: ToolDefinition) -> ToolDefinition:
        warnings = self.run.patterns.warnings.get(self.run.get_tool_id(definition.name))
        if warnings is None:
            return definition
        return replace(definition, description=f"{definition.description}\n{warnings[self.run.language == 'zh']}")
