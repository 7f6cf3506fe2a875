"""The confidence of small models falls with joins and empty results, and low confidence is explained."""

from pathlib import Path

import pytest
from tests.ask.team.shop import format_sql_reply, make_shop

from opposable.ask.assistance.confidence import estimate_confidence
from opposable.ask.team.factory import open_team
from opposable.ask.team.interfaces import TeamOptions
from opposable.models.scripted import ScriptedModel
from opposable.sql.factory import open_database

pytestmark = pytest.mark.anyio
JOINED = "SELECT p.name FROM person p JOIN department d ON p.department_id = d.id JOIN person q ON q.id = p.id"


@pytest.mark.parametrize(
    ("sql", "rows", "confidence", "doubts"),
    [
        ("SELECT 1", [(1,)], 0.902, ()),
        ("SELECT 1", [], 0.619, ()),
        ("SELECT 1 FROM a JOIN b", [(1,)], 0.758, ()),
        ("SELECT 1 FROM a JOIN b", [], 0.355, ("the SQL has 1 join", "the result is empty")),
        (JOINED, [(1,)], 0.514, ("the SQL has 2 joins",)),
    ],
)
def test_confidence_falls_with_joins_and_empty_results(sql, rows, confidence, doubts):
    assert estimate_confidence(sql, rows) == (confidence, doubts)


@pytest.mark.parametrize(
    ("assisted", "question", "ending", "doubts"),
    [
        (True, "Who works?", " This is uncertain: the SQL has 2 joins.", ("the SQL has 2 joins",)),
        (True, "谁在工作？", "不确定：SQL 中有 2 个连接。", ("SQL 中有 2 个连接",)),
        (False, "Who works?", ": Ann, Bob, Cy.", ()),
    ],
)
async def test_only_the_answer_of_a_small_model_says_what_it_is_unsure_of(
    tmp_path: Path, assisted, question, ending, doubts
):
    database = await open_database(str(make_shop(tmp_path / "shop.sqlite")))
    options = TeamOptions(assisted=assisted)
    async with open_team(ScriptedModel(format_sql_reply(JOINED)), database, options=options) as team:
        answer, _ = await team.answer(question)
    await database.close()
    assert answer.text.endswith(ending)
    assert answer.doubts == doubts
