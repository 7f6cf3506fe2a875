"""Provides the context of a question: the schema, and the terms of a semantic model."""

import datetime
from collections.abc import Callable, Collection, Mapping, Sequence

from opposable.ask.catalog import Catalog, open_catalog
from opposable.ask.intent.messages import describe_unknown_word
from opposable.ask.intent.parser import SemanticParser
from opposable.ask.intent.prompt_definitions import format_definitions
from opposable.ask.intent.sql_compiler import CompiledQuery, compile_intent
from opposable.ask.semantics.model import SemanticModel
from opposable.ask.team.generator import Brief
from opposable.ask.team.interfaces import SemanticInterpretation
from opposable.domain.language import Language
from opposable.domain.localized_text import localize
from opposable.sql.database import Database

SCHEMA_TOKEN_BUDGET = 3_000
"""The approximate limit of schema tokens in a prompt."""


class CatalogBriefProvider:
    """Provides the schema from a catalog, the same text for every question if it fits.

    Args:
        database: The database; its catalog is opened for the first question.
        synonyms: Other names of tables ("orders") and columns ("orders.amount").
        private_columns: The columns without samples.
    """

    def __init__(
        self,
        database: Database,
        synonyms: Mapping[str, Sequence[str]] | None = None,
        private_columns: Collection[str] = (),
    ) -> None:
        self._database = database
        self._synonyms = synonyms
        self._private_columns = private_columns
        self._catalog: Catalog | None = None

    async def get_brief(self, question: str) -> Brief:
        """Return the schema, or the part of a large schema that the question needs."""
        if self._catalog is None:
            self._catalog = await open_catalog(self._database, self._synonyms, self._private_columns)
        catalog = self._catalog
        return Brief((await catalog.select_schema(question, SCHEMA_TOKEN_BUDGET)).to_ddl())


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
