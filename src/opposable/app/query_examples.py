"""Confirmed questions of a database: stored, listed, deleted, and the last answer that can be confirmed."""

import contextlib
from collections.abc import Iterable
from pathlib import Path
from uuid import uuid4

import orjson

from opposable.app.data_sources import open_data_source
from opposable.app.default_store import open_default_store, open_existing_store, state_directory
from opposable.app.private_files import write_private_file
from opposable.domain.answers import DataAnswer
from opposable.domain.errors import BadInput, InvalidArguments, ToolFailed, ToolRefused
from opposable.domain.json_text import split_json_lines
from opposable.domain.records import QueryExample, get_utc_now
from opposable.settings import Settings
from opposable.sql.database import Database
from opposable.sql.tools import SqlTools


async def add_examples(settings: Settings, database: str, pairs: Iterable[tuple[str, str]]) -> list[QueryExample]:
    """Store questions with their SQL; an example replaces the one of the same question.

    Raises:
        BadInput: The database does not exist, a text is empty, or the database rejects an SQL statement.
    """
    async with open_data_source(database) as opened:
        examples = [await create_example(opened, question, sql) for question, sql in pairs]
    async with open_default_store(settings) as store:
        await store.query_examples.add(examples)
    return examples


async def create_example(database: Database, question: str, sql: str) -> QueryExample:
    """Return an example that is not stored yet.

    Raises:
        BadInput: A text is empty, or the database rejects the SQL statement.
    """
    if not question.strip() or not sql.strip():
        raise BadInput("An example needs a question and SQL, and one of them is empty.")
    try:
        await SqlTools(database).validate(sql)
    except (InvalidArguments, ToolFailed, ToolRefused) as error:
        raise BadInput(f"The SQL of {question!r} does not run: {error}") from error
    return QueryExample(uuid4().hex[:12], database.identity, question.strip(), sql, get_utc_now())


async def list_examples(settings: Settings, database: str) -> tuple[QueryExample, ...]:
    """Return the examples of a database, the latest first.

    Raises:
        BadInput: The database does not exist.
    """
    async with open_data_source(database) as opened:
        return await load_examples(settings, opened.identity)


async def load_examples(settings: Settings, identity: str) -> tuple[QueryExample, ...]:
    """Return the examples of a database by its identity; none without a store."""
    async with open_existing_store(settings) as store:
        return await store.query_examples.list_for_database(identity) if store is not None else ()


async def delete_example(settings: Settings, example_id: str) -> None:
    """Delete an example.

    Raises:
        BadInput: There is no example with this id.
    """
    async with open_existing_store(settings) as store:
        if store is None or not await store.query_examples.delete(example_id):
            raise BadInput(f"There is no example {example_id!r}. List them with: opposable examples list --db DATABASE")


def read_examples_file(path: Path) -> list[tuple[str, str]]:
    """Read the questions of a file with one JSON object a line: `question` and `sql`.

    Raises:
        BadInput: The file cannot be read, or a line is invalid.
    """
    try:
        lines = split_json_lines(path.read_bytes(), path)
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}.") from error
    pairs: list[tuple[str, str]] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            pairs.append(_read_pair(line))
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            raise BadInput(f"{path}, line {number} is not a JSON object with the texts question and sql.") from error
    if not pairs:
        raise BadInput(f"{path} is empty. Write a JSON object with question and sql on each line.")
    return pairs


def _read_pair(line: bytes) -> tuple[str, str]:
    """Return the question and the SQL of a line. Raises: `ValueError`, `KeyError` or `TypeError`."""
    record = orjson.loads(line)
    question, sql = record["question"], record["sql"]
    if not isinstance(question, str) or not isinstance(sql, str):
        raise TypeError
    return question, sql


def save_last_answer(settings: Settings, identity: str, question: str, answer: DataAnswer) -> None:
    """Save an answer of the command line, so that `opposable ask --good` can confirm it.

    An answer without SQL deletes the saved one, so that none can be confirmed. A folder that cannot be written is no
    error.

    Args:
        settings: The settings.
        identity: The identity of the database, which has no secrets.
        question: The question.
        answer: Its answer.
    """
    if not answer.sql:
        forget_last_answer(settings)
        return
    content = orjson.dumps({"database": identity, "question": question, "sql": answer.sql})
    with contextlib.suppress(OSError):
        write_private_file(_get_last_answer_path(settings), content)


def forget_last_answer(settings: Settings) -> None:
    """Delete the saved answer: the last one cannot be confirmed, and `ask --good` must not confirm an earlier one."""
    with contextlib.suppress(OSError):
        _get_last_answer_path(settings).unlink(missing_ok=True)


async def confirm_last_answer(settings: Settings) -> QueryExample:
    """Store the last answer as an example.

    Raises:
        BadInput: There is no last answer, or its file is damaged.
    """
    path = _get_last_answer_path(settings)
    if not path.is_file():
        raise BadInput("There is no answer to confirm. Ask a question first: opposable ask QUESTION --db DATABASE")
    try:
        last = orjson.loads(path.read_bytes())
        example = QueryExample(uuid4().hex[:12], last["database"], last["question"], last["sql"], get_utc_now())
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"The last answer in {path} cannot be read. Ask the question again.") from error
    async with open_default_store(settings) as store:
        await store.query_examples.add([example])
    return example


def _get_last_answer_path(settings: Settings) -> Path:
    return state_directory(settings) / "last_answer.json"
