"""Questions about databases with the SQL that answers them, read from a folder."""

import datetime
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from opposable.domain.errors import BadInput

QUESTIONS_FILE = "questions.jsonl"


@dataclass(frozen=True, slots=True)
class EvalQuestion:
    """One question. `database` is a URL or a path; `gold` is SQL of that database; `hint` belongs to the question.

    `today` is the day it is asked on, None where that says nothing.
    """

    question_id: str
    database: str
    question: str
    gold_sql: str
    hint: str = ""
    difficulty: str = ""
    today: datetime.date | None = None

    @property
    def prompt_text(self) -> str:
        """The question as it is asked, with its hint."""
        return f"{self.question}\n({self.hint})" if self.hint else self.question


def read_questions(folder: Path, databases_folder: Path | None = None) -> list[EvalQuestion]:
    """The questions of a folder with a `questions.jsonl` and its databases.

    A line has `id`, `question`, `gold_sql`, and `db`, the name of a file `<db>.sqlite` or `<db>.duckdb` in the folder or
    in the one named by `set`, or `database`, a path in the folder; `databases` is another folder to find them in.
    `evidence`, `difficulty` and `today` (2025-11-15) may be there. Raises: `BadInput`.
    """
    path = folder / QUESTIONS_FILE
    if not path.is_file():
        raise BadInput(f"There is no {QUESTIONS_FILE} in {folder}: a set is a folder with that file and its databases.")
    questions = []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if not line.strip():
            continue
        try:
            told = orjson.loads(line)
            questions.append(
                EvalQuestion(
                    str(told["id"]),
                    str(_find_database(databases_folder or folder, told)),
                    told["question"],
                    told["gold_sql"],
                    told.get("evidence") or "",
                    told.get("difficulty") or "",
                    datetime.date.fromisoformat(told["today"]) if told.get("today") else None,
                )
            )
        except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
            raise BadInput(
                f"{path}, line {number}: {error}; a line is a JSON object with id, db, question, gold_sql."
            ) from error
    return questions


def select_part(questions: Sequence[EvalQuestion], part_name: str, seed: int = 7) -> list[EvalQuestion]:
    """The questions of two thirds of the databases ("dev"), of the third kept unseen ("held"), or "all"."""
    if part_name == "all":
        return list(questions)
    names = sorted({question.database for question in questions})
    random.Random(seed).shuffle(names)  # noqa: S311 - a split that is the same each time
    held = set(names[: len(names) // 3])
    return [question for question in questions if (question.database in held) == (part_name == "held")]


def sample_questions(questions: Sequence[EvalQuestion], count: int, seed: int = 7) -> list[EvalQuestion]:
    """`number` of the questions, spread over the databases, the same each time."""
    order = list(questions)
    random.Random(seed).shuffle(order)  # noqa: S311
    return order[:count] if count else order


def _find_database(folder: Path, record: dict[str, str]) -> Path:
    name = record.get("database") or record["db"]
    places = [folder / str(record.get("set", "")), folder]
    tried = [place / f"{name}{ending}" for place in places for ending in (".sqlite", ".duckdb", "")]
    for path in tried:
        if path.is_file():
            return path
    raise KeyError(f"there is no database {name} beside it")
