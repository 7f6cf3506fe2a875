"""Whether a call in the text is the model's act, or is shown, quoted, or told of."""

import re

LOOK_BACK = 240
LOOK_AHEAD = 240
MAX_LEAD = 600

_SHOWN = re.compile(
    r"""\b(?:for\s+(?:example|instance)|e\.g\.|examples?|samples?|such\s+as|say(?:s|ing)?|said|wrote|writes?|written|reads|
    contain(?:s|ing|ed)?|includ(?:es|ing|ed)|embed(?:s|ded|ding)|quot(?:e[sd]?|ing)|looks?\s+like|would\s+(?:be|look|write|use|call|send|produce|output|emit)|
    you\s+(?:can|could|would|should|might|may|will|need|must|want|have|invoke|call|use|write|type|emit)|you['’]d|
    (?:users?|people|developers?|models?|agents?|one|someone|they|it|he|she)\s+(?:can|could|would|should|might|may|must|writes?|emits?|outputs?|sends?|calls?)|
    how\s+(?:to|you|a|an|it|the|do|does|is)|formats?|syntax|schemas?|templates?|documentation|docs|tutorial|spec(?:ification)?|
    snippet|placeholder|payload|literal|
    don['’]t|do\s+not|doesn['’]t|does\s+not|did\s+not|didn['’]t|never|instead\s+of|rather\s+than|avoid|without|
    (?:not|refuse\s+to|cannot|can['’]t|won['’]t)\s+(?:call|run|execute|use|make|invoke|follow|act)|
    ignor(?:e[sd]?|ing)|inject(?:ed|ion|s)?|malicious|suspicious|attack(?:er|s)?|phish(?:ing)?|
    returned|responded|replied|
    (?:the|this|that|a|an|web)\s*(?:page|website|site|document|email|mail|message|file|article|comment|result|output|response|log|text|string|tag|token|markup|marker|json|snippet|transcript)\b|
    (?:tool|search)\s+(?:result|output|response)s?|observation|
    tags?|tokens?|strings?|means|is\s+called|earlier|previous(?:ly)?|already|last\s+time|before,|you\s+(?:asked|requested)|as\s+requested|
    config(?:uration)?|ask(?:s|ed|ing)?\s+(?:me|us|you)\s+to|tells?\s+(?:me|us|you)|told\s+(?:me|us)|instructs?|instructed|
    if\s+(?:i|we|you|the|a)\b|could\s+(?:call|use|be)|might|considered|thought\s+about|think\s+about|hypothetical(?:ly)?|translat(?:e|es|ion)|
    explain(?:s|ed|ing)?|illustrat(?:e|es|ion)|demonstrat(?:e|es|ion)|show(?:s|n|ing)|describ(?:e|es|ing))\b
    |例如|比如|譬如|示例|举例|样例|范例|格式|语法|写道|写着|写的是|说[：:]|内容[是为如]|内容：|如果(?:你|您|用户)|(?:你|您|用户|模型)(?:可以|可|应该|需要|能|会)|
    不要|不得|不应|不会|不能|没有|并未|切勿|请勿|忽略|网页|页面|网站|文档|邮件|文件[中里]|返回了|返回的|结果[是为中里]|
    之前|上次|曾经?|刚才|引用|原文|所谓|看起来像|形如|如何|怎[么样]|教程|标签|字符串|注入|恶意|攻击|假设|假如|解释|说明一下|演示""",
    re.IGNORECASE | re.VERBOSE,
)
_DONE = re.compile(
    r"""\b(?:i['’]?\s*(?:wi)?ll|i\s+am\s+(?:going\s+to|calling|using)|i['’]m\s+(?:going\s+to|calling|using)|let\s+me|let['’]s|we['’]ll|we\s+will|
    i\s+(?:need|want|have)\s+to|i\s+should|i\s+must|i\s+call|i\s+can\s+(?:use|call|do|help|check|look)|calling|
    here(?:['’]s|\s+is|\s+are)\s+(?:the|my|a)\s+(?:(?:function|tool|api)\s+)?calls?|(?:now|next|first|then)\s+(?:i\s+)?call|tool\s+calls?:|function\s+calls?:|action:|
    (?:call|use|using|invoke)\s+the\s+[`\w.]+\s+(?:tool|function))
    |我将|我会|我来|让我|我需要|我要|我先|我这就|现在调用|调用工具|调用函数|正在|接下来|下面我|我们来|我现在|我去|我帮|为[您你]查|帮[您你]|好的""",
    re.IGNORECASE | re.VERBOSE,
)
_SENTENCE_END = re.compile(r"[.!?。！？](?=\s|$)|[。！？]|\n\s*\n")
_ENDS_SENTENCE = re.compile(r"[.!?。！？:：;；…]['\"”’)\]*_]*\s*\Z")
_QUOTES = "\"'“‘«「『《(（"
_LIST_ITEM = re.compile(r"(?:[-*+•]|\d{1,3}[.)、])\s*\Z")


