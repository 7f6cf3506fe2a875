"""The team on real databases, with a model that says what it is told to."""

from pathlib import Path

import pytest
from tests.ask.team.shop import make_shop, sql

from opposable.ask.team.team import Parts, SemanticReading, Team
from opposable.domain.events import DataAnswered, Decided, ModelReplied, Reply, RunFinished, Token, ToolFinished
from opposable.domain.messages import assistant
from opposable.domain.usage import Usage
from opposable.models.scripted import ScriptedModel
from opposable.sql.factory import open_database

pytestmark = pytest.mark.anyio

SURE = Parts(opinions=0)


@pytest.fixture
async def shop(tmp_path: Path):
    database = await open_database(str(make_shop(tmp_path / "shop.sqlite")))
    yield database
    await database.close()


def unsure(text: str) -> Reply:
    """A reply whose words were even chances."""
    return Reply(assistant(sql(text)), usage=Usage(10, 5, 1), tokens=(Token("SELECT", (("SELECT", -0.7),)),))


async def events_of(team: Team, question: str) -> list:
    return [event async for event in team.stream(question)]


def decisions(events: list) -> list[str]:
    return [event.action for event in events if isinstance(event, Decided)]


async def test_an_easy_question_takes_one_model_call(shop):
    model = ScriptedModel(sql("SELECT count(*) FROM person"))
    events = await events_of(Team(model, shop, parts=SURE), "How many people are there?")
    assert decisions(events) == ["sql_generator", "result_evaluator", "finish"]
    answered = next(event.answer for event in events if isinstance(event, DataAnswered))
    assert (answered.text, answered.sql, answered.rows) == ("The answer is 3.", "SELECT count(*) FROM person", ((3,),))
    assert isinstance(events[-1], RunFinished)
    assert events[-1].usage.requests == 1


async def test_a_wrong_name_is_put_right_without_the_model(shop):
    model = ScriptedModel(
        sql("SELECT T2.nme FROM person AS T1 JOIN department AS T2 ON T1.department_id = T2.id WHERE T1.name = 'Ann'")
    )
    answer, end = await Team(model, shop, parts=SURE).answer("Ann 在哪个部门？")
    assert (answer.text, end.usage.requests) == ("答案是 行政管理。", 1)
    assert answer.corrections


@pytest.mark.parametrize(
    ("written", "rows", "told"),
    [
        ("sales", (("Bob",), ("Cy",)), "'sales' → 'Sales'"),
        ("行政", (("Ann",),), "'行政' → '行政管理'"),
        ("the Sales team", (("Bob",), ("Cy",)), "'the Sales team' → 'Sales'"),
    ],
)
async def test_a_value_no_row_has_becomes_the_real_one(shop, written, rows, told):
    query = (
        f"SELECT p.name FROM person p JOIN department d ON p.department_id = d.id WHERE d.name = '{written}' ORDER BY 1"
    )
    answer, end = await Team(ScriptedModel(sql(query)), shop, parts=SURE).answer(f"Who works in {written}?")
    assert (answer.rows, answer.corrections, end.usage.requests) == (rows, (told,), 1)


async def test_an_error_is_told_to_the_model_once_and_mended(shop):
    model = ScriptedModel(sql("SELECT max(salary FROM person"), sql("SELECT max(salary) FROM person"))
    events = await events_of(Team(model, shop, parts=SURE), "What is the highest salary?")
    assert decisions(events) == ["sql_generator", "result_evaluator", "result_evaluator", "result_evaluator", "finish"]
    assert "That is not right" in model.requests[1].messages[-1].content
    assert events[-1].text == "The answer is 30."


async def test_the_same_mistake_again_is_a_fresh_start_that_knows_what_failed(shop):
    wrong = [sql("SELECT wages FROM payroll"), sql("SELECT income FROM payroll"), sql("SELECT sum(salary) FROM person")]
    model = ScriptedModel(*wrong)
    events = await events_of(Team(model, shop, parts=Parts(opinions=0, captain=False)), "What do we pay in all?")
    assert "the same problem came again: a fresh start" in [e.reason for e in events if isinstance(e, Decided)]
    told = model.requests[2].messages[-1].content
    assert "What was tried did not do" in told
    assert "payroll" in told
    assert "SELECT" not in told
    assert events[-1].text == "The answer is 60."


