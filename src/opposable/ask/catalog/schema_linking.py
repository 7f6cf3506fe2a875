"""Schema linking: scores tables and columns by the words and values of a question."""

import math
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence

from opposable.ask.catalog.stop_words import STOP_BIGRAMS, STOP_WORDS
from opposable.ask.catalog.value_matching import ValueMatch
from opposable.domain.text_normalization import extract_index_words, normalize_text, singularize, split_identifier
from opposable.sql.name_similarity import compute_similarity
from opposable.sql.schema import Column, DatabaseSchema, Table

_TABLE_NAME_WEIGHT, _COLUMN_NAME_WEIGHT, _COMMENT_WEIGHT, _SAMPLE_WEIGHT = 4.0, 2.0, 1.0, 0.7
_VALUE_MATCH_WEIGHT = 5.0
_NEIGHBOR_WEIGHT = 0.25
_MIN_NAME_SIMILARITY = 0.84
_MAX_JOIN_DISTANCE = 3

WordWeights = dict[str, float]
ColumnKey = tuple[str, str]
"""The full name of a table and the name of a column."""


class SchemaLinker:
    """Scores of the tables and columns of one schema, for any question.

    Args:
        schema: The schema.
        samples: A few values of each column, by full table name and column name.
        synonyms: Other names of tables ("orders") and columns ("orders.amount").
    """

    def __init__(
        self,
        schema: DatabaseSchema,
        samples: Mapping[str, Mapping[str, Sequence[str]]],
        synonyms: Mapping[str, Sequence[str]],
    ) -> None:
        self.schema = schema
        self.joinable_tables = find_joinable_tables(schema)
        self.name_words = frozenset(_iter_name_words(schema))
        self._table_weights: dict[str, WordWeights] = {}
        self._column_weights: dict[str, dict[str, WordWeights]] = {}
        table_counts: Counter[str] = Counter()
        for table in schema.tables:
            name = table.full_name
            own = _compute_word_weights(table, (), synonyms.get(name, ()), _TABLE_NAME_WEIGHT)
            by_column = {}
            for column in table.columns:
                values = samples.get(name, {}).get(column.name, ())
                column_synonyms = synonyms.get(f"{name}.{column.name}", ())
                by_column[column.name] = _compute_word_weights(column, values, column_synonyms, _COLUMN_NAME_WEIGHT)
            self._table_weights[name], self._column_weights[name] = own, by_column
            table_counts.update({word for weights in [own, *by_column.values()] for word in weights})
        total = max(len(schema.tables), 1)
        self._word_rarity = {word: math.log(1 + total / count) for word, count in table_counts.items()}

    def compute_scores(
        self, question: str, matches: Sequence[ValueMatch]
    ) -> tuple[dict[str, float], dict[ColumnKey, float]]:
        """Score the tables and columns for a question.

        Returns:
            The scores by full table name and by (table, column); 0 means no relation.
        """
        certainties = self._match_schema_words(question)
        table_scores: dict[str, float] = {}
        column_scores: dict[ColumnKey, float] = {}
        for name, own_weights in self._table_weights.items():
            best = self._score_words(own_weights, certainties)
            for column, weights in self._column_weights[name].items():
                hits = self._score_words(weights, certainties)
                column_scores[(name, column)] = sum(hits.values()) / math.sqrt(max(len(weights), 1))
                best = {word: max(hits.get(word, 0), best.get(word, 0)) for word in hits | best}
            name_words = [word for word, weight in own_weights.items() if weight == _TABLE_NAME_WEIGHT]
            is_named = bool(name_words) and all(certainties.get(word, 0) > 0 for word in name_words)
            table_scores[name] = sum(best.values()) + (2 * _TABLE_NAME_WEIGHT if is_named else 0)
        _add_value_scores(matches, table_scores, column_scores)
        return table_scores, column_scores

    def _score_words(self, weights: WordWeights, certainties: dict[str, float]) -> dict[str, float]:
        return {
            word: weights[word] * self._word_rarity[word] * certainty
            for word, certainty in certainties.items()
            if word in weights
        }

    def _match_schema_words(self, question: str) -> dict[str, float]:
        """Return the schema words of a question with their certainty.

        Misspelled words have a lower certainty.
        """
        certainties: dict[str, float] = {}
        for word in extract_index_words(normalize_text(question)):
            singular = singularize(word)
            if word in STOP_WORDS | STOP_BIGRAMS and singular not in self._word_rarity:
                continue
            certainty = 0.4 if word in STOP_WORDS else 1.0
            if singular in self._word_rarity:
                certainties[singular] = max(certainty, certainties.get(singular, 0))
            elif len(singular) > 3 and singular.isascii():
                for other in self._word_rarity:
                    if _has_common_prefix(singular, other):
                        certainties.setdefault(other, 0.6)
                    elif _is_similar(singular, other):
                        certainties.setdefault(other, 0.7)
        return certainties

    def rank_tables(self, scores: Mapping[str, float]) -> list[str]:
        """Rank all tables, best first.

        The tables that join a table to those before it precede it.
        """
        total_scores = {
            name: score + _NEIGHBOR_WEIGHT * max((scores[other] for other in self.joinable_tables[name]), default=0)
            for name, score in scores.items()
        }
        degrees = {name: len(others) for name, others in self.joinable_tables.items()}
        by_score = sorted(total_scores, key=lambda name: (-total_scores[name], -degrees[name], name))
        ranked: dict[str, None] = {}
        for name in by_score:
            if scores[name] > 0:
                ranked |= dict.fromkeys(self._find_join_path(name, ranked))
            ranked[name] = None
        return list(ranked)

    def _find_join_path(self, start: str, ranked_tables: Mapping[str, None]) -> list[str]:
        """Return the tables between `start` and the nearest ranked table, or []."""
        if not ranked_tables or start in ranked_tables:
            return []
        previous: dict[str, str] = {start: ""}
        queue = deque([(start, 0)])
        while queue:
            name, distance = queue.popleft()
            if name in ranked_tables:
                path: list[str] = []
                while name := previous[name]:
                    path.append(name)
                return [table for table in path if table != start]
            if distance < _MAX_JOIN_DISTANCE:
                for other in self.joinable_tables[name]:
                    if other not in previous:
                        previous[other] = name
                        queue.append((other, distance + 1))
        return []


