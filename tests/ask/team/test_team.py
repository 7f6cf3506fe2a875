"""The team answers questions on a real database with a scripted model."""

from pathlib import Path

import pytest
from tests.ask.team.shop import format_sql_reply, make_shop

from opposable.ask.team.interfaces import SemanticInterpretation, TeamOptions
from opposable.ask.team.team import Team
from opposable.domain.events import DataAnswered, DecisionMade, ModelReplied, Reply, RunFinished, Token, ToolFinished
from opposable.domain.messages import assistant_message
from opposable.domain.usage import Usage
from opposable.models.scripted import ScriptedModel
from opposable.sql.factory import open_database

pytestmark = pytest.mark.anyio

SINGLE_DRAFT_OPTIONS = TeamOptions(extra_candidates=0)


@pytest.fixture
async def shop(tmp_path: Path):
    database = await open_database(str(make_shop(tmp_path / "shop.sqlite")))
    yield database
    await database.close()


def make_unsure_reply(text: str) -> Reply:
    """A reply whose words were even chances."""
    return Reply(
        assistant_message(format_sql_reply(text)), usage=Usage(10, 5, 1), tokens=(Token("SELECT", (("SELECT", -0.7),)),)
    )


async def collect_events(team: Team, question: str) -> list:
    return [event async for event in team.stream(question)]


def list_decisions(events: list) -> list[str]:
    return [event.action for event in events if isinstance(event, DecisionMade)]


async def test_an_easy_question_needs_one_model_call(shop):
    model = ScriptedModel(format_sql_reply("SELECT count(*) FROM person"))
    events = await collect_events(Team(model, shop, options=SINGLE_DRAFT_OPTIONS), "How many people are there?")
    assert list_decisions(events) == ["sql_generator", "result_evaluator", "finish"]
    answered = next(event.answer for event in events if isinstance(event, DataAnswered))
    assert (answered.text, answered.sql, answered.rows) == ("The answer is 3.", "SELECT count(*) FROM person", ((3,),))
    assert isinstance(events[-1], RunFinished)
    assert events[-1].usage.requests == 1


async def test_a_wrong_name_is_repaired_without_the_model(shop):
    model = ScriptedModel(
        format_sql_reply(
            "SELECT T2.nme FROM person AS T1 JOIN department AS T2 ON T1.department_id = T2.id WHERE T1.name = 'Ann'"
        )
    )
    answer, end = await Team(model, shop, options=SINGLE_DRAFT_OPTIONS).answer("Ann 在哪个部门？")
    assert (answer.text, end.usage.requests) == ("答案是 行政管理。", 1)
    assert answer.corrections


@pytest.mark.parametrize(
    ("written", "rows", "correction"),
    [
        ("sales", (("Bob",), ("Cy",)), "'sales' → 'Sales'"),
        ("行政", (("Ann",),), "'行政' → '行政管理'"),
        ("the Sales team", (("Bob",), ("Cy",)), "'the Sales team' → 'Sales'"),
    ],
)
async def test_a_value_that_no_row_has_is_replaced_by_a_real_one(shop, written, rows, correction):
    query = (
        f"SELECT p.name FROM person p JOIN department d ON p.department_id = d.id WHERE d.name = '{written}' ORDER BY 1"
    )
    answer, end = await Team(ScriptedModel(format_sql_reply(query)), shop, options=SINGLE_DRAFT_OPTIONS).answer(
        f"Who works in {written}?"
    )
    assert (answer.rows, answer.corrections, end.usage.requests) == (rows, (correction,), 1)


async def test_an_error_is_sent_to_the_model_once_and_corrected(shop):
    model = ScriptedModel(
        format_sql_reply("SELECT max(salary FROM person"), format_sql_reply("SELECT max(salary) FROM person")
    )
    events = await collect_events(Team(model, shop, options=SINGLE_DRAFT_OPTIONS), "What is the highest salary?")
    assert list_decisions(events) == [
        "sql_generator",
        "result_evaluator",
        "result_evaluator",
        "result_evaluator",
        "finish",
    ]
    assert "That is not right" in model.requests[1].messages[-1].content
    assert events[-1].text == "The answer is 30."


