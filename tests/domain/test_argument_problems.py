import pytest

from opposable.domain.argument_problems import is_required, must_be, must_be_type, must_compare, unknown_parameter


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
        (must_be_type("integer"), "must be a valid integer", "必须是整数"),
        (must_be_type("object"), "must be a valid dictionary", "必须是对象"),
        (must_compare("minimum", "1"), "must be greater than or equal to 1", "必须大于或等于 1"),
        (must_compare("exclusive maximum", "2.5"), "must be less than 2.5", "必须小于 2.5"),
        (must_be("1 to 1000"), "must be 1 to 1000", "必须是 1 to 1000"),
    ],
)
def test_each_problem_has_an_english_and_a_chinese_text(message, english, chinese):
    assert (str(message), message.chinese) == (english, chinese)
