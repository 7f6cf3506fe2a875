"""Text as it is compared: one width, one case, words of names and questions, pairs of Chinese characters."""

import re
import unicodedata

from opposable.parsers import escape_special_tokens

CJK_CHARACTERS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
_TOKEN_PATTERN = re.compile(rf"[{CJK_CHARACTERS}]|[^\W_{CJK_CHARACTERS}]+")
_CJK_RUN_PATTERN = re.compile(rf"[{CJK_CHARACTERS}]+")
_NAME_BOUNDARY_PATTERN = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z])(?=\d)")
_STOP_WORDS_TEXT = """a about after all also am an and any are as at average be been before between both but by can could count did distinct
    do does each every find for from get give had has have how i in is it its itself list many maximum me minimum more
    most much name names not number of on or order our out over per please return same show than that the their them then
    there these they this those to total under us was we were what when where which who whose will with you your id ids
    sort sorted ascending descending different number's value values whats tell details information there's least
    highest lowest largest smallest"""
STOP_WORDS = frozenset(_STOP_WORDS_TEXT.split())
_STOP_PAIRS_TEXT = """多少 是多 什么 哪些 哪个 有多 请问 列出 显示 查询 所有 每个 分别 数量 总数 平均 最大 最小 最高 最低 的是 按照 排序 并且
    以及 或者 我们 他们 一共 总共 有几 几个 个人 中有 的数 的总 和的 了多 少个 名称 名字"""
STOP_PAIRS = frozenset(_STOP_PAIRS_TEXT.split())


def normalize_text(text: str) -> str:
    """`text` in half width and small letters, each run of other signs than letters and digits one space."""
    flat = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(re.sub(r"[\W_]+", " ", flat).split())


def tokenize_with_spans(text: str) -> list[tuple[str, int, int]]:
    """The words and single Chinese characters of folded text, with where they begin and end."""
    return [(found.group(), found.start(), found.end()) for found in _TOKEN_PATTERN.finditer(text)]


def has_cjk(text: str) -> bool:
    """Whether there is a Chinese, Japanese or Korean character in it."""
    return _CJK_RUN_PATTERN.search(text) is not None


def singularize(word: str) -> str:
    """An English word without the ending of its plural."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("ches", "shes", "sses", "xes", "zes")):
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def split_name(name: str) -> list[str]:
    """The words of a name of a table or column: split at underscores, signs and changes of case."""
    return [
        singularize(word)
        for part in _NAME_BOUNDARY_PATTERN.split(name)
        for word in extract_index_words(normalize_text(part))
    ]


def extract_index_words(text: str) -> list[str]:
    """What folded text is found by: its words, and every pair of neighbouring Chinese characters."""
    found: list[str] = []
    for word in re.findall(rf"[{CJK_CHARACTERS}]+|[^\W_{CJK_CHARACTERS}]+", text):
        if _CJK_RUN_PATTERN.match(word) and len(word) > 1:
            found += [word[i : i + 2] for i in range(len(word) - 1)]
        else:
            found.append(word)
    return found


def find_longest_common_substring(first: str, second: str) -> str:
    """The longest text that stands in both."""
    best, start = 0, 0
    last = [0] * (len(second) + 1)
    for i, char in enumerate(first, 1):
        row = [0] * (len(second) + 1)
        for j, against in enumerate(second, 1):
            if char == against:
                row[j] = last[j - 1] + 1
                if row[j] > best:
                    best, start = row[j], i - row[j]
        last = row
    return first[start : start + best]


def format_prompt_value(text: str, max_characters: int = 40) -> str:
    """A value as it may stand before a model: one line, no control or invisible signs, bounded, no markup, in single quotes."""
    plain = "".join(" " if char.isspace() else char for char in text[: 4 * max_characters])
    plain = "".join(char for char in plain if unicodedata.category(char)[0] != "C")
    flat = " ".join(plain.split())
    cut = flat if len(flat) <= max_characters else flat[: max_characters - 1] + "…"
    return escape_special_tokens("'" + cut.replace("'", "''") + "'")


def estimate_tokens(text: str) -> int:
    """About how many tokens a model reads `text` as."""
    wide = sum(1 for char in text if ord(char) > 0x2E80)
    return int((len(text) - wide) / 3.2 + wide) + 1
