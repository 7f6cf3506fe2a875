"""Regular expressions of the time expressions of English and Chinese questions.

Search with `re.ASCII`: without it there is no word boundary between "q1" and a Chinese character.
"""

from typing import Literal

from opposable.ask.intent.date_parsing import CHINESE_YEAR_PATTERN, DATE_PATTERN, SMALL_NUMBER_PATTERN
from opposable.ask.intent.intent import Comparison, Grain
from opposable.ask.intent.number_parsing import NUMBER_PATTERN

ComparisonKind = Comparison | Literal["before"] | None
"""A comparison; "before" is one with the period before, whose length is not known yet."""

GRAIN_BY_WORD: dict[str, Grain] = {
    "year": "year", "annual": "year", "quarter": "quarter", "month": "month", "week": "week", "dai": "day", "day": "day",
    "年": "year", "季": "quarter", "季度": "quarter", "月": "month", "周": "week", "星期": "week", "天": "day", "日": "day",
}  # fmt: skip
_PREVIOUS_PATTERN = r"(?:previous|preceding|prior|last|past)"
_COMPARED_WITH_PATTERN = r"\b(?:compared? (?:to|with|against)|versus|vs\.?|relative to) (?:the )?"
COMPARISON_PATTERNS: tuple[tuple[str, ComparisonKind], ...] = (
    (
        r"\byoy\b|\byear[- ]over[- ]year\b|\byear[- ]on[- ]year\b|同比|[与和跟较比]?(?:去年|上年)?同期(?:相比|对比)?",
        "yoy",
    ),
    (rf"{_COMPARED_WITH_PATTERN}(?:same \w+ (?:of )?(?:the )?)?(?:year before|{_PREVIOUS_PATTERN} year)", "yoy"),
    (r"[与和跟较比](?:去年|上年|上一年|前一年)(?:相比|比较|对比)?", "yoy"),
    (
        rf"\bqoq\b|\bquarter[- ]o(?:ver|n)[- ]quarter\b|{_COMPARED_WITH_PATTERN}(?:{_PREVIOUS_PATTERN} quarter|quarter before)",
        "qoq",
    ),
    (r"[与和跟较比]上(?:个|一)?季度(?:相比|比较|对比)?", "qoq"),
    (
        rf"\bmom\b|\bmonth[- ]o(?:ver|n)[- ]month\b|{_COMPARED_WITH_PATTERN}(?:{_PREVIOUS_PATTERN} month|month before)",
        "mom",
    ),
    (r"[与和跟较比]上(?:个|一)?月(?:相比|比较|对比)?", "mom"),
    (rf"环比|{_COMPARED_WITH_PATTERN}{_PREVIOUS_PATTERN} period", "before"),
)
GRAIN_PATTERNS = (
    r"\b(?:by|per|each|every|for each|for every|which|what|across the) (?:calendar )?"
    r"(year|quarter|month|week|day)s?\b(?! (?:of|before|ago|over))",
    r"\bwhich (year|quarter|month|week|day)s?\b",
    r"\b(year|quarter|month|week)ly\b|\b(dai)ly\b|\b(annual)(?:ly)?\b",
    r"\b(year|quarter|month|week|day) by (?:year|quarter|month|week|day)\b",
    r"(?:按|每一?个?|各个?|逐|哪一?个?|分)(年|季|月|周|星期|天|日)(?:度|份|期)?(?:份)?",
    r"(年|季|月)度(?=趋势|走势|变化|统计|汇总|报表|明细|[销收营订数])",
    r"(?<=的)(年|季|月)(?:份|度)(?=$|[,，。?？、\s是有])",
    r"\b(year|quarter|month|week|day)s (?=with|where|when|that|had|have)",
)
YTD_PATTERN = (
    r"\bytd\b|\b(?:this )?year[- ]to[- ]date\b|(?:今年|本年|年初)(?:至今|到现在|以来|到今天|迄今)|(?:本|今)?年累计"
)
MTD_PATTERN = r"\bmtd\b|\b(?:this )?month[- ]to[- ]date\b|(?:本月|这个月|月初)(?:至今|到现在|以来)"
QTD_PATTERN = r"\bqtd\b|\b(?:this )?quarter[- ]to[- ]date\b|(?:本季度?|这个季度)(?:至今|到现在|以来)"
ENGLISH_ROLLING_PATTERN = (
    rf"\b(?:the )?(?:last|past|previous|recent|trailing|latest) ({NUMBER_PATTERN}) (day|week|month|quarter|year)s?\b"
)
CHINESE_ROLLING_PATTERN = (
    rf"(?:最近|过去|近|过往)的?({NUMBER_PATTERN}|半)个?(天|日|周|星期|月|季度|年)(?:以来|之?内|里|来|间)?"
)
_RANGE_SEPARATOR_PATTERN = r"\s*(?:to|through|until|till|and|-|–|—|~|至|到)\s*"
DATE_RANGE_PATTERN = rf"(?P<open>\bbetween |\bfrom |从|自|在)?(?P<a>{DATE_PATTERN})(?P<joint>{_RANGE_SEPARATOR_PATTERN})(?P<b>{DATE_PATTERN})(?:之间|期间)?"
MONTH_RANGE_PATTERN = rf"(?P<year>{CHINESE_YEAR_PATTERN}的?)?(?<![\d.月-])(?P<a>{SMALL_NUMBER_PATTERN})\s*(?:-|–|—|~|至|到)\s*(?P<b>{SMALL_NUMBER_PATTERN})月(?:份|之间|期间)?"
SINCE_PATTERN = (
    rf"\bsince (?:the (?:start|beginning) of )?({DATE_PATTERN})|[自从]?({DATE_PATTERN})(?:以来|至今|到现在|起至今|到今天)"
    rf"|[自从]({DATE_PATTERN})(?:起|开始)|\bfrom ({DATE_PATTERN}) (?:on|onwards?)\b"
)
AFTER_PATTERN = rf"\bafter ({DATE_PATTERN})|({DATE_PATTERN})(?:以后|之后)"
BEFORE_PATTERN = rf"\b(?:before|until|up to|prior to) ({DATE_PATTERN})|({DATE_PATTERN})(?:以前|之前)"
AMOUNT_PREFIX_PATTERN = r"(?:than|over|above|below|under|least|most|top|exceed\w*|超过|大于|高于|多于|小于|低于|少于|不足|至少|至多|前|[<>=$€£¥])\s*$"
AMOUNT_SUFFIX_PATTERN = r"\s*(?:元|美元|块|个|次|件|首|张|条|人|以上|以下|dollars?|usd|units?|%|万|亿)"
YEAR_COMPARISON_PATTERN = r"\bvs\b|\bversus\b|compare|相比|对比|比较|增长|变化|growth|change|比"
TREND_PATTERN = r"\b(?:trends?|over time)\b|趋势|走势"
SINGLE_DATE_PATTERN = rf"(?:\b(?:in|during|for|on|of) (?:the )?)?(?P<d>{DATE_PATTERN})"
