"""The confidence of small models falls with the length of the SQL, empty results and equal rows, and is explained."""

from pathlib import Path

import pytest
from tests.ask.team.shop import format_sql_reply, make_shop

from opposable.ask.assistance.confidence import estimate_confidence
from opposable.ask.team.factory import open_team
from opposable.ask.team.team import TeamOptions
from opposable.models.scripted import ScriptedModel
from opposable.sql.factory import open_database

pytestmark = pytest.mark.anyio
EQUAL_ROWS = "SELECT 1 FROM person JOIN department ON person.department_id = department.id"
LONG = "SELECT name FROM person WHERE " + " OR ".join(f"id = {n}" for n in range(20))


@pytest.mark.parametrize(
    ("sql", "rows", "confidence", "doubts"),
    [
        ("SELECT 1", [(1,)], 0.932, ()),
        ("SELECT a FROM b JOIN c ON b.id = c.id", [(1,), (2,)], 0.822, ()),
        ("SELECT 1", [], 0.404, ("the result is empty",)),
        ("SELECT a FROM b WHERE c = 1", [([1],), ([1],)], 0.542, ("some rows are equal",)),
        (LONG, [(1,)], 0.548, ("the SQL is long (64 words)",)),
    ],
)
def test_confidence_falls_with_length_empty_results_and_equal_rows(sql, rows, confidence, doubts):
    assert estimate_confidence(sql, rows) == (confidence, doubts)


@pytest.mark.parametrize(
    ("assisted", "question", "ending", "doubts"),
    [
        (True, "Who works?", " This is uncertain: some rows are equal.", ("some rows are equal",)),
        (True, "谁在工作？", "不确定：有相同的行。", ("有相同的行",)),
        (False, "Who works?", ": 1, 1, 1.", ()),
    ],
)
async def test_only_the_answer_of_a_small_model_says_what_it_is_unsure_of(
    tmp_path: Path, assisted, question, ending, doubts
):
    database = await open_database(str(make_shop(tmp_path / "shop.sqlite")))
    options = TeamOptions(assisted=assisted)
    async with open_team(ScriptedModel(format_sql_reply(EQUAL_ROWS)), database, options=options) as team:
        answer, _ = await team.answer(question)
    await database.close()
    assert answer.text.endswith(ending)
    assert answer.doubts == doubts
