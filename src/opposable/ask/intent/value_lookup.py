"""Lookup of database values in a question: the protocol and its implementations."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from opposable.ask.intent.tokenizer import Word, tokenize
from opposable.ask.semantics.expressions import bind_expression
from opposable.ask.semantics.join_graph import build_join_query, find_reachable_tables, find_root_table
from opposable.ask.semantics.model import SemanticModel
from opposable.domain.errors import BadInput, ToolError
from opposable.sql.database import Database, QueryLimits

_MAX_VALUE_CHARACTERS = 120


@dataclass(frozen=True, slots=True)
class ValueMention:
    """A database value that a question names.

    Attributes:
        value: The value in the database.
        start: The first character of its words in the question.
        end: The end (exclusive) of its words in the question.
        dimension: The id of its dimension.
    """

    value: Any
    start: int
    end: int
    dimension: str


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
        return ValueMention(value, start, end, dimension)


async def load_dimension_values(
    model: SemanticModel, database: Database, max_values: int = 50_000
) -> DimensionValueLookup:
    """Load the text values of the model's dimensions from the database.

    Args:
        model: The semantic model.
        database: The database to read.
        max_values: The most values of a dimension; one with more, or one that fails to load, is omitted.
    """
    values: dict[str, list[str]] = {}
    for ref, dimension in model.dimensions.items():
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
