"""The message catalog of the team: decisions, problems and warnings.

Users read each message in the language of their question. Models read the English text.
"""

from collections.abc import Sequence

from opposable.domain.localized_text import LocalizedText, join_localized

RESULT_PLAUSIBLE = LocalizedText("the SQL ran and its result is plausible", "SQL 已执行，结果可信")
SEMANTIC_MODEL_FIRST = LocalizedText(
    "the question is read in the terms of the semantic model first", "先用语义模型的术语理解问题"
)
CANDIDATE_PENDING = LocalizedText("a candidate waits to be run", "有一条 SQL 等待执行")
NO_SQL_YET = LocalizedText("no SQL has been written yet", "还没有写出 SQL")
CORRECTION_NOT_BETTER = LocalizedText("a correction brought nothing better", "修改没有带来更好的结果")
FRESH_START_AFTER_REPEATED_PROBLEM = LocalizedText(
    "the same problem came again: a fresh start", "同样的问题再次出现：重新开始"
)
FRESH_START_AFTER_CORRECTIONS = LocalizedText("correcting did not help: a fresh start", "修改没有用：重新开始")
NO_BETTER_CANDIDATE = LocalizedText("no better candidate was found", "没有找到更好的 SQL")
TIME_LIMIT_REACHED = LocalizedText("the time is up", "时间用完了")
CORRECTIONS_DISABLED = LocalizedText("corrections are off", "没有启用修改")
NO_SQL_IN_REPLY = LocalizedText("the reply contains no SQL", "模型没有写出 SQL")
SAME_SQL_AGAIN = LocalizedText("the reply repeats the same SQL", "模型一再写出同样的 SQL")
INTENT_COMPILED = LocalizedText("the question is understood as {intent}", "问题理解为 {intent}")
QUESTION_COMPLETED = LocalizedText("the question is: {question}", "问题理解为：{question}")
ROW_EXPLOSION = LocalizedText(
    "the result has {row_count} rows, more than any table ({max_table_rows}): a join may multiply rows",
    "结果有 {row_count} 行，比任何一个表（最多 {max_table_rows} 行）都多：连接可能造成了重复",
)
ROW_COUNT = LocalizedText("{count} rows", "{count} 行")
TIED_ROWS = LocalizedText("further rows have the same {column} as the last", "还有其他行的 {column} 与最后一行相同")
UNMATCHED_CONDITION = LocalizedText("no row satisfies {condition}", "没有满足 {condition} 的数据")
QUERY_OUTPUTS = LocalizedText("computes {names}", "计算 {names}")
QUERY_TABLES = LocalizedText("from {names}", "来自 {names}")
QUERY_CONDITIONS = LocalizedText("where {names}", "条件为 {names}")
QUERY_GROUPS = LocalizedText("for each {names}", "按 {names} 分组")
_MISSING_VALUE = LocalizedText("no row has {column} = '{value}'", "没有 {column} 为“{value}”的数据")
_LOCATIONS = LocalizedText("it occurs in {columns}", "这个值出现在 {columns} 中")
_NEAR_VALUES = LocalizedText("near are {values}", "相近的值有 {values}")


def missing_value(
    column: str, value: str, near_values: Sequence[str] = (), locations: Sequence[str] = ()
) -> LocalizedText:
    """Report a value that no row of a column has, with the columns that have it, else similar values."""
    missing = [_MISSING_VALUE.format(column=column, value=value)]
    if locations:
        missing.append(_LOCATIONS.format(columns=join_localized(locations, ", ", "、")))
    elif near_values:
        missing.append(_NEAR_VALUES.format(values=join_localized(map(repr, near_values), ", ", "、")))
    return join_suspicions(missing)


def join_suspicions(suspicions: Sequence[LocalizedText]) -> LocalizedText:
    """Join suspicions into one message."""
    return join_localized(suspicions, "; ", "；")
