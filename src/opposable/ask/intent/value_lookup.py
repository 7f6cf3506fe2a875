"""Which words of a question are values of the database: the protocol, and a reader for a model's own dimensions."""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from opposable.ask.intent.time_expressions import lowercase_halfwidth
from opposable.ask.intent.tokenizer import Word, tokenize
from opposable.ask.semantics.expressions import bind_expression
from opposable.ask.semantics.join_graph import build_join_query, find_reachable_tables, find_root_table, split_source
from opposable.ask.semantics.model import SemanticModel
from opposable.domain.errors import BadInput, ToolError
from opposable.sql.database import Database, QueryLimits

_COLUMN_PATTERN = re.compile(r'(?:"?(\w+)"?\.)?"?([^"().|+*/]+)"?')


@dataclass(frozen=True, slots=True)
class ValueMention:
    """Words of a question that are a value. `start` and `end` are characters of the question.

    `dimension` is an id of the model where the lookup knows it; else `table` and `column` name where the value stands
    in the database. `score` is 1.0 for the same words, less for words that are merely alike.
    """

    value: Any
    start: int
    end: int
    dimension: str = ""
    table: str = ""
    column: str = ""
    score: float = 1.0


class ValueLookup(Protocol):
    """Finds values of the database among the words of a question."""

    async def __call__(self, text: str) -> Sequence[ValueMention]:
        """The matches in `text`, which may overlap. Raises: nothing for text of any kind."""
        ...


class DimensionValueLookup:
    """A `ValueLookup` over values held in memory, exact but for case, spaces, signs and an English plural."""

    def __init__(self, values: dict[str, list[str]]) -> None:
        self._values_by_stems: dict[tuple[str, ...], list[tuple[str, str]]] = {}
        for dimension, found in values.items():
            for value in found:
                if key := tuple(word.stem for word in tokenize(value)):
                    self._values_by_stems.setdefault(key, []).append((dimension, value))
        self._max_phrase_words = max((len(key) for key in self._values_by_stems), default=0)

    async def __call__(self, text: str) -> Sequence[ValueMention]:
        """Every run of words that is a value."""
        words = tokenize(text)
        found: list[ValueMention] = []
        for first in range(len(words)):
            for size in range(1, min(self._max_phrase_words, len(words) - first) + 1):
                run = words[first : first + size]
                found += [
                    self._build_mention(text, run, *hit)
                    for hit in self._values_by_stems.get(tuple(w.stem for w in run), ())
                ]
        return found

    def _build_mention(self, text: str, words: list[Word], dimension: str, value: str) -> ValueMention:
        start, end = words[0].start, words[-1].end
        return ValueMention(value, start, end, dimension, score=1.0 if text[start:end] == value else 0.95)


async def load_dimension_values(
    model: SemanticModel, database: Database, max_values: int = 20_000, *, computed_only: bool = False
) -> DimensionValueLookup:
    """The texts that the model's dimensions hold on `database`; a dimension with more than `most` is left out.

    `computed` leaves out those that are a column of a table, which an index of the database's values knows. So is one
    that cannot be read in time.
    """
    found: dict[str, list[str]] = {}
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
        query = (
            build_join_query(model, find_reachable_tables(model, root), bound.tables)
            .select(bound.tree.copy())
            .distinct()
            .limit(max_values + 1)
        )
        try:
            rows = (
                await database.run(query.sql(dialect=database.dialect), limits=QueryLimits(max_rows=max_values + 1))
            ).rows
        except ToolError:
            continue
        texts = [row[0] for row in rows if isinstance(row[0], str) and row[0].strip()]
        if len(rows) <= max_values:
            found[ref] = [text for text in texts if len(text) <= 120]
    return DimensionValueLookup(found)


def find_dimensions(match: ValueMention, model: SemanticModel) -> tuple[str, ...]:
    """The ids of the dimensions whose expression is the column that a match names."""
    if match.dimension:
        return (match.dimension,) if match.dimension in model.dimensions else ()
    return tuple(ref for ref, d in model.dimensions.items() if _is_matched_column(d.expr, d.table, match, model))


def _is_matched_column(expr: str, table: str, match: ValueMention, model: SemanticModel) -> bool:
    found = _COLUMN_PATTERN.fullmatch(expr.strip())
    source = model.find_table(found[1] or table) if found else None
    if found is None or source is None:
        return False
    names = split_source(source.source)
    return (
        names[-1].casefold() == match.table.rpartition(".")[2].casefold()
        and found[2].casefold() == match.column.casefold()
    )


class PhraseMatch(Protocol):
    """A value that words of a question name, as an index tells it: `phrase` is those words."""

    @property
    def table(self) -> str:
        """The table's name in the database."""
        ...

    @property
    def column(self) -> str:
        """The column's name."""
        ...

    @property
    def value(self) -> str:
        """The value as it stands there."""
        ...

    @property
    def phrase(self) -> str:
        """The words of the question."""
        ...

    @property
    def score(self) -> float:
        """1.0 for the same words, less for likeness."""
        ...


class IndexValueLookup:
    """A `ValueLookup` over an index of the database's values, such as `Catalog.matches`."""

    def __init__(self, match_values: Callable[[str], Awaitable[Sequence[PhraseMatch]]]) -> None:
        self._match_values = match_values

    async def __call__(self, text: str) -> Sequence[ValueMention]:
        """The index's matches, each at every place where its phrase stands in `text`."""
        low = lowercase_halfwidth(text)
        found: list[ValueMention] = []
        for match in await self._match_values(text):
            phrase = r"\s*".join(re.escape(part) for part in lowercase_halfwidth(match.phrase).split())
            places = re.finditer(phrase, low) if phrase else ()
            found += [
                ValueMention(match.value, *place.span(), table=match.table, column=match.column, score=match.score)
                for place in places
            ]
        return found
