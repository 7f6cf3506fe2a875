"""The usual `mcpServers` JSON, and what it may refer to."""

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from opposable.domain.errors import BadInput
from opposable.domain.specs import McpServerSpec
from opposable.tools.mcp.config import read_servers
from opposable.tools.mcp.secret_references import resolve_references


def test_the_usual_file_is_read():
    given = {
        "mcpServers": {
            "time": {"command": "uvx", "args": ["mcp-server-time"], "autoApprove": ["*"]},
            "My files": {"type": "stdio", "command": "npx", "env": {"TOKEN": "${FILES_TOKEN}"}, "cwd": "/srv"},
            "remote": {
                "type": "streamable-http",
                "url": "https://mcp.example.org/mcp",
                "headers": {"Authorization": "Bearer ${env:REMOTE_TOKEN}", "X-Team": "数据"},
                "disabled": True,
            },
        }
    }
    assert read_servers(json.dumps(given, ensure_ascii=False)) == [
        McpServerSpec(tool_id="time", display_name="time", command="uvx", args=("mcp-server-time",)),
        McpServerSpec(
            tool_id="My_files",
            display_name="My files",
            command="npx",
            env={"TOKEN": "env:FILES_TOKEN"},
            cwd=Path("/srv"),
        ),
        McpServerSpec(
            tool_id="remote",
            display_name="remote",
            enabled=False,
            url="https://mcp.example.org/mcp",
            headers={"Authorization": "Bearer env:REMOTE_TOKEN", "X-Team": "数据"},
        ),
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("{", "The configuration is not valid JSON"),
        ("[]", 'The configuration has no "mcpServers"'),
        ({"mcpServers": {"a": "npx"}}, "a: a server must be an object with a `command` or a `url`, not str."),
        ({"mcpServers": {"a": {}}}, "a: An MCP server has either a `command` (stdio) or a `url` (streamable HTTP)."),
        ({"mcpServers": {"a": {"command": "x", "url": "http://h/"}}}, "a: An MCP server has either a `command`"),
        ({"mcpServers": {"a": {"url": "ws://localhost:8080/mcp"}}}, "MCP has no WebSocket transport"),
        ({"mcpServers": {"a": {"type": "ws", "url": "wss://h/mcp"}}}, "MCP has no WebSocket transport"),
        ({"mcpServers": {"a": {"type": "sse", "url": "http://h/sse"}}}, "a: MCP no longer has the transport sse"),
        ({"mcpServers": {"a": {"type": "carrier", "url": "http://h/"}}}, "a: unknown transport 'carrier'"),
        ({"mcpServers": {"a": {"url": "http://me:secret@h/"}}}, "Put them into `headers`"),
        (
            {"mcpServers": {"a": {"command": "x", "env": {"T": "${T:-none}"}}}},
            "a: T: use one variable, at the end of the value",
        ),
        ({"mcpServers": {"a": {"command": "x", "env": {"T": "pre${T}"}}}}, "a: T: put a space before ${T}"),
        (
            {"mcpServers": {"a": {"command": "x", "args": ["-y", "--key=${KEY}"]}}},
            "a: args: variables such as ${NAME} are replaced in env and headers only. "
            "Give the value itself, or pass it in env.",
        ),
        ({"mcpServers": {"a": {"command": "sh", "args": ["-c", "x", "${KEY}"]}}}, "a: args: variables such as ${NAME}"),
        ({"mcpServers": {"a": {"url": "https://x.org/${TEAM}/mcp"}}}, "a: url: variables such as ${NAME} are replaced"),
        ({"mcpServers": {"a b": {"command": "x"}, "a/b": {"command": "y"}}}, "Two servers have the id 'a_b'"),
        ({"mcpServers": {"a": {"command": "x", "env": {"KEY": 17}}}}, "a: env.KEY: must be text"),
    ],
)
def test_an_invalid_configuration_names_the_server(given, said):
    with pytest.raises(BadInput) as caught:
        read_servers(given)
    assert said in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(("command", "flag"), [("bash", "-lc"), ("/bin/sh", "-c")])
def test_a_shell_expands_the_variables_of_its_script(command, flag):
    script = "exec node ${MCP_DIR}/server.js"
    [spec] = read_servers({"mcpServers": {"a": {"command": command, "args": [flag, script]}}})
    assert spec.args == (flag, script)


def test_the_websocket_address_of_old_is_refused_with_what_to_use():
    with pytest.raises(ValidationError, match=r"streamable HTTP address \(http://HOST:PORT/mcp\), or the `command`"):
        McpServerSpec(tool_id="database_server", url="ws://localhost:8080/mcp")


def test_references_are_resolved_and_known_as_secrets(monkeypatch):
    monkeypatch.setenv("MCP_TEST_TOKEN", "s3cret-value\n")  # as read from a file
    given = {
        "Authorization": "Bearer env:MCP_TEST_TOKEN",
        "X": "env:MCP_TEST_TOKEN",
        "Y": "plain env:like this",
        "X-Api-Key": "Key k-literal",
    }
    assert resolve_references(given, "a") == (
        {
            "Authorization": "Bearer s3cret-value",
            "X": "s3cret-value",
            "Y": "plain env:like this",
            "X-Api-Key": "Key k-literal",
        },
        {"s3cret-value", "k-literal"},
    )


def test_ordinary_settings_are_not_secrets(monkeypatch):
    for name, value in {"MCP_TEST_HOME": "/home/ann", "MCP_TEST_REGION": "east", "MCP_TEST_VALUE": "hunter2"}.items():
        monkeypatch.setenv(name, value)
    given = {
        "HOME": "env:MCP_TEST_HOME",
        "REGION": "env:MCP_TEST_REGION",
        "AUTH_MODE": "none",
        "SECRETS_STORE": "vault",
        "X-Custom": "Token env:MCP_TEST_VALUE",
    }
    assert resolve_references(given, "a")[1] == {"hunter2"}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (
            "env:MCP_TEST_TOKEN",
            "a: X refers to the environment variable MCP_TEST_TOKEN, which is not set. Set it first.",
        ),
        ("one\r\nInjected: two", "a: the value of X contains a line break or control character. Remove it."),
    ],
)
def test_an_invalid_value_is_reported_before_it_is_sent(monkeypatch, value, said):
    monkeypatch.delenv("MCP_TEST_TOKEN", raising=False)
    with pytest.raises(BadInput) as caught:
        resolve_references({"X": value}, "a")
    assert str(caught.value) == said
