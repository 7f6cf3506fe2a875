"""Measures the similarity from which a value counts as a misspelling of another.

Usage: python evals/argument_similarity.py FOLDER...

The values are those of the text columns of the SQLite databases in the folders. A misspelling has one or two random
edits. Three shares are printed for each threshold: misspelt values for which the right one is suggested, values that
are not in the list but get a suggestion, and pairs of different values that count as a correction of each other.
"""

import argparse
import contextlib
import random
import re
import sqlite3
import string
from collections.abc import Iterator
from difflib import SequenceMatcher
from pathlib import Path

from opposable.agent.assistance import suggestions

THRESHOLDS = (0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9)
NAME_PATTERN = re.compile(r"(?=.*[A-Za-z]{3})[\w &/+#-]{4,40}")


def read_lists(folder: Path, rng: random.Random) -> Iterator[list[str]]:
    """Yield up to twelve values of each text column that has at least five names."""
    for path in sorted(folder.glob("**/*.sqlite")):
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
            tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            for table in tables:
                for _, column, *_ in connection.execute(f'PRAGMA table_info("{table}")').fetchall():
                    rows = connection.execute(f'SELECT DISTINCT "{column}" FROM "{table}" LIMIT 40')  # noqa: S608 - names of the schema
                    names = [name for (name,) in rows if isinstance(name, str) and NAME_PATTERN.fullmatch(name)]
                    if len(names) >= 5:
                        yield rng.sample(names, min(len(names), 12))


def misspell(value: str, rng: random.Random) -> str:
    """Return a value with one or two letters left out, added or replaced."""
    for _ in range(rng.choice((1, 1, 2))):
        at, letter = rng.randrange(len(value)), rng.choice(string.ascii_lowercase)
        value = rng.choice(
            (value[:at] + value[at + 1 :], value[:at] + letter + value[at:], value[:at] + letter + value[at + 1 :])
        )
    return value


def suggest(value: str, names: list[str]) -> str:
    """Return what is suggested for a value that is not among the names."""
    error_text = f"There is no item '{value}'. The items are: {', '.join(names)}."
    return suggestions.suggest_arguments({"item": value}, error_text).get("item", "")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    rng = random.Random(7)  # noqa: S311 - a sample, no secret
    lists = [names for folder in parser.parse_args().folders for names in read_lists(folder, rng)]
    chosen = [(rng.choice(names), names) for names in lists]
    misspelt = [(misspell(value, rng).strip(), value, names) for value, names in chosen]
    misspelt = [row for row in misspelt if row[0] not in row[2] and len(row[0]) > 2]
    pairs = [rng.sample(names, 2) for names in lists]
    print(f"{len(misspelt)} misspelt values, {len(chosen)} missing values, {len(pairs)} pairs")
    for threshold in THRESHOLDS:
        suggestions.MIN_SIMILARITY = threshold
        found = sum(suggest(wrong, names) == right for wrong, right, names in misspelt)
        invented = sum(bool(suggest(value, [name for name in names if name != value])) for value, names in chosen)
        confused = sum(SequenceMatcher(None, *pair).ratio() >= threshold for pair in pairs)
        print(
            f"{threshold:.2f}  found {found / len(misspelt):.1%}  "
            f"invented {invented / len(chosen):.1%}  confused {confused / len(pairs):.1%}"
        )


if __name__ == "__main__":
    main()
