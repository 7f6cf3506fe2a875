"""Completes a follow-up question, such as "and by month?", from the earlier questions of a conversation."""

from collections.abc import Sequence

from opposable.domain.messages import Message, system_message, user_message
from opposable.models.base import ModelOptions
from opposable.sql.schema import to_one_line

MAX_EARLIER_QUESTIONS = 5
"""The limit of earlier questions in the prompt; the latest are used."""

_MAX_QUESTION_CHARACTERS = 500

REWRITE_OPTIONS = ModelOptions(stream=False, max_tokens=200, temperature=0.0)

_INSTRUCTIONS = (
    "You complete follow-up questions about data. Write the last question so that it can be understood without the "
    "earlier ones: add what it leaves out, and change nothing else. If it is already complete, repeat it. "
    "Use the language of the last question. Reply with the question alone."
)


def build_rewrite_messages(question: str, earlier_questions: Sequence[str]) -> list[Message]:
    """Build the prompt that asks for the complete question."""
    lines = [to_one_line(text, _MAX_QUESTION_CHARACTERS) or "" for text in earlier_questions[-MAX_EARLIER_QUESTIONS:]]
    earlier = "\n".join(f"- {line}" for line in lines)
    return [system_message(_INSTRUCTIONS), user_message(f"Earlier questions:\n{earlier}\n\nLast question: {question}")]


def parse_rewrite(text: str, question: str) -> str:
    """Return the complete question of a reply, or `question` if the reply has none."""
    complete = to_one_line(text.strip().strip("\"'“”`"), _MAX_QUESTION_CHARACTERS) or ""
    return complete.removeprefix("Last question:").strip() or question
