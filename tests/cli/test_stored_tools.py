"""The commands for stored tools."""

import codecs
import sys
from pathlib import Path

import orjson
import pytest
from tests.cli.program import TESTED_PACKAGE, run_program

pytestmark = pytest.mark.anyio

CALCULATOR = {"tool_id": "计算器", "description": "数学计算", "endpoint": {"url_template": "internal://calculator"}}
WEATHER = {
    "tool_id": "weather",
    "description": "The weather of a city",
    "endpoint": {
        "url_template": "https://api.example.com/{city}",
        "auth": {"type": "bearer", "token": "env:NO_SUCH_TOKEN"},
    },
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}


def write_specs(folder: Path, *specs: dict) -> str:
    path = folder / "tools.json"
    path.write_bytes(orjson.dumps(list(specs)))
    return str(path)


async def test_a_stored_tool_is_available_until_it_is_deleted(tmp_path):
    added = await run_program(tmp_path, "tools", "add", write_specs(tmp_path, CALCULATOR), "--json")
    assert (added.code, added.json["tools"][0]["rejected"]) == (0, {})
    called = await run_program(tmp_path, "tools", "call", "计算器", '{"expression": "25*4"}')
    assert (called.code, called.out) == (0, '{"expression":"25*4","result":100}\n')
    disabled = await run_program(tmp_path, "tools", "disable", "计算器", "--json")
    assert disabled.json == {"tool_id": "计算器", "enabled": False}
    assert (await run_program(tmp_path, "tools", "call", "计算器", "{}")).code == 2
    health = await run_program(tmp_path, "tools", "health", "--json")
    assert (health.code, health.json["tools"][0]["enabled"]) == (0, False)
    assert (await run_program(tmp_path, "tools", "rm", "计算器", "--json")).json == {"tool_id": "计算器"}
    again = await run_program(tmp_path, "tools", "rm", "计算器")
    assert (again.code, again.err) == (2, "Error: No tool named '计算器' is stored. No tool is stored yet.\n")


async def test_an_earlier_version_is_compared_and_restored(tmp_path):
    for description in ("数学计算", "Adds numbers."):
        specs = write_specs(tmp_path, CALCULATOR | {"description": description})
        assert (await run_program(tmp_path, "tools", "add", specs, "--replace")).code == 0
    await run_program(tmp_path, "tools", "disable", "计算器")
    listed = await run_program(tmp_path, "tools", "versions", "计算器", "--json")
    versions = [(one["version"], one["saved_by"], one["spec"]["description"]) for one in listed.json["versions"]]
    assert versions == [(2, "command line", "Adds numbers."), (1, "command line", "数学计算")]
    assert "command line" in (await run_program(tmp_path, "tools", "versions", "计算器")).out
    compared = (await run_program(tmp_path, "tools", "versions", "计算器", "1")).out
    assert "--- version 1\n+++ version 2\n" in compared
    assert '-  "description": "数学计算",\n+  "description": "Adds numbers.",\n' in compared
    as_json = (await run_program(tmp_path, "tools", "versions", "计算器", "1", "--json")).json
    assert as_json == {"version": 1, "newest": 2, "diff": compared.rstrip("\n")}
    assert (await run_program(tmp_path, "tools", "versions", "计算器", "2")).out == "Version 2 equals version 2.\n"
    assert (await run_program(tmp_path, "tools", "restore", "计算器", "1")).code == 0
    [stored] = orjson.loads((await run_program(tmp_path, "tools", "export")).out)
    assert (stored["description"], stored["enabled"]) == ("数学计算", False)
    missing = await run_program(tmp_path, "tools", "restore", "计算器", "9")
    assert (missing.code, missing.err) == (
        2,
        "Error: The tool '计算器' has no version 9. See: opposable tools versions 计算器\n",
    )
    unknown = await run_program(tmp_path, "tools", "versions", "nothing")
    assert (unknown.code, "No tool named 'nothing' is stored" in unknown.err) == (2, True)


