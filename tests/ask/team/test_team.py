"""The team answers questions on a real database with a scripted model."""

import asyncio
import time

import pytest
from tests.ask.team.shop import format_sql_reply

from opposable.ask.team.state import Candidate, TeamState
from opposable.ask.team.team import Team, TeamOptions
from opposable.domain.events import DataAnswered, DecisionMade, ModelReplied, Reply, RunFinished, ToolFinished
from opposable.domain.messages import assistant_message
from opposable.models.scripted import ScriptedModel

pytestmark = pytest.mark.anyio

ASSISTED_OPTIONS = TeamOptions(assisted=True)


async def collect_events(team: Team, question: str) -> list:
    return [event async for event in team.stream(question)]


def list_decisions(events: list) -> list[str]:
    return [event.action for event in events if isinstance(event, DecisionMade)]


async def test_an_easy_question_needs_one_model_call(shop):
    model = ScriptedModel(format_sql_reply("SELECT count(*) FROM person"))
    events = await collect_events(Team(model, shop), "How many people are there?")
    assert list_decisions(events) == ["sql_generator", "result_evaluator", "finish"]
    answered = next(event.answer for event in events if isinstance(event, DataAnswered))
    assert (answered.text, answered.sql, answered.rows) == ("The answer is 3.", "SELECT count(*) FROM person", ((3,),))
    assert isinstance(events[-1], RunFinished)
    assert events[-1].usage.requests == 1


async def test_of_several_statements_the_model_chooses_one(shop):
    drafts = f"{format_sql_reply('SELECT 1')}\nBetter:\n{format_sql_reply('SELECT count(*) FROM person')}"
    model = ScriptedModel(drafts, format_sql_reply("SELECT count(*) FROM person"))
    answer, end = await Team(model, shop).answer("How many people are there?")
    assert (answer.sql, end.usage.requests) == ("SELECT count(*) FROM person", 2)
    assert "2 statements" in model.requests[1].messages[-1].content


MISSPELT = "SELECT T2.nme FROM person AS T1 JOIN department AS T2 ON T1.department_id = T2.id WHERE T1.name = 'Ann'"


async def test_a_similar_name_is_reported_to_the_model(shop):
    model = ScriptedModel(format_sql_reply(MISSPELT), format_sql_reply(MISSPELT.replace("nme", "name")))
    answer, end = await Team(model, shop).answer("Ann 在哪个部门？")
    assert (answer.text, answer.corrections, end.usage.requests) == ("答案是 行政管理。", (), 2)
    assert "no column nme. Did you mean name?" in model.requests[1].messages[-1].content


async def test_a_missing_table_is_joined_for_an_assisted_model(shop):
    query = "SELECT department.name FROM department WHERE salary = 10"
    answer, end = await Team(ScriptedModel(format_sql_reply(query)), shop, options=ASSISTED_OPTIONS).answer(
        "Ann 在哪个部门？"
    )
    assert (answer.rows, end.usage.requests) == ((("行政管理",),), 1)
    assert answer.corrections == ("为 salary 连接了 person",)


async def test_a_name_with_one_reading_is_repaired_without_the_model(shop):
    query = "SELECT p.ｎａｍｅ FROM person AS p WHERE p.salary＞ 20"
    answer, end = await Team(ScriptedModel(format_sql_reply(query)), shop).answer("Who earns more than 20?")
    assert (answer.sql, end.usage.requests) == ("SELECT p.name FROM person AS p WHERE p.salary> 20", 1)
    assert answer.corrections == ("full-width signs → ASCII", "column ｎａｍｅ → name")


@pytest.mark.parametrize(("written", "real"), [("sales", "Sales"), ("行政", "行政管理"), ("the Sales team", "Sales")])
async def test_near_values_are_reported_to_the_model_and_the_value_is_not_replaced(shop, written, real):
    query = "SELECT p.name FROM person p JOIN department d ON p.department_id = d.id WHERE d.name = '{}' ORDER BY 1"
    model = ScriptedModel(format_sql_reply(query.format(written)), format_sql_reply(query.format(real)))
    answer, end = await Team(model, shop).answer(f"Who works in {written}?")
    assert f"no row has name = '{written}'; near are '{real}'" in model.requests[1].messages[-1].content
    assert (answer.sql, answer.corrections, answer.warnings) == (query.format(real), (), ())
    assert (bool(answer.rows), end.usage.requests) == (True, 2)


