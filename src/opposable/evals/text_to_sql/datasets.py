"""Reads, splits and samples questions about databases with gold SQL."""

import datetime
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from opposable.domain.errors import BadInput
from opposable.domain.json_text import split_json_lines

QUESTIONS_FILE = "questions.jsonl"
SEED = 7
"""The seed of every split and sample."""


@dataclass(frozen=True, slots=True)
class EvalQuestion:
    """A question with the SQL that answers it.

    Attributes:
        database: The URL or path of the database.
        gold_sql: The correct SQL.
        hint: External knowledge that belongs to the question.
        today: The date on which it is asked; None if that does not matter.
        set_name: The name of its set.
    """

    question_id: str
    database: str
    question: str
    gold_sql: str
    hint: str = ""
    today: datetime.date | None = None
    set_name: str = ""

    @property
    def engine(self) -> str:
        """The engine of the database."""
        scheme = self.database.partition("://")[0] if "://" in self.database else Path(self.database).suffix[1:]
        return "postgres" if scheme.startswith("postgres") else scheme

    @property
    def prompt_text(self) -> str:
        """The question with its hint."""
        return f"{self.question}\n({self.hint})" if self.hint else self.question


def read_questions(folder: Path, databases_folder: Path | None = None) -> list[EvalQuestion]:
    """Read the `questions.jsonl` of a folder.

    Each line is a JSON object with `id`, `question`, `gold_sql`, and either `db` or `database`. `db` is the name of a
    file `<db>.sqlite` or `<db>.duckdb` in the folder, or in its subfolders `set` or `databases`. `database` is a path in the folder.
    `evidence` and `today` (such as 2025-11-15) are optional.

    Args:
        folder: The folder with the questions.
        databases_folder: The folder of the databases, if it is another one.

    Raises:
        BadInput: The file or a database is missing, or a line is invalid.
    """
    path = folder / QUESTIONS_FILE
    if not path.is_file():
        raise BadInput(f"`{folder}` contains no {QUESTIONS_FILE}. Pass a folder with that file and its databases.")
    questions = []
    for number, line in enumerate(split_json_lines(path.read_bytes(), path), 1):
        if not line.strip():
            continue
        try:
            questions.append(_parse_question(orjson.loads(line), folder, databases_folder or folder))
        except ValueError as error:
            raise BadInput(
                f"{path}, line {number}: {error}. Each line must be a JSON object with id, db, question and gold_sql."
            ) from error
    return questions


def _parse_question(record: Any, folder: Path, databases_folder: Path) -> EvalQuestion:
    """Parse a line. Raises: `ValueError`, with the problem."""
    if not isinstance(record, dict):
        raise ValueError(f"it is not an object: {record!r:.50}")  # noqa: TRY004 - the caller reports values
    if "id" not in record or not (record.get("db") or record.get("database")):
        raise ValueError(f"{'db' if 'id' in record else 'id'} is missing")
    if invalid := [name for name in ("question", "gold_sql") if not isinstance(record.get(name), str)]:
        raise ValueError(f"{invalid[0]} is missing, or not a text")
    return EvalQuestion(
        str(record["id"]),
        str(_find_database(databases_folder, record)),
        record["question"],
        record["gold_sql"],
        str(record.get("evidence") or ""),
        datetime.date.fromisoformat(str(record["today"])) if record.get("today") else None,
        str(record.get("set") or folder.resolve().name),
    )


def select_part(questions: Sequence[EvalQuestion], part_name: str) -> list[EvalQuestion]:
    """Return the questions of a part: "dev" (two thirds of the databases), "held" (one third), or "all"."""
    if part_name == "all":
        return list(questions)
    names = sorted({question.database for question in questions})
    random.Random(SEED).shuffle(names)  # noqa: S311 - a split that is the same each time
    held_out = set(names[: len(names) // 3])
    return [question for question in questions if (question.database in held_out) == (part_name == "held")]


def sample_questions(questions: Sequence[EvalQuestion], count: int) -> list[EvalQuestion]:
    """Sample `count` questions at random, the same each time; 0 returns all."""
    shuffled = list(questions)
    random.Random(SEED).shuffle(shuffled)  # noqa: S311
    return shuffled[:count] if count else shuffled


def _find_database(folder: Path, record: dict[str, Any]) -> Path:
    name = record.get("database") or record.get("db")
    folders = [folder / str(record.get("set", "")), folder, folder / "databases"]
    candidates = [parent / f"{name}{suffix}" for parent in folders for suffix in (".sqlite", ".duckdb", "")]
    for path in candidates:
        if path.is_file():
            return path
    raise ValueError(f"the database {name} does not exist")
