"""Rule: ask once more when a reply is empty, or names a tool without a call."""

import re
from collections.abc import Sequence

from opposable.agent.assistance import prompts
from opposable.agent.assistance.rule import AssistanceRule, AssistedRun
from opposable.agent.policy import Directive, Step
from opposable.domain.localized_text import localize
from opposable.domain.messages import Message, add_instructions

_IDENTIFIER = re.compile(r"(?<![\w.:/-])[\w.:/-]*(?:[_.:/\d-]|[a-z][A-Z])[\w.:/-]*", re.ASCII)  # no ordinary word


class UnmadeCalls(AssistanceRule):
    """Ask the model once, if its reply is empty, or only names a tool before any call.

    Small models announce a call, or write one in a form that cannot be read. The model may also send its answer again.
    """

    def __init__(self, run: AssistedRun) -> None:
        super().__init__(run)
        self._was_asked = self._is_pending = False

    def extend_request(self, messages: list[Message]) -> list[Message]:
        """Ask in the system message if there is no result yet that could carry the note."""
        if not self._is_pending:
            return messages
        self._is_pending = False
        return add_instructions(messages, f"[{localize(prompts.UNMADE_CALL, self.run.language)}]")

    def before_answer(self, reply: Message, steps: Sequence[Step]) -> Directive | None:
        """Ask for the call, or for the answer again."""
        text = reply.content
        is_named = not steps and not set(self.run.library.names).isdisjoint(_IDENTIFIER.findall(text))
        if self._was_asked or not (is_named or not text.strip()):
            return None
        self._was_asked, self._is_pending = True, not steps
        return Directive("replan", prompts.UNMADE_CALL, prompts.UNMADE_CALL)