async def test_an_unusable_tool_is_not_stored_and_its_variable_is_named(tmp_path):
    added = await run_program(tmp_path, "tools", "add", write_specs(tmp_path, WEATHER))
    assert added.code == 1
    assert "✗ weather: The environment variable NO_SUCH_TOKEN, which" in added.err
    assert (await run_program(tmp_path, "tools", "export")).out == "[]\n"


async def test_an_export_can_be_imported_elsewhere(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    await run_program(tmp_path / "a", "tools", "add", write_specs(tmp_path, CALCULATOR))
    await run_program(tmp_path / "a", "tools", "export", str(tmp_path / "out.json"))
    done = await run_program(tmp_path / "b", "tools", "import", str(tmp_path / "out.json"))
    assert done.code == 0
    again = await run_program(tmp_path / "b", "tools", "import", str(tmp_path / "out.json"))
    assert (again.code, again.out, again.err) == (0, "✓ 计算器\n", "")
    changed = write_specs(tmp_path, CALCULATOR | {"description": "Adds numbers."})
    taken = await run_program(tmp_path / "b", "tools", "import", changed)
    assert (taken.code, "already" in taken.err) == (1, True)


async def test_the_export_of_a_disabled_server_can_be_imported_again(tmp_path):
    await run_program(tmp_path, "tools", "add-mcp", "http://127.0.0.1:9/mcp", "--name", "far", "--force")
    await run_program(tmp_path, "tools", "disable", "far")
    await run_program(tmp_path, "tools", "export", "out.json")
    again = await run_program(tmp_path, "tools", "import", "out.json")
    assert (again.code, again.out, again.err) == (0, "✓ far\n", "")
    (tmp_path / "b").mkdir()
    elsewhere = await run_program(tmp_path / "b", "tools", "import", "../out.json")
    assert (elsewhere.code, elsewhere.out, elsewhere.err) == (0, "✓ far\n", "")
    copy = await run_program(tmp_path / "b", "tools", "export")
    assert copy.out == (tmp_path / "out.json").read_text()
    restored = await run_program(tmp_path / "b", "tools", "restore", "far", "1")
    assert (restored.code, restored.out, restored.err) == (0, "✓ far\n", "")


async def test_the_second_of_two_specs_with_one_id_is_reported(tmp_path):
    file = write_specs(tmp_path, CALCULATOR, CALCULATOR | {"description": "Another."})
    added = await run_program(tmp_path, "tools", "add", file, "--json")
    assert (added.code, added.json["left_out"]) == (
        1,
        {"spec 2 (计算器)": "an earlier spec of the file has the same id"},
    )
    assert orjson.loads((await run_program(tmp_path, "tools", "export")).out)[0]["description"] == "数学计算"


async def test_an_export_goes_to_standard_output_or_a_new_file(tmp_path):
    await run_program(tmp_path, "tools", "add", write_specs(tmp_path, CALCULATOR))
    plain, dash, written, again = [
        await run_program(tmp_path, "tools", "export", *words) for words in ((), ("-",), ("out.json",), ("out.json",))
    ]
    assert (plain.out, (tmp_path / "out.json").read_text()) == (dash.out, dash.out)
    assert not (tmp_path / "-").exists()
    assert (written.code, again.code) == (0, 2)
    assert again.err == "Error: out.json already exists. Pass another file, or move it away.\n"


async def test_an_mcp_server_is_stored_with_its_command_line(tmp_path):
    program = f"{sys.executable} -m mcp_server_time --local-timezone UTC"
    added = await run_program(tmp_path, "tools", "add-mcp", program, "--name", "clock")
    assert (added.code, added.out) == (0, "✓ clock.get_current_time\n✓ clock.convert_time\n")
    called = await run_program(tmp_path, "tools", "call", "clock.get_current_time", '{"timezone": "Asia/Shanghai"}')
    assert (called.code, "Asia/Shanghai" in called.out) == (0, True)


async def test_an_openapi_document_becomes_tools_and_skipped_operations_are_reported(tmp_path):
    document = {
        "openapi": "3.1.0",
        "info": {"title": "t", "version": "1"},
        "servers": [{"url": "https://shop.example.com"}],
        "paths": {
            "/orders/{id}": {
                "get": {
                    "operationId": "order",
                    "summary": "One order",
                    "parameters": [
                        {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}},
                        {"name": "a", "in": "query", "style": "label"},
                        {"name": "b", "in": "query", "style": "matrix"},
                    ],
                    "responses": {"200": {"description": "ok"}},
                },
                "trace": {"responses": {"200": {"description": "ok"}}},
            }
        },
    }
    path = tmp_path / "openapi.json"
    path.write_bytes(orjson.dumps(document))
    done = await run_program(tmp_path, "tools", "import-openapi", str(path), "--prefix", "shop", "--json")
    assert (done.code, done.json["tools"][0]["accepted"]) == (0, ["shop_order"])
    assert done.json["left_out"] == {
        "GET /orders/{id}": "parameter a: style label is not supported in a query; "
        "parameter b: style matrix is not supported in a query",
        "TRACE /orders/{id}": "this method is not called",
    }