async def test_it_gives_up_with_a_reason_rather_than_a_wrong_number(shop):
    model = ScriptedModel(*[sql(f"SELECT a{n} FROM nothing{n}") for n in range(9)])
    answer, end = await Team(model, shop, parts=Parts(captain=False)).answer("利润是多少？")
    assert answer.text.startswith("无法可靠地回答这个问题：")
    assert (answer.sql, answer.rows, answer.confidence) == ("", (), 0.0)
    assert end.usage.requests <= 6


async def test_a_doubtful_answer_says_its_doubt(shop):
    query = "SELECT name FROM department WHERE name = 'Legal'"
    answer, _ = await Team(ScriptedModel(sql(query), sql(query), sql(query)), shop, parts=SURE).answer(
        "Is there a legal department?"
    )
    assert (answer.text, answer.rows) == ("No rows match.", ())
    assert answer.assumptions == ("no row has name = 'Legal'",)
    assert answer.confidence < 0.3


async def test_unsure_writers_are_asked_again_and_the_result_most_agree_on_is_given(shop):
    queries = ["SELECT count(*) FROM department", "SELECT count(id) FROM person", "SELECT count(*) FROM person"]
    lines = [unsure(query) for query in queries]
    answer, end = await Team(ScriptedModel(*lines), shop, parts=Parts(opinions=2)).answer("How many people?")
    assert (answer.rows, end.usage.requests) == (((3,),), 3)


async def test_the_team_never_writes(shop):
    model = ScriptedModel(sql("DELETE FROM person"), *[sql("DROP TABLE person")] * 8)
    answer, _ = await Team(model, shop).answer("Delete everyone")
    assert answer.sql == ""
    assert (await shop.run("SELECT count(*) FROM person")).rows == ((3,),)


class Read:
    """A semantic model that knows one question."""

    def __init__(self, reading: SemanticReading) -> None:
        self._reading = reading

    async def read(self, question, language):
        return self._reading


async def test_what_the_semantic_model_covers_needs_no_model(shop):
    reading = SemanticReading("SELECT sum(salary) FROM person", 0.99, assumptions=("salary is monthly",))
    answer, end = await Team(ScriptedModel("unused"), shop, semantics=Read(reading)).answer("Total pay?")
    assert (answer.text, answer.assumptions, end.usage.requests) == ("The answer is 60.", ("salary is monthly",), 0)


async def test_definitions_reach_the_writer_where_the_semantic_model_does_not_cover_the_question(shop):
    model = ScriptedModel(sql("SELECT max(salary) FROM person"))
    reading = SemanticReading(definitions="pay: sum(salary)")
    await Team(model, shop, semantics=Read(reading), parts=SURE).answer("Highest pay?")
    assert "pay: sum(salary)" in model.requests[0].messages[-1].content


async def test_each_turn_is_told_as_it_happens(shop):
    events = await events_of(
        Team(ScriptedModel(sql("SELECT name, salary FROM person ORDER BY 2")), shop, parts=SURE), "Salaries?"
    )
    kinds = [type(event).__name__ for event in events]
    assert kinds == [
        "RunStarted",
        "Decided",
        "ModelReplied",
        "Decided",
        "ToolStarted",
        "ToolFinished",
        "Decided",
        "TextDelta",
        "DataAnswered",
        "RunFinished",
    ]
    assert next(e.answer.chart for e in events if isinstance(e, DataAnswered)) == {
        "type": "bar",
        "x": "name",
        "y": ["salary"],
    }
    assert [e.result.failure for e in events if isinstance(e, ToolFinished)] == [None]
    assert [e.turn for e in events if isinstance(e, ModelReplied)] == [1]
