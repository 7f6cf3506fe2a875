"""References to environment variables: one rule for HTTP tools and MCP servers."""

import pytest

from opposable.domain.specs import HttpToolSpec, McpServerSpec
from opposable.safety.secret_references import (
    find_variable,
    get_referenced_variables,
    is_secret_reference,
    replace_reference,
)


@pytest.mark.parametrize(
    ("value", "variable", "replaced"),
    [
        ("env:KEY", "KEY", "s3cret"),
        ("Bearer env:KEY", "KEY", "Bearer s3cret"),
        ("Bearer\tenv:KEY", "KEY", "Bearer\ts3cret"),
        ("ApiKey id=7 env:KEY_2\n", "KEY_2", "ApiKey id=7 s3cret"),
        ("plain env:like this", "", "plain env:like this"),
        ("key=env:KEY", "", "key=env:KEY"),
        ("env:2", "", "env:2"),
        ("", "", ""),
    ],
)
def test_a_reference_is_the_last_word_of_a_value(value, variable, replaced):
    assert (find_variable(value), replace_reference(value, {variable: "s3cret"})) == (variable, replaced)


def test_the_variables_of_specs_are_listed():
    auth = {"type": "basic", "username": "env:USER_NAME", "password": "env:PASSWORD"}
    endpoint = {
        "url_template": "https://a.example/env:NO",
        "auth": auth,
        "headers": {"X": "Token env:KEY", "Y": "env:"},
    }
    http = HttpToolSpec(tool_id="http", endpoint=endpoint)
    mcp = McpServerSpec(tool_id="mcp", command="sh", args=("env:NO",), env={"A": "env:KEY", "B": "env:OTHER"})
    assert get_referenced_variables(http, mcp) == ["KEY", "OTHER", "PASSWORD", "USER_NAME"]


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [("X", "Token env:REGION", True), ("X", "env:API_KEY", True), ("X-Key", "env:A", True), ("X", "env:REGION", False)],
)
def test_settings_are_not_secrets(name, value, expected):
    assert is_secret_reference(name, value, "east") is expected
