"""The language of a text with names of the other language."""

import pytest

from opposable.domain.language import detect_language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("How many invoices does 张三 have in 北京市?", "en"),
        ("What did 阿里巴巴集团 buy?", "en"),
        ("Revenue of 上海分公司 last year", "en"),
        ("How many orders did 和平路店 place?", "en"),
        ("查询 customer name 和 total amount order by amount desc limit 10", "zh"),
        ("帮我查一下 A-17 order status in warehouse Berlin", "zh"),
        ('请把 "How are you doing today my friend" 翻译成中文', "zh"),
        ("上海 revenue", "zh"),
        ("SELECT 1", "en"),
        ("", "en"),
    ],
)
def test_the_language_is_that_of_the_sentence_and_not_of_its_names(text, language):
    assert detect_language(text) == language
