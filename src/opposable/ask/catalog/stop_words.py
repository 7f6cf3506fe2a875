"""Words and Chinese bigrams of questions that name no table, column or value."""

_ENGLISH = """a about after all also am an and any are as at average be been before between both but by can could count did distinct
    do does each every find for from get give had has have how i in is it its itself list many maximum me minimum more
    most much name names not number of on or order our out over per please return same show than that the their them then
    there these they this those to total under us was we were what when where which who whose will with you your id ids
    sort sorted ascending descending different number's value values whats tell details information there's least
    highest lowest largest smallest"""
_CHINESE = """多少 是多 什么 哪些 哪个 有多 请问 列出 显示 查询 所有 每个 分别 数量 总数 平均 最大 最小 最高 最低 的是 按照 排序 并且
    以及 或者 我们 他们 一共 总共 有几 几个 个人 中有 的数 的总 和的 了多 少个 名称 名字"""

STOP_WORDS = frozenset(_ENGLISH.split())
STOP_BIGRAMS = frozenset(_CHINESE.split())