def is_shown(before: str) -> bool:
    """Whether the sentence that leads up to a call tells of it rather than makes it.

    `before` is the text before it. Of a word that shows ("for example", "the page says") and one that does ("I will",
    "let me"), the later one counts.
    """
    sentence = _last_sentence(before[-LOOK_BACK:])
    return _later_is_shown(sentence)


def _later_is_shown(sentence: str) -> bool:
    shown = max((found.end() for found in _SHOWN.finditer(sentence)), default=-1)
    done = max((found.end() for found in _DONE.finditer(sentence)), default=-1)
    return shown > done


def does(before: str) -> bool:
    """Whether the text before a call says that it is about to be made."""
    sentence = _last_sentence(before[-LOOK_BACK:])
    return _DONE.search(sentence) is not None and not _later_is_shown(sentence)


def explains(after: str) -> bool:
    """Whether the text after a call speaks of it as of an example."""
    return _EXPLAINS.search(after[:LOOK_AHEAD]) is not None


_EXPLAINS = re.compile(
    r"""\b(?:(?:is|was|would\s+be|shows?|gives?)\s+(?:an?|the|how|what|just|only)\b[^.]{0,40}(?:examples?|formats?|samples?|syntax|json|snippet|call\s+looks|looks\s+like)|
    examples?|would\s+(?:be|return|give|call|add|do|produce|look|then)|you\s+(?:can|could|would|should|might|may|need|asked|requested|want)|
    replace|your\s+own|placeholder|format|syntax|schema|documentation|
    (?:i|we)\s+(?:do\s+not|don['’]t|did\s+not|didn['’]t|will\s+not|won['’]t|have\s+not|haven['’]t|cannot|can['’]t)|not\s+(?:a\s+(?:real\s+)?call|executed?|run|called|real)|
    never|ignore|inject(?:ed|ion)|malicious|suspicious|is\s+(?:what|how|used|written|sent))\b
    |例如|比如|示例|举例|样例|格式|语法|你可以|您可以|不要|请勿|切勿|忽略|并未|没有(?:执行|调用)|只是|仅供|替换""",
    re.IGNORECASE | re.VERBOSE,
)


def _last_sentence(text: str) -> str:
    text = text.rstrip()
    start = 0
    for end in _SENTENCE_END.finditer(text):
        if end.end() < len(text):
            start = end.end()
    return text[start:]


def ends_sentence(line: str) -> bool:
    """Whether a line ends with what ends a sentence or leads up to something."""
    return _ENDS_SENTENCE.search(line.rstrip()) is not None


def is_mentioned(line: str, after: str) -> bool:
    """Whether a call stands inside a sentence: `line` is what is before it on its line, `after` what follows on it."""
    before = line.rstrip()
    if not before or _LIST_ITEM.search(before):
        return False
    if before[-1] in _QUOTES or (before[-1] in "`" and after[:1] == "`"):
        return True
    if before.lstrip().startswith(">") and not before.lstrip().startswith(">>>"):
        return True
    return bool(after.strip()) and not _ENDS_SENTENCE.search(before)