async def test_a_model_may_insist_on_its_value(shop):
    query = "SELECT count(*) FROM department WHERE name = 'sales'"
    answer, end = await Team(ScriptedModel(*[format_sql_reply(query)] * 2), shop).answer("How many sales?")
    assert (answer.rows, answer.sql, end.usage.requests) == (((0,),), query, 2)
    assert answer.warnings == ("no row has name = 'sales'; near are 'Sales'",)


async def test_a_model_may_insist_on_its_value_in_words(shop):
    words = "There is no department 'sales'; 'Sales' is another one."
    model = ScriptedModel(format_sql_reply("SELECT count(*) FROM department WHERE name = 'sales'"), words)
    answer, _ = await Team(model, shop).answer("How many sales?")
    assert (answer.text, answer.rows, answer.success) == (words, ((0,),), True)
    assert "not right" not in model.requests[1].messages[-1].content
    small = ScriptedModel(format_sql_reply("SELECT count(*) FROM department WHERE name = 'sales'"), words, words, words)
    await Team(small, shop, options=ASSISTED_OPTIONS).answer("How many sales?")
    assert small.requests[1].messages[-1].content.startswith("That is not right: no row has name = 'sales'")


async def test_a_query_ends_with_the_time_of_the_question(shop):
    slow = "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT count(*) FROM r"
    started = time.monotonic()
    team = Team(ScriptedModel(format_sql_reply(slow)), shop, options=TeamOptions(time_limit_seconds=1.0))
    answer, end = await team.answer("How many?")
    assert (answer.success, answer.error, end.reason) == (False, "the time is up", "time")
    assert [candidate.diagnosis for candidate in answer.candidates] == ["the time is up"]
    assert time.monotonic() - started < 5


async def test_lookups_for_an_empty_result_end_in_time(shop, monkeypatch):
    async def wait_forever(*_):
        await asyncio.Event().wait()

    monkeypatch.setattr("opposable.ask.team.team.MAX_LOOKUP_SECONDS", 0.01)
    monkeypatch.setattr("opposable.ask.team.literals.find_missing_literals", wait_forever)
    model = ScriptedModel(format_sql_reply("SELECT name FROM department WHERE name = 'Legal'"))
    answer, _ = await Team(model, shop).answer("Is there a legal department?")
    assert (answer.text, answer.warnings) == ("No rows match.", ())


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        ("name = 'Legal'", "No rows match: no row has name = 'Legal'."),
        ("id = 1 AND name LIKE 'x%'", "No rows match: no row satisfies name LIKE 'x%'."),
        ("id = 1 AND name = 'Sales'", "No rows match."),
    ],
)
async def test_an_empty_result_names_the_condition_that_no_row_satisfies(shop, condition, text):
    model = ScriptedModel(format_sql_reply(f"SELECT name FROM department WHERE {condition}"))
    answer, end = await Team(model, shop).answer("Which department?")
    assert (answer.text, answer.rows, end.usage.requests) == (text, (), 1)


async def test_an_empty_aggregate_has_no_value(shop):
    query = "SELECT sum(salary) FROM person WHERE salary > 99"
    answer, _ = await Team(ScriptedModel(format_sql_reply(query)), shop).answer("总工资？")
    assert answer.text == "没有符合条件的数据：没有满足 salary > 99 的数据。"


async def test_an_error_is_sent_to_the_model_once_and_corrected(shop):
    model = ScriptedModel(
        format_sql_reply("SELECT max(salary FROM person"), format_sql_reply("SELECT max(salary) FROM person")
    )
    events = await collect_events(Team(model, shop), "What is the highest salary?")
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
        Team(model, shop, options=TeamOptions()),
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
    answer, end = await Team(model, shop, options=TeamOptions()).answer("利润是多少？")
    assert answer.text.startswith("无法可靠地回答这个问题：")
    assert (answer.sql, answer.rows, answer.confidence, answer.success) == ("", (), None, False)
    assert answer.error
    assert answer.error in answer.text + "。"
    assert end.usage.requests <= 6


