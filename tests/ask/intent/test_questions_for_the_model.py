"""Questions whose likely reading is not the only one: they go to the model."""

import datetime

import pytest
from tests.ask.intent.questions import TODAY

from opposable.ask.intent.parser import SemanticParser
from opposable.ask.intent.sql_compiler import CompiledQuery, compile_intent
from opposable.ask.semantics.loader import parse_semantic_model

MODEL = parse_semantic_model("""
joins: [visits.doctor_id = doctors.id, visits.patient_id = patients.id]
time: visits.day
metrics:
  visits: {expr: COUNT(*), table: visits, synonyms: [就诊, 就诊数]}
  doctors: {expr: COUNT(*), table: doctors, synonyms: [医生数]}
  billing: {expr: SUM(fee), table: visits, synonyms: [sales, 费用]}
  annual_income: {expr: SUM(fee * 12), table: visits}
  daily: {expr: SUM(fee) / 30, table: visits, synonyms: [日均费用]}
  weekly_minutes: {expr: SUM(minutes), table: visits}
  average_minutes: {expr: AVG(minutes), table: visits, synonyms: [average duration, 平均时长]}
  newest: {expr: MAX(day), table: visits, synonyms: [最晚就诊]}
dimensions:
  doctor: {expr: name, table: doctors, synonyms: [医生]}
  ward: {expr: ward, table: doctors, synonyms: [病区]}
  plan: {expr: plan, table: visits, synonyms: [套餐]}
  patient: {expr: name, table: patients, synonyms: [患者]}
  town: {expr: town, table: patients, synonyms: [城市]}
  fee: {expr: fee, table: visits, synonyms: [单价]}
  period: {expr: period, table: visits, synonyms: [周期]}
  year: {expr: year, table: visits, synonyms: [年级]}
filters:
  kept: {expr: state = 'kept', table: visits, synonyms: [已就诊]}
  missed: {expr: state = 'missed', table: visits, synonyms: [爽约]}
exclusions:
  surgery: {expr: ward = 'Surgery', table: doctors, synonyms: [surgical]}
""")
VALUES = {
    "doctor": ["Grey", "Top", "Best", "Will", "王芳"],
    "period": ["Bread", "Daily Bread", "Almanac", "Almanac 2024", "This Year Only"],
    "ward": ["North", "South", "Lisbon", "外科"],
    "plan": ["Monthly", "Annual", "A", "月度", "AT"],
    "patient": ["Ana", "April", "Last Year", "Per", "Max"],
    "town": ["Porto", "Lisbon", "Most", "IN", "北京"],
}
QUESTIONS_FOR_THE_MODEL = {
    "a possessive, a deictic word, a modal or a preposition": [
        *("How many of my visits were kept?", "What was our billing in 2024?", "billing of those doctors"),
        *(
            "How many visits will there be?",
            "visits that could be kept",
            "visits to be kept",
            "total billing than Porto",
        ),
        *("who needs visits", "billing as of then", "visits from Porto to North", "我的就诊数", "这些就诊数"),
        *("首次就诊数", "就诊次数", "其中已就诊的就诊数", "王芳等医生的费用"),
    ],
    "前 or 后 without a number": [
        *("2024年前的费用", "5月1日前的就诊数", "今年前的费用", "去年后的费用", "各病区2024年后的费用", "病区前的费用"),
    ],
    "the end or the start of a period": [
        *("billing to 2024", "billing as of March 2024", "billing until 2024", "billing by 2024", "billing from 2024"),
        *("到2024年的费用", "到5月的就诊数", "截至2024年的费用", "从2024年的费用"),
        *("2023 YTD billing", "2023年累计费用", "2025 YTD billing"),
    ],
    "several periods": [
        *("which doctors have visits in 2023 and 2024", "billing in 2023 and 2024", "2023年和2024年的费用"),
        *("billing in the last year", "billing in 2024 and visits"),
        *(
            "今年和去年的费用分别是多少",
            "本月和上个月的费用",
            "12月和本月的费用分别是多少",
            "2023年和去年的费用",
            "本季度跟上季度的费用",
            "今年上半年和去年同期的费用",
        ),
    ],
    "the relation of two metrics": [
        *("How many doctors have visits?", "doctors per ward have visits", "doctors by ward with more than 1 visit"),
        *("visits with more than 3 doctors by town", "Which doctors have billing and visits?", "billing of visits"),
        *("which doctors have visits", "doctors with visits", "visits billing", "kept visits and billing"),
        *("billing ÷ visits", "billing × 2", "billing ± 5", "billing & visits", "newest visit", "newest visit by ward"),
        *("有就诊的医生", "有就诊的医生数", "费用÷就诊数", "医生的就诊和费用最高"),
    ],
    "the size of what a metric counts": [
        *(
            "Which doctor has the biggest visit?",
            "which doctor has the longest visits",
            "doctor with the highest visit",
        ),
        *(
            "top 3 visits by doctor",
            "top visit by doctor",
            "the best visit by ward",
            "哪个医生的就诊最长",
            "就诊最高的医生",
        ),
    ],
    "the one group of an extreme value": ["最晚就诊的医生", "费用的医生", "2024年最晚就诊的患者"],
    "one best period or several": [
        *("which months had the highest billing", "What quarters of 2023 had the highest billing?"),
    ],
    "groups without rows": [
        *("Which doctor has the fewest visits?", "Which month had the fewest visits?", "bottom 2 wards by visits"),
        *("doctors with at most 1 visit", "which doctors have fewer than 2 visits", "wards with 1 or less visits"),
        *("哪个医生的就诊数最少", "就诊数少于2的医生", "就诊数不超过1的病区"),
        *("Which months of 2023 had billing under 200?", "2023年哪个月费用最低"),
    ],
    "a number after what a metric counts": [
        *("Which wards have visits over 100?", "wards with visits above 500 in 2024", "visits per ward under 20"),
        *("plans with visits of at least 3", "wards with more than 1 missed visit", "就诊超过100的病区"),
    ],
    "a number that bounds a text or a growth": [
        *("visits of doctor over 5", "城市大于5的就诊数", "2024年费用同比增长超过10的病区"),
    ],
    "a value that is also another word": [
        *(
            "How many Monthly visits are there?",
            "monthly visits",
            "billing from Annual",
            "月度统计就诊数",
            "billing of Top by ward",
        ),
        *(
            "billing by ward for Best",
            "billing in Most",
            "billing for A",
            "billing of Last Year",
            "billing in April 2024",
        ),
        *(
            "billing of Per by ward",
            "billing of Will",
            "billing in in",
            "billing in IN",
            "visits at 2024",
            "billing in AT",
        ),
    ],
    "a value of two dimensions": ["billing in Lisbon", "Lisbon的费用"],
    "what is counted or listed": [
        *(
            "How many days had billing over 10?",
            "How many months had more than 2 visits?",
            "How many sales did we have?",
        ),
        *(
            "how many wards",
            "Which visits are kept?",
            "show the visits in Porto",
            "list visits",
            "what are the missed visits",
        ),
        *("费用超过10的月份有多少个", "多少天的费用超过10", "哪些就诊已就诊", "列出北京的就诊"),
    ],
    "a term or a value that is also a time": [
        *("What is the annual income?", "annual income by ward", "每日均费用", "weekly minutes by ward"),
        *("各周期的费用", "费用按周期统计", "visits by year", "今年各年级的费用", "去年级的费用"),
        *("billing of Daily Bread", "billing of Almanac 2024", "Almanac 2024的费用", "billing of This Year Only"),
    ],
    "years that may be amounts": [
        *("费用在1900到2000之间的病区", "wards with billing between 1900 and 2000", "费用1900到2000之间的病区"),
        *("billing of 1900 to 2000 dollars by ward", "费用1900到2000元的病区", "billing in 2024 vs 2023"),
    ],
    "a word that may be a metric or a dimension": ["fee by doctor with fee over 5 of billing", "doctors in North"],
    "alternatives": [
        *("kept and missed visits", "kept or missed visits", "billing by doctor or ward", "billing of Grey and Ana"),
        *(
            "billing excluding Grey in Porto",
            "billing not of Grey and Porto",
            "已就诊和爽约的就诊数",
            "按医生或病区的费用",
        ),
    ],
    "a comparison": [
        *("top 3 doctors by billing growth in 2024 yoy", "2024年费用同比最高的医生", "哪些医生2024年费用同比增长"),
        *("Compare billing of Porto and Grey in 2023 and 2024", "Compare billing of North and South in 2024 vs 2023"),
    ],
    "the groups whose growth is positive": ["2024年费用同比增长的病区", "2024年就诊数同比增加的医生"],
    "the period before one that is no month, quarter or year": [
        *("上周费用环比", "昨天费用环比", "近7天费用环比", "近五个月费用环比", "2023年上半年费用环比"),
        *("billing in H1 2023 compared to the previous period", "billing last week compared to the previous period"),
    ],
    "the best of each group, or the best group": [
        *(
            "highest billing per ward",
            "the highest billing by ward",
            "top 3 fees by doctor",
            "highest billing per month",
        ),
        *("top 3 by billing for each ward", "for each ward the highest billing", "most visits per doctor"),
        *(
            "各病区最高的费用",
            "每个医生最大的费用",
            "按病区统计最高费用",
            "各病区前3名的费用",
            "每月最高费用",
            "各病区费用最高",
        ),
    ],
    "a negative number": ["费用大于-5的医生", "费用大于－5的病区"],
    "the order of rows": ["top and bottom ward by billing", "billing by ward, top 2, lowest first", "费用趋势"],
    "separate results": ["各医生和各城市的费用分别是多少", "各医生在北京和Porto的费用分别是多少"],
    "letters of a year": ["billing in FY2024", "billing of A2024", "billing of the 2024A"],
    "a number of two digits without a unit": [
        *(
            "近两三个月的费用",
            "费用前两三名的医生",
            "费用超过两三百的医生",
            "就诊数超过五六次的病区",
            "过去五六年的费用",
            "一二月的费用",
            "三四季度费用最高的医生",
        ),
    ],
    "a day of the week": [
        *("上周三最高费用的医生", "本周五最多就诊数的医生", "上周3最高费用的医生", "每周三最高费用", "上上周日的费用"),
    ],
    "a total or an average of the best groups": [
        *(
            "total billing of the top 3 doctors",
            "average duration of the top 3 doctors",
            "前三名医生的平均时长",
            "total billing by the top 3 doctors",
            "top 3 doctors' total billing",
            "前三名医生的总费用",
            "前三名医生的费用总和",
            "前两个病区的费用合计",
        ),
    ],
    "a word next to the dimension whose value it is in other letters": [
        *(
            "How many visits of the best doctor are there?",
            "visits of the top doctor",
            "billing of doctor top",
            "医生是top的就诊数",
            "billing of all doctors by plan a",
            "visits by a plan",
        ),
    ],
    "whether high is good": [
        *("best ward by billing", "which ward has the worst average duration", "billing by ward, best first"),
        *("worst wards by average duration", "平均时长最差的病区"),
    ],
    "a ratio or one row of each": ["billing per doctor", "visits per doctor", "average duration per doctor"],
    "an aggregate of each value or of all": [
        *("average duration of North and South", "North和South的平均时长", "average duration of North, South by month"),
    ],
    "numbers to list or to aggregate": ["fee", "fee of Grey", "what is the fee in Porto", "Porto的单价", "list fees"],
    "what a list has": ["患者有哪些城市", "which towns and patients"],
    "a negation of some rows of a group, or of all": [
        *("which towns are not kept", "list patients without missed", "哪些城市不是爽约", "towns not in North"),
    ],
    "a negation of one condition or two": [
        "visits excluding kept Porto",
        "not missed kept visits",
        "除了爽约北京的就诊数",
    ],
    "a year or a limit": ["top 2024 wards by billing", "2024 wards with the highest billing"],
    "a limit or a bound": ["费用最多100的病区", "最多5次就诊的病区"],
    "a bound of each period or of all": ["wards with more than 2 visits per month", "每月就诊数超过2的病区"],
    "the period that is compared": [
        *("billing vs the same month last year", "billing by ward compared to last month", "费用与上个月相比"),
        *(
            "billing in 2023 compared to last year",
            "2023年费用与去年相比",
            "6月费用与上月相比",
            "2024 billing vs last month",
        ),
        *("本周费用同比", "billing this week vs the same week last year"),
    ],
    "an aggregate that is no term": ["max billing", "billing of max by ward"],
}
QUESTIONS_FOR_THE_RULES = [
    *(
        "What is the total billing?",
        "How many visits were there in 2024?",
        "How many doctors do we have in the North ward?",
    ),
    *(
        "billing by ward and month",
        "top 3 doctors by billing",
        "5 doctors with the most visits",
        "billing per month in 2023",
    ),
    *(
        "wards with billing over 100",
        "doctors with more than 2 visits",
        "kept visits in Porto",
        "billing and visits by town",
    ),
    *(
        "Which ward has the highest billing in Q1 2024?",
        "which ward has the highest average duration",
        "billing in Porto",
    ),
    *("billing of Grey since 2023", "billing excluding surgical in Porto", "visits between 2023-01-01 and 2023-03-31"),
    *("billing of Bread", "visits with fee over 50", "billing of North, South", "billing by ward, lowest first"),
    *("doctors with average duration under 20", "Which ward has the lowest average duration?", "平均时长最低的病区"),
    *("billing from 2023 to 2024", "在2023年到2024年之间的费用", "billing of Almanac", "日均费用"),
    *(
        "2024年的费用是多少",
        "各病区的费用",
        "费用最高的前3个医生",
        "2024年前3个病区的费用",
        "北京有多少就诊",
        "总共多少就诊",
    ),
    *(
        "哪个医生的就诊数最多",
        "就诊数超过2的医生",
        "超过2次就诊的医生",
        "费用大于100的病区",
        "北京和Porto的费用分别是多少",
    ),
    *(
        "2023年1月到3月的费用",
        "按月统计2024年就诊数",
        "2024年费用同比",
        "除了外科，各病区的就诊数",
        "单价超过50的就诊数",
    ),
    *("本月费用与上个月相比", "今年费用和去年对比", "今年费用比去年", "今年上半年费用与去年同期相比"),
    *("billing this month vs last month", "billing in March 2023 compared to the previous month", "2023年3月费用同比"),
    *(
        "billing of North and South",
        "average duration by ward in North and South",
        "patients in Porto",
    ),
    *("billing per ward", "billing by day for the last 7 days", "patients not in Porto", "top 50 wards by billing"),
    *("2023年哪个月费用最高", "Which months of 2023 had billing over 200?", "which month had the highest billing"),
    *("2023年各月费用环比", "2023年3月费用环比", "2023年一季度费用环比"),
    *("2024 YTD billing", "今年累计费用"),
    *("二〇二三年的费用", "十二月的费用", "费用超过一百零五的医生"),
    *("上周费用最高的三名医生", "按周统计费用"),
    *(
        "top 3 doctors by total billing",
        "top 3 doctors by average duration",
        "average duration by doctor, top 3",
        "平均时长最高的前三名医生",
        "total billing by doctor, top 3",
        "总费用最高的前三名医生",
        "总费用前三名的医生",
        "哪个医生的总费用最高",
        "费用合计最高的病区",
        "前三名医生的总费用分别是多少",
    ),
]


