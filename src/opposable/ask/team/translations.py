"""What the team says of its own work, in Chinese where the asker speaks it: each sentence by its form in English.

The model is told the same sentences, in English; SQL, names, values and an engine's words are the same in both.
"""

import re

from opposable.domain.language import Language

_DECISION_TRANSLATIONS = (
    (r"the SQL ran and its result is plausible", "SQL 已执行，结果可信"),
    (r"its writer was not sure: another opinion", "写 SQL 的一方不够确定：再听一个意见"),
    (r"the question is read in the terms of the semantic model first", "先用语义模型的术语理解问题"),
    (r"a candidate waits to be run", "有一条 SQL 等待执行"),
    (r"no SQL has been written yet", "还没有写出 SQL"),
    (r"a correction brought nothing better", "修改没有带来更好的结果"),
    (r"the same problem came again: a fresh start", "同样的问题再次出现：重新开始"),
    (r"correcting did not help: a fresh start", "修改没有用：重新开始"),
    (r"no better candidate was found", "没有找到更好的 SQL"),
    (r"the time is up", "时间用完了"),
    (r"corrections are off", "没有启用修改"),
    (r"no SQL came", "模型没有写出 SQL"),
    (r"the same SQL came again", "模型一再写出同样的 SQL"),
)
_SUSPICION_TRANSLATIONS = (
    (r"no row has (.+) = '(.*)'", r"没有 \1 为“\2”的数据"),
    (r"it stands in (?P<list>.+)", r"这个值出现在 \1 中"),
    (r"near are (?P<list>.+)", r"相近的值有 \1"),
    (r"it brings (\d+) rows, more than any table has \((\d+)\): a join multiplies rows",
     r"结果有 \1 行，比任何一个表（最多 \2 行）都多：连接造成了重复"),
    (r"ON (.+) joins every row with every row", r"ON \1 把每一行都与所有行连接"),
    (r"(?:sql: )?(?P<list>.+) has no column (.+?)\.?", r"\1 没有列 \2"),
    (r"the question asks for one number, and (\d+) rows of (\d+) columns came", r"问题只要一个数，结果却有 \1 行 \2 列"),
    (r"the question names (?P<list>.+), and the SQL does not look for it", r"问题提到了 \1，SQL 却没有查找它"),
    (r"the question does not say (.+)", r"问题没有说到 \1"),
    (r"the SQL selects only what the question says already, not what it asks for",
     "SQL 只选出了问题里已经说明的内容，而不是所问的内容"),
    (r"the question asks for each, and the SQL groups by nothing", "问题要求分别统计，SQL 却没有分组"),
    (r"the question asks for an average, and the SQL has no AVG", "问题要求平均值，SQL 却没有 AVG"),
    (r"the question asks how many there are, and the SQL counts nothing", "问题问的是数量，SQL 却没有计数"),
    (r"the question asks for a total, and the SQL has no SUM", "问题要求总计，SQL 却没有 SUM"),
    (r"the question asks for the first of an order, and the SQL neither sorts nor takes MAX or MIN of all rows",
     "问题要求排名最前的，SQL 却既没有排序，也没有取全部行的 MAX 或 MIN"),
    (r"the question asks for what is not, and the SQL excludes nothing: use NOT IN with a subquery",
     "问题问的是“没有”的情况，SQL 却没有排除任何数据"),
    (r"the question compares with a bound, and the SQL does not", "问题与一个界限比较，SQL 却没有比较"),
)  # fmt: skip
_CORRECTION_TRANSLATIONS = (
    (r"(.+) joined for (.+)", r"为 \2 连接了 \1"),
    (r"without (.+)", r"去掉了 \1"),
    (r"(.+) of all rows", r"\1（对全部行）"),
    (r"(.+) of the aggregate alone", r"\1 只用于聚合结果"),
    (r"(.+) → the row that has it", r"\1 → 取到该值的那一行"),
    (r"GROUP BY (.+) too", r"GROUP BY 增加了 \1"),
    (r"UNION of one value each → GROUP BY", "每个值各一段的 UNION → GROUP BY"),
    (r"two values of one column in one row → INTERSECT", "一行中的同一列要有两个值 → INTERSECT"),
    (r"an alias for each table that was called (.+)", r"为每个叫 \1 的表各取一个别名"),
    (r"an alias or a sign put as SQL has it", "别名或符号改成了 SQL 的写法"),
    (r"table (.+ → .+)", r"表 \1"),
    (r"column (.+ → .+)", r"列 \1"),
    (r"alias (.+ → .+)", r"别名 \1"),
)
_PROBLEM_TRANSLATIONS = (
    (r"(?:sql: )?There is no table (.+?)(?: here: use the tables of this database)?\.", r"没有表 \1"),
    (r"(?:sql: )?There is no column (.+?) in (?P<list>.+)\.", r"\2 中没有列 \1"),
    (r"(?:sql: )?(.+) in (.+) is no table or alias of this FROM, which has (?P<list>.+)\.", r"\2 中的 \1 不是 FROM 中的表或别名，其中有 \3"),
    (r"(.+) is a column of (?P<list>.+): use it there, without a join\.", r"\1 是 \2 的列"),
    (r"Did you mean (?P<list>.+)\?", r"是否指 \1"),
    (r"(?:Tables|Columns|Its columns): (?P<list>.+)\.", r"现有的是 \1"),
    (r"The table (?P<list>.+) has a column (.+): join it\.", r"表 \1 有列 \2"),
    (r"(?P<list>.+) has it\.", r"\1 有这一列"),
    (r"(.+) is a column of (.+)\.", r"\1 是 \2 的列"),
    (r"Text belongs in single quotes, not double quotes\.", "文本要用单引号"),
    (r"(?:sql: )?The SQL has a syntax error near (.+?) \(line \d+, column \d+\): .+\.", r"SQL 在 \1 附近有语法错误"),
    (r"(?:sql: )?The SQL has a syntax error in line (\d+): .+\.", r"SQL 第 \1 行有语法错误"),
    (r"(?:sql: )?The SQL cannot be read: check quotes, commas and parentheses\.", "SQL 无法解析"),
    (r"The database says: (.+)", r"数据库报错：\1"),
    (r"The database refused it: (.+)", r"数据库拒绝执行：\1"),
    (r"(.+) is not allowed(?: in a query)?: only one reading statement .+ may run here\.", r"只能执行读取数据的语句，不允许 \1"),
    (r"The SQL holds (\d+) statements: only one reading statement .+ may run here\.", r"只能执行一条语句，而这里有 \1 条"),
    (r"The function (.+) is not available here: use the usual functions of .+\.", r"不能使用函数 \1"),
    (r"The system table (.+) may not be read: use the tables of this database\.", r"不能读取系统表 \1"),
    (r"Files may not be read: (.+) is no table of this database\.", r"不能读取文件：\1 不是这个数据库的表"),
    (r"The SQL (?:has|is nested) .+: at most (\d+) (?:levels )?are allowed\.", "SQL 过长或过于复杂"),
    (r"The query took longer than (.+) seconds and was stopped\.", r"查询超过 \1 秒，已停止"),
    (r"Hint: .+", ""),
    (r"it took too long", "查询用时过长"),
)  # fmt: skip
_TRANSLATIONS = [
    (re.compile(form, re.DOTALL), zh)
    for form, zh in (
        *_DECISION_TRANSLATIONS,
        *_PROBLEM_TRANSLATIONS,
        *_SUSPICION_TRANSLATIONS,
        *_CORRECTION_TRANSLATIONS,
    )
]
_SENTENCE_BOUNDARY = re.compile(r"; (?=no row has |near are |it stands in |sql: )|(?<=[.?!]) ")
"""What stands between sentences that are told together."""
_LIST_SEPARATOR = re.compile(r", | (?:or|and) ")


def translate_message(text: str, language: Language) -> str:
    """What the team says in English, in the asker's language; words that are not its own stay as they are."""
    if language != "zh" or not text:
        return text
    each = [_translate_to_chinese(part) for part in _SENTENCE_BOUNDARY.split(text)]
    if None in each:
        whole = _translate_to_chinese(text)
        return text if whole is None else whole
    return "；".join(part for part in each if part)


def _translate_to_chinese(sentence: str) -> str | None:
    """The sentence in Chinese; None where it is none of the team's."""
    for form, chinese in _TRANSLATIONS:
        if found := form.fullmatch(sentence):
            listed = found.groupdict().get("list")
            said = found.expand(chinese)
            return said.replace(listed, _LIST_SEPARATOR.sub("、", listed)) if listed else said
    return None
