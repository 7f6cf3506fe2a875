"""Users read messages in the language of their question, models read them in English."""

import re
from collections.abc import AsyncIterator

import pytest
from tests.ask.team.shop import format_sql_reply, make_shop

from opposable.ask.sql_repair import messages as repair_messages
from opposable.ask.sql_repair.question_requirements import REQUIREMENTS
from opposable.ask.team import answer_text, evaluator, messages, planner
from opposable.ask.team.interfaces import TeamOptions
from opposable.ask.team.state import Candidate, CandidateOutcome, TeamState
from opposable.ask.team.team import Team
from opposable.domain.events import DecisionMade, ToolFinished
from opposable.domain.localized_text import localize
from opposable.models.scripted import ScriptedModel
from opposable.sql.database import Database
from opposable.sql.factory import open_database

pytestmark = pytest.mark.anyio
CHINESE_PATTERN = re.compile(r"[\u4e00-\u9fff]")
TEAM_OPTIONS = TeamOptions(extra_candidates=0, model_decides_when_stuck=False)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """Use one event loop, so that the database is opened once."""
    return "asyncio"


@pytest.fixture(scope="module")
async def shop(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Database]:
    database = await open_database(str(make_shop(tmp_path_factory.mktemp("shop") / "shop.sqlite")))
    yield database
    await database.close()


SUSPICION_CASES = [
    (
        ("Who is in Legal?", "Legal里有谁？"),
        "SELECT name FROM person WHERE name = 'Legal'",
        ("no row has name = 'Legal'", "没有 name 为“Legal”的数据"),
    ),
    (
        ("How many people are there?", "一共有多少人？"),
        "SELECT name, count(*) FROM person GROUP BY name HAVING count(*) > 0",
        ("the question asks for one number, and 3 rows of 2 columns came", "问题只要一个数，结果却有 3 行 2 列"),
    ),
    (
        ("What is the average salary?", "平均工资是多少？"),
        "SELECT max(salary) FROM person",
        ("the question asks for an average, and the SQL has no AVG", "问题要求平均值，SQL 却没有 AVG"),
    ),
]


@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize(("questions", "query", "expected"), SUSPICION_CASES)
async def test_suspicions_reach_the_user_in_the_language_of_the_question_and_the_model_in_english(
    shop, questions, query, expected, at
):
    model = ScriptedModel(*[format_sql_reply(query)] * 9)
    answer, _ = await Team(model, shop, options=TEAM_OPTIONS).answer(questions[at])
    assert answer.assumptions == (expected[at],)
    assert expected[0] in model.requests[1].messages[-1].content


CORRECTION_CASES = [
    (
        "SELECT T2.nme FROM person AS T1 JOIN department AS T2 ON T1.department_id = T2.id WHERE T1.name = 'Ann'",
        ("Where is Ann?", "Ann 在哪个部门？"),
        "column nme → name",
        "列 nme → name",
    ),
    (
        "SELECT person.name, person.salary FROM person JOIN department ON person.department_id = department.id",
        ("Names and salaries of persons", "人员的姓名和工资"),
        "without department",
        "去掉了 department",
    ),
    (
        "SELECT name FROM person WHERE name = 'Ann' AND name = 'Bob'",
        ("Who is both?", "谁两者都是？"),
        "two values of one column in one row → INTERSECT",
        "一行中的同一列要有两个值 → INTERSECT",
    ),
    ("SELECT name FROM person WHERE salary > avg(salary)", ("Who?", "谁？"), "AVG(salary) of all rows", "AVG(salary)（对全部行）"),
    ("SELECT count(*) AS heads (all) FROM person", ("Who?", "谁？"), "an alias or a sign put as SQL has it", "别名或符号改成了 SQL 的写法"),
    (
        "SELECT t.name FROM person AS t JOIN department AS t ON t.department_id = t.id",
        ("Who?", "谁？"),
        "an alias for each table that was called t",
        "为每个叫 t 的表各取一个别名",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("query", "questions", "english", "chinese"), CORRECTION_CASES)
async def test_corrections_are_in_the_language_of_the_question(shop, query, questions, english, chinese):
    for question, language, expected in zip(questions, ("en", "zh"), (english, chinese), strict=True):
        _, corrections = await evaluator.repair_sql(shop, query, question)
        assert expected in [localize(correction, language) for correction in corrections]


@pytest.mark.parametrize(
    ("query", "english", "chinese"),
    [
        ("SELECT wages FROM payroll", "sql: There is no table payroll. Tables: department, person", "没有表 payroll；现有的是 department、person"),
        ("DROP TABLE person", "no SQL came", "模型没有写出 SQL"),
        ("SELECT load_extension('x')", "The function load_extension is not available here", "不能使用函数 load_extension"),
        ("SELECT (name FROM person", "sql: The SQL has a syntax error", "语法错误"),
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


def test_every_requirement_has_a_chinese_message():
    assert [call.message for call in REQUIREMENTS if not CHINESE_PATTERN.search(localize(call.message, "zh"))] == []


def test_every_decision_has_a_chinese_reason():
    bad = CandidateOutcome(Candidate("SELECT 1", ""), "", problem=messages.no_sql_in_reply(), problem_kind="k")
    good = CandidateOutcome(Candidate("SELECT 1", "", 0.1), "SELECT 1")
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
    reasons = {planner.decide_turn(state, semantics, opinions).reason for state in states for semantics in (True, False) for opinions in (0, 2)}  # fmt: skip
    assert len(reasons) >= 9
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
        (repair_messages.column_of_outer_query(["t", "u"], "c"), "t and u has no column c", "t、u 没有列 c"),
        (
            messages.row_explosion(900, 30),
            "it brings 900 rows, more than any table has (30): a join multiplies rows",
            "结果有 900 行，比任何一个表（最多 30 行）都多：连接造成了重复",
        ),
        (
            repair_messages.values_not_used(["a", "b"]),
            "the question names 'a', 'b', and the SQL does not look for it",
            "问题提到了 'a'、'b'，SQL 却没有查找它",
        ),
        ("orders.id = lines.order_id", "orders.id = lines.order_id", "orders.id = lines.order_id"),
    ],
)  # fmt: skip
def test_a_message_has_both_languages(message, english, chinese):
    assert localize(message, "en") == english
    assert localize(message, "zh") == chinese
