"""The container files name commands, options, extras and files that exist."""

import re
import tomllib
from pathlib import Path

import pytest
import typer
import yaml

from opposable.cli import cli
from opposable.models.factory import API_KEY_VARIABLES

ROOT = Path(__file__).parents[1]
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
DOCKERFILE = (ROOT / "Dockerfile").read_text()


def parse_command(words):
    command = typer.main.get_command(cli)
    context = typer.Context(command)
    name, command, rest = command.resolve_command(context, words)
    command.make_context(name, rest, resilient_parsing=False)


@pytest.mark.parametrize("name", ["serve", "worker"])
def test_a_service_runs_an_existing_command_twice(name):
    service = COMPOSE["services"][name]
    parse_command(service["command"])
    assert service["deploy"]["replicas"] == 2
    assert service["depends_on"].keys() == {"postgres", "valkey"}
    assert service["environment"]["OPPOSABLE_DATABASE_URL"].startswith("postgresql://")


def test_a_stopping_worker_gets_the_time_to_drain():
    worker = COMPOSE["services"]["worker"]
    drain_seconds = int(worker["command"][worker["command"].index("--drain") + 1])
    assert int(worker["stop_grace_period"].removesuffix("s")) > drain_seconds


def test_each_provider_gets_its_key_and_each_replica_a_port():
    environment = COMPOSE["services"]["worker"]["environment"]
    assert {*API_KEY_VARIABLES.values(), "OPPOSABLE_API_KEY"} <= environment.keys()
    [ports] = COMPOSE["services"]["serve"]["ports"]
    first, last = map(int, ports.partition(":")[0].split("-"))
    assert last - first + 1 == COMPOSE["services"]["serve"]["deploy"]["replicas"]


def test_every_volume_and_health_check_is_declared():
    services = COMPOSE["services"]
    volumes = [volume.partition(":")[0] for service in services.values() for volume in service.get("volumes", ())]
    assert sorted(volumes) == sorted(COMPOSE["volumes"])
    assert all("healthcheck" in services[name] for name in ("postgres", "valkey", "serve"))


def test_the_image_copies_existing_files_and_installs_existing_extras():
    copied = re.findall(r"^COPY (?!--)(.+) \S+$", DOCKERFILE, re.MULTILINE)
    assert all((ROOT / path).exists() for paths in copied for path in paths.split())
    allowed = (ROOT / ".dockerignore").read_text()
    assert all(f"!{path}\n" in allowed for paths in copied for path in paths.split())
    [extras] = re.findall(r'"\.\[(.+)\]"', DOCKERFILE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert set(extras.split(",")) <= project["project"]["optional-dependencies"].keys()
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["force-include"].keys() <= {path for paths in copied for path in paths.split()}
    assert re.search(r"^USER (\d+)$", DOCKERFILE, re.MULTILINE)[1] in re.search(r"useradd .*", DOCKERFILE)[0]
