"""The semantic parser: turns a question into a structured intent."""

import datetime

from opposable.ask.intent.lexicon import build_lexicon
from opposable.ask.intent.phrases import split_phrases
from opposable.ask.intent.rule_parser import ParsedIntent, parse_by_rules
from opposable.ask.intent.time_expressions import find_time
from opposable.ask.intent.value_lookup import ValueLookup
from opposable.ask.semantics.model import SemanticModel

_MAX_QUESTION_CHARACTERS = 4_000


class SemanticParser:
    """Parser of questions in the terms of one semantic model.

    Args:
        semantics: The semantic model.
        value_lookup: Finds values of the database in a question.
    """

    def __init__(self, semantics: SemanticModel, value_lookup: ValueLookup | None = None) -> None:
        self.semantics = semantics
        self._value_lookup = value_lookup
        self._lexicon = build_lexicon(semantics)

    async def parse(self, question: str, today: datetime.date) -> ParsedIntent:
        """Parse a question.

        Args:
            question: The question; only its first 4,000 characters are read.
            today: The day that relative times count from.
        """
        text = question[:_MAX_QUESTION_CHARACTERS]
        time = find_time(text, today)
        mentions = list(await self._value_lookup(text)) if self._value_lookup else []
        phrases = split_phrases(text, self._lexicon, self.semantics, mentions, time.spans)
        return parse_by_rules(phrases, time, self.semantics)