def test_a_month_without_a_year_that_has_not_begun_goes_to_the_model():
    parser, today = SemanticParser(MODEL, VALUES), datetime.date(2024, 3, 15)
    for question in ("billing since June", "billing in October", "billing in Q4", "6月以来的费用", "10-12月的费用"):
        assert not parser.parse(question, today).is_resolved, question
    for question in (
        "billing since February",
        "billing in March",
        "billing in Q1",
        "billing since June 2023",
        "3月费用",
    ):
        assert parser.parse(question, today).is_resolved, question


def test_rows_that_a_rolling_period_cuts_go_to_the_model():
    parser, today = SemanticParser(MODEL, VALUES), datetime.date(2024, 3, 15)
    for question in (
        "billing by month for the last 6 months",
        "近3个月每月的费用",
        "yearly billing in the last 3 years",
    ):
        assert not parser.parse(question, today).is_resolved, question
    for question in ("billing for the last 6 months", "近7天每天的费用", "billing by month since 2024-01-15"):
        assert parser.parse(question, today).is_resolved, question


def test_a_condition_of_rows_with_several_times_goes_to_the_model():
    parser = SemanticParser(
        parse_semantic_model("""
metrics:
  subscriptions: {expr: COUNT(*), table: subscriptions, time: began}
  churn: {expr: COUNT(ended), table: subscriptions, time: ended}
dimensions: {status: {expr: status, table: subscriptions}}
"""),
        {"status": ["active", "cancelled"]},
    )
    for question in ("How many subscriptions were cancelled in 2024?", "2024年active的subscriptions"):
        assert not parser.parse(question, TODAY).is_resolved, question
    for question in ("How many subscriptions were cancelled?", "churn in 2024", "subscriptions by status in 2024"):
        assert parser.parse(question, TODAY).is_resolved, question


