"""Generated requests, valid and invalid: no 5xx, and only statuses that the OpenAPI document has."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import status_code_conformance
from tests.servers import postgresql  # noqa: F401 - a fixture
from tests.web.api.asking import SCOPES

from opposable.models.scripted import ScriptedModel
from opposable.service.service import open_service
from opposable.settings import Settings
from opposable.store.keys import generate_key
from opposable.web.http_server import serve_in_background
from opposable.web.server import create_app

EXAMPLES = 8
"""Requests of each operation."""


@contextmanager
def serve_service(folder: Path, url: str) -> Iterator[tuple[str, str]]:
    """The service's address and an admin's key, served by a thread of its own."""
    ready: list[tuple[str, str]] = []
    begun, ended = threading.Event(), threading.Event()

    async def serve() -> None:
        chosen = Settings(_env_file=None, home=folder, roots=(folder,), database_url=url)
        async with open_service(chosen, {"m": ScriptedModel("hello")}) as service:
            key, stored_key = generate_key("all", SCOPES)
            await service.store.keys.add(stored_key)
            app = create_app(service, max_body_bytes=1_000_000)
            async with serve_in_background(app) as base:
                ready.append((base.removesuffix("/v1"), key))
                begun.set()
                await asyncio.to_thread(ended.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert begun.wait(60)
        yield ready[0]
    finally:
        ended.set()
        thread.join(30)


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    """Requests of every operation of the service: to generate them takes as long as to answer them."""
    generated: list[Case] = []
    with serve_service(tmp_path_factory.mktemp("schema"), "") as (base, key):
        schema = schemathesis.openapi.from_url(f"{base}/openapi.json", headers={"Authorization": f"Bearer {key}"})
        for found in schema.get_all_operations():

            @settings(
                max_examples=EXAMPLES,
                deadline=None,
                database=None,
                derandomize=True,
                phases=[Phase.explicit, Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=found.ok().as_strategy())
            def add(case: Case) -> None:
                generated.append(case)

            add()
    return generated


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_no_request_fails_the_service_or_gets_an_undocumented_status(engine, cases, tmp_path, request):
    url = request.getfixturevalue("postgresql").new_database() if engine == "postgresql" else ""
    wrong: dict[str, str] = {}
    with serve_service(tmp_path, url) as (base, key):
        for case in cases:
            try:
                answer = case.call(base, headers={"Authorization": f"Bearer {key}"}, timeout=20)
                case.validate_response(answer, checks=[not_a_server_error, status_code_conformance])
            except Exception as error:  # noqa: BLE001 - all errors are reported together
                wrong[case.operation.label] = str(error)[:1500]
    assert wrong == {}
