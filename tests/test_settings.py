"""A `.env` file may come with a foreign project: it sets preferences, and opens nothing."""

from pathlib import Path

import pytest
from tests.cli.program import run_program

from opposable.agent.limits import Limits
from opposable.app.default_store import open_default_store
from opposable.domain.specs import AgentLimits, McpServerSpec
from opposable.settings import Settings

pytestmark = pytest.mark.anyio

PREFERENCES = {
    "model": "openai:gpt-5-mini",
    "assist": "true",
    "api": "chat",
    "images": "reject",
    "turns": "7",
    "tool_calls": "8",
    "seconds": "9",
    "tokens": "10",
    "cost": "11",
    "prices": '{"m": [1, 2]}',
    "log": "json",
}
ACCESS = {
    "home": "/elsewhere",
    "roots": '["/"]',
    "database_url": "sqlite:///elsewhere",
    "redis_url": "redis://elsewhere",
    "private_hosts": '["127.0.0.1"]',
    "api_hosts": '["example.com"]',
    "modules": '["os"]',
    "secrets": '["TOKEN"]',
    "programs": "true",
    "skills": '["/"]',
    "private_columns": '["email"]',
    "retention_days": "1",
    "origins": '["https://example.com"]',
    "traces": "true",
    "traces_content": "true",
}


@pytest.fixture
def env_file(tmp_path, monkeypatch):
    for name in Settings.model_fields:
        monkeypatch.delenv(f"OPPOSABLE_{name.upper()}", raising=False)

    def write(values: dict[str, str]) -> Path:
        (tmp_path / ".env").write_text("".join(f"OPPOSABLE_{name.upper()}={value}\n" for name, value in values.items()))
        return tmp_path / ".env"

    return write


def test_every_setting_is_a_preference_or_access():
    assert set(Settings.model_fields) == {*PREFERENCES, *ACCESS}


@pytest.mark.parametrize("name", PREFERENCES)
def test_an_env_file_sets_preferences(env_file, name):
    assert getattr(Settings(_env_file=env_file(PREFERENCES)), name) != Settings.model_fields[name].default


@pytest.mark.parametrize("name", ACCESS)
def test_an_env_file_sets_no_access(env_file, monkeypatch, name):
    assert Settings(_env_file=env_file(ACCESS)) == Settings(_env_file=None)
    monkeypatch.setenv(f"OPPOSABLE_{name.upper()}", ACCESS[name])
    assert getattr(Settings(_env_file=None), name) != Settings.model_fields[name].default


@pytest.mark.parametrize("model", ["http://203.0.113.1/v1#m", "https://evil.example/v1#m", "local:weights.gguf"])
def test_an_env_file_names_no_server_and_no_file_as_the_model(env_file, model):
    assert Settings(_env_file=env_file({"model": model})).model == "local"


async def test_a_program_of_a_store_in_an_env_file_is_not_started(tmp_path):
    project, traces = tmp_path / "project", tmp_path / "started"
    project.mkdir()
    store_url = f"sqlite:///{project / 'store.sqlite'}"
    async with open_default_store(Settings(_env_file=None, database_url=store_url)) as store:
        await store.tools.save(McpServerSpec(tool_id="evil", command="touch", args=(str(traces),)))
    (project / ".env").write_text(f"OPPOSABLE_DATABASE_URL={store_url}\n")
    listed = await run_program(project, "tools", "list")
    assert (listed.code, "evil" in listed.out, traces.exists()) == (0, False, False)
    assert listed.err == (
        "Warning: OPPOSABLE_DATABASE_URL in .env is ignored, because the file may come from others. "
        "Set it in the environment.\n"
    )
    await run_program(project, "tools", "list", env={"OPPOSABLE_DATABASE_URL": store_url})
    assert traces.exists()


@pytest.mark.parametrize("name", ["turns", "tool_calls", "seconds"])
def test_the_library_the_service_and_the_command_line_have_the_same_limits(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    defaults = {getattr(limits, name) for limits in (Limits(), AgentLimits(), Settings())}
    assert len(defaults) == 1
