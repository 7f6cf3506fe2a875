"""Lookup of database values in a question: the protocol and its implementations."""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from opposable.ask.intent.tokenizer import Word, tokenize
from opposable.ask.semantics.expressions import bind_expression
from opposable.ask.semantics.join_graph import build_join_query, find_reachable_tables, find_root_table, split_source
from opposable.ask.semantics.model import SemanticModel
from opposable.domain.errors import BadInput, ToolError
from opposable.domain.text_normalization import lowercase_halfwidth
from opposable.sql.database import Database, QueryLimits

_MAX_VALUE_CHARACTERS = 120
_COLUMN_PATTERN = re.compile(r'(?:"?(\w+)"?\.)?"?([^"().|+*/]+)"?')


@dataclass(frozen=True, slots=True)
class ValueMention:
    """A database value that a question names.

    Attributes:
        value: The value in the database.
        start: The first character of its words in the question.
        end: The end (exclusive) of its words in the question.
        dimension: The id of its dimension, if the lookup knows it.
        table: The table of the value, if `dimension` is empty.
        column: The column of the value, if `dimension` is empty.
        score: 1.0 for the same words, less for similar words.
    """

    value: Any
    start: int
    end: int
    dimension: str = ""
    table: str = ""
    column: str = ""
    score: float = 1.0


class ValueLookup(Protocol):
    """Finds the values of a database that a question names."""

    async def __call__(self, text: str) -> Sequence[ValueMention]:
        """Return the mentions in `text`, which may overlap; raise nothing for any text."""
        ...


class DimensionValueLookup:
    """A `ValueLookup` over values in memory.

    Case, spaces, signs and English plurals make no difference.
    """

    def __init__(self, values: dict[str, list[str]]) -> None:
        self._values_by_stems: dict[tuple[str, ...], list[tuple[str, str]]] = {}
        for dimension, dimension_values in values.items():
            for value in dimension_values:
                if stems := tuple(word.stem for word in tokenize(value)):
                    self._values_by_stems.setdefault(stems, []).append((dimension, value))
        self._max_phrase_words = max((len(stems) for stems in self._values_by_stems), default=0)

    async def __call__(self, text: str) -> Sequence[ValueMention]:
        """Return every run of words that is a value."""
        words = tokenize(text)
        mentions: list[ValueMention] = []
        for first in range(len(words)):
            for size in range(1, min(self._max_phrase_words, len(words) - first) + 1):
                run = words[first : first + size]
                matches = self._values_by_stems.get(tuple(word.stem for word in run), ())
                mentions += [self._build_mention(text, run, dimension, value) for dimension, value in matches]
        return mentions

    def _build_mention(self, text: str, words: list[Word], dimension: str, value: str) -> ValueMention:
        start, end = words[0].start, words[-1].end
        return ValueMention(value, start, end, dimension, score=1.0 if text[start:end] == value else 0.95)


async def load_dimension_values(
    model: SemanticModel, database: Database, max_values: int = 20_000, *, computed_only: bool = False
) -> DimensionValueLookup:
    """Load the text values of the model's dimensions from the database.

    Args:
        model: The semantic model.
        database: The database to read.
        max_values: The most values of a dimension; one with more, or one that fails to load, is omitted.
        computed_only: Omit the dimensions that are a column of a table, whose values a catalog indexes.
    """
    values: dict[str, list[str]] = {}
    for ref, dimension in model.dimensions.items():
        if computed_only and _COLUMN_PATTERN.fullmatch(dimension.expr.strip()):
            continue
        try:
            bound = bind_expression(dimension.expr, dimension.table, model, database.dialect)
        except BadInput:
            continue
        root = find_root_table(model, bound.tables)
        if root is None:
            continue
        query = build_join_query(model, find_reachable_tables(model, root), bound.tables)
        query = query.select(bound.tree.copy()).distinct().limit(max_values + 1)
        sql = query.sql(dialect=database.dialect)
        try:
            rows = (await database.run(sql, limits=QueryLimits(max_rows=max_values + 1))).rows
        except ToolError:
            continue
        texts = [row[0] for row in rows if isinstance(row[0], str) and row[0].strip()]
        if len(rows) <= max_values:
            values[ref] = [text for text in texts if len(text) <= _MAX_VALUE_CHARACTERS]
    return DimensionValueLookup(values)


def find_dimensions(mention: ValueMention, model: SemanticModel) -> tuple[str, ...]:
    """Return the ids of the dimensions whose expression is the column of a mention."""
    if mention.dimension:
        return (mention.dimension,) if mention.dimension in model.dimensions else ()
    return tuple(ref for ref, d in model.dimensions.items() if _is_matched_column(d.expr, d.table, mention, model))


def _is_matched_column(expr: str, table: str, mention: ValueMention, model: SemanticModel) -> bool:
    column = _COLUMN_PATTERN.fullmatch(expr.strip())
    model_table = model.find_table(column[1] or table) if column else None
    if column is None or model_table is None:
        return False
    is_same_table = split_source(model_table.source)[-1].casefold() == mention.table.rpartition(".")[2].casefold()
    return is_same_table and column[2].casefold() == mention.column.casefold()


class PhraseMatch(Protocol):
    """A match of an index: a database value and the words that name it."""

    @property
    def table(self) -> str:
        """The full name of the table."""
        ...

    @property
    def column(self) -> str:
        """The name of the column."""
        ...

    @property
    def value(self) -> str:
        """The value in the database."""
        ...

    @property
    def phrase(self) -> str:
        """The words of the question."""
        ...

    @property
    def score(self) -> float:
        """1.0 for the same words, less for similar words."""
        ...


class IndexValueLookup:
    """A `ValueLookup` over an index such as `Catalog.match_values`."""

    def __init__(self, match_values: Callable[[str], Awaitable[Sequence[PhraseMatch]]]) -> None:
        self._match_values = match_values

    async def __call__(self, text: str) -> Sequence[ValueMention]:
        """Return the matches of the index, one per occurrence in `text`."""
        lowered = lowercase_halfwidth(text)
        mentions: list[ValueMention] = []
        for match in await self._match_values(text):
            phrase = r"\s*".join(re.escape(part) for part in lowercase_halfwidth(match.phrase).split())
            occurrences = re.finditer(phrase, lowered) if phrase else ()
            mentions += [
                ValueMention(match.value, *found.span(), table=match.table, column=match.column, score=match.score)
                for found in occurrences
            ]
        return mentions
