"""What the team knows of a database before it writes: the catalogue's schema and values, the semantic model's terms."""

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
from opposable.ask.intent.value_lookup import IndexValueLookup, ValueLookup
from opposable.ask.intent.value_lookup import ValueMention as Located
from opposable.ask.semantics.model import SemanticModel
from opposable.ask.sql_repair.literals import QueryValueFinder, ValueLocation
from opposable.ask.team.generator import Brief
from opposable.ask.team.team import SemanticInterpretation
from opposable.domain.language import Language
from opposable.domain.localized_text import localize
from opposable.domain.text_normalization import has_cjk, normalize_text
from opposable.sql.database import Database
from opposable.sql.schema import Table

SCHEMA_TOKEN_BUDGET = 3_000
"""Tokens of schema that are told at most, about."""

MIN_VALUE_SCORE = 0.72
"""The least score of a value that is told to the one who writes SQL: the very words, or one misspelling."""

MAX_NOTED_VALUES = 6
MAX_CHOICE_VALUES, MAX_LIST_VALUES = 4, 40
"""Different values up to which a column is a choice between them, and up to which it is a list."""

MAX_CODE_CHARACTERS = 20
"""Characters of a value that shows how a code or a date is written."""

DistinctCounts = Mapping[tuple[str, str], int]

MAX_SHORT_CODE_CHARACTERS = 5
"""Letters of a value in capitals up to which it may be a code that a small word happens to spell."""


class CatalogBriefProvider:
    """Tells the schema as the catalogue has it, the same text for every question where it fits; values as notes."""

    def __init__(self, catalog: Catalog, token_budget: int = SCHEMA_TOKEN_BUDGET) -> None:
        self._catalog = catalog
        self._token_budget = token_budget
        self._distinct_counts: DistinctCounts | None = None

    async def get_brief(self, question: str) -> Brief:
        """As `Briefing.brief`."""
        if self._distinct_counts is None:
            self._distinct_counts = await self._catalog.count_values_by_column()
        view = await self._catalog.select_schema(question, self._token_budget)
        named = select_named_values(question, view.matches)
        return Brief(format_schema(view, self._distinct_counts), _format_value_notes(named), tuple(named))


class CatalogValueFinder:
    """Finds near values in the catalogue's index, and by asking the database where the index has none."""

    def __init__(self, catalog: Catalog, database: Database) -> None:
        self._catalog = catalog
        self._query_finder = QueryValueFinder(database)

    async def find_near_values(self, table: Table, column: str, value: str) -> Sequence[str]:
        """As `NearValues.near`."""
        matches = await self._catalog.match_values(value, 40)
        near = [match.value for match in matches if (match.table, match.column) == (table.full_name, column)]
        return near or await self._query_finder.find_near_values(table, column, value)

    async def find_locations(self, value: str) -> Sequence[ValueLocation]:
        """As `NearValues.places`."""
        matches = await self._catalog.match_values(value, 40)
        return [
            ValueLocation(match.table, match.column, match.value)
            for match in matches
            if normalize_text(match.value) == normalize_text(value)
        ]


class CombinedValueLookup:
    """A `ValueLookup` over the catalogue's index and over what a model's computed dimensions hold."""

    def __init__(self, catalog: Catalog, computed_lookup: ValueLookup) -> None:
        self._index_lookup = IndexValueLookup(catalog.match_values)
        self._computed_lookup = computed_lookup

    async def __call__(self, text: str) -> Sequence[Located]:
        """The matches of both."""
        return [*await self._computed_lookup(text), *await self._index_lookup(text)]


