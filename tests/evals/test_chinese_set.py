"""The databases of the Chinese questions are built, and every gold SQL returns rows."""

import importlib.util
from pathlib import Path

import pytest

from opposable.evals.text_to_sql.datasets import read_questions
from opposable.sql.factory import open_database

pytestmark = pytest.mark.anyio

SET = Path(__file__).parents[2] / "evals" / "chinese"


@pytest.fixture(scope="module")
def databases(tmp_path_factory) -> Path:
    spec = importlib.util.spec_from_file_location("build_chinese", SET / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    folder = tmp_path_factory.mktemp("chinese")
    module.build_databases(folder)
    return folder


async def test_every_gold_sql_brings_rows(databases):
    questions = read_questions(SET, databases)
    empty: list[str] = []
    for path in sorted({question.database for question in questions}):
        database = await open_database(path)
        database_questions = [question for question in questions if question.database == path]
        empty += [
            question.question_id for question in database_questions if not (await database.run(question.gold_sql)).rows
        ]
        await database.close()
    assert (len(questions), empty) == (120, [])
