"""Which tables and columns a question is about, by its words, the values it names, and the keys between tables."""

import math
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence

from opposable.ask.catalog.stop_words import STOP_BIGRAMS, STOP_WORDS
from opposable.ask.catalog.value_matching import ValueMatch
from opposable.domain.text_normalization import extract_index_words, normalize_text, singularize, split_identifier
from opposable.sql.name_similarity import compute_similarity
from opposable.sql.schema import DatabaseSchema, Table

_TABLE_NAME_WEIGHT, _COLUMN_NAME_WEIGHT, _COMMENT_WEIGHT, _SAMPLE_WEIGHT = 4.0, 2.0, 1.0, 0.7
_VALUE_MATCH_WEIGHT = 5.0
_NEIGHBOR_WEIGHT = 0.25
_MIN_NAME_SIMILARITY = 0.84
_MAX_JOIN_DISTANCE = 3


class SchemaLinker:
    """Scores of the tables and columns of one schema; made once and asked for each question."""

    def __init__(
        self,
        schema: DatabaseSchema,
        samples: Mapping[str, Mapping[str, Sequence[str]]],
        synonyms: Mapping[str, Sequence[str]],
    ) -> None:
        self.schema = schema
        self.joinable_tables = find_joinable_tables(schema)
        self.name_words = frozenset(_iter_name_words(schema))
        self._weights_by_table: dict[str, list[tuple[str, dict[str, float]]]] = {}
        known: Counter[str] = Counter()
        for table in schema.tables:
            parts = [
                (
                    "",
                    _compute_word_weights(
                        table.name, table.comment, (), synonyms.get(table.full_name, ()), _TABLE_NAME_WEIGHT
                    ),
                )
            ]
            for column in table.columns:
                also = synonyms.get(f"{table.full_name}.{column.name}", ())
                values = samples.get(table.full_name, {}).get(column.name, ())
                parts.append(
                    (column.name, _compute_word_weights(column.name, column.comment, values, also, _COLUMN_NAME_WEIGHT))
                )
            self._weights_by_table[table.full_name] = parts
            known.update({word for _, weights in parts for word in weights})
        count = max(len(schema.tables), 1)
        self._word_rarity = {word: math.log(1 + count / tables) for word, tables in known.items()}

    def compute_scores(
        self, question: str, matches: Sequence[ValueMatch]
    ) -> tuple[dict[str, float], dict[tuple[str, str], float]]:
        """Scores of tables by full name, and of columns by table and name; what the question does not touch has 0."""
        asked = self._match_schema_words(question)
        tables: dict[str, float] = {}
        columns: dict[tuple[str, str], float] = {}
        for name, parts in self._weights_by_table.items():
            best: dict[str, float] = {}
            for column, weights in parts:
                hits = {
                    word: weights[word] * self._word_rarity[word] * asked[word] for word in asked if word in weights
                }
                share = sum(hits.values()) / math.sqrt(max(len(weights), 1))
                if column:
                    columns[(name, column)] = share
                best = {word: max(hits.get(word, 0), best.get(word, 0)) for word in hits | best}
            own = parts[0][1]
            title = [word for word, weight in own.items() if weight == _TABLE_NAME_WEIGHT]
            full = sum(asked.get(word, 0) > 0 for word in title) / max(len(title), 1)
            tables[name] = sum(best.values()) + (2 * _TABLE_NAME_WEIGHT * full if full == 1 else 0)
        self._add_value_scores(matches, tables, columns)
        return tables, columns

    def _match_schema_words(self, question: str) -> dict[str, float]:
        """The question's words as the schema has them, misspelt ones too, each with its certainty."""
        found: dict[str, float] = {}
        for word in extract_index_words(normalize_text(question)):
            plain = singularize(word)
            if word in STOP_WORDS | STOP_BIGRAMS and plain not in self._word_rarity:
                continue
            certainty = 0.4 if word in STOP_WORDS else 1.0
            if plain in self._word_rarity:
                found[plain] = max(certainty, found.get(plain, 0))
            elif len(plain) > 3 and plain.isascii():
                for other in self._word_rarity:
                    if (
                        other[:2] == plain[:2]
                        and (other.startswith(plain) or plain.startswith(other))
                        and len(other) > 2
                    ):
                        found.setdefault(other, 0.6)
                    elif (
                        other[:1] == plain[:1]
                        and abs(len(other) - len(plain)) < 3
                        and compute_similarity(plain, other) > _MIN_NAME_SIMILARITY
                    ):
                        found.setdefault(other, 0.7)
        return found

    def _add_value_scores(
        self,
        matches: Sequence[ValueMatch],
        tables: dict[str, float],
        columns: dict[tuple[str, str], float],
    ) -> None:
        places = Counter(match.phrase for match in matches)
        best: dict[tuple[str, str], float] = {}
        for match in matches:
            gain = _VALUE_MATCH_WEIGHT * match.score / math.sqrt(places[match.phrase])
            key = (match.table, match.column)
            best[key] = max(gain, best.get(key, 0))
        for (table, column), gain in best.items():
            tables[table] = tables.get(table, 0) + gain
            columns[(table, column)] = columns.get((table, column), 0) + gain

    def rank_tables(self, scores: Mapping[str, float]) -> list[str]:
        """All tables, the likeliest first, each followed by the tables that join it to those before it."""
        whole = {
            name: score + _NEIGHBOR_WEIGHT * max((scores[other] for other in self.joinable_tables[name]), default=0)
            for name, score in scores.items()
        }
        degree = {name: len(others) for name, others in self.joinable_tables.items()}
        ranked = sorted(whole, key=lambda name: (-whole[name], -degree[name], name))
        kept: dict[str, None] = {}
        for name in ranked:
            if scores[name] > 0:
                kept |= dict.fromkeys(self._find_join_path(name, kept))
            kept[name] = None
        return list(kept)

    def _find_join_path(self, start: str, ranked_tables: Mapping[str, None]) -> list[str]:
        """The tables between `start` and the nearest table kept already, itself left out; [] when none is near."""
        if not ranked_tables or start in ranked_tables:
            return []
        before: dict[str, str] = {start: ""}
        queue = deque([(start, 0)])
        while queue:
            name, distance = queue.popleft()
            if name in ranked_tables:
                way: list[str] = []
                while name := before[name]:
                    way.append(name)
                return [step for step in way if step != start]
            if distance < _MAX_JOIN_DISTANCE:
                for other in self.joinable_tables[name]:
                    if other not in before:
                        before[other] = name
                        queue.append((other, distance + 1))
        return []