async def test_a_value_that_is_nowhere_is_a_warning_and_no_further_request(shop):
    query = "SELECT name FROM department WHERE name = 'Legal'"
    answer, end = await Team(ScriptedModel(format_sql_reply(query)), shop).answer("Is there a legal department?")
    assert (answer.warnings, answer.assumptions, end.usage.requests) == (("no row has name = 'Legal'",), (), 1)
    assert answer.confidence is None


async def test_the_team_never_writes(shop):
    model = ScriptedModel(format_sql_reply("DELETE FROM person"), *[format_sql_reply("DROP TABLE person")] * 8)
    answer, _ = await Team(model, shop).answer("Delete everyone")
    assert answer.sql == ""
    assert (await shop.run("SELECT count(*) FROM person")).rows == ((3,),)


class FixedInterpreter:
    """A semantic model that knows one question: its SQL, or definitions."""

    def __init__(self, sql: str = "", definitions: str = "") -> None:
        self._sql = sql
        self._definitions = definitions

    def __call__(self, state: TeamState) -> None:
        state.assumptions += ["salary is monthly"]
        state.notes += [self._definitions]
        state.pending_candidates += [Candidate(self._sql, 0.99, "semantics")] if self._sql else []


async def test_what_the_semantic_model_covers_needs_no_model(shop):
    interpret = FixedInterpreter("SELECT sum(salary) FROM person")
    answer, end = await Team(ScriptedModel("unused"), shop, interpret=interpret).answer("Total pay?")
    assert (answer.text, answer.assumptions, end.usage.requests) == ("The answer is 60.", ("salary is monthly",), 0)


RANKING = "SELECT name, salary % {} AS rest FROM person ORDER BY rest DESC, name ASC LIMIT {}"


@pytest.mark.parametrize(
    ("divisor", "limit", "warnings"),
    [
        (10, 1, ("further rows have the same rest as the last",)),
        (10, 2, ("further rows have the same rest as the last",)),
        (10, 3, ()),
        (40, 1, ()),
    ],
)
async def test_a_compiled_ranking_says_that_further_rows_are_equal(shop, divisor, limit, warnings):
    interpret = FixedInterpreter(RANKING.format(divisor, limit))
    answer, _ = await Team(ScriptedModel("unused"), shop, interpret=interpret).answer("Who has the most?")
    assert (len(answer.rows), answer.warnings) == (limit, warnings)
    assert answer.confidence == pytest.approx(0.99 / (2 if warnings else 1), abs=0.001)


async def test_sql_of_a_model_is_not_compared_with_further_rows(shop):
    answer, _ = await Team(ScriptedModel(format_sql_reply(RANKING.format(10, 1))), shop).answer("Who has the most?")
    assert (len(answer.rows), answer.warnings) == (1, ())


async def test_definitions_are_in_the_prompt_if_the_semantic_model_does_not_cover_the_question(shop):
    model = ScriptedModel(format_sql_reply("SELECT max(salary) FROM person"))
    await Team(model, shop, interpret=FixedInterpreter(definitions="pay: sum(salary)")).answer("Highest pay?")
    assert "pay: sum(salary)" in model.requests[0].messages[-1].content


