"""Provides what a team knows of a database: schema, values, and the terms of a semantic model."""

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from opposable.ask.catalog import Catalog, SchemaView, TableView, ValueMatch
from opposable.ask.catalog.prompt_text import format_prompt_value
from opposable.ask.catalog.value_sampling import get_column_kind
from opposable.ask.intent.parser import SemanticParser
from opposable.ask.intent.prompt_definitions import format_definitions
from opposable.ask.intent.sql_compiler import CompiledQuery, compile_intent
from opposable.ask.intent.value_lookup import IndexValueLookup, ValueLookup, ValueMention
from opposable.ask.semantics.model import SemanticModel
from opposable.ask.team.generator import Brief
from opposable.ask.team.interfaces import SemanticInterpretation
from opposable.ask.team.literals import QueryValueFinder, ValueLocation
from opposable.domain.language import Language
from opposable.domain.localized_text import localize
from opposable.domain.text_normalization import has_cjk, normalize_text
from opposable.parsers import escape_special_tokens
from opposable.sql.database import Database
from opposable.sql.schema import Table

SCHEMA_TOKEN_BUDGET = 3_000
"""The approximate limit of schema tokens in a prompt."""

MIN_VALUE_SCORE = 0.72
"""The lowest score of a value in the prompt: the exact words, or one misspelling."""

MAX_NOTED_VALUES = 6
MAX_CHOICE_VALUES, MAX_LIST_VALUES = 4, 40
"""The limits of distinct values of a column that is a choice, and of one that is a list."""

MAX_CODE_CHARACTERS = 20
"""The limit of characters of a value that shows the format of a code or a date."""

DistinctCounts = Mapping[tuple[str, str], int]
"""The number of distinct values by table (full name) and column."""

MAX_SHORT_CODE_CHARACTERS = 5
"""The limit of letters of a code in capitals that an ordinary word may spell by accident."""


class WholeSchemaBriefProvider:
    """Provides the whole schema with sample values, the same for every question."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._schema_text = ""

    async def get_brief(self, question: str) -> Brief:
        """Return the schema without notes."""
        if not self._schema_text:
            schema = await self._database.get_schema()
            samples = {
                table.full_name: await self._database.sample_values(table.full_name) for table in schema.tables[:30]
            }
            self._schema_text = escape_special_tokens(schema.to_ddl(samples=samples))
        return Brief(self._schema_text)


class CatalogBriefProvider:
    """Provides the schema from the catalog, the same text for every question if it fits."""

    def __init__(self, catalog: Catalog, token_budget: int = SCHEMA_TOKEN_BUDGET) -> None:
        self._catalog = catalog
        self._token_budget = token_budget
        self._distinct_counts: DistinctCounts | None = None

    async def get_brief(self, question: str) -> Brief:
        """Return the schema and notes on the values that the question names."""
        if self._distinct_counts is None:
            self._distinct_counts = await self._catalog.count_values_by_column()
        view = await self._catalog.select_schema(question, self._token_budget)
        matches = select_named_values(question, view.matches)
        return Brief(format_schema(view, self._distinct_counts), _format_value_notes(matches), tuple(matches))


class CatalogValueFinder:
    """Finds similar values in the catalog's index, and by a query if the index has none."""

    def __init__(self, catalog: Catalog, database: Database) -> None:
        self._catalog = catalog
        self._query_finder = QueryValueFinder(database)

    async def find_near_values(self, table: Table, column: str, value: str) -> Sequence[str]:
        """Return the similar values of a column."""
        matches = await self._catalog.match_values(value, 40)
        near_values = [match.value for match in matches if (match.table, match.column) == (table.full_name, column)]
        return near_values or await self._query_finder.find_near_values(table, column, value)

    async def find_locations(self, value: str) -> Sequence[ValueLocation]:
        """Return the columns that contain the text in any case."""
        matches = await self._catalog.match_values(value, 40)
        return [
            ValueLocation(match.table, match.column, match.value)
            for match in matches
            if normalize_text(match.value) == normalize_text(value)
        ]


class CombinedValueLookup:
    """A `ValueLookup` over the catalog's index and the computed dimensions of a semantic model."""

    def __init__(self, catalog: Catalog, computed_lookup: ValueLookup) -> None:
        self._index_lookup = IndexValueLookup(catalog.match_values)
        self._computed_lookup = computed_lookup

    async def __call__(self, text: str) -> Sequence[ValueMention]:
        """Return the matches of both."""
        return [*await self._computed_lookup(text), *await self._index_lookup(text)]


