"""Phrases that show whether a call is quoted or made, in English and Chinese."""

SUBJECTS = ("you", "users", "user", "people", "developers", "models", "model", "agents", "one", "someone", "they")
MODALS = (
    "can",
    "could",
    "would",
    "should",
    "might",
    "may",
    "must",
    "will",
    "need",
    "want",
    "have",
    "invoke",
    "call",
    "use",
    "write",
    "type",
    "emit",
    "send",
    "output",
)
CONTAINERS = (
    "page", "website", "site", "document", "email", "mail", "message", "file", "article", "comment", "result", "output", "response", "log",
    "text", "string", "tag", "token", "markup", "marker", "json", "snippet", "transcript", "webpage", "web page", "issue", "readme",
)  # fmt: skip

SHOWING_CUES = (
    "for example", "for instance", "e.g.", "example", "examples", "sample", "samples", "such as", "look like", "looks like",
    *(f"would {verb}" for verb in ("be", "look", "write", "use", "call", "send", "produce", "output", "emit")),
    *(f"{subject} {modal}" for subject in SUBJECTS for modal in MODALS), "you'd",
    *(f"how {word}" for word in ("to", "you", "a", "an", "it", "the", "do", "does", "is", "tool", "models")),
    "documentation", "docs", "tutorial", "spec", "specification", "snippet", "placeholder",
    *(f"{no} {verb}" for no in ("not", "refuse to", "cannot", "can't", "won't", "don't", "didn't", "never") for verb in ("call", "run", "execute", "use", "make", "invoke", "follow", "act")),
    "ignore", "ignored", "ignoring", "inject", "injected", "injection", "injections", "malicious", "suspicious", "attack", "attacker", "phishing",
    "if i", "if we", "if you", "please confirm", "could call", "could use", "could be", "might", "considered", "thought about", "think about", "hypothetical", "hypothetically",
    "translate", "translates", "translation", "illustrate", "illustrates", "demonstrate", "demonstrates",
)  # fmt: skip
"""Phrases of a sentence before a call that is only shown."""

QUOTING_CUES = (
    *SHOWING_CUES,
    "say", "says", "saying", "said", "wrote", "write", "writes", "written", "reads", "contain", "contains", "containing", "contained",
    "includes", "including", "embed", "embedded", "embeds", "quote", "quotes", "quoted", "quoting",
    "format", "formats", "syntax", "schema", "template", "payload", "literal",
    "don't", "do not", "doesn't", "does not", "did not", "didn't", "never", "instead of", "rather than", "avoid", "without",
    "returned", "responded", "replied",
    *(f"{kind} {thing}" for kind in ("tool", "search") for thing in ("result", "results", "output", "response", "responses")), "observation",
    "tag", "tags", "tokens", "strings", "means", "is called", "earlier", "previous", "previously", "already", "last time",
    "you asked", "you requested", "as requested", "config", "configuration",
    *(f"{verb} {whom} to" for verb in ("ask", "asks", "asked", "tells", "told", "instructs", "wants") for whom in ("me", "us", "you")), "instructs", "instructed",
    *(f"{thing} of" for thing in ("output", "outputs", "content", "contents", "text", "result", "results", "transcript", "summary", "copy")),
    *(f"{thing} was" for thing in ("output", "result", "response")),
    "verbatim", "repeat", "repeats", "repeated", "repeating", "if the", "if a",
    "explain", "explains", "explained", "explaining", "show", "shows", "shown", "showing", "describe", "describes", "describing",
)  # fmt: skip
"""Phrases of a line that introduces a call that is only quoted."""

CONTAINER_CUES = tuple(
    f"{article} {thing}" for article in ("the", "this", "that", "a", "an", "its", "following") for thing in CONTAINERS
)
"""Phrases right before a call that make the call part of the named thing, unless a calling cue occurs too."""

SHOWING_CUES_CHINESE = (
    "例如", "比如", "譬如", "示例", "举例", "样例", "范例", "例子",
    *(f"如果{who}" for who in ("你", "您", "用户")),
    *(f"{who}{modal}" for who in ("你", "您", "用户", "模型", "它") for modal in ("可以", "可", "应该", "应", "需要", "能", "会")),
    "不要", "不得", "不应", "不会", "不能", "并未", "切勿", "请勿", "请确认", "请先确认", "忽略", "看起来像", "形如", "如何", "怎么", "怎样", "教程", "注入", "恶意", "攻击", "假设", "假如", "演示",
)  # fmt: skip

QUOTING_CUES_CHINESE = (
    *SHOWING_CUES_CHINESE,
    "格式", "语法", "写道", "写着", "写的是", "说：", "说:", "内容是", "内容为", "内容如", "内容：", "显示",
    "没有", "网页", "页面", "网站", "文档", "邮件", "文件中", "文件里", "返回了", "返回的", "返回：", "返回:", "结果：", "结果:", "重复", "复述", "原样",
    "结果是", "结果为", "结果中", "之前", "上次", "曾经", "刚才", "引用", "原文", "所谓", "标签", "字符串", "解释",
)  # fmt: skip

CALLING_CUES = (
    "i'll", "i will", "ill", "i am going to", "i am calling", "i am using", "i'm going to", "i'm calling", "i'm using", "let me", "let's", "we'll", "we will",
    "i need to", "i want to", "i have to", "i should", "i must", "i call", "i can use", "i can call", "i can do", "i can help", "i can check", "i can look",
    "calling", "now call", "next call", "tool call:", "tool calls:", "function call:", "function calls:", "action:", "here is the call", "here's the call",
    *(f"{here} {article} {kind} call" for here in ("here is", "here's") for article in ("the", "my", "a") for kind in ("function", "tool", "api")),
    *(f"{here} the {kind} calls" for here in ("here are",) for kind in ("function", "tool", "api")),
    *(f"{here} the {thing}" for here in ("here is", "here's") for thing in ("json", "tool", "function", "response", "output")),
    "use the following tool", "using the following tool", "going to call", "going to use", "proceed to call",
)  # fmt: skip
"""Phrases before a call that is made."""

CALLING_CUES_CHINESE = (
    "我将", "我会", "我来", "让我", "我需要", "我要", "我先", "我这就", "现在调用", "调用工具", "调用函数", "正在", "接下来", "下面我", "我们来", "我现在", "我去", "我帮",
    "为您查", "为你查", "帮您", "帮你", "好的",
)  # fmt: skip

EXPLAINING_CUES = (
    "example", "examples", "would be", "would return", "would give", "would call", "would add", "would do", "would produce", "would look", "would then",
    *(f"you {verb}" for verb in ("can", "could", "would", "should", "might", "may", "asked", "requested")),
    "replace", "your own", "placeholder", "format", "syntax", "schema", "documentation", "looks like",
    *(f"{who} {no}" for who in ("i", "we") for no in ("do not", "don't", "did not", "didn't", "will not", "won't", "have not", "haven't", "cannot", "can't")),
    "not a call", "not a real call", "not executed", "not execute", "not run", "not called", "not real", "never", "ignore", "injected", "injection", "malicious",
    "suspicious", "is what", "is how", "is used", "is written", "is sent", "is the json", "the json you",
)  # fmt: skip
"""Phrases after a call that was only quoted."""

EXPLAINING_CUES_CHINESE = (
    "例如", "比如", "示例", "举例", "样例", "格式", "语法", "你可以", "您可以", "不要", "请勿", "切勿", "忽略", "并未", "没有执行", "没有调用", "只是", "仅供", "替换",
)  # fmt: skip
