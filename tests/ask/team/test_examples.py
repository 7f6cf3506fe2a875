"""Similar confirmed questions are earlier turns of the prompt."""

from pathlib import Path

import pytest
from tests.ask.team.shop import format_sql_reply, make_shop

from opposable.ask.team.examples import select_examples
from opposable.ask.team.team import Team
from opposable.domain.records import QueryExample, get_utc_now
from opposable.models.scripted import ScriptedModel
from opposable.sql.factory import open_database

pytestmark = pytest.mark.anyio

QUESTIONS = [
    "How many people work in Sales?",
    "How many people work in Legal?",
    "Which people work in Sales?",
    "What is the weather?",
    "销售部有多少人？",
    "How many people are there in Sales?",
]
EXAMPLES = [QueryExample(str(n), "shop", text, f"SELECT {n}", get_utc_now()) for n, text in enumerate(QUESTIONS)]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How many people work in sales", ["2", "1", "0"]),
        ("行政部有多少人？", ["4"]),
        ("Unrelated?", []),
    ],
)
def test_the_most_similar_questions_come_last(question, expected):
    found = [one.example_id for one in select_examples(question, EXAMPLES)]
    assert len(found) <= 3
    assert found[-1:] == expected[-1:]
    assert set(found) <= {"0", "1", "2", "4", "5"}


async def test_examples_are_earlier_turns_of_the_prompt(tmp_path: Path):
    async def load() -> list[QueryExample]:
        return EXAMPLES[3:5]

    database = await open_database(str(make_shop(tmp_path / "shop.sqlite")))
    model = ScriptedModel(format_sql_reply("SELECT count(*) FROM person"))
    await Team(model, database, load_examples=load).answer("行政部有多少人？")
    await database.close()
    turns = [(message.role, message.content) for message in model.requests[0].messages[1:]]
    assert turns[0] == ("user", "销售部有多少人？")
    assert turns[1] == ("assistant", "```sql\nSELECT 4\n```")
    assert turns[2][1].startswith("行政部有多少人？")
    assert len(turns) == 3