class SemanticModelInterpreter:
    """Reads questions in the terms of a semantic model, by rules and without a model.

    `values` finds the model's values in questions; `today` says which day it is.
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
        """As `Semantics.read`; raises nothing."""
        today = self._today()
        parsed = await self._parser.parse(question, today)
        if parsed.is_resolved:
            made = compile_intent(parsed.intent, self._semantics, self._database.dialect, today)
            if isinstance(made, CompiledQuery):
                assumptions = (*parsed.assumptions, *made.assumptions)
                return SemanticInterpretation(
                    made.sql, parsed.confidence, assumptions=tuple(localize(text, language) for text in assumptions)
                )
        intent = parsed.intent
        named = intent.metrics or intent.dimensions or intent.filters
        definitions = format_definitions(self._semantics, intent if named else None)
        return SemanticInterpretation(definitions=definitions, usage=parsed.usage)


def select_named_values(question: str, matches: Sequence[ValueMatch]) -> list[ValueMatch]:
    """Those matches that the question surely means as values: not words that only happen to be a value somewhere.

    A short code in capitals is not what a small word means, a misspelling is looked for in names only, and a phrase
    within a longer one that was found ("Black" of "Black Panther") is part of that.
    """
    meant = [match for match in matches if _is_named_in_question(question, match)]
    phrases = {match.phrase for match in meant}
    return [match for match in meant if not any(match.phrase != other and match.phrase in other for other in phrases)]


def _is_named_in_question(question: str, match: ValueMatch) -> bool:
    phrase = match.phrase
    if has_cjk(phrase):
        return match.score >= MIN_VALUE_SCORE
    found = re.search(r"[\W_]+".join(map(re.escape, phrase.split())), question, re.IGNORECASE)
    if found is None or match.kind == "part":
        return False
    quoted = found.start() > 0 and question[found.start() - 1] in "'\"“‘`「《"
    if quoted or match.score < MIN_VALUE_SCORE or match.value.isdigit():
        return quoted
    named = found.start() > 0 and found[0][:1].isupper()
    if match.kind == "fuzzy":
        return named
    return named or not (
        match.value.isupper() and len(match.value) <= MAX_SHORT_CODE_CHARACTERS and match.value != found[0]
    )


def format_schema(view: SchemaView, distinct_counts: DistinctCounts) -> str:
    """The tables without what is only this question's, so that a server's cache of the prompt's beginning holds."""
    tables = tuple(
        replace(table, matches=(), samples=select_informative_samples(table, distinct_counts)) for table in view.tables
    )
    left = f"\n-- and {view.omitted_tables} more tables that do not concern the question" if view.omitted_tables else ""
    return replace(view, tables=tables).to_ddl() + left


def select_informative_samples(view: TableView, distinct_counts: DistinctCounts) -> dict[str, tuple[str, ...]]:
    """The samples that say what a column's name does not: all of a few, some of a list, one that shows how it is written."""
    told: dict[str, tuple[str, ...]] = {}
    for column in view.columns:
        values = view.samples.get(column.name, ())
        size = distinct_counts.get((view.table.full_name, column.name), MAX_LIST_VALUES + 1)
        own = size > MAX_CHOICE_VALUES and view.table.row_count is not None and size * 2 > view.table.row_count
        if get_column_kind(column) == "number":
            told[column.name] = values[:MAX_CHOICE_VALUES] if size <= MAX_CHOICE_VALUES else ()
        elif size <= MAX_CHOICE_VALUES:
            told[column.name] = values[:MAX_CHOICE_VALUES]
        else:
            told[column.name] = values[
                : 2 if size <= MAX_LIST_VALUES and not own else 1 if _has_unusual_format(values) else 0
            ]
    return told


def _has_unusual_format(values: Sequence[str]) -> bool:
    """Whether a value shows something that nobody would guess: how a date or a code is written."""
    first = values[0] if values else ""
    digits = sum(char.isdigit() for char in first)
    return len(first) <= MAX_CODE_CHARACTERS and digits * 3 > len(first)


def _format_value_notes(matches: Sequence[ValueMatch]) -> tuple[str, ...]:
    """Where the values stand that the question names; untrusted text in quotes and on one line."""
    places: dict[str, dict[str, None]] = {}
    for match in matches:
        places.setdefault(format_prompt_value(match.value), {})[f"{match.table}.{match.column}"] = None
    told = [f"{' or '.join(columns)} = {value}" for value, columns in places.items()]
    return (f"Values in the data: {'; '.join(told[:MAX_NOTED_VALUES])}",) if told else ()