async def test_a_repeated_mistake_causes_a_fresh_start_with_the_failed_attempts(shop):
    wrong = [
        format_sql_reply("SELECT wages FROM payroll"),
        format_sql_reply("SELECT income FROM payroll"),
        format_sql_reply("SELECT sum(salary) FROM person"),
    ]
    model = ScriptedModel(*wrong)
    events = await collect_events(
        Team(model, shop, options=TeamOptions(extra_candidates=0, model_decides_when_stuck=False)),
        "What do we pay in all?",
    )
    assert "the same problem came again: a fresh start" in [e.reason for e in events if isinstance(e, DecisionMade)]
    prompt = model.requests[2].messages[-1].content
    assert "What was tried did not do" in prompt
    assert "payroll" in prompt
    assert "SELECT" not in prompt
    assert events[-1].text == "The answer is 60."


async def test_the_team_gives_up_with_a_reason_rather_than_a_wrong_number(shop):
    model = ScriptedModel(*[format_sql_reply(f"SELECT a{n} FROM nothing{n}") for n in range(9)])
    answer, end = await Team(model, shop, options=TeamOptions(model_decides_when_stuck=False)).answer("利润是多少？")
    assert answer.text.startswith("无法可靠地回答这个问题：")
    assert (answer.sql, answer.rows, answer.confidence) == ("", (), 0.0)
    assert end.usage.requests <= 6


async def test_a_doubtful_answer_states_the_suspicion(shop):
    query = "SELECT name FROM department WHERE name = 'Legal'"
    answer, _ = await Team(
        ScriptedModel(format_sql_reply(query), format_sql_reply(query), format_sql_reply(query)),
        shop,
        options=SINGLE_DRAFT_OPTIONS,
    ).answer("Is there a legal department?")
    assert (answer.text, answer.rows) == ("No rows match.", ())
    assert answer.assumptions == ("no row has name = 'Legal'",)
    assert answer.confidence < 0.3


async def test_an_unsure_model_is_asked_again_and_the_majority_result_is_returned(shop):
    queries = ["SELECT count(*) FROM department", "SELECT count(id) FROM person", "SELECT count(*) FROM person"]
    lines = [make_unsure_reply(query) for query in queries]
    answer, end = await Team(ScriptedModel(*lines), shop, options=TeamOptions(extra_candidates=2)).answer(
        "How many people?"
    )
    assert (answer.rows, end.usage.requests) == (((3,),), 3)


async def test_the_team_never_writes(shop):
    model = ScriptedModel(format_sql_reply("DELETE FROM person"), *[format_sql_reply("DROP TABLE person")] * 8)
    answer, _ = await Team(model, shop).answer("Delete everyone")
    assert answer.sql == ""
    assert (await shop.run("SELECT count(*) FROM person")).rows == ((3,),)


class FixedInterpreter:
    """A semantic model that knows one question."""

    def __init__(self, reading: SemanticInterpretation) -> None:
        self._reading = reading

    async def interpret(self, question, language):
        return self._reading


async def test_what_the_semantic_model_covers_needs_no_model(shop):
    reading = SemanticInterpretation("SELECT sum(salary) FROM person", 0.99, assumptions=("salary is monthly",))
    answer, end = await Team(ScriptedModel("unused"), shop, interpreter=FixedInterpreter(reading)).answer("Total pay?")
    assert (answer.text, answer.assumptions, end.usage.requests) == ("The answer is 60.", ("salary is monthly",), 0)


async def test_definitions_are_in_the_prompt_if_the_semantic_model_does_not_cover_the_question(shop):
    model = ScriptedModel(format_sql_reply("SELECT max(salary) FROM person"))
    reading = SemanticInterpretation(definitions="pay: sum(salary)")
    await Team(model, shop, interpreter=FixedInterpreter(reading), options=SINGLE_DRAFT_OPTIONS).answer("Highest pay?")
    assert "pay: sum(salary)" in model.requests[0].messages[-1].content


async def test_each_turn_is_reported_by_events(shop):
    events = await collect_events(
        Team(
            ScriptedModel(format_sql_reply("SELECT name, salary FROM person ORDER BY 2")),
            shop,
            options=SINGLE_DRAFT_OPTIONS,
        ),
        "Salaries?",
    )
    kinds = [type(event).__name__ for event in events]
    assert kinds == [
        "RunStarted",
        "DecisionMade",
        "ModelReplied",
        "DecisionMade",
        "ToolStarted",
        "ToolFinished",
        "DecisionMade",
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
