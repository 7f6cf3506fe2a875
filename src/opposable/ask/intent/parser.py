"""The semantic parser: a question becomes a structured intent, by rules first and a model where they do not settle it."""

import datetime
from dataclasses import dataclass
from typing import Literal

from opposable.ask.intent.intent import StructuredIntent, with_ids
from opposable.ask.intent.lexicon import lexicon_of
from opposable.ask.intent.llm_parser import ask_model
from opposable.ask.intent.phrases import items_of
from opposable.ask.intent.rule_parser import Ruled, read_by_rules
from opposable.ask.intent.time_expressions import find_time
from opposable.ask.intent.value_lookup import ValueLookup, ValueMatch
from opposable.ask.semantics.model import SemanticModel
from opposable.domain.language import language_of
from opposable.domain.usage import NO_USAGE, Usage
from opposable.models.base import Model

_MAX_CHARACTERS = 4_000


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a question asks for.

    `settled` says that it may be compiled as it is; else `unmatched` has the words that mean nothing here and `unsure`
    what could be read in more than one way. `confidence` goes from 0 to 1. `assumptions` are told in the language of the
    question. `usage` is what a model took.
    """

    intent: StructuredIntent
    source: Literal["rules", "model"] = "rules"
    settled: bool = True
    confidence: float = 1.0
    unmatched: tuple[str, ...] = ()
    unsure: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    usage: Usage = NO_USAGE


class SemanticParser:
    """Parses questions over one semantic model; `values` finds its values in questions, `model` is asked in doubt."""

    def __init__(self, semantics: SemanticModel, values: ValueLookup | None = None, model: Model | None = None) -> None:
        self.semantics = semantics
        self._values = values
        self._model = model
        self._lexicon = lexicon_of(semantics)

    async def parse(self, question: str, today: datetime.date) -> Parsed:
        """The intent of `question`, asked on `today`.

        Raises:
            ModelError: the model was asked and did not answer.
        """
        text = question[:_MAX_CHARACTERS]
        time = find_time(text, today)
        found: list[ValueMatch] = list(await self._values(text)) if self._values else []
        items = items_of(text, self._lexicon, self.semantics, found, time.spans)
        ruled = read_by_rules(items, time, self.semantics, language_of(text))
        if ruled.settled or self._model is None:
            return _by_rules(ruled)
        answer = await ask_model(text, ruled, self.semantics, self._model, today)
        if answer.intent is None:
            by_rules = _by_rules(ruled)
            told = (*by_rules.unsure, *answer.problems)
            return Parsed(
                by_rules.intent,
                "rules",
                False,
                by_rules.confidence,
                ruled.unmatched,
                told,
                ruled.assumptions,
                answer.usage,
            )
        return Parsed(
            with_ids(answer.intent, self.semantics),
            source="model",
            settled=True,
            confidence=0.7 if answer.agrees else 0.5,
            unmatched=ruled.unmatched,
            assumptions=ruled.assumptions,
            usage=answer.usage,
        )


def _by_rules(ruled: Ruled) -> Parsed:
    doubts = len(ruled.unmatched) + len(ruled.unsure)
    return Parsed(
        ruled.intent,
        settled=ruled.settled,
        confidence=max(0.1, round((0.95 if ruled.assumptions else 1.0) - 0.25 * doubts, 2)),
        unmatched=ruled.unmatched,
        unsure=ruled.unsure,
        assumptions=ruled.assumptions,
    )
