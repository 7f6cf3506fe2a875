"""The protocol's own conformance suites, against our server and our client: exactly what is expected passes.

Our server has tools and nothing else, so the scenarios of prompts, resources, logging, completion, sampling,
elicitation and tasks fail, as do the parts of mixed scenarios that ask for those. Our client sends keys in headers and
asks no user, so the scenarios of OAuth and elicitation are left out.
"""

import asyncio
import contextlib
import re
import sys
from pathlib import Path

import pytest
from tests.tools.mcp.node_servers import NODE, get_script
from tests.tools.mcp.odd import free_port, start_server

pytestmark = pytest.mark.anyio

SERVER = str(Path(__file__).with_name("serving.py"))
CLIENT = str(Path(__file__).parents[2] / "tools" / "mcp" / "conformance_client.py")
SUITES = {"2025-11-25": "@modelcontextprotocol/conformance", "2026-07-28": "conformance-next"}
TOOLS = {
    "dns-rebinding-protection",
    "server-sse-multiple-streams",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-error",
    "tools-call-image",
    "tools-call-mixed-content",
    "tools-call-simple-text",
    "tools-call-with-progress",
    "tools-list",
}
PASSED = {
    "2025-11-25": TOOLS | {"ping", "server-initialize"},
    "2026-07-28": TOOLS
    | {
        "http-custom-header-server-validation",
        "http-header-validation",
        "input-required-result-ignore-extra-params",
        "input-required-result-missing-input-response",
        "input-required-result-unsupported-methods",
        "input-required-result-validate-input",
        "sep-2164-resource-not-found",
        "tasks-status-notifications",
    },
}
MIXED = {"server-stateless": (27, 2), "caching": (4, 3)}
"""Checks passed and failed: the failing ones want a tool that samples, and lists of prompts and resources."""


async def run_suite(version: str, *args: str) -> str:
    running = await asyncio.create_subprocess_exec(
        NODE, get_script(SUITES[version]), *args, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        output, _ = await asyncio.wait_for(running.communicate(), 120)
    finally:
        with contextlib.suppress(ProcessLookupError):
            running.kill()
    return output.decode()


@pytest.mark.parametrize("version", SUITES)
async def test_our_server_passes_the_conformance_scenarios_for_tools(version):
    port = free_port()
    chosen = "--spec-version" if version == "2025-11-25" else "--requirements"
    async with start_server([sys.executable, SERVER, str(port)], port):
        output = await run_suite(version, "server", "--url", f"http://127.0.0.1:{port}/mcp", chosen, version)
    summary = output.partition("=== SUMMARY ===")[2].partition("Total:")[0]
    found = re.findall(r"^(.) ([\w-]+): (\d+) passed, (\d+) failed", summary, re.MULTILINE)
    assert {name for mark, name, _, _ in found if mark == "✓"} == PASSED[version], output
    if version == "2026-07-28":
        assert {n: (int(good), int(bad)) for _, n, good, bad in found if n in MIXED} == MIXED


@pytest.mark.parametrize(
    ("version", "scenario"),
    [
        ("2025-11-25", "initialize"),
        ("2025-11-25", "tools_call"),
        ("2025-11-25", "sse-retry"),
        ("2026-07-28", "tools_call"),
        ("2026-07-28", "request-metadata"),
        ("2026-07-28", "http-standard-headers"),
        ("2026-07-28", "http-invalid-tool-headers"),
        ("2026-07-28", "json-schema-ref-no-deref"),
    ],
)
async def test_our_client_passes_the_conformance_scenarios_for_tools(version, scenario, tmp_path):
    command = f"{sys.executable} {CLIENT}"
    args = ("client", "--command", command, "--scenario", scenario, "--spec-version", version)
    output = await run_suite(version, *args)
    assert re.search(r"Passed: ([1-9]\d*)/\1, 0 failed", output), output
