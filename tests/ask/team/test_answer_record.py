"""An answer records its candidates with reasons and diagnoses, its intent and the turns of the team."""

import pytest
from tests.ask.team.shop import format_sql_reply

from opposable.ask.semantics.loader import parse_semantic_model
from opposable.ask.team.answer_record import describe_sql
from opposable.ask.team.factory import open_team
from opposable.models.scripted import ScriptedModel

pytestmark = pytest.mark.anyio

MODEL = "metrics: {payroll: {expr: SUM(salary), table: person, synonyms: [total pay]}}"


async def test_candidates_have_reasons_diagnoses_and_one_is_chosen(shop):
    replies = ["SELECT max(wage) FROM person WHERE id > 1", "SELECT max(salary) FROM person WHERE id > 1"]
    async with open_team(ScriptedModel(*map(format_sql_reply, replies)), shop) as team:
        answer, _ = await team.answer("What is the highest wage?")
    assert [(one.sql, one.source, one.is_chosen) for one in answer.candidates] == [
        (replies[0], "generator", False),
        (replies[1], "correction", True),
    ]
    assert answer.candidates[1].reason == "computes MAX(salary); from person; where id > 1"
    assert "no column wage" in answer.candidates[0].diagnosis
    assert [(turn.member, bool(turn.error)) for turn in answer.history] == [
        ("sql_generator", False),
        ("result_evaluator", True),
        ("sql_generator", False),
        ("result_evaluator", False),
    ]


async def test_the_intent_is_recorded_with_the_words_that_no_term_covers(shop):
    model = ScriptedModel(format_sql_reply("SELECT sum(salary) FROM person"))
    async with open_team(model, shop, semantics=parse_semantic_model(MODEL)) as team:
        covered, _ = await team.answer("total pay")
        other, _ = await team.answer("total pay of the juniors")
    assert (covered.intent, covered.candidates[0].source) == (
        {"intent_type": "basic", "metrics": ["payroll"]},
        "semantics",
    )
    assert other.intent == covered.intent
    assert other.history[0].error == "the semantic model has no term for juniors"


async def test_the_history_names_why_an_intent_has_no_sql(shop):
    model = ScriptedModel(format_sql_reply("SELECT sum(salary) FROM person"))
    unjoined = "metrics: {payroll: {expr: SUM(salary), table: person}}\ndimensions: {brand: {expr: name, table: toy}}"
    async with open_team(model, shop, semantics=parse_semantic_model(unjoined)) as team:
        answer, _ = await team.answer("payroll by brand")
    assert "toy" in answer.history[0].error


async def test_an_answer_that_is_given_up_has_its_candidates_too(shop):
    replies = [format_sql_reply(f"SELECT a{n} FROM nothing{n}") for n in range(9)]
    async with open_team(ScriptedModel(*replies), shop) as team:
        answer, _ = await team.answer("利润是多少？")
    assert not answer.success
    assert not any(one.is_chosen for one in answer.candidates)
    assert "没有表" in answer.candidates[0].diagnosis


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        (
            "SELECT d.name, count(*) FROM person p JOIN department d ON p.department_id = d.id GROUP BY d.name HAVING count(*) > 1",
            "computes d.name, COUNT(*); from person, department; where COUNT(*) > 1; for each d.name",
        ),
        ("SELECT count(*) FROM a.orders, b.orders", "computes COUNT(*); from a.orders, b.orders"),
        ("SELECT (", ""),
    ],
)
def test_a_query_is_described_by_its_clauses(sql, reason):
    assert describe_sql(sql, "sqlite") == reason