def test_a_total_of_numbers_is_no_count_of_their_rows():
    model = parse_semantic_model("""
metrics: {exams: {expr: COUNT(*), table: scores}}
dimensions: {score: {expr: score, table: scores}, student: {expr: student, table: scores}}
""")
    for question in ("total scores", "total scores of Ann", "how many scores does Ann have"):
        assert not SemanticParser(model, {"student": ["Ann"]}).parse(question, TODAY).is_resolved, question


def parse(question):
    return SemanticParser(MODEL, VALUES).parse(question, TODAY)


@pytest.mark.parametrize(
    ("reason", "question"),
    [(reason, question) for reason, questions in QUESTIONS_FOR_THE_MODEL.items() for question in questions],
)
def test_a_question_of_several_readings_goes_to_the_model(reason, question):
    parsed = parse(question)
    is_compiled = isinstance(compile_intent(parsed.intent, MODEL, "sqlite", TODAY), CompiledQuery)
    assert not (parsed.is_resolved and is_compiled), (reason, parsed.intent)


@pytest.mark.parametrize("question", QUESTIONS_FOR_THE_RULES)
def test_a_question_of_one_reading_needs_no_model(question):
    parsed = parse(question)
    assert (parsed.unmatched_words, parsed.ambiguities) == ((), ())
    assert isinstance(compile_intent(parsed.intent, MODEL, "sqlite", TODAY), CompiledQuery)