def find_joinable_tables(schema: DatabaseSchema) -> dict[str, tuple[str, ...]]:
    """Which tables join which: by foreign keys, and where there are none by columns named after another's key."""
    found: dict[str, dict[str, None]] = {table.full_name: {} for table in schema.tables}
    keys: dict[str, list[str]] = {}
    for table in schema.tables:
        primary = [column.name.casefold() for column in table.columns if column.primary_key]
        if len(primary) == 1:
            names = {primary[0]} if primary[0] not in ("id", "code", "name") else set()
            stem = singularize(table.name.casefold())
            for name in names | {f"{stem}_{primary[0]}", f"{stem}{primary[0]}", f"{stem}_id"}:
                keys.setdefault(name, []).append(table.full_name)
    for table in schema.tables:
        for column in table.columns:
            others = (
                [_find_referenced_table(schema, column.references)]
                if column.references
                else keys.get(column.name.casefold(), [])
            )
            for other in others if len(others) <= 3 else []:
                if other and other != table.full_name:
                    found[table.full_name][other] = None
                    found[other][table.full_name] = None
    return {name: tuple(others) for name, others in found.items()}


def _find_referenced_table(schema: DatabaseSchema, references: str) -> str | None:
    table = schema.find_table(references.rpartition(".")[0] or references) or schema.find_table(references)
    return table.full_name if table else None


def _compute_word_weights(
    name: str, comment: str | None, values: Sequence[str], synonyms: Sequence[str], weight: float
) -> dict[str, float]:
    """The words a table or column is known by, and how much each says."""
    found: dict[str, float] = {}
    for text in values:
        found |= {
            singularize(word): _SAMPLE_WEIGHT for word in extract_index_words(normalize_text(text)) if len(word) > 1
        }
    found |= {singularize(word): _COMMENT_WEIGHT for word in extract_index_words(normalize_text(comment or ""))}
    for text in synonyms:
        found |= dict.fromkeys(split_identifier(text), weight)
    return found | dict.fromkeys(split_identifier(name), weight)


def _iter_name_words(schema: DatabaseSchema) -> Iterable[str]:
    for table in schema.tables:
        yield from split_identifier(table.name)
        for column in table.columns:
            yield from split_identifier(column.name)


def index_tables_by_name(schema: DatabaseSchema) -> dict[str, Table]:
    """The tables by full name."""
    return {table.full_name: table for table in schema.tables}