async def test_the_skills_of_a_folder_are_stored(tmp_path):
    folder = tmp_path / "skills" / "greet"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: greet\ndescription: 打招呼\n---\nSay hello.\n")
    (folder / "scripts").mkdir()
    (folder / "scripts" / "greet.js").write_text("")
    done = await run_program(tmp_path, "tools", "add-skill", "skills", "--json")
    assert (done.code, done.json["left_out"]) == (
        0,
        {"greet/scripts/greet.js": "only .py and .sh scripts can be run."},
    )
    matches = await run_program(tmp_path, "tools", "search", "打招呼", "--json")
    assert matches.json["tools"][0]["tool_id"] == "greet"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("add", "none.json"), "Cannot read none.json"),
        (("add", "/dev/null"), "/dev/null contains no tool spec: it is empty"),
        (("add-mcp", "python"), "--name"),
        (("add-mcp", "."), ". is a folder. Pass an mcpServers file, a server URL, or a command line with --name."),
        (("add-mcp", "python 'x", "--name", "db"), "no closing quotation"),
        (("export", "none/tools.json"), "The folder none does not exist. Create it"),
        (("add-skill", "none"), "The folder none does not exist"),
        (("add-mcp", "ws://localhost:8080/mcp", "--name", "db"), "WebSocket"),
        (("import-openapi", "none.yaml"), "none.yaml cannot be read"),
        (("import-openapi", "no_paths.json"), "There is no tool to store"),
        (("add-mcp", "no_servers.json"), "There is no tool to store"),
        (("add", "broken.yaml"), "broken.yaml is neither JSON nor YAML: line 2: did not find"),
        (("add", "deep.yaml"), "deep.yaml is neither JSON nor YAML: it is nested too deep"),
        (("add", "latin.yaml"), "latin.yaml is neither JSON nor YAML: it is not UTF-8 text"),
        (("add", "merges.yaml"), "merges.yaml is neither JSON nor YAML: line 2: too many merge keys"),
        (("add", "twice.json", "--yes"), "twice.json, line 2: tool_id is defined twice: remove one of them."),
        (("add-mcp", "twice.json"), "twice.json, line 2: tool_id is defined twice: remove one of them."),
        (("add-mcp", "utf16.json"), "utf16.json is not UTF-8 text. Save it as UTF-8."),
        (("add", "loop.py", "--yes"), "Cannot read loop.py"),
    ],
)
async def test_invalid_input_is_reported_in_one_sentence(tmp_path, args, message):
    (tmp_path / "no_paths.json").write_text('{"openapi": "3.0.0", "info": {"title": "x", "version": "1"}, "paths": {}}')
    (tmp_path / "no_servers.json").write_text('{"mcpServers": {}}')
    (tmp_path / "twice.json").write_text('{"tool_id": "a",\n "tool_id": "b"}')
    (tmp_path / "broken.yaml").write_text("a: [1\n b: :")
    (tmp_path / "deep.yaml").write_text("[" * 100_000)
    (tmp_path / "latin.yaml").write_bytes("name: café".encode("latin-1"))
    level = "  <<: [" + ", ".join(["*a"] * 1000) + "]\n"  # each level has a thousand times the pairs of the one before
    (tmp_path / "merges.yaml").write_text(f"a: &a {{x: 1, y: 2}}\nb: &b\n{level}c:\n{level.replace('*a', '*b')}")
    (tmp_path / "utf16.json").write_text('{"mcpServers": {}}', encoding="utf-16")
    (tmp_path / "loop.py").symlink_to("loop.py")
    done = await run_program(tmp_path, "tools", *args)
    assert (done.code, message in done.err, "Traceback" in done.err) == (2, True, False)


