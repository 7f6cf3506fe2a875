"""The commands for semantic models."""

import asyncio
import os
import signal
from pathlib import Path

import pytest
from tests.cli.program import needs_posix, run_program, start_program

pytestmark = pytest.mark.anyio


async def test_a_semantic_model_is_drafted_and_linted(workspace: Path) -> None:
    done = await run_program(workspace, "semantics", "init", "--db", "shop.sqlite", "-o", "drafted.yaml")
    assert (done.code, done.out) == (0, "")
    assert "drafted.yaml is written" in done.err
    done = await run_program(workspace, "semantics", "lint", "drafted.yaml", "--db", "shop.sqlite", "--json")
    assert (done.code, done.json["errors"]) == (0, 0)
    (workspace / "wrong.yaml").write_text("metrics:\n  dearest: {expr: MAX(prise), table: item}\n")
    done = await run_program(workspace, "semantics", "lint", "wrong.yaml", "--db", "shop.sqlite")
    assert done.code == 1
    assert "error  wrong.yaml, line 2: metrics.dearest.expr: " in done.out
    assert "price" in done.out
    assert done.out.endswith("1 error, 0 warnings.\n")
    done = await run_program(workspace, "semantics", "init", "--db", "shop.sqlite", "-o", "wrong.yaml")
    assert (done.code, "wrong.yaml already exists" in done.err) == (2, True)


@needs_posix
async def test_an_interruption_ends_a_command_that_waits_for_a_pipe(workspace: Path) -> None:
    os.mkfifo(workspace / "PIPE")
    writer = os.open(workspace / "PIPE", os.O_RDWR)  # it writes nothing
    program = await start_program(workspace, "semantics", "lint", "PIPE", "--db", "shop.sqlite")
    await asyncio.sleep(2)
    program.send_signal(signal.SIGINT)
    _, err = await asyncio.wait_for(program.communicate(), 15)
    os.close(writer)
    assert (program.returncode, err) == (130, b"Stopped.\n")
