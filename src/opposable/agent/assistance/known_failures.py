"""Rule: use the failures of earlier runs, and record those of this run."""

from dataclasses import replace

from opposable.agent.assistance import prompts
from opposable.agent.assistance.hints import format_hints
from opposable.agent.assistance.rule import AssistanceRule, AssistedRun
from opposable.agent.failure_fingerprints import format_correction
from opposable.agent.policy import Step
from opposable.domain.language import split_words
from opposable.domain.messages import Message
from opposable.domain.tools import ToolDefinition

MAX_REQUEST_CHARACTERS_MATCHED = 2_000
"""Characters of a request that are compared with earlier failures."""


class KnownFailures(AssistanceRule):
    """Warn in the tool's description, hint in the request, and note what corrected the same failure before."""

    switch = "failure_memory"

    def __init__(self, run: AssistedRun) -> None:
        super().__init__(run)
        self._hints = self._collect_hints()
        self._annotated: tuple[tuple[ToolDefinition, ...], tuple[ToolDefinition, ...]] = ((), ())

    def extend_definitions(self, definitions: tuple[ToolDefinition, ...]) -> tuple[ToolDefinition, ...]:
        """Add warnings. A hint replaces the warning of its tool: small models repeat failing values."""
        run = self.run
        if run.memory is None or not run.patterns.warnings:
            return definitions
        if self._annotated[0] is not definitions:
            annotated = run.memory.memory.add_warnings(definitions, run.patterns, run.library, run.language)
            if self._hints:
                pairs = zip(definitions, annotated, strict=True)
                annotated = tuple(own if own.name in self._hints else warned for own, warned in pairs)
            self._annotated = (definitions, annotated)
        return self._annotated[1]

    def extend_request(self, messages: list[Message]) -> list[Message]:
        """Add the hints to the first request."""
        if self.run.turn or not self._hints:
            return messages
        last = messages[-1]
        return [*messages[:-1], replace(last, content="\n\n".join([last.content, "\n".join(self._hints.values())]))]

    def annotate(self, step: Step) -> str:
        """Record an outcome, and note what corrected the same failure in an earlier run."""
        run, name = self.run, step.call.name
        arguments = run.calls[step.call.id][1]
        if run.recorder is None:
            return ""
        if step.result.failure is None:
            run.recorder.record_success(name, arguments)
            return ""
        known = run.recorder.find_known(name, arguments)
        failed, worked = ("", "") if known is None else format_correction(known.correction)
        if worked and known is not None and known.correction:
            run.suggested_arguments[step.call.id] = dict(known.correction["right"])
        if step.call.id in run.blocked_ids:
            return ""
        run.recorder.record_failure(step.call, arguments, step.result)
        return prompts.suggest_known_correction(failed, worked, run.language) if worked else ""

    def _collect_hints(self) -> dict[str, str]:
        """Return the hints about corrections that the request calls for, by tool name."""
        run = self.run
        words = split_words(run.task[:MAX_REQUEST_CHARACTERS_MATCHED]) if run.patterns.failures else []
        hints: dict[str, str] = {}
        for tool_id, known in run.patterns.failures.items():
            tool = run.library.find_tool(tool_id)
            if tool is not None and tool.tool_id == tool_id:
                hints[tool.definition.name] = format_hints(known, tool.definition.name, words, run.language)
        return {name: text for name, text in hints.items() if text}