async def test_a_command_line_may_be_longer_than_a_path(tmp_path):
    added = await run_program(tmp_path, "tools", "add-mcp", "x" * 300, "--name", "db")
    assert (added.code, "✗ db: there is no program 'xxx" in added.err) == (1, True)


async def test_words_and_dates_of_a_spec_in_yaml_are_text(tmp_path):
    (tmp_path / "spec.yaml").write_text("""
tool_id: stock
tool_type: http
needs_approval: yes
endpoint: {url_template: "https://a.example/{country}"}
parameters: {type: object, properties: {country: {type: string, enum: [de, no, 2024-01-01]}}}
""")
    assert (await run_program(tmp_path, "tools", "add", "spec.yaml")).code == 0
    [spec] = orjson.loads((await run_program(tmp_path, "tools", "export")).out)
    assert spec["parameters"]["properties"]["country"]["enum"] == ["de", "no", "2024-01-01"]
    assert spec["needs_approval"] is True


async def test_the_tools_are_served_to_mcp_clients(tmp_path):
    from mcp import Client, StdioServerParameters

    env = {"HOME": str(tmp_path), "OPPOSABLE_HOME": str(tmp_path / "cache"), "PATH": "/usr/bin:/bin", **TESTED_PACKAGE}
    serve = StdioServerParameters(
        command=sys.executable,
        args=["-m", "opposable", "mcp-serve", "--tool", "calculator"],
        env=env,
        cwd=str(tmp_path),
    )
    async with Client(serve) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["calculator"]
        result = await client.call_tool("calculator", {"expression": "25*4"})
        assert (result.is_error, result.structured_content) == (False, {"expression": "25*4", "result": 100})


async def test_a_command_line_may_end_with_the_name_of_a_file(tmp_path):
    command = f"{sys.executable} server.py settings.json"
    added = await run_program(tmp_path, "tools", "add-mcp", command, "--name", "own", "--force", "--json")
    assert [tool["tool_id"] for tool in added.json["tools"]] == ["own"]