async def test_each_turn_is_reported_by_events(shop):
    events = await collect_events(
        Team(
            ScriptedModel(format_sql_reply("SELECT name, salary FROM person ORDER BY 2")),
            shop,
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


ANSWERS = [
    "The database has no weather. Do you want the people with a department?",
    "你是指在职的人吗？",
    "Which one do you mean?\n```\n1. pay\n2. bonus\n```",
]


@pytest.mark.parametrize("text", ANSWERS)
async def test_an_answer_in_words_reaches_the_user(shop, text):
    model = ScriptedModel(text)
    answer, end = await Team(model, shop).answer("How is the weather?")
    assert (answer.text, answer.success, answer.sql, end.usage.requests) == (text, False, "", 1)
    answer, end = await Team(model, shop, options=ASSISTED_OPTIONS).answer("How is the weather?")
    assert (answer.text, answer.success, answer.sql, end.usage.requests) == (text, False, "", 3)


PROSE = [
    "The database does not store profit. If you mean salaries, I would select sum(salary) from person",
    "I could run `SELECT sum(salary) FROM person` for the salaries: shall I?",
    "Please select one: salary or department.",
    "没有利润数据。请 select 其他指标",
]


@pytest.mark.parametrize("text", PROSE)
async def test_an_answer_in_words_that_mentions_sql_is_not_run(shop, text):
    answer, end = await Team(ScriptedModel(text), shop).answer("What is our profit?")
    assert (answer.text, answer.success, answer.sql, end.usage.requests) == (text, False, "", 1)


async def test_a_small_model_may_write_sql_within_prose(shop):
    model = ScriptedModel("The answer: SELECT sum(salary) FROM person")
    answer, end = await Team(model, shop, options=ASSISTED_OPTIONS).answer("Total pay?")
    assert (answer.text[:17], end.usage.requests) == ("The answer is 60.", 1)


@pytest.mark.parametrize("options", [TeamOptions(), ASSISTED_OPTIONS])
async def test_why_a_statement_is_not_run_is_reported(shop, options):
    model = ScriptedModel(*[format_sql_reply("DELETE FROM person")] * 8)
    answer, _ = await Team(model, shop, options=options).answer("Delete everyone")
    assert "DELETE is not allowed" in model.requests[1].messages[-1].content
    assert "DELETE is not allowed" in answer.text


async def test_sql_that_was_cut_off_never_runs(shop):
    query = "SELECT count(*) FROM person WHERE salary > 20"
    cut_off = Reply(assistant_message("```sql\nSELECT count(*) FROM person"), "length")
    whole = Reply(assistant_message(f"```sql\n{query}\n```\nThis counts"), "length")
    model = ScriptedModel(cut_off, whole)
    answer, _ = await Team(model, shop).answer("Who earns more than 20?")
    assert (answer.sql, len(model.requests)) == (query, 2)


@pytest.mark.parametrize(("options", "limit"), [(TeamOptions(), None), (ASSISTED_OPTIONS, 400)])
async def test_only_the_sql_of_a_small_model_is_limited_in_length(shop, options, limit):
    model = ScriptedModel(format_sql_reply("SELECT count(*) FROM person"))
    await Team(model, shop, options=options).answer("How many people are there?")
    assert model.requests[0].options.max_tokens == limit


async def test_braces_in_a_text_are_text(shop):
    query = "SELECT count(*) FROM person WHERE name <> '{{name}}'"
    answer, end = await Team(ScriptedModel(format_sql_reply(query)), shop).answer("Whose name is no template?")
    assert (answer.sql, answer.rows, end.usage.requests) == (query, ((3,),), 1)


@pytest.mark.parametrize("question", ["How many people are there?", "有多少人？"])
async def test_a_database_that_is_gone_causes_no_further_request(shop, question):
    query = format_sql_reply("SELECT count(*) FROM person")
    model = ScriptedModel(*[query] * 9)
    team = Team(model, shop)
    await team.answer(question)
    await shop.close()
    answer, end = await team.answer(question)
    assert (answer.success, end.usage.requests, len(model.requests)) == (False, 1, 2)
    assert answer.error == "The database shop.sqlite is closed."


async def test_an_answer_stays_if_the_database_is_gone_while_it_is_corrected(shop):
    class ClosingModel(ScriptedModel):
        """A model that takes so long for its second reply that the database is closed."""

        async def stream(self, *arguments):
            if self.requests:
                await shop.close()
            async for event in super().stream(*arguments):
                yield event

    query = "SELECT count(*) FROM department WHERE name = '{}'"
    model = ClosingModel(*(format_sql_reply(query.format(name)) for name in ("sales", "Sales", "SALES")))
    answer, end = await Team(model, shop).answer("How many sales?")
    assert (answer.rows, answer.success, end.usage.requests) == (((0,),), True, 2)
