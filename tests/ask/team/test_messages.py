"""Users read messages in the language of their question, models read them in English."""

import re
from collections.abc import AsyncIterator

import pytest
from tests.ask.team.shop import format_sql_reply, make_shop

from opposable.ask.assistance.misplaced_columns import TABLE_JOINED, repair_misplaced_columns
from opposable.ask.team import answer_text, messages, planner
from opposable.ask.team.state import Candidate, CandidateOutcome, TeamState
from opposable.ask.team.team import Team, TeamOptions
from opposable.domain.events import DecisionMade, ToolFinished
from opposable.domain.localized_text import localize
from opposable.models.scripted import ScriptedModel
from opposable.sql.database import Database
from opposable.sql.factory import open_database

pytestmark = pytest.mark.anyio
CHINESE_PATTERN = re.compile(r"[\u4e00-\u9fff]")
TEAM_OPTIONS = TeamOptions()


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """Use one event loop, so that the database is opened once."""
    return "asyncio"


@pytest.fixture(scope="module")
async def shop(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Database]:
    database = await open_database(str(make_shop(tmp_path_factory.mktemp("shop") / "shop.sqlite")))
    yield database
    await database.close()


SUSPICION = ("no row has name = 'sales'; near are 'Sales'", "没有 name 为“sales”的数据；相近的值有 'Sales'")


@pytest.mark.parametrize(
    ("question", "expected"), [("Who is in sales?", SUSPICION[0]), ("sales里有谁？", SUSPICION[1])]
)
async def test_warnings_reach_the_user_in_the_language_of_the_question_and_the_model_in_english(
    shop, question, expected
):
    model = ScriptedModel(*[format_sql_reply("SELECT id FROM department WHERE name = 'sales'")] * 2)
    answer, _ = await Team(model, shop, options=TEAM_OPTIONS).answer(question)
    assert answer.warnings == (expected,)
    assert answer.history[1].output_text == ("0 行" if expected == SUSPICION[1] else "0 rows")
    assert SUSPICION[0] in model.requests[1].messages[-1].content


async def test_corrections_are_in_both_languages(shop):
    query = "SELECT id, salary FROM department"
    _, corrections = repair_misplaced_columns(query, "sqlite", await shop.get_schema())
    assert [localize(correction, "en") for correction in corrections] == ["person joined for salary"]
    assert [localize(correction, "zh") for correction in corrections] == ["为 salary 连接了 person"]


@pytest.mark.parametrize(
    ("query", "english", "chinese"),
    [
        ("SELECT wages FROM payroll", "reliably: There is no table payroll. Tables: department, person", "没有表 payroll；现有的是 department、person"),
        ("DROP TABLE person", "DROP is not allowed", "不允许 DROP"),
        ("SELECT load_extension('x')", "The function load_extension is not available here", "不能使用函数 load_extension"),
        ("SELECT (name FROM person", "reliably: The safety check cannot read the SQL", "安全检查无法解析 SQL"),
        ("SELECT abs(-9223372036854775807 - 1)", "The database says: ", "数据库报错："),
    ],
)  # fmt: skip
async def test_the_reason_for_giving_up_is_in_the_language_of_the_question(shop, query, english, chinese):
    for question, expected in (("What is paid?", english), ("工资一共发了什么？", chinese)):
        model = ScriptedModel(*[format_sql_reply(query)] * 9)
        events = [event async for event in Team(model, shop, options=TEAM_OPTIONS).stream(question)]
        assert expected in events[-1].text
        shown = [event.reason for event in events if isinstance(event, DecisionMade)]
        shown += [event.result.content for event in events if isinstance(event, ToolFinished)]
        assert {bool(CHINESE_PATTERN.search(text)) for text in shown} == {question[0] == "工"}
        prompts = [message.content for request in model.requests for message in request.messages[1:]]
        assert not any(CHINESE_PATTERN.search(text.replace(question, "")) for text in prompts)


def test_an_unknown_error_is_quoted_in_a_sentence_of_the_language():
    assert (
        answer_text.format_failure_sentence("It broke.", "zh")
        == "无法可靠地回答这个问题：最后一次尝试没有成功（It broke）。"
    )
    assert (
        answer_text.format_failure_sentence("It broke.", "en")
        == "This question could not be answered reliably: It broke."
    )


def test_every_decision_has_a_chinese_reason():
    bad = CandidateOutcome(Candidate("SELECT 1"), "", problem=messages.NO_SQL_IN_REPLY, problem_kind="k")
    good = CandidateOutcome(Candidate("SELECT 1", 0.1), "SELECT 1")
    states = [
        TeamState("", "zh"),
        TeamState("", "zh", pending_candidates=[good.candidate]),
        TeamState("", "zh", outcomes=[good]),
        TeamState("", "zh", outcomes=[bad]),
        TeamState("", "zh", outcomes=[bad, bad]),
        TeamState("", "zh", outcomes=[bad], correction_count=2),
        TeamState("", "zh", outcomes=[bad], correction_count=2, draft_count=3),
        TeamState("", "zh", outcomes=[good, bad], correction_count=1),
        TeamState("", "zh", outcomes=[good, bad], correction_count=0, draft_count=3),
    ]
    reasons = {planner.decide_turn(state, semantics).reason for state in states for semantics in (True, False)}  # fmt: skip
    assert len(reasons) >= 8
    assert [reason for reason in reasons if not CHINESE_PATTERN.search(localize(reason, "zh"))] == []


@pytest.mark.parametrize(
    ("message", "english", "chinese"),
    [
        (
            messages.join_suspicions([
                messages.missing_value("city", "a; b", ["x", "y"]), messages.missing_value("name", "c", ["d"], ["t.u", "v.w"])
            ]),
            "no row has city = 'a; b'; near are 'x', 'y'; no row has name = 'c'; it occurs in t.u, v.w",
            "没有 city 为“a; b”的数据；相近的值有 'x'、'y'；没有 name 为“c”的数据；这个值出现在 t.u、v.w 中",
        ),
        (TABLE_JOINED.format(table="t", column="c"), "t joined for c", "为 c 连接了 t"),
        (messages.UNMATCHED_CONDITION.format(condition="a = 1"), "no row satisfies a = 1", "没有满足 a = 1 的数据"),
        (
            messages.ROW_EXPLOSION.format(row_count=900, max_table_rows=30),
            "the result has 900 rows, more than any table (30): a join may multiply rows",
            "结果有 900 行，比任何一个表（最多 30 行）都多：连接可能造成了重复",
        ),
        ("orders.id = lines.order_id", "orders.id = lines.order_id", "orders.id = lines.order_id"),
    ],
)  # fmt: skip
def test_a_message_has_both_languages(message, english, chinese):
    assert localize(message, "en") == english
    assert localize(message, "zh") == chinese
