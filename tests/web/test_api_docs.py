"""The OpenAPI document is valid and complete, our own importer reads it, and `/docs` needs no network."""

import re

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator
from tests.web.api.asking import open_service_client

from opposable.safety.network.guarded_client import GuardedClient
from opposable.tools.http.openapi.document import read_document
from opposable.tools.http.openapi.importer import specs_from_openapi

pytestmark = pytest.mark.anyio


@pytest.fixture
async def ask(tmp_path):
    async with open_service_client(tmp_path) as client:
        yield client


@pytest.fixture
async def document(ask):
    return await ask.request_json("GET", "/openapi.json")


def list_operations(document):
    return [
        (f"{method} {path}", operation)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    ]


async def test_the_document_is_valid(document):
    assert [error.message for error in OpenAPIV31SpecValidator(document).iter_errors()] == []


async def test_every_operation_has_an_id_a_summary_and_a_success(document):
    operations = list_operations(document)
    ids = [operation["operationId"] for _, operation in operations]
    assert len(ids) == len(set(ids))
    assert [one for one in ids if not re.fullmatch(r"[a-z]+(_[a-z]+)*", one)] == []
    assert [name for name, operation in operations if not operation.get("summary")] == []
    assert [name for name, operation in operations if not any(code[0] == "2" for code in operation["responses"])] == []


async def test_every_operation_but_the_health_checks_needs_a_key(document):
    assert document["components"]["securitySchemes"]["api_key"]["scheme"] == "bearer"
    assert document["security"] == [{"api_key": []}, {"session": []}]
    is_open = {name for name, operation in list_operations(document) if operation.get("security") == []}
    assert is_open == {"get /healthz", "get /readyz"}


async def test_our_own_importer_reads_the_document(document):
    imported = specs_from_openapi(
        await read_document(document, GuardedClient()), server="https://opposable.example.com"
    )
    assert len(imported.specs) > 50
    assert imported.skipped_parts == ()


async def test_the_page_loads_nothing_from_other_hosts(ask):
    page = await ask("GET", "/docs")
    assert page.status_code == 200
    sources = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert {source for source in sources if "//" in source} == set()
    policy = page.headers["content-security-policy"]
    assert "script-src 'self' 'sha256-" in policy
    for source in sources:
        if source.startswith("/"):
            asset = await ask("GET", source)
            assert (asset.status_code, len(asset.content) > 10_000) == (200, True)
    assert (await ask("GET", "/docs/unknown.js")).status_code == 404
    assert (await ask("GET", "/docs", key="")).status_code == 401
