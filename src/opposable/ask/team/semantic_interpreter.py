"""Expresses a question in the terms of a semantic model: as SQL, or as definitions for the prompt."""

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opposable.ask.intent.messages import describe_unknown_word
from opposable.ask.intent.parser import SemanticParser
from opposable.ask.intent.prompt_definitions import format_definitions
from opposable.ask.intent.sql_compiler import CompiledQuery, compile_intent
from opposable.ask.semantics.model import SemanticModel
from opposable.domain.language import Language
from opposable.domain.localized_text import localize
from opposable.sql.database import Database


@dataclass(frozen=True, slots=True)
class SemanticInterpretation:
    """A question expressed in the terms of a semantic model.

    Attributes:
        sql: The compiled query, "" if the model does not cover the question.
        confidence: How likely the query answers the question, from 0 to 1.
        definitions: Definitions for the SQL prompt, used if there is no compiled query.
        assumptions: What the interpretation assumes, in the language of the question.
        intent: The structured intent as JSON, None if nothing was understood.
        problems: What the semantic model does not cover, in the language of the question.
    """

    sql: str = ""
    confidence: float = 0.0
    definitions: str = ""
    assumptions: tuple[str, ...] = ()
    intent: dict[str, Any] | None = None
    problems: tuple[str, ...] = ()


class SemanticModelInterpreter:
    """Interprets questions in the terms of a semantic model, by rules and without a language model.

    Args:
        semantics: The semantic model.
        database: The database to compile queries for.
        values: The values of the database, by the id of their dimension.
        today: Returns the date on which questions are asked.
    """

    def __init__(
        self,
        semantics: SemanticModel,
        database: Database,
        values: Mapping[str, Sequence[str]],
        today: Callable[[], datetime.date] = datetime.date.today,
    ) -> None:
        self._semantics = semantics
        self._database = database
        self._parser = SemanticParser(semantics, values)
        self._today = today

    async def interpret(self, question: str, language: Language) -> SemanticInterpretation:
        """Interpret a question; never raise."""
        today = self._today()
        parsed = self._parser.parse(question, today)
        intent = parsed.intent
        intent_fields = intent.model_dump(mode="json", exclude_defaults=True) | {"intent_type": intent.intent_type}
        if parsed.is_resolved:
            compiled = compile_intent(intent, self._semantics, self._database.dialect, today)
            if isinstance(compiled, CompiledQuery):
                assumptions = (*parsed.assumptions, *compiled.assumptions)
                return SemanticInterpretation(
                    compiled.sql,
                    parsed.confidence,
                    assumptions=tuple(localize(text, language) for text in assumptions),
                    intent=intent_fields,
                )
        has_terms = intent.metrics or intent.dimensions or intent.filters
        definitions = format_definitions(self._semantics, intent if has_terms else None)
        return SemanticInterpretation(
            definitions=definitions,
            intent=intent_fields if has_terms else None,
            problems=tuple(
                localize(text, language)
                for text in (*map(describe_unknown_word, parsed.unmatched_words), *parsed.ambiguities)
            ),
        )
