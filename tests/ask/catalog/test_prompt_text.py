import pytest

from opposable.ask.catalog.schema_view import format_prompt_value


@pytest.mark.parametrize(
    ("text", "expected"),
    [("it's", "'it''s'"), ("a\nb\x00\u200b", "'a b'"), ("x" * 90, "'" + "x" * 39 + "…'"), ("", "''")],
)
def test_values_are_quoted_on_one_line(text, expected):
    assert format_prompt_value(text) == expected
