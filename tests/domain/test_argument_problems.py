import pytest

from opposable.domain.argument_problems import is_required, must_be, unknown_parameter
from opposable.domain.localized_text import LocalizedText


@pytest.mark.parametrize(
    ("message", "english", "chinese"),
    [
        (is_required(), "is required", "字段是必需的"),
        (unknown_parameter(()), "it takes no parameters", "该工具不需要参数"),
        (
            unknown_parameter(("a", "b")),
            "there is no such parameter; the parameters are a, b",
            "没有这个参数，可用的参数是 a, b",
        ),
        (must_be("1 to 1000"), "must be 1 to 1000", "必须是 1 to 1000"),
        (must_be(LocalizedText("a date", "日期")), "must be a date", "必须是 日期"),
    ],
)
def test_each_problem_has_an_english_and_a_chinese_text(message, english, chinese):
    assert (str(message), message.chinese) == (english, chinese)
