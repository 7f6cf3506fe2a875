"""Answerers are scored on a folder of questions."""

from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from opposable.domain.errors import BadInput
from opposable.domain.usage import Usage
from opposable.evals.text_to_sql.datasets import read_questions, sample_questions
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


async def test_answers_are_scored_by_the_rows_of_their_sql(question_folder):
    model = ScriptedModel(
        "```sql\nSELECT 名称 FROM 部门 WHERE n >= 5;\n```", "SELECT 名称 FROM 部门", "SELECT nme FROM 部门", "I cannot."
    )
    score_sheet = SqlScoreSheet(
        [
            score
            async for score in score_questions(read_questions(question_folder)[:4], make_single_prompt_answerer(model))
        ]
    )
    assert [(s.is_correct, s.is_executable) for s in score_sheet.scores] == [
        (True, True),
        (False, True),
        (False, False),
        (False, False),
    ]
    assert score_sheet.scores[0].usage == Usage(10, 5, 1)
    summary = score_sheet.summary()
    assert (summary["accuracy"], summary["executable"], summary["tokens"]) == (25.0, 50.0, 15.0)


async def test_the_team_is_scored_without_each_of_its_parts(question_folder):
    model = ScriptedModel("```sql\nSELECT 名称 FROM 部门 WHERE n >= 5\n```")
    answerers = make_answerers(model)
    assert list(answerers)[:3] == ["one prompt", "team", "team with examples"]
    for name, open_answerer in answerers.items():
        score_sheet = SqlScoreSheet(
            [score async for score in score_questions(read_questions(question_folder)[:2], open_answerer)]
        )
        assert (name, score_sheet.summary()["accuracy"]) == (name, 100.0)


@pytest.mark.parametrize(
    ("name", "has_paraphrase"), [("team with examples", True), ("team with examples of other queries", False)]
)
async def test_a_question_is_no_example_of_itself(question_folder, name, has_paraphrase):
    first = read_questions(question_folder)[0]
    paraphrase = replace(first, question_id="again", question=f"Again: {first.question}")
    other = replace(first, question_id="other", question=f"All of: {first.question}", gold_sql="SELECT 名称 FROM 部门")
    model = ScriptedModel("```sql\nSELECT 名称 FROM 部门 WHERE n >= 5\n```")
    open_answerer = make_answerers(model, examples=[first, paraphrase, other])[name]
    assert [score.is_correct async for score in score_questions([first], open_answerer)] == [True]
    *earlier, last = [message.content for message in model.requests[0].messages if message.role == "user"]
    assert (other.question in earlier, paraphrase.question in earlier, first.question in earlier) == (
        True,
        has_paraphrase,
        False,
    )
    assert first.question in last


@pytest.mark.skipif(not DATA.is_dir(), reason="the public databases are not in ../shared/data/text2sql")
async def test_the_gold_sql_is_always_correct():
    @asynccontextmanager
    async def open_gold_answerer(database):
        async def answer(question):
            return SqlAttempt(question.gold_sql)

        yield answer

    score_sheet = SqlScoreSheet(
        [score async for score in score_questions(sample_questions(read_questions(DATA), 120), open_gold_answerer)]
    )
    assert (score_sheet.summary()["accuracy"], score_sheet.summary()["executable"]) == (100.0, 100.0)


async def test_a_gold_query_that_only_the_engine_parses_is_scored(question_folder):
    question = replace(read_questions(question_folder)[0], gold_sql="SELECT CAST(1 AS 'x') AS a ORDER BY a")
    scores = score_questions([question], make_single_prompt_answerer(ScriptedModel("```sql\nSELECT 1\n```")))
    assert [score.is_correct async for score in scores] == [True]


async def test_a_gold_query_that_does_not_run_is_named_before_the_model_is_asked(question_folder):
    first, second = read_questions(question_folder)[:2]
    model = ScriptedModel("SELECT 名称 FROM 部门")
    scores = score_questions(
        [first, replace(second, gold_sql="SELECT nme FROM 部门")], make_single_prompt_answerer(model)
    )
    with pytest.raises(BadInput, match=r"The gold_sql of question 'q1' does not run: .*nme"):
        _ = [score async for score in scores]
    assert len(model.requests) == 1
