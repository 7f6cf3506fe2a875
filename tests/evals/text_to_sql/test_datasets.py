"""Sets of questions: read, split by database, drawn the same each time."""

import sqlite3
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest

from opposable.ask.single_prompt import extract_sql
from opposable.domain.errors import BadInput
from opposable.domain.usage import Usage
from opposable.evals.text_to_sql.datasets import read_questions, sample_questions, select_part
from opposable.evals.text_to_sql.harness import (
    SqlAttempt,
    SqlScoreSheet,
    make_answerers,
    make_single_prompt_answerer,
    score_questions,
)
from opposable.models.scripted import ScriptedModel

pytestmark = pytest.mark.anyio
DATA = Path(__file__).parents[4] / "shared" / "data" / "text2sql"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = []
    for number in range(6):
        with sqlite3.connect(tmp_path / f"d{number}.sqlite") as made:
            made.executescript(
                "CREATE TABLE 部门 (名称 TEXT, n INTEGER); INSERT INTO 部门 VALUES ('行政', 3), ('财务', 5)"
            )
        made.close()
        gold = "SELECT 名称 FROM 部门 WHERE n > 3"
        lines.append({"id": f"q{number}", "db": f"d{number}", "question": "哪些部门超过三人？", "gold_sql": gold})
    (tmp_path / "questions.jsonl").write_bytes(b"\n".join(map(orjson.dumps, lines)))
    return tmp_path


def test_a_third_of_the_databases_is_kept_unseen(folder):
    questions = read_questions(folder)
    dev, held = select_part(questions, "dev"), select_part(questions, "held")
    assert (len(dev), len(held)) == (4, 2)
    assert {q.database for q in dev}.isdisjoint({q.database for q in held})
    assert select_part(questions, "held") == held
    assert sample_questions(questions, 3) == sample_questions(questions, 3)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 1"),
        ('{"id": "a"}', "line 1: 'question'|line 1: 'db'"),
        ('{"id":"a","question":"q","gold_sql":"s","db":"no"}', "the database no does not exist"),
    ],
)
def test_a_line_that_cannot_be_used_is_named(folder, line, said):
    (folder / "questions.jsonl").write_text(line)
    with pytest.raises(BadInput, match=said):
        read_questions(folder)


async def test_answers_are_scored_by_what_their_sql_brings(folder):
    model = ScriptedModel(
        "```sql\nSELECT 名称 FROM 部门 WHERE n >= 5;\n```", "SELECT 名称 FROM 部门", "SELECT nme FROM 部门", "I cannot."
    )
    tally = SqlScoreSheet(
        [score async for score in score_questions(read_questions(folder)[:4], make_single_prompt_answerer(model))]
    )
    assert [(s.is_correct, s.is_executable) for s in tally.scores] == [
        (True, True),
        (False, True),
        (False, False),
        (False, False),
    ]
    assert tally.scores[0].usage == Usage(10, 5, 1)
    summary = tally.summary()
    assert (summary["accuracy"], summary["executable"], summary["tokens"]) == (25.0, 50.0, 15.0)


async def test_the_team_is_scored_with_its_catalogue_and_each_part_off(folder):
    model = ScriptedModel("```sql\nSELECT 名称 FROM 部门 WHERE n >= 5\n```")
    every = make_answerers(model)
    assert list(every)[:3] == ["one prompt", "team", "without extra candidates"]
    for name, answerer in every.items():
        tally = SqlScoreSheet([score async for score in score_questions(read_questions(folder)[:2], answerer)])
        assert (name, tally.summary()["accuracy"]) == (name, 100.0)


@pytest.mark.skipif(not DATA.is_dir(), reason="the public databases do not lie beside this checkout")
async def test_gold_scores_all_against_itself():
    @asynccontextmanager
    async def gold(database):
        async def answer(question):
            return SqlAttempt(question.gold_sql)

        yield answer

    tally = SqlScoreSheet([score async for score in score_questions(sample_questions(read_questions(DATA), 120), gold)])
    assert (tally.summary()["accuracy"], tally.summary()["executable"]) == (100.0, 100.0)


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("```sql\nSELECT 1;\n```\nDone; see?", "SELECT 1"),
        ("```\nWITH a AS (SELECT 1) SELECT * FROM a", "WITH a AS (SELECT 1) SELECT * FROM a"),
        ("Here: SELECT ';' AS a; SELECT 2", "SELECT ';' AS a"),
        ("```python\nprint(1)\n```\n```sql\nSELECT 2\n```", "SELECT 2"),
        ("no idea", ""),
    ],
)
def test_sql_is_found_in_a_reply(text, sql):
    assert extract_sql(text) == sql
