"""Messages about how a question was interpreted, in English and Chinese."""

import datetime
from collections.abc import Sequence

from opposable.domain.localized_text import LocalizedText

MONTHLY_TREND = LocalizedText("the trend is shown by month", "趋势按月显示")
SEVERAL_PERIODS = LocalizedText("the question names several periods", "问题中有多个时间段")
MISSING_COUNT_TARGET = LocalizedText("what is counted", "统计的是什么")
MISSING_METRIC = LocalizedText("no metric of the semantic model is named", "没有提到语义模型中的指标")
MISSING_BASELINE = LocalizedText("what a change is measured against", "变化是相对于什么")
BEST_WITHIN_GROUPS = LocalizedText("the best within each group", "每组中的最优者")
BOUND_WITHOUT_GROUPS = LocalizedText("a bound on a metric needs groups", "对指标的限定需要分组")
MISSING_RANKING_TARGET = LocalizedText("what is ranked", "排名的是什么")


def describe_rolling_period(phrase: str, today: datetime.date) -> LocalizedText:
    """Describe a rolling period, such as "the last 3 months", that ends today."""
    return LocalizedText(f"{phrase} ends with {today}", f"“{phrase}”截止到 {today}")


def describe_value_choice(phrase: str, chosen: str, others: Sequence[str]) -> LocalizedText:
    """Describe which dimension was chosen for a value that several dimensions contain."""
    return LocalizedText(
        f"{phrase} is taken as {chosen}, not {', '.join(others)}",
        f"“{phrase}”理解为 {chosen}，而不是 {'、'.join(others)}",
    )


def describe_default_year(year: int) -> LocalizedText:
    """Describe a comparison that uses the current year by default."""
    return LocalizedText(f"no period was named: the year {year} is compared", f"没有指明时间范围：对比的是 {year} 年")


def describe_partial_period(today: datetime.date) -> LocalizedText:
    """Describe a comparison of an unfinished period by its days so far."""
    return LocalizedText(
        f"the period is not over: its days up to {today} are compared with the same days before",
        f"该时间段尚未结束：截至 {today} 的日期与之前相同的日期对比",
    )


def describe_several_meanings(phrase: str, ids: Sequence[str]) -> LocalizedText:
    """Describe a phrase that may mean one of several terms."""
    return LocalizedText(f"{phrase} may be {' or '.join(ids)}", f"“{phrase}”可能是 {' 或 '.join(ids)}")


def describe_exclusion_only(phrase: str) -> LocalizedText:
    """Describe a phrase that the model defines as an exclusion only."""
    return LocalizedText(f"{phrase} is known only as something to leave out", f"“{phrase}”只定义为排除条件")


def describe_unclear_number(number: str) -> LocalizedText:
    """Describe a number that is no limit, or bounds no metric or dimension of the question."""
    return LocalizedText(f"what the number {number} means", f"数字 {number} 的含义不明")


def describe_unclear_scope(phrase: str) -> LocalizedText:
    """Describe a condition between two metrics, which may restrict one of them or both."""
    return LocalizedText(f"which metrics {phrase} restricts", f"“{phrase}”限定的是哪些指标")


def describe_unclear_negation(word: str) -> LocalizedText:
    """Describe a word such as "except" without a value, a filter or an exclusion that it leaves out."""
    return LocalizedText(f"what {word} leaves out", f"“{word}”排除的是什么")


def describe_unclear_grouping(dimension: str) -> LocalizedText:
    """Describe a dimension that may or may not group the rows."""
    return LocalizedText(f"whether rows are wanted by {dimension}", f"是否按 {dimension} 分组")


def describe_unknown_word(word: str) -> LocalizedText:
    """Describe a phrase that is no term of the semantic model and no value."""
    return LocalizedText(f"the semantic model has no term for {word}", f"语义模型中没有“{word}”")


def describe_contradiction(metric: str, named_filter: str) -> LocalizedText:
    """Describe a question for rows that the definition of a metric leaves out."""
    return LocalizedText(f"{metric} is only of rows that are {named_filter}", f"{metric} 只统计 {named_filter} 的数据")


UNCLEAR_OR = LocalizedText("which conditions are alternatives", "哪些条件是“或”的关系")
UNCLEAR_RANKING = LocalizedText("whether the value or its growth is ranked", "按数值还是按增长率排名")
UNCLEAR_ORDER = LocalizedText("whether the highest or the lowest come first", "从高到低还是从低到高")