class SemanticModelInterpreter:
    """Interprets questions in the terms of a semantic model, by rules and without a language model.

    Args:
        semantics: The semantic model.
        database: The database to compile queries for.
        values: Finds values of the semantic model in a question.
        today: Returns the date on which questions are asked.
    """

    def __init__(
        self,
        semantics: SemanticModel,
        database: Database,
        values: ValueLookup,
        today: Callable[[], datetime.date] = datetime.date.today,
    ) -> None:
        self._semantics = semantics
        self._database = database
        self._parser = SemanticParser(semantics, values)
        self._today = today

    async def interpret(self, question: str, language: Language) -> SemanticInterpretation:
        """Interpret a question; never raise."""
        today = self._today()
        parsed = await self._parser.parse(question, today)
        if parsed.is_resolved:
            compiled = compile_intent(parsed.intent, self._semantics, self._database.dialect, today)
            if isinstance(compiled, CompiledQuery):
                assumptions = (*parsed.assumptions, *compiled.assumptions)
                return SemanticInterpretation(
                    compiled.sql, parsed.confidence, assumptions=tuple(localize(text, language) for text in assumptions)
                )
        intent = parsed.intent
        has_terms = intent.metrics or intent.dimensions or intent.filters
        definitions = format_definitions(self._semantics, intent if has_terms else None)
        return SemanticInterpretation(definitions=definitions, usage=parsed.usage)


def select_named_values(question: str, matches: Sequence[ValueMatch]) -> list[ValueMatch]:
    """Return the matches that the question names as values, without words that are a value by accident.

    An ordinary word does not name a short code in capitals. Misspellings match names only. A phrase within a longer
    match ("Black" in "Black Panther") is not a match of its own.
    """
    named_matches = [match for match in matches if _is_named_in_question(question, match)]
    phrases = {match.phrase for match in named_matches}
    return [
        match
        for match in named_matches
        if not any(match.phrase != other and match.phrase in other for other in phrases)
    ]


def _is_named_in_question(question: str, match: ValueMatch) -> bool:
    phrase = match.phrase
    if has_cjk(phrase):
        return match.score >= MIN_VALUE_SCORE
    occurrence = re.search(r"[\W_]+".join(map(re.escape, phrase.split())), question, re.IGNORECASE)
    if occurrence is None or match.kind == "part":
        return False
    is_quoted = occurrence.start() > 0 and question[occurrence.start() - 1] in "'\"“‘`「《"
    if is_quoted or match.score < MIN_VALUE_SCORE or match.value.isdigit():
        return is_quoted
    is_name = occurrence.start() > 0 and occurrence[0][:1].isupper()
    if match.kind == "fuzzy":
        return is_name
    return is_name or not (
        match.value.isupper() and len(match.value) <= MAX_SHORT_CODE_CHARACTERS and match.value != occurrence[0]
    )


def format_schema(view: SchemaView, distinct_counts: DistinctCounts) -> str:
    """Format the tables without question-specific parts, so that servers can cache the prompt prefix."""
    tables = tuple(
        replace(table, matches=(), samples=select_informative_samples(table, distinct_counts)) for table in view.tables
    )
    omitted = (
        f"\n-- and {view.omitted_tables} more tables that do not concern the question" if view.omitted_tables else ""
    )
    return replace(view, tables=tables).to_ddl() + omitted


def select_informative_samples(view: TableView, distinct_counts: DistinctCounts) -> dict[str, tuple[str, ...]]:
    """Select samples that add to a column's name: all of a few values, some of a list, one of an unusual format."""
    samples: dict[str, tuple[str, ...]] = {}
    for column in view.columns:
        values = view.samples.get(column.name, ())
        distinct_count = distinct_counts.get((view.table.full_name, column.name), MAX_LIST_VALUES + 1)
        row_count = view.table.row_count
        is_mostly_unique = (
            distinct_count > MAX_CHOICE_VALUES and row_count is not None and distinct_count * 2 > row_count
        )
        if get_column_kind(column) == "number":
            samples[column.name] = values[:MAX_CHOICE_VALUES] if distinct_count <= MAX_CHOICE_VALUES else ()
        elif distinct_count <= MAX_CHOICE_VALUES:
            samples[column.name] = values[:MAX_CHOICE_VALUES]
        else:
            samples[column.name] = values[
                : 2
                if distinct_count <= MAX_LIST_VALUES and not is_mostly_unique
                else 1
                if _has_unusual_format(values)
                else 0
            ]
    return samples


def _has_unusual_format(values: Sequence[str]) -> bool:
    """Return whether the first value shows the format of a date or a code."""
    first = values[0] if values else ""
    digit_count = sum(char.isdigit() for char in first)
    return len(first) <= MAX_CODE_CHARACTERS and digit_count * 3 > len(first)


def _format_value_notes(matches: Sequence[ValueMatch]) -> tuple[str, ...]:
    """Format the columns of the named values; untrusted text is quoted and on one line."""
    columns_by_value: dict[str, dict[str, None]] = {}
    for match in matches:
        columns_by_value.setdefault(format_prompt_value(match.value), {})[f"{match.table}.{match.column}"] = None
    notes = [f"{' or '.join(columns)} = {value}" for value, columns in columns_by_value.items()]
    return (f"Values in the data: {'; '.join(notes[:MAX_NOTED_VALUES])}",) if notes else ()
