"""Rule: add to a failed result what may make the call work."""

from opposable.agent.assistance import prompts
from opposable.agent.assistance.rule import AssistanceRule
from opposable.agent.policy import Step


class Suggestions(AssistanceRule):
    """Suggest another attempt after a temporary failure, and name the dependencies that are missing."""

    switch = "suggestions"

    def annotate(self, step: Step) -> str:
        """Return the suggestion for a failed call without a known correction."""
        run, result = self.run, step.result
        if result.failure is None or step.call.id in run.blocked_ids:
            return ""
        notes = []
        if step.call.id not in run.suggested_arguments and run.is_retryable(result):
            notes.append(prompts.suggest_retry(run.language))
        owner = run.get_owner_id(result.name)
        missing = () if run.library.get_spec(owner) is None else run.library.get_health(owner).missing_dependencies
        if missing:
            notes.append(prompts.note_missing_dependencies(result.name, missing, run.language))
        return " ".join(notes)
