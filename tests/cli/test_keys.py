"""The commands for API keys."""

import json

from typer.testing import CliRunner

from opposable.cli import cli


def test_a_key_is_created_listed_and_revoked(tmp_path, monkeypatch):
    monkeypatch.setenv("OPPOSABLE_HOME", str(tmp_path))
    monkeypatch.setenv("OPPOSABLE_DATABASE_URL", "")
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()

    def run(*words: str):
        return runner.invoke(cli, ["keys", *words])

    created = run("create", "前端", "--scope", "chat", "-s", "tools:read", "--rate", "60/60", "--budget", "1000")
    assert created.exit_code == 0, created.output
    key = created.stdout.strip()
    listed = json.loads(run("list", "--json").stdout)["keys"]
    assert [(row["name"], row["scopes"], row["token_budget"]) for row in listed] == [
        ("前端", ["chat", "tools:read"], 1000)
    ]
    assert key.startswith(listed[0]["prefix"])
    monkeypatch.setenv("COLUMNS", "80")
    table = run("list").stdout
    assert key not in table
    assert all(cell in table for cell in (listed[0]["key_id"][:8], "前端", "chat tools:read", "60/60", "0 of 1000"))
    assert max(map(len, table.splitlines())) <= 80
    assert run("revoke", listed[0]["prefix"] + "…").exit_code == 0
    assert json.loads(run("list", "--json").stdout)["keys"][0]["revoked_at"]
    assert "revoked" in run("list").stdout
    run("create", "back end")
    key_id = json.loads(run("list", "--json").stdout)["keys"][0]["key_id"]
    assert json.loads(run("revoke", key_id[:8], "--json").stdout) == {"key_id": key_id, "name": "back end"}
    for wrong in (("revoke", key), ("create", "x", "-s", "root"), ("create", "x", "--rate", "many"), ("create", " ")):
        assert run(*wrong).exit_code != 0
