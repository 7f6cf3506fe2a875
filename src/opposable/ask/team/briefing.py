"""What the team knows of a database before it writes: the catalogue's schema and values, the semantic model's terms."""

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from opposable.ask.catalog import Catalog, SchemaView, TableView, ValueMatch
from opposable.ask.catalog.text_normalization import folded, is_cjk, shown
from opposable.ask.catalog.value_sampling import kind_of
from opposable.ask.intent.parser import SemanticParser
from opposable.ask.intent.prompt_definitions import definitions_text
from opposable.ask.intent.sql_compiler import Compiled, compile_intent
from opposable.ask.intent.value_lookup import IndexValues, ValueLookup
from opposable.ask.intent.value_lookup import ValueMatch as Located
from opposable.ask.semantics.model import SemanticModel
from opposable.ask.sql_repair.literals import Place, ValuesByQuery
from opposable.ask.team.generator import Brief
from opposable.ask.team.team import SemanticReading
from opposable.domain.language import Language
from opposable.sql.database import Database
from opposable.sql.schema import Table

BUDGET = 3_000
"""Tokens of schema that are told at most, about."""

TOLD = 0.72
"""The least score of a value that is told to the one who writes SQL: the very words, or one misspelling."""

MOST_TOLD = 6
FEW, MANY = 4, 40
"""Different values up to which a column is a choice between them, and up to which it is a list."""

LONGEST_CODE = 20
"""Characters of a value that shows how a code or a date is written."""

Sizes = Mapping[tuple[str, str], int]

SHORT = 5
"""Letters of a value in capitals up to which it may be a code that a small word happens to spell."""


class CatalogBriefing:
    """Tells the schema as the catalogue has it, the same text for every question where it fits; values as notes."""

    def __init__(self, catalog: Catalog, budget: int = BUDGET) -> None:
        self._catalog = catalog
        self._budget = budget
        self._sizes: Sizes | None = None

    async def brief(self, question: str) -> Brief:
        """As `Briefing.brief`."""
        if self._sizes is None:
            self._sizes = await self._catalog.sizes()
        view = await self._catalog.for_question(question, self._budget)
        named = named_values(question, view.matches)
        return Brief(schema_text(view, self._sizes), _notes(named), tuple(named))


class CatalogValues:
    """Finds near values in the catalogue's index, and by asking the database where the index has none."""

    def __init__(self, catalog: Catalog, database: Database) -> None:
        self._catalog = catalog
        self._asking = ValuesByQuery(database)

    async def near(self, table: Table, column: str, value: str) -> Sequence[str]:
        """As `NearValues.near`."""
        matches = await self._catalog.matches(value, 40)
        near = [match.value for match in matches if (match.table, match.column) == (table.full_name, column)]
        return near or await self._asking.near(table, column, value)

    async def places(self, value: str) -> Sequence[Place]:
        """As `NearValues.places`."""
        matches = await self._catalog.matches(value, 40)
        return [
            Place(match.table, match.column, match.value) for match in matches if folded(match.value) == folded(value)
        ]


class BothValues:
    """A `ValueLookup` over the catalogue's index and over what a model's computed dimensions hold."""

    def __init__(self, catalog: Catalog, computed: ValueLookup) -> None:
        self._index = IndexValues(catalog.matches)
        self._computed = computed

    async def __call__(self, text: str) -> Sequence[Located]:
        """The matches of both."""
        return [*await self._computed(text), *await self._index(text)]


class SemanticLayer:
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

    async def read(self, question: str, language: Language) -> SemanticReading:
        """As `Semantics.read`; raises nothing."""
        today = self._today()
        parsed = await self._parser.parse(question, today)
        if parsed.settled:
            made = compile_intent(parsed.intent, self._semantics, self._database.dialect, today, language)
            if isinstance(made, Compiled):
                return SemanticReading(
                    made.sql, parsed.confidence, assumptions=(*parsed.assumptions, *made.assumptions)
                )
        intent = parsed.intent
        named = intent.metrics or intent.dimensions or intent.filters
        definitions = definitions_text(self._semantics, intent if named else None)
        return SemanticReading(definitions=definitions, usage=parsed.usage)


def named_values(question: str, matches: Sequence[ValueMatch]) -> list[ValueMatch]:
    """Those matches that the question surely means as values: not words that only happen to be a value somewhere.

    A short code in capitals is not what a small word means, a misspelling is looked for in names only, and a phrase
    within a longer one that was found ("Black" of "Black Panther") is part of that.
    """
    meant = [match for match in matches if _meant(question, match)]
    phrases = {match.phrase for match in meant}
    return [match for match in meant if not any(match.phrase != other and match.phrase in other for other in phrases)]


def _meant(question: str, match: ValueMatch) -> bool:
    phrase = match.phrase
    if is_cjk(phrase):
        return match.score >= TOLD
    found = re.search(r"[\W_]+".join(map(re.escape, phrase.split())), question, re.IGNORECASE)
    if found is None or match.how == "part":
        return False
    quoted = found.start() > 0 and question[found.start() - 1] in "'\"“‘`「《"
    if quoted or match.score < TOLD or match.value.isdigit():
        return quoted
    named = found.start() > 0 and found[0][:1].isupper()
    if match.how == "fuzzy":
        return named
    return named or not (match.value.isupper() and len(match.value) <= SHORT and match.value != found[0])


def schema_text(view: SchemaView, sizes: Sizes) -> str:
    """The tables without what is only this question's, so that a server's cache of the prompt's beginning holds."""
    tables = tuple(replace(table, matches=(), samples=telling_samples(table, sizes)) for table in view.tables)
    left = f"\n-- and {view.left_out} more tables that do not concern the question" if view.left_out else ""
    return replace(view, tables=tables).ddl() + left


def telling_samples(view: TableView, sizes: Sizes) -> dict[str, tuple[str, ...]]:
    """The samples that say what a column's name does not: all of a few, some of a list, one that shows how it is written."""
    told: dict[str, tuple[str, ...]] = {}
    for column in view.columns:
        values = view.samples.get(column.name, ())
        size = sizes.get((view.table.full_name, column.name), MANY + 1)
        own = size > FEW and view.table.rows is not None and size * 2 > view.table.rows
        if kind_of(column) == "number":
            told[column.name] = values[:FEW] if size <= FEW else ()
        elif size <= FEW:
            told[column.name] = values[:FEW]
        else:
            told[column.name] = values[: 2 if size <= MANY and not own else 1 if _written_oddly(values) else 0]
    return told


def _written_oddly(values: Sequence[str]) -> bool:
    """Whether a value shows something that nobody would guess: how a date or a code is written."""
    first = values[0] if values else ""
    digits = sum(char.isdigit() for char in first)
    return len(first) <= LONGEST_CODE and digits * 3 > len(first)


def _notes(matches: Sequence[ValueMatch]) -> tuple[str, ...]:
    """Where the values stand that the question names; untrusted text in quotes and on one line."""
    places: dict[str, dict[str, None]] = {}
    for match in matches:
        places.setdefault(shown(match.value), {})[f"{match.table}.{match.column}"] = None
    told = [f"{' or '.join(columns)} = {value}" for value, columns in places.items()]
    return (f"Values in the data: {'; '.join(told[:MOST_TOLD])}",) if told else ()
