"""The semantic parser: turns a question into a structured intent."""

import datetime
from collections.abc import Mapping, Sequence

from opposable.ask.intent.lexicon import build_lexicon
from opposable.ask.intent.phrases import split_phrases
from opposable.ask.intent.rule_parser import ParsedIntent, parse_by_rules
from opposable.ask.intent.time_expressions import find_time
from opposable.ask.semantics.model import SemanticModel

_MAX_QUESTION_CHARACTERS = 4_000


class SemanticParser:
    """Parser of questions in the terms of one semantic model.

    Args:
        semantics: The semantic model.
        values: The values of the database, by the id of their dimension.
    """

    def __init__(self, semantics: SemanticModel, values: Mapping[str, Sequence[str]]) -> None:
        self.semantics = semantics
        self._lexicon = build_lexicon(semantics, values)

    def parse(self, question: str, today: datetime.date) -> ParsedIntent:
        """Parse a question.

        Args:
            question: The question; only its first 4,000 characters are read.
            today: The day that relative times count from.
        """
        text = question[:_MAX_QUESTION_CHARACTERS]
        time = find_time(text, today)
        return parse_by_rules(split_phrases(text, self._lexicon, time.spans), time, self.semantics)