SIGNED_VALUES = {
    "plan": ["BBB", "BBB-", "A-", "A+", "Basic", "-"],
    "patient": ["Wendy", "Wendy's", "Levi", "Yahoo!", "Google", "Google!", ".NET", "NET", "(Ann)"],
    "town": ["Men's", "Women's", "Women", "Inc."],
}


@pytest.mark.parametrize(
    ("question", "value"),
    [
        *(("visits of BBB-", "BBB-"), ("BBB-就诊数", "BBB-"), ("套餐A-的就诊数", "A-"), ("How many A- visits?", "A-")),
        *(("visits of BBB", "BBB"), ("How many A+ visits?", "A+"), ("visits excluding BBB-", "BBB-")),
        *(("visits of Levi's", "Levi"), ("visits of Wendy", "Wendy"), ("visits of Yahoo!", "Yahoo!")),
        *(("visits in men’s", "Men's"), ("visits of Google", "Google"), ("visits in Inc.", "Inc.")),
        *(("visits of (Ann)", "(Ann)"), ("visits of Basic!", "Basic"), ("visits of women", "Women")),
    ],
)
def test_a_value_includes_its_outer_signs(question, value):
    parsed = SemanticParser(MODEL, SIGNED_VALUES).parse(question, TODAY)
    assert (parsed.unmatched_words, parsed.ambiguities) == ((), ())
    assert [condition.value for condition in parsed.intent.filters] == [value]


@pytest.mark.parametrize(
    "question",
    [
        *("How many A-visits are there?", "visits of A-rated plans", "visits of B-", "visits of Basic-", "visits of A"),
        *("visits of Wendy's", "visits of Google!", "visits of .NET", "visits in Women's", "visits in men"),
        *("visits of Yahoo", "visits in Inc", "visits of Ann", "Wendy’s visits"),
    ],
)
def test_a_sign_that_belongs_to_a_value_contests_other_meanings(question):
    assert not SemanticParser(MODEL, SIGNED_VALUES).parse(question, TODAY).is_resolved


def test_a_declared_value_includes_its_outer_signs():
    model = parse_semantic_model("""
metrics:
  visits: {expr: COUNT(*), table: visits}
dimensions:
  blood: {expr: blood, table: visits, values: {AB-: [], AB+: [], "A-": [A negative]}}
""")
    parser = SemanticParser(model, {})
    filters = [parser.parse(question, TODAY).intent.filters for question in ("visits of AB-", "visits of A negative")]
    assert [condition.value for found in filters for condition in found] == ["AB-", "A-"]
    assert not parser.parse("visits of AB", TODAY).is_resolved
    assert not parser.parse("How many A-visits are there?", TODAY).is_resolved
