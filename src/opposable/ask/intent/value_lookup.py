"""Which words of a question are values of the database: the protocol, and a reader for a model's own dimensions."""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from opposable.ask.intent.time_expressions import lowered
from opposable.ask.intent.tokenizer import Word, words_of
from opposable.ask.semantics.expressions import bind
from opposable.ask.semantics.join_graph import joined, reach, root_of, source_parts
from opposable.ask.semantics.model import SemanticModel
from opposable.domain.errors import BadInput, ToolError
from opposable.sql.database import Database, Limits

_COLUMN = re.compile(r'(?:"?(\w+)"?\.)?"?([^"().|+*/]+)"?')


@dataclass(frozen=True, slots=True)
class ValueMatch:
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

    async def __call__(self, text: str) -> Sequence[ValueMatch]:
        """The matches in `text`, which may overlap. Raises: nothing for text of any kind."""
        ...


class DimensionValues:
    """A `ValueLookup` over values held in memory, exact but for case, spaces, signs and an English plural."""

    def __init__(self, values: dict[str, list[str]]) -> None:
        self._by_words: dict[tuple[str, ...], list[tuple[str, str]]] = {}
        for dimension, found in values.items():
            for value in found:
                if key := tuple(word.stem for word in words_of(value)):
                    self._by_words.setdefault(key, []).append((dimension, value))
        self._longest = max((len(key) for key in self._by_words), default=0)

    async def __call__(self, text: str) -> Sequence[ValueMatch]:
        """Every run of words that is a value."""
        words = words_of(text)
        found: list[ValueMatch] = []
        for first in range(len(words)):
            for size in range(1, min(self._longest, len(words) - first) + 1):
                run = words[first : first + size]
                found += [self._match(text, run, *hit) for hit in self._by_words.get(tuple(w.stem for w in run), ())]
        return found

    def _match(self, text: str, run: list[Word], dimension: str, value: str) -> ValueMatch:
        start, end = run[0].start, run[-1].end
        return ValueMatch(value, start, end, dimension, score=1.0 if text[start:end] == value else 0.95)


async def read_values(
    model: SemanticModel, database: Database, most: int = 20_000, *, computed: bool = False
) -> DimensionValues:
    """The texts that the model's dimensions hold on `database`; a dimension with more than `most` is left out.

    `computed` leaves out those that are a column of a table, which an index of the database's values knows. So is one
    that cannot be read in time.
    """
    found: dict[str, list[str]] = {}
    for ref, dimension in model.dimensions.items():
        if computed and _COLUMN.fullmatch(dimension.expr.strip()):
            continue
        try:
            bound = bind(dimension.expr, dimension.table, model, database.dialect)
        except BadInput:
            continue
        root = root_of(model, bound.tables)
        if root is None:
            continue
        query = joined(model, reach(model, root), bound.tables).select(bound.tree.copy()).distinct().limit(most + 1)
        try:
            rows = (await database.run(query.sql(dialect=database.dialect), limits=Limits(rows=most + 1))).rows
        except ToolError:
            continue
        texts = [row[0] for row in rows if isinstance(row[0], str) and row[0].strip()]
        if len(rows) <= most:
            found[ref] = [text for text in texts if len(text) <= 120]
    return DimensionValues(found)


def dimensions_of(match: ValueMatch, model: SemanticModel) -> tuple[str, ...]:
    """The ids of the dimensions whose expression is the column that a match names."""
    if match.dimension:
        return (match.dimension,) if match.dimension in model.dimensions else ()
    return tuple(ref for ref, d in model.dimensions.items() if _is_column(d.expr, d.table, match, model))


def _is_column(expr: str, table: str, match: ValueMatch, model: SemanticModel) -> bool:
    found = _COLUMN.fullmatch(expr.strip())
    source = model.find_table(found[1] or table) if found else None
    if found is None or source is None:
        return False
    names = source_parts(source.source)
    return (
        names[-1].casefold() == match.table.rpartition(".")[2].casefold()
        and found[2].casefold() == match.column.casefold()
    )


class Located(Protocol):
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


class IndexValues:
    """A `ValueLookup` over an index of the database's values, such as `Catalog.matches`."""

    def __init__(self, matches: Callable[[str], Awaitable[Sequence[Located]]]) -> None:
        self._matches = matches

    async def __call__(self, text: str) -> Sequence[ValueMatch]:
        """The index's matches, each at every place where its phrase stands in `text`."""
        low = lowered(text)
        found: list[ValueMatch] = []
        for match in await self._matches(text):
            phrase = r"\s*".join(re.escape(part) for part in lowered(match.phrase).split())
            places = re.finditer(phrase, low) if phrase else ()
            found += [
                ValueMatch(match.value, *place.span(), table=match.table, column=match.column, score=match.score)
                for place in places
            ]
        return found
