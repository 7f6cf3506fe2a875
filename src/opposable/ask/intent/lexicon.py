"""The lexicon of the intent parser: the words of a question, and what terms and function words mean."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from opposable.ask.semantics.model import SemanticModel
from opposable.domain.text_normalization import CHINESE_CHARACTERS, lowercase_halfwidth, singularize

_LETTER = rf"[^\W_{CHINESE_CHARACTERS}]"
_OUTER_SIGN = re.compile(r"^\W|\W$|['’][sS]$")
_WORD_PATTERN = re.compile(
    rf"[{CHINESE_CHARACTERS}]|(?<!\w)-(?=\d)|(?<={_LETTER})-(?!{_LETTER})|!(?=[<>=])|\d[\d,]*(?:\.\d+)?"
    rf"|[^\W\d_{CHINESE_CHARACTERS}]+(?:['’]s\b)?"
    r"|[^\w\s.?!:\"'‘’“”()\[\]{}。…—·「」『』《》【】-]"
)


@dataclass(frozen=True, slots=True)
class Word:
    """A word, its characters in the text, and its stem: lowercase, without the ending of a plural or a possessive."""

    start: int
    end: int
    stem: str


def tokenize(text: str) -> list[Word]:
    """Split `text` into words and signs, without underscores and signs of punctuation that separate no items."""
    words: list[Word] = []
    for match in _WORD_PATTERN.finditer(lowercase_halfwidth(text)):
        stem = re.sub(r"['’]s$", "", match[0])
        words.append(Word(match.start(), match.end(), singularize(stem) if stem.isascii() else stem))
    return words


def tokenize_stems(text: str) -> tuple[str, ...]:
    """Return the stems of the words of a text."""
    return tuple(word.stem for word in tokenize(text))


MeaningKind = Literal[
    "metric", "dimension", "filter", "exclusion", "value",
    "group", "each", "breakdown", "which", "count", "most", "least", "descending", "ascending", "sort", "top", "bottom", "not", "not_after", "apart", "total",
    "more", "at_least", "less", "at_most", "or_more", "or_less", "and", "or", "of", "in", "with", "show", "measure", "stop",
    "change", "compare", "unsupported",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Meaning:
    """A possible meaning of a phrase.

    `id` is the id of a term, or of the dimension of `value`; a function word has neither. A meaning with a `text`
    requires its characters in the question, not only its stems: a value of the database, or a name with signs such as
    "Yahoo!".
    """

    kind: MeaningKind
    id: str = ""
    value: str = ""
    text: str = ""


_FUNCTION_WORDS: dict[MeaningKind, str] = {
    "group": "by|split by|broken down by|grouped by|group by|breakdown by|按|按照|根据|分",
    "each": "each|every|per|for each|for every|in each|每|每个|每位|每种|每家|每一个|各|各个|各种|各类",
    "breakdown": "breakdown|分布",
    "which": "which|what|哪|哪个|哪些|哪位|哪家|哪种|哪几个",
    "count": "how many|number of|count of|count|the number of|多少|几",
    "most": "most|highest|best|最高|最大|最多",
    "least": "least|lowest|worst|fewest|最低|最小|最少|最差",
    "descending": "highest first|best first|most first|descending|desc|from high to low|high to low|in descending order"
    "|从高到低|从大到小|从多到少|由高到低|由大到小|降序|倒序",
    "ascending": "lowest first|worst first|least first|ascending|asc|from low to high|low to high|in ascending order"
    "|从低到高|从小到大|从少到多|由低到高|升序",
    "sort": "sorted|sort|ordered by|ranked|ranked by|sorted by|排列|排序|排",
    "top": "top|前|排名前",
    "bottom": "bottom|后|倒数|垫底",
    "not": "except|except for|excluding|exclude|other than|not from|not in|not|without|besides|apart from|leaving out"
    "|除|除了|除去|不包括|不含|不包含|剔除|排除|不算|不是|非",
    "not_after": "除外|以外|之外|外",
    "apart": "respectively|分别|各自|各是",
    "more": "more than|over|above|greater than|exceeding|exceed|higher than|larger than|超过|大于|高于|多于|超出|>",
    "at_least": "at least|no less than|至少|不少于|不低于|大于等于|不小于|达到|>=|≥",
    "less": "less than|under|below|fewer than|lower than|smaller than|小于|低于|少于|不足|不到|不满|<",
    "at_most": "at most|no more than|up to|至多|不超过|不多于|不高于|小于等于|<=|≤",
    "or_more": "or more|or above|及以上|以上",
    "or_less": "or less|or below|or fewer|及以下|以下",
    "and": "and|,|;|、|和|与|及|以及|还有",
    "or": "or|或|或者",
    "of": "of|的",
    "in": "in|for|from|on|在|来自",
    "with": "with|have|has|had|有",
    "show": "list|show|show me|show us|give me|give us|tell me|tell us|列出|显示|查询|查看|看看|给我|告诉我",
    "measure": "个|位|名|首|张|家|条|笔|次|件|种|类",
    "change": "growth|grow|grew|growth rate|increase|increased|change|changed|rate of change"
    "|增长|增长率|增长了|增加|变化|变动|增幅|涨幅|变化率|增速",
    "compare": "compare|compared|comparison|vs|versus|对比|相比|比较",
    "total": "total|总|一共|总共|共|共有|总计|合计",
    "stop": "the|a|an|is|are|was|were|do|did|doe|we|are there|is there|were there|was there|how much|please"
    "|all|了|是|请|请问|帮我|统计|计算",
    "unsupported": "at|to|be|it|its|may|will|would|can|could|should|must|as|than|then|so|any|no|this|that|these|those"
    "|my|our|your|their|they|them|i|who|when|where|how|there|but|if",
}
"""Words of the closed classes of both languages.

