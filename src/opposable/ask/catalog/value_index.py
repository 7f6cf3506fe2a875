"""A full-text index of database values, in a SQLite file."""

import sqlite3
import threading
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opposable.domain.text_normalization import extract_index_words, has_cjk, normalize_text

FORMAT_VERSION = "1"
_SCHEMA_SQL = """
CREATE TABLE IF NOT EXISTS fact (name TEXT PRIMARY KEY, text TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS place (id INTEGER PRIMARY KEY, owner TEXT, name TEXT, whole INTEGER, UNIQUE (owner, name));
CREATE TABLE IF NOT EXISTS value (id INTEGER PRIMARY KEY, place INTEGER, text TEXT, folded TEXT);
CREATE UNIQUE INDEX IF NOT EXISTS value_by_text ON value (folded, place);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(text, content='', detail=none, columnsize=0,
  tokenize="unicode61 remove_diacritics 0");
CREATE TABLE IF NOT EXISTS spelling (key TEXT, word TEXT, PRIMARY KEY (key, word)) WITHOUT ROWID;
"""
_FUZZY_WORD_LENGTHS = range(4, 21)
"""Lengths of the words that are indexed for fuzzy matching."""


@dataclass(frozen=True, slots=True)
class IndexedValue:
    """A value of a column; `table` is a full name, `normalized` is compared."""

    id: int
    table: str
    column: str
    text: str
    normalized: str


