"""Messages about how a question was interpreted, in English and Chinese."""

from opposable.domain.localized_text import LocalizedText

ROLLING_PERIOD = LocalizedText("{phrase} ends with {today}", "“{phrase}”截止到 {today}")
ASSUMED_YEAR = LocalizedText("{phrase} is taken as that of {year}", "“{phrase}”理解为 {year} 年")
DEFAULT_YEAR = LocalizedText("no period was named: the year {year} is compared", "没有指明时间范围：对比的是 {year} 年")
PARTIAL_PERIOD = LocalizedText(
    "the period is not over: its days up to {today} are compared with the same days before",
    "该时间段尚未结束：截至 {today} 的日期与之前相同的日期对比",
)
SEVERAL_PERIODS = LocalizedText("the question names several periods", "问题中有多个时间段")
FUTURE_PERIOD = LocalizedText("which year {phrase} is of", "“{phrase}”是哪一年的")
SEVERAL_MEANINGS = LocalizedText("{phrase} may be {meanings}", "“{phrase}”可能是 {meanings}")
UNKNOWN_WORD = LocalizedText("the semantic model has no term for {word}", "语义模型中没有“{word}”")
MISSING_COUNT_TARGET = LocalizedText("what is counted", "统计的是什么")
MISSING_METRIC = LocalizedText("no metric of the semantic model is named", "没有提到语义模型中的指标")
MISSING_BASELINE = LocalizedText("what a change is measured against", "变化是相对于什么")
MISSING_RANKING_TARGET = LocalizedText("what is ranked", "排名的是什么")
BEST_WITHIN_GROUPS = LocalizedText("the best within each group", "每组中的最优者")
BOUND_WITHOUT_GROUPS = LocalizedText("a bound on a metric needs groups", "对指标的限定需要分组")
EXCLUSION_ONLY = LocalizedText("{phrase} is known only as something to leave out", "“{phrase}”只定义为排除条件")
NULL_GROUPS = LocalizedText("rows without {keys} are left out", "不含没有 {keys} 的数据")
LONG_QUESTION = LocalizedText("the question is too long for the rules", "问题过长，规则无法解析")
UNCLEAR_NUMBER = LocalizedText("what the number {number} means", "数字 {number} 的含义不明")
UNCLEAR_BOUND = LocalizedText("which number follows {word}", "“{word}”的数值不明")
UNCLEAR_NEGATION = LocalizedText("what {word} leaves out", "“{word}”排除的是什么")
UNCLEAR_GROUPING = LocalizedText("whether rows are wanted by {dimension}", "是否按 {dimension} 分组")
UNCLEAR_OR = LocalizedText("which conditions are alternatives", "哪些条件是“或”的关系")
UNCLEAR_RANKING = LocalizedText("whether the value or its growth is ranked", "按数值还是按增长率排名")
UNCLEAR_PHRASE = LocalizedText("what {phrase} means", "“{phrase}”的含义不明")
SEVERAL_SPELLINGS = LocalizedText("{phrase} includes {values}", "“{phrase}”包括 {values}")
UNCLEAR_COUNT = LocalizedText("whether {metric} are counted", "{metric} 是否计数")
UNCLEAR_RELATION = LocalizedText("how {metric} relates to the words before it", "{metric} 与前文的关系不明")
MISSING_GROUPS = LocalizedText("groups without rows of {metric} are not found", "找不到没有 {metric} 的分组")
UNCLEAR_ORDER = LocalizedText("whether the highest or the lowest come first", "从高到低还是从低到高")