async def test_a_row_of_the_tools_table_is_stored_unchanged(tmp_path):
    row = {
        "id": "t-1",
        "name": "calculate",
        "type": "invokable",
        "display_name": "计算器",
        "description": "数学计算",
        "category": "custom",
        "endpoint": {"url_template": "internal://calculator", "method": "POST", "headers": {}, "timeout": 30},
        "parameters": {"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]},
        "response_transform": {},
        "enabled": True,
    }
    added = await run_program(tmp_path, "tools", "add", write_specs(tmp_path, row), "--json")
    assert (added.code, added.json["tools"][0]["accepted"]) == (0, ["calculate"])
    for name in ("calculate", "t-1"):
        called = await run_program(tmp_path, "tools", "call", name, '{"expression": "25*4"}', "--json")
        assert (called.code, "100" in called.out) == (0, True)
    twin = await run_program(tmp_path, "tools", "add", write_specs(tmp_path, row | {"id": "t-2"}))
    assert (twin.code, twin.err) == (1, "✗ t-2: Another tool has the name 'calculate'. Choose a different name.\n")


async def test_an_added_tool_is_printed_under_a_name_that_can_be_called(tmp_path):
    time = {"endpoint": {"url_template": "internal://time"}}
    specs = [
        {"tool_id": "t-1", "display_name": "now", **time},
        {"id": "t-2", "name": "today", **time},
        {"tool_id": "时间", **time},
    ]
    added = await run_program(tmp_path, "tools", "add", write_specs(tmp_path, *specs))
    printed = [line.removeprefix("✓ ") for line in added.out.splitlines()]
    codes = [(await run_program(tmp_path, "tools", "call", name, "{}")).code for name in printed]
    assert (printed, codes) == (["t-1", "today", "时间"], [0, 0, 0])


async def test_a_tool_may_depend_on_built_in_stored_and_new_tools_in_any_order(tmp_path):
    time = {"endpoint": {"url_template": "internal://time"}}
    specs = [{"tool_id": "a", "dependencies": ["z", "calculator"], **time}, {"tool_id": "z", **time}]
    assert (await run_program(tmp_path, "tools", "add", write_specs(tmp_path, *specs))).out == "✓ z\n✓ a\n"
    later = {"tool_id": "b", "dependencies": ["a"], **time}
    assert (await run_program(tmp_path, "tools", "add", write_specs(tmp_path, later))).out == "✓ b\n"
    assert (await run_program(tmp_path, "tools", "call", "a", "{}")).code == 0
    health = await run_program(tmp_path, "tools", "health", "--json")
    assert (health.code, [tool["tool_id"] for tool in health.json["tools"]]) == (0, ["z", "a", "b"])
    ring = [{"tool_id": "x", "dependencies": ["y"], **time}, {"tool_id": "y", "dependencies": ["x"], **time}]
    circle = await run_program(tmp_path, "tools", "add", write_specs(tmp_path, *ring))
    assert (circle.code, circle.out, circle.err.count("It depends on")) == (1, "", 2)


async def test_a_server_that_cannot_be_reached_is_stored_only_with_force(tmp_path):
    command = ("tools", "add-mcp", "http://127.0.0.1:9/mcp", "--name", "far")
    failed = await run_program(tmp_path, *command)
    assert (failed.code, "✗ far: " in failed.err, "Pass --force" in failed.err) == (1, True, True)
    assert (await run_program(tmp_path, "tools", "export")).out == "[]\n"
    forced = await run_program(tmp_path, *command, "--force")
    assert (forced.code, "✗ far: " in forced.err, "Pass --force" in forced.err) == (1, True, False)
    assert [spec["tool_id"] for spec in (await run_program(tmp_path, "tools", "export")).json] == ["far"]
    again = await run_program(tmp_path, *command)
    assert (again.code, "✗ far: " in again.err, "Pass --" in again.err) == (1, True, False)


async def test_invalid_servers_of_a_file_are_skipped_with_a_message(tmp_path):
    clock = {"command": sys.executable, "args": ["-m", "mcp_server_time"]}
    servers = {"old": {"type": "sse", "url": "http://127.0.0.1:9/sse"}, "clock": clock}
    (tmp_path / "mcp.json").write_bytes(codecs.BOM_UTF8 + orjson.dumps({"mcpServers": servers}))
    added = await run_program(tmp_path, "tools", "add-mcp", "mcp.json", "--json")
    assert (added.code, [tool["tool_id"] for tool in added.json["tools"]]) == (1, ["clock"])
    assert added.json["left_out"] == {
        "old": "MCP no longer has the transport sse. Give the server's streamable HTTP address."
    }


async def test_an_invalid_spec_does_not_reject_the_others(tmp_path):
    broken = {"tool_id": "broken", "endpoint": {"url_template": 7}}
    unusable = {"tool_id": "shell", "module_path": "os", "function_name": "system"}
    file = write_specs(tmp_path, broken, CALCULATOR, 7, unusable, CALCULATOR | {"tool_id": "sum"})
    done = await run_program(tmp_path, "tools", "add", file)
    assert (done.code, done.out.count("✓")) == (1, 2)
    assert "– spec 1 (broken): " in done.err
    assert "– spec 3: " in done.err
    assert "✗ shell: " in done.err
    ids = {spec["tool_id"] for spec in (await run_program(tmp_path, "tools", "export")).json}
    assert ids >= {"计算器", "sum"}
    called = await run_program(tmp_path, "tools", "call", "sum", '{"expression": "2*21"}')
    assert (called.code, "42" in called.out) == (0, True)