class ValueIndex:
    """An index of values by their words.

    Every method blocks for milliseconds: call it in a thread.
    """

    def __init__(self, path: Path | None) -> None:
        self._connection = sqlite3.connect(path or ":memory:", check_same_thread=False, isolation_level=None)
        self._lock = threading.Lock()
        for pragma in ("journal_mode=WAL", "synchronous=OFF", "cache_size=-65536", "temp_store=MEMORY"):
            self._connection.execute(f"PRAGMA {pragma}").close()
        self._connection.create_function(
            "index_words", 1, lambda text: " ".join(extract_index_words(text)), deterministic=True
        )
        self._connection.executescript(_SCHEMA_SQL)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def get_metadata(self, name: str) -> str:
        """Return a metadata entry of the index, or ""."""
        return next((row[0] for row in self._fetch_all("SELECT text FROM fact WHERE name = ?", (name,))), "")

    def set_metadata(self, name: str, value: str) -> None:
        """Store a metadata entry of the index."""
        self._fetch_all("INSERT OR REPLACE INTO fact VALUES (?, ?)", (name, value))

    def count_values(self) -> int:
        """Return the number of values."""
        return int(self._fetch_all("SELECT count(*) FROM value")[0][0])

    def count_values_by_column(self) -> dict[tuple[str, str], int]:
        """Return the number of distinct values of each indexed column, by (table, column)."""
        sql = "SELECT p.owner, p.name, count(v.id) FROM place p JOIN value v ON v.place = p.id GROUP BY p.id"
        return {(owner, name): count for owner, name, count in self._fetch_all(sql)}

    def get_completed_columns(self) -> set[tuple[str, str]]:
        """Return the columns whose values are all indexed, as (table, column)."""
        return {(owner, name) for owner, name in self._fetch_all("SELECT owner, name FROM place WHERE whole")}

    def add_values(self, table: str, column: str, values: Iterable[str]) -> int:
        """Add values of a column and return how many are new."""
        with self._lock, closing(self._connection.cursor()) as cursor:
            cursor.execute("BEGIN")
            try:
                added = _insert_values(cursor, table, column, values)
            except BaseException:
                cursor.execute("ROLLBACK")
                raise
            cursor.execute("COMMIT")
            return added

    def mark_completed(self, table: str, column: str) -> None:
        """Mark a column as one whose values are all indexed."""
        self._fetch_all("INSERT OR IGNORE INTO place (owner, name, whole) VALUES (?, ?, 0)", (table, column))
        self._fetch_all("UPDATE place SET whole = 1 WHERE owner = ? AND name = ?", (table, column))

    def find_exact(self, texts: Sequence[str], limit: int = 200) -> list[IndexedValue]:
        """Return the values equal to one of these normalized texts."""
        values: list[IndexedValue] = []
        for start in range(0, len(texts), 500):
            chunk = texts[start : start + 500]
            values += self._select_values(f"v.folded IN ({','.join('?' * len(chunk))}) LIMIT ?", (*chunk, limit))
        return values

    def find_by_prefix(self, prefix: str, limit: int = 5) -> list[IndexedValue]:
        """Return the values that begin with this normalized text."""
        return self._select_values("v.folded >= ? AND v.folded < ? LIMIT ?", (prefix, prefix + "\U0010ffff", limit))

    def find_ids_with_words(self, words: Sequence[str], limit: int = 200) -> list[int]:
        """Return the ids of the values with all words, small columns first."""
        match = " ".join(f'"{word}"' for word in words if word.replace('"', ""))
        return [
            row[0] for row in self._fetch_all("SELECT rowid FROM words WHERE words MATCH ? LIMIT ?", (match, limit))
        ]

    def get_values(self, ids: Sequence[int]) -> list[IndexedValue]:
        """Return the values with these ids."""
        return self._select_values(f"v.id IN ({','.join('?' * len(ids))})", ids) if ids else []

    def find_similar_words(self, word: str) -> list[str]:
        """Return the indexed words that share their first or last half with `word`."""
        if len(word) not in _FUZZY_WORD_LENGTHS or has_cjk(word) or not word.isalpha():
            return []
        keys = list(_iter_candidate_keys(word))
        placeholders = ",".join("?" * len(keys))
        sql = f"SELECT DISTINCT word FROM spelling WHERE key IN ({placeholders}) LIMIT 3000"  # noqa: S608 - question marks
        return [row[0] for row in self._fetch_all(sql, keys)]

    def has_word(self, word: str) -> bool:
        """Return whether a value has this word."""
        return bool(self.find_ids_with_words([word], 1))

    def _select_values(self, condition: str, parameters: Sequence[Any]) -> list[IndexedValue]:
        sql = f"SELECT v.id, p.owner, p.name, v.text, v.folded FROM value v JOIN place p ON p.id = v.place WHERE {condition}"  # noqa: S608 - own SQL
        return [IndexedValue(*row) for row in self._fetch_all(sql, parameters)]

    def _fetch_all(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        with self._lock, closing(self._connection.cursor()) as cursor:
            return cursor.execute(sql, parameters).fetchall()


def _insert_values(cursor: sqlite3.Cursor, table: str, column: str, values: Iterable[str]) -> int:
    cursor.execute("INSERT OR IGNORE INTO place (owner, name, whole) VALUES (?, ?, 0)", (table, column))
    (column_id,) = cursor.execute("SELECT id FROM place WHERE owner = ? AND name = ?", (table, column)).fetchone()
    (last_id,) = cursor.execute("SELECT coalesce(max(id), 0) FROM value").fetchone()
    rows = ((column_id, text, key) for text in values if (key := normalize_text(text)))
    cursor.executemany("INSERT OR IGNORE INTO value (place, text, folded) VALUES (?, ?, ?)", rows)
    cursor.execute("INSERT INTO words (rowid, text) SELECT id, index_words(folded) FROM value WHERE id > ?", (last_id,))
    new_texts = cursor.execute("SELECT folded FROM value WHERE id > ?", (last_id,)).fetchall()
    words = {
        word for (text,) in new_texts for word in text.split() if len(word) in _FUZZY_WORD_LENGTHS and word.isalpha()
    }
    keys = (
        (key, word) for word in words if word.isascii() or not has_cjk(word) for key in _compute_spelling_keys(word)
    )
    cursor.executemany("INSERT OR IGNORE INTO spelling VALUES (?, ?)", keys)
    return len(new_texts)


def _compute_spelling_keys(word: str) -> tuple[str, str]:
    """Return a word's first and last half, each with the length of the word."""
    half = len(word) // 2
    return f"{len(word)}<{word[:half]}", f"{len(word)}>{word[half:]}"


def _iter_candidate_keys(word: str) -> Iterable[str]:
    """Yield the keys of the words that `word` may misspell.

    A misspelling has one wrong, missing, extra or swapped letter.
    """
    slack = 1 if len(word) < 8 else 2
    for length in range(max(_FUZZY_WORD_LENGTHS.start, len(word) - slack), len(word) + slack + 1):
        half = length // 2
        yield f"{length}<{word[:half]}"
        yield f"{length}>{word[len(word) - (length - half) :]}"
        if length == len(word):
            swapped = word[: half - 1] + word[half] + word[half - 1] + word[half + 1 :]
            yield f"{length}<{swapped[:half]}"
            yield f"{length}>{swapped[half:]}"
