"""Expresses a question in the terms of a semantic model: as SQL, or as definitions for the prompt."""

import datetime
from collections.abc import Callable
from dataclasses import dataclass

import orjson

from opposable.ask.intent.messages import UNKNOWN_WORD
from opposable.ask.intent.parser import SemanticParser
from opposable.ask.intent.prompt_definitions import format_definitions
from opposable.ask.intent.sql_compiler import CompiledQuery, compile_intent
from opposable.ask.semantics.model import SemanticModel
from opposable.ask.team.state import Candidate, TeamState
from opposable.domain.localized_text import LocalizedText, localize
from opposable.sql.function_allowlist import Dialect


@dataclass(frozen=True, slots=True)
class SemanticModelInterpreter:
    """Interprets questions in the terms of a semantic model, by rules and without a language model.

    `today` returns the date of the questions.
    """

    semantics: SemanticModel
    parser: SemanticParser
    dialect: Dialect
    today: Callable[[], datetime.date] = datetime.date.today

    def interpret(self, state: TeamState) -> None:
        """Add the compiled query to the candidates, or definitions to the notes of the prompt; never raise."""
        today = self.today()
        parsed = self.parser.parse(state.question, today)
        intent = parsed.intent
        state.intent = intent.model_dump(mode="json", exclude_defaults=True) | {"intent_type": intent.intent_type}
        problems: list[LocalizedText] = []
        compiled = compile_intent(intent, self.semantics, self.dialect, today) if parsed.is_resolved else None
        if isinstance(compiled, CompiledQuery):
            state.assumptions += (*parsed.assumptions, *compiled.assumptions)
            state.pending_candidates.append(Candidate(compiled.sql, parsed.confidence, "semantics"))
        else:
            has_terms = intent.metrics or intent.dimensions or intent.filters
            state.intent = state.intent if has_terms else None
            state.notes.append(format_definitions(self.semantics, intent if has_terms else None))
            problems = [*(UNKNOWN_WORD.format(word=word) for word in parsed.unmatched_words), *parsed.ambiguities]
        state.record_turn(
            "semantic_parser",
            state.question,
            orjson.dumps(state.intent).decode() if state.intent else "",
            "; ".join(localize(text, state.language) for text in problems),
        )
