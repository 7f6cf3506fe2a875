"""Expresses a question in the terms of a semantic model: as SQL, or as definitions for the prompt."""

import datetime
from collections.abc import Callable

import orjson

from opposable.ask.intent.messages import UNKNOWN_WORD
from opposable.ask.intent.parser import SemanticParser
from opposable.ask.intent.prompt_definitions import format_definitions
from opposable.ask.intent.sql_compiler import CompiledQuery, compile_intent
from opposable.ask.team.state import Candidate, TeamState
from opposable.domain.localized_text import localize
from opposable.sql.function_allowlist import Dialect


def interpret_question(
    state: TeamState, parser: SemanticParser, dialect: Dialect, today: Callable[[], datetime.date] = datetime.date.today
) -> None:
    """Interpret a question in the terms of a semantic model, by rules and without a language model.

    Adds the compiled query to the candidates, or definitions to the notes of the prompt; never raises. `today` returns
    the date of the question.
    """
    parsed = parser.parse(state.question, date := today())
    intent = parsed.intent
    state.intent = intent.model_dump(mode="json", exclude_defaults=True) | {"intent_type": intent.intent_type}
    problems: list[str] = []
    compiled = compile_intent(intent, parser.semantics, dialect, date) if parsed.is_resolved else None
    if isinstance(compiled, CompiledQuery):
        state.assumptions += (*parsed.assumptions, *compiled.assumptions)
        state.pending_candidates.append(Candidate(compiled.sql, parsed.confidence, "semantics"))
    else:
        has_terms = intent.metrics or intent.dimensions or intent.filters
        state.intent = state.intent if has_terms else None
        state.notes.append(format_definitions(parser.semantics, intent if has_terms else None))
        problems = [*(UNKNOWN_WORD.format(word=word) for word in parsed.unmatched_words), *parsed.ambiguities]
        problems += [compiled.reason] if compiled else []
    intent_text = orjson.dumps(state.intent).decode() if state.intent else ""
    problem_text = "; ".join(localize(text, state.language) for text in problems)
    state.record_turn("semantic_parser", state.question, intent_text, problem_text)