def _has_common_prefix(word: str, other: str) -> bool:
    return other[:2] == word[:2] and len(other) > 2 and (other.startswith(word) or word.startswith(other))


def _is_similar(word: str, other: str) -> bool:
    if other[:1] != word[:1] or abs(len(other) - len(word)) >= 3:
        return False
    return compute_similarity(word, other) > _MIN_NAME_SIMILARITY


def _add_value_scores(
    matches: Sequence[ValueMatch], table_scores: dict[str, float], column_scores: dict[ColumnKey, float]
) -> None:
    """Add the score of the best value match of each column.

    A phrase with many matches counts less.
    """
    matches_per_phrase = Counter(match.phrase for match in matches)
    best: dict[ColumnKey, float] = {}
    for match in matches:
        score = _VALUE_MATCH_WEIGHT * match.score / math.sqrt(matches_per_phrase[match.phrase])
        key = (match.table, match.column)
        best[key] = max(score, best.get(key, 0))
    for (table, column), score in best.items():
        table_scores[table] = table_scores.get(table, 0) + score
        column_scores[(table, column)] = column_scores.get((table, column), 0) + score


def find_joinable_tables(schema: DatabaseSchema) -> dict[str, tuple[str, ...]]:
    """Return the tables that each table joins, by full name.

    Tables join by foreign keys, and a column without one joins the table whose primary key it is named after.
    """
    joinable: dict[str, dict[str, None]] = {table.full_name: {} for table in schema.tables}
    tables_by_key_name = _index_tables_by_key_name(schema)
    for table in schema.tables:
        for column in table.columns:
            if column.references:
                others = [_find_referenced_table(schema, column.references)]
            else:
                others = [*tables_by_key_name.get(column.name.casefold(), [])]
            for other in others if len(others) <= 3 else []:
                if other and other != table.full_name:
                    joinable[table.full_name][other] = None
                    joinable[other][table.full_name] = None
    return {name: tuple(others) for name, others in joinable.items()}


def _index_tables_by_key_name(schema: DatabaseSchema) -> dict[str, list[str]]:
    """Return the tables by the names of columns that refer to them (`order_id`)."""
    tables_by_key_name: dict[str, list[str]] = {}
    for table in schema.tables:
        primary_key = [column.name.casefold() for column in table.columns if column.primary_key]
        if len(primary_key) != 1:
            continue
        key = primary_key[0]
        stem = singularize(table.name.casefold())
        names = {f"{stem}_{key}", f"{stem}{key}", f"{stem}_id"} | ({key} - {"id", "code", "name"})
        for name in names:
            tables_by_key_name.setdefault(name, []).append(table.full_name)
    return tables_by_key_name


def _find_referenced_table(schema: DatabaseSchema, references: str) -> str | None:
    table = schema.find_table(references.rpartition(".")[0] or references) or schema.find_table(references)
    return table.full_name if table else None


def _compute_word_weights(
    item: Table | Column, values: Sequence[str], synonyms: Sequence[str], name_weight: float
) -> WordWeights:
    """Return the words that may name a table or column, with their weights."""
    weights: WordWeights = {}
    for value in values:
        weights |= {singularize(w): _SAMPLE_WEIGHT for w in extract_index_words(normalize_text(value)) if len(w) > 1}
    comment_words = extract_index_words(normalize_text(item.comment or ""))
    weights |= {singularize(word): _COMMENT_WEIGHT for word in comment_words}
    for name in [*synonyms, item.name]:
        weights |= dict.fromkeys(split_identifier(name), name_weight)
    return weights


def _iter_name_words(schema: DatabaseSchema) -> Iterator[str]:
    for table in schema.tables:
        yield from split_identifier(table.name)
        for column in table.columns:
            yield from split_identifier(column.name)


def index_tables_by_name(schema: DatabaseSchema) -> dict[str, Table]:
    """Return the tables of a schema by full name."""
    return {table.full_name: table for table in schema.tables}
