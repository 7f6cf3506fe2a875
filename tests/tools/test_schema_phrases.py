import pytest

from opposable.tools.schema_phrases import must_be_type, must_respect


@pytest.mark.parametrize(
    ("message", "english", "chinese"),
    [
        (must_be_type("integer"), "must be a valid integer", "必须是整数"),
        (must_be_type("object"), "must be a valid dictionary", "必须是对象"),
        (must_respect("minimum", 1), "must be greater than or equal to 1", "必须大于或等于 1"),
        (must_respect("exclusiveMaximum", "2.5"), "must be less than 2.5", "必须小于 2.5"),
        (must_respect("minItems", 1), "must have at least 1 item", "至少要有 1 个元素"),
    ],
)
def test_each_requirement_has_an_english_and_a_chinese_text(message, english, chinese):
    assert (str(message), message.chinese) == (english, chinese)
