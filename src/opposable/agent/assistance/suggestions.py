"""Rule: add to a failed result what may correct the call."""

from collections.abc import Sequence

from opposable.agent.assistance import prompts
from opposable.agent.assistance.argument_suggestions import suggest_arguments
from opposable.agent.assistance.rule import AssistanceRule
from opposable.agent.failure_fingerprints import format_arguments
from opposable.agent.policy import Step
from opposable.domain.localized_text import join_localized


class Suggestions(AssistanceRule):
    """Suggest the most similar value that an error names, another attempt, or the dependency that is missing."""

    def annotate(self, step: Step, steps: Sequence[Step]) -> str:
        """Return the suggestion for a failed call without a known correction."""
        run, result = self.run, step.result
        if result.failure is None:
            return ""
        notes = []
        if step.call.id not in run.suggested_arguments:
            suggested = suggest_arguments(run.arguments[step.call.id], result.content)
            if suggested:
                run.suggested_arguments[step.call.id] = dict(suggested)
                notes.append(prompts.SIMILAR_ARGUMENTS.format(arguments=format_arguments(suggested.items())))
            elif run.is_retryable(result):
                notes.append(prompts.RETRY)
        owner = run.get_owner_id(result.name)
        missing = () if run.library.get_spec(owner) is None else run.library.get_health(owner).missing_dependencies
        if missing:
            template = prompts.MISSING_DEPENDENCY if len(missing) == 1 else prompts.MISSING_DEPENDENCIES
            notes.append(template.format(name=result.name, missing=join_localized(missing, ", ", "、")))
        return "" if step.call.id in run.blocked_ids else join_localized(notes, " ", " ")
