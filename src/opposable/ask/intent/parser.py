"""The semantic parser: a question becomes a structured intent, by rules first and a model where they do not settle it."""

import datetime
from dataclasses import dataclass
from typing import Literal

from opposable.ask.intent.intent import StructuredIntent, resolve_ids
from opposable.ask.intent.lexicon import build_lexicon
from opposable.ask.intent.llm_parser import parse_with_model
from opposable.ask.intent.phrases import split_phrases
from opposable.ask.intent.rule_parser import RuleParseResult, parse_by_rules
from opposable.ask.intent.time_expressions import find_time
from opposable.ask.intent.value_lookup import ValueLookup, ValueMention
from opposable.ask.semantics.model import SemanticModel
from opposable.domain.language import detect_language
from opposable.domain.usage import NO_USAGE, Usage
from opposable.models.base import Model

_MAX_QUESTION_CHARACTERS = 4_000


@dataclass(frozen=True, slots=True)
class ParsedIntent:
    """What a question asks for.

    `settled` says that it may be compiled as it is; else `unmatched` has the words that mean nothing here and `unsure`
    what could be read in more than one way. `confidence` goes from 0 to 1. `assumptions` are told in the language of the
    question. `usage` is what a model took.
    """

    intent: StructuredIntent
    source: Literal["rules", "model"] = "rules"
    is_resolved: bool = True
    confidence: float = 1.0
    unmatched_words: tuple[str, ...] = ()
    ambiguities: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    usage: Usage = NO_USAGE


class SemanticParser:
    """Parses questions over one semantic model; `values` finds its values in questions, `model` is asked in doubt."""

    def __init__(
        self, semantics: SemanticModel, value_lookup: ValueLookup | None = None, model: Model | None = None
    ) -> None:
        self.semantics = semantics
        self._value_lookup = value_lookup
        self._model = model
        self._lexicon = build_lexicon(semantics)

    async def parse(self, question: str, today: datetime.date) -> ParsedIntent:
        """The intent of `question`, asked on `today`.

        Raises:
            ModelError: the model was asked and did not answer.
        """
        text = question[:_MAX_QUESTION_CHARACTERS]
        time = find_time(text, today)
        found: list[ValueMention] = list(await self._value_lookup(text)) if self._value_lookup else []
        items = split_phrases(text, self._lexicon, self.semantics, found, time.spans)
        ruled = parse_by_rules(items, time, self.semantics, detect_language(text))
        if ruled.is_resolved or self._model is None:
            return _to_parsed_intent(ruled)
        answer = await parse_with_model(text, ruled, self.semantics, self._model, today)
        if answer.intent is None:
            by_rules = _to_parsed_intent(ruled)
            told = (*by_rules.ambiguities, *answer.problems)
            return ParsedIntent(
                by_rules.intent,
                "rules",
                False,
                by_rules.confidence,
                ruled.unmatched_words,
                told,
                ruled.assumptions,
                answer.usage,
            )
        return ParsedIntent(
            resolve_ids(answer.intent, self.semantics),
            source="model",
            is_resolved=True,
            confidence=0.7 if answer.agrees_with_rules else 0.5,
            unmatched_words=ruled.unmatched_words,
            assumptions=ruled.assumptions,
            usage=answer.usage,
        )


def _to_parsed_intent(rule_result: RuleParseResult) -> ParsedIntent:
    doubts = len(rule_result.unmatched_words) + len(rule_result.ambiguities)
    return ParsedIntent(
        rule_result.intent,
        is_resolved=rule_result.is_resolved,
        confidence=max(0.1, round((0.95 if rule_result.assumptions else 1.0) - 0.25 * doubts, 2)),
        unmatched_words=rule_result.unmatched_words,
        ambiguities=rule_result.ambiguities,
        assumptions=rule_result.assumptions,
    )
