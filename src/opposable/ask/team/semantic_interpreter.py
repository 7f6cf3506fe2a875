"""Expresses a question in the terms of a semantic model: as SQL, or as definitions for the prompt."""

import datetime
from collections.abc import Callable, Mapping, Sequence

import orjson

from opposable.ask.intent.messages import UNKNOWN_WORD
from opposable.ask.intent.parser import SemanticParser
from opposable.ask.intent.prompt_definitions import format_definitions
from opposable.ask.intent.sql_compiler import CompiledQuery, compile_intent
from opposable.ask.semantics.model import SemanticModel
from opposable.ask.team.state import Candidate, TeamState
from opposable.domain.localized_text import LocalizedText, localize
from opposable.sql.database import Database


class SemanticModelInterpreter:
    """Interprets questions in the terms of a semantic model, by rules and without a language model.

    `values` are the values of the database by the id of their dimension. `today` returns the date of the questions.
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

    def interpret(self, state: TeamState) -> None:
        """Add the compiled query to the candidates, or definitions to the notes of the prompt; never raise."""
        today = self._today()
        parsed = self._parser.parse(state.question, today)
        intent = parsed.intent
        state.intent = intent.model_dump(mode="json", exclude_defaults=True) | {"intent_type": intent.intent_type}
        problems: list[LocalizedText] = []
        dialect = self._database.dialect
        compiled = compile_intent(intent, self._semantics, dialect, today) if parsed.is_resolved else None
        if isinstance(compiled, CompiledQuery):
            state.assumptions += (*parsed.assumptions, *compiled.assumptions)
            state.pending_candidates.append(Candidate(compiled.sql, parsed.confidence, "semantics"))
        else:
            has_terms = intent.metrics or intent.dimensions or intent.filters
            state.intent = state.intent if has_terms else None
            state.notes.append(format_definitions(self._semantics, intent if has_terms else None))
            problems = [*(UNKNOWN_WORD.format(word=word) for word in parsed.unmatched_words), *parsed.ambiguities]
        state.record_turn(
            "semantic_parser",
            state.question,
            orjson.dumps(state.intent).decode() if state.intent else "",
            "; ".join(localize(text, state.language) for text in problems),
        )
