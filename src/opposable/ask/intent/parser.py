"""The semantic parser: turns a question into a structured intent."""

import datetime
from dataclasses import dataclass
from typing import Literal

from opposable.ask.intent.intent import StructuredIntent, resolve_ids
from opposable.ask.intent.lexicon import build_lexicon
from opposable.ask.intent.llm_parser import parse_with_model
from opposable.ask.intent.phrases import split_phrases
from opposable.ask.intent.rule_parser import RuleParseResult, parse_by_rules
from opposable.ask.intent.time_expressions import find_time
from opposable.ask.intent.value_lookup import ValueLookup
from opposable.ask.semantics.model import SemanticModel
from opposable.domain.localized_text import LocalizedText
from opposable.domain.usage import NO_USAGE, Usage
from opposable.models.base import Model

_MAX_QUESTION_CHARACTERS = 4_000


@dataclass(frozen=True, slots=True)
class ParsedIntent:
    """The intent of a question, and how certain it is.

    Attributes:
        intent: What the question asks for.
        source: Whether the rules or the model produced the intent.
        is_resolved: Whether the intent can be compiled as it is.
        confidence: From 0 to 1.
        unmatched_words: Phrases of the question without a meaning in the semantic model.
        ambiguities: What can be understood in more than one way, or not at all.
        assumptions: What the parser assumed where the question does not say.
        usage: The tokens that the model used.
    """

    intent: StructuredIntent
    source: Literal["rules", "model"] = "rules"
    is_resolved: bool = True
    confidence: float = 1.0
    unmatched_words: tuple[str, ...] = ()
    ambiguities: tuple[str, ...] = ()
    assumptions: tuple[LocalizedText, ...] = ()
    usage: Usage = NO_USAGE


class SemanticParser:
    """Parser of questions in the terms of one semantic model.

    Args:
        semantics: The semantic model.
        value_lookup: Finds values of the database in a question.
        model: Parses the questions that the rules cannot resolve; None leaves them unresolved.
    """

    def __init__(
        self, semantics: SemanticModel, value_lookup: ValueLookup | None = None, model: Model | None = None
    ) -> None:
        self.semantics = semantics
        self._value_lookup = value_lookup
        self._model = model
        self._lexicon = build_lexicon(semantics)

    async def parse(self, question: str, today: datetime.date) -> ParsedIntent:
        """Parse a question.

        Args:
            question: The question; only its first 4,000 characters are read.
            today: The day that relative times count from.

        Raises:
            ModelError: The model request failed.
        """
        text = question[:_MAX_QUESTION_CHARACTERS]
        time = find_time(text, today)
        mentions = list(await self._value_lookup(text)) if self._value_lookup else []
        phrases = split_phrases(text, self._lexicon, self.semantics, mentions, time.spans)
        rule_result = parse_by_rules(phrases, time, self.semantics)
        if rule_result.is_resolved or self._model is None:
            return _to_parsed_intent(rule_result)
        model_result = await parse_with_model(text, rule_result, self.semantics, self._model, today)
        if model_result.intent is None:
            return _to_parsed_intent(rule_result, model_result.problems, model_result.usage)
        return ParsedIntent(
            resolve_ids(model_result.intent, self.semantics),
            source="model",
            is_resolved=True,
            confidence=0.7 if model_result.agrees_with_rules else 0.5,
            unmatched_words=rule_result.unmatched_words,
            assumptions=rule_result.assumptions,
            usage=model_result.usage,
        )


def _to_parsed_intent(
    rule_result: RuleParseResult, model_problems: tuple[str, ...] = (), usage: Usage = NO_USAGE
) -> ParsedIntent:
    doubts = len(rule_result.unmatched_words) + len(rule_result.ambiguities)
    return ParsedIntent(
        rule_result.intent,
        is_resolved=rule_result.is_resolved,
        confidence=max(0.1, round((0.95 if rule_result.assumptions else 1.0) - 0.25 * doubts, 2)),
        unmatched_words=rule_result.unmatched_words,
        ambiguities=(*rule_result.ambiguities, *model_problems),
        assumptions=rule_result.assumptions,
        usage=usage,
    )