Words of the kind "stop" never change the meaning of a question. Those of the kind "unsupported" do, and are not
understood; they are listed because a value in other letters is not meant by them. Each other word is a term, a value,
or not understood, such as "shipped".
"""


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Meanings by the stems of their words: those of the model and both languages, then values of the database."""

    meanings: dict[tuple[str, ...], list[Meaning]]
    max_words: int


def build_lexicon(model: SemanticModel, database_values: Mapping[str, Sequence[str]]) -> Lexicon:
    """Build the lexicon of a semantic model.

    It contains ids, synonyms, names of values, function words of both languages, and values by dimension id. A name
    replaces a function word of the same stems, unless it requires its text.
    """
    phrases: dict[tuple[str, ...], list[Meaning]] = {}
    for kind, words in _FUNCTION_WORDS.items():
        for phrase in words.split("|"):
            phrases.setdefault(tokenize_stems(phrase), [Meaning(kind)])
    for name, meaning in _iter_names(model, database_values):
        stems = tokenize_stems(name)
        if meaning.text:  # "A-" begins "A-rated" too
            for known_stems in {stems, tokenize_stems(name.strip().rstrip("-"))} - {()}:
                phrases.setdefault(known_stems, []).append(meaning)
        elif stems and (meaning.kind != "value" or len("".join(stems)) > 1):
            others = (other for other in phrases.get(stems, ()) if other.id)
            phrases[stems] = list(dict.fromkeys([*others, meaning]))
    return Lexicon(phrases, max(map(len, phrases)))


def _iter_names(model: SemanticModel, database_values: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, Meaning]]:
    """Yield the names of terms and values, then the values of the database."""
    for section, term in model.iter_terms():
        for name in (term.id, *term.synonyms):
            yield name, Meaning(section[:-1], term.id)  # type: ignore[arg-type]
    for dimension in model.dimensions.values():
        for value, names in dimension.values.items():
            for name in (value, *names):
                yield name, Meaning("value", dimension.id, value, name if _OUTER_SIGN.search(name) else "")
    for dimension_id, texts in database_values.items():
        for text in texts:
            yield text, Meaning("value", dimension_id, text, text)
