"""Specs in older forms are converted to the current one."""

from enum import Enum

import pytest
from pydantic import TypeAdapter, ValidationError

from opposable.domain.specs import (
    AnyToolSpec,
    AuthConfig,
    Capability,
    EndpointConfig,
    Example,
    FunctionToolSpec,
    HttpToolSpec,
    McpServerSpec,
    SkillSpec,
)

SPEC_ADAPTER = TypeAdapter(AnyToolSpec)
URL = {"type": "string", "description": "目标网页URL"}


class Kind(Enum):
    FUNCTION = "function"


def test_a_row_of_the_tools_table_is_an_http_tool():
    row = {
        "id": "t-1",
        "name": "get_weather",
        "type": "streamable",
        "display_name": "天气",
        "description": "查询天气",
        "category": "custom",
        "endpoint": {
            "url_template": "https://api.example.com/{city}",
            "method": "get",
            "headers": None,
            "auth": {"type": "bearer", "token_env": "WEATHER", "username": None},
            "timeout": 0,
        },
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        "response_transform": None,
        "rate_limit": None,
        "enabled": True,
        "version": "1.0.0",
        "tags": None,
    }
    assert SPEC_ADAPTER.validate_python(row) == HttpToolSpec(
        tool_id="t-1",
        name="get_weather",
        mode="streamable",
        display_name="天气",
        description="查询天气",
        category="custom",
        endpoint=EndpointConfig(
            url_template="https://api.example.com/{city}", auth=AuthConfig(type="bearer", token="env:WEATHER_TOKEN")
        ),
        parameters=row["parameters"],
    )


def test_a_function_tool_with_its_type_as_an_enumeration():
    spec = FunctionToolSpec(
        tool_id="browser_navigator",
        name="网页导航器",
        tool_type=Kind.FUNCTION,
        capabilities=[
            {"name": "navigate", "parameters": {"url": URL | {"required": True}}, "examples": [{"url": "https://a.b"}]}
        ],
        module_path="tools.browser.navigator",
        class_name="BrowserNavigator",
    )
    [capability] = spec.capabilities
    assert (spec.tool_type, spec.name) == ("function", "网页导航器")
    assert capability.parameters == {"type": "object", "properties": {"url": URL}, "required": ["url"]}
    assert capability.examples == (Example(arguments={"url": "https://a.b"}),)


def test_an_mcp_server_by_its_endpoint():
    given = {"tool_id": "db", "tool_type": "mcp_server", "endpoint": "http://localhost:8080/mcp"}
    given["connection_params"] = {"timeout": 5, "retry_count": 3}
    assert SPEC_ADAPTER.validate_python(given) == McpServerSpec(
        tool_id="db", url="http://localhost:8080/mcp", connect_timeout=5, metadata={"retry_count": 3}
    )
    program = SPEC_ADAPTER.validate_python({"tool_id": "db", "server_config": {"command": "serve", "args": ["-v"]}})
    assert program == McpServerSpec(tool_id="db", command="serve", args=("-v",))
    with pytest.raises(ValidationError, match="no WebSocket transport"):
        McpServerSpec(tool_id="db", endpoint="ws://localhost:8080/mcp")


@pytest.mark.parametrize(
    ("given", "expected_type"),
    [
        ({"module_path": "m", "function_name": "f"}, FunctionToolSpec),
        ({"endpoint": {"url_template": "internal://time"}}, HttpToolSpec),
        ({"endpoint": "http://localhost/mcp"}, McpServerSpec),
        ({"url": "http://localhost/mcp"}, McpServerSpec),
        ({"command": "serve"}, McpServerSpec),
        ({"path": "skills/one"}, SkillSpec),
        ({"type": "skill", "path": "skills/one"}, SkillSpec),
    ],
)
def test_the_type_of_a_spec_follows_from_its_fields(given, expected_type):
    assert type(SPEC_ADAPTER.validate_python({"tool_id": "t", **given})) is expected_type


@pytest.mark.parametrize(
    ("given", "schema"),
    [
        ({}, {}),
        ({"type": "object", "properties": {"a": URL}}, {"type": "object", "properties": {"a": URL}}),
        ({"type": "object", "properties": None, "required": None}, {"type": "object"}),
        ({"a": URL}, {"type": "object", "properties": {"a": URL}}),
        ({"a": URL | {"required": False}}, {"type": "object", "properties": {"a": URL}}),
        ({"type": URL}, {"type": "object", "properties": {"type": URL}}),
        ({"properties": URL}, {"type": "object", "properties": {"properties": URL}}),
        ({"properties": {"a": URL}}, {"properties": {"a": URL}}),
        (
            {"type": "object", "properties": {"a": URL | {"required": True}}, "required": [{}]},
            {"type": "object", "properties": {"a": URL}, "required": [{}, "a"]},
        ),
        (
            {"type": "object", "properties": {"a": URL | {"required": True}}, "required": 5},
            {"type": "object", "properties": {"a": URL | {"required": True}}, "required": 5},
        ),
        (
            {"type": "object", "properties": {"a": URL | {"required": True}, "b": URL}, "required": ["b"]},
            {"type": "object", "properties": {"a": URL, "b": URL}, "required": ["b", "a"]},
        ),
    ],
)
def test_parameters_are_a_schema_or_a_map_of_parameters(given, schema):
    capability = Capability(name="c", parameters=given)
    assert capability.parameters == schema
    assert Capability.model_validate(capability.model_dump()) == capability


@pytest.mark.parametrize(
    ("parameters", "given", "arguments"),
    [
        ({}, {"arguments": {"a": 1}, "result": 2}, {"a": 1}),
        ({}, {"a": 1}, {"a": 1}),
        ({"description": URL}, {"description": "x"}, {"description": "x"}),
        ({}, {"description": "x"}, {}),
        ({}, {}, {}),
    ],
)
def test_an_example_is_complete_or_only_its_arguments(parameters, given, arguments):
    [example] = Capability(name="c", parameters=parameters, examples=[given]).examples
    assert example.arguments == arguments


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"id": "a", "tool_id": "b", "command": "serve"}, "id\n  Extra inputs are not permitted"),
        ({"id": "a", "type": "banana", "command": "serve"}, "Input should be 'invokable' or 'streamable'"),
        ({"id": "a", "command": "serve", "connection_params": {"colour": 1}}, "colour\n  Extra inputs"),
        ({"id": "a"}, "tool_type"),
        ([], "valid dictionary"),
        ({"id": "a", "command": "serve", "server_config": 5}, "server_config\n  Extra inputs"),
        ({"id": "a", "command": "serve", "connection_params": {"retry_count": 3}, "metadata": [1]}, "metadata\n"),
        ({"id": {}, "type": {}, "command": []}, "type"),
    ],
)
def test_an_invalid_spec_is_reported(given, message):
    with pytest.raises(ValidationError, match=message):
        SPEC_ADAPTER.validate_python(given)
