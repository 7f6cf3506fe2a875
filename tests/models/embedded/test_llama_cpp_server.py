"""The process of llama.cpp, with a module in place of the library: no weights are loaded."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
from pathlib import Path
from subprocess import Popen

import pytest
from tests.waiting import wait_for_process_end, wait_until

from opposable.domain.errors import BadInput, ModelUnavailable
from opposable.models.embedded.llama_cpp import LocalModel

LIBRARY = """
import time
from types import SimpleNamespace

class CommonParams(SimpleNamespace):
    def __init__(self):
        super().__init__(model=SimpleNamespace(), cpuparams=SimpleNamespace(), cpuparams_batch=SimpleNamespace())

llama_load_mode = SimpleNamespace(LLAMA_LOAD_MODE_NONE=0)

class Server:
    listening_address = "http://127.0.0.1:9"
    def __init__(self, params):
        time.sleep({seconds})
"""
PROGRAM = """
import asyncio, os, signal, sys
from pathlib import Path
from opposable.models.embedded.llama_cpp import LocalModel

async def main():
    model = LocalModel(Path(sys.argv[1]))
    loading = asyncio.create_task(model._start())
    while model._process is None:
        await asyncio.sleep(0.01)
    print(model._process.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


def write_library(folder: Path, monkeypatch: pytest.MonkeyPatch, content: str) -> Path:
    (folder / "xllamacpp.py").write_text(content)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    (folder / "m.gguf").write_bytes(b"GGUF")
    return folder / "m.gguf"


@pytest.mark.anyio
async def test_a_model_that_is_dropped_ends_its_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = LocalModel(write_library(tmp_path, monkeypatch, LIBRARY.format(seconds=0)))
    assert (await model._start())._base_url == "http://127.0.0.1:9/v1"
    process: Popen[str] | None = model._process
    assert process is not None
    await model._start()
    assert model._process is process
    os.kill(process.pid, signal.SIGTERM)  # as to all processes of a service that still answers
    await asyncio.sleep(0.1)
    assert process.poll() is None
    del model
    gc.collect()
    assert await asyncio.to_thread(process.wait, 10) == -signal.SIGKILL


@pytest.mark.anyio
async def test_a_model_may_be_closed_while_it_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = LocalModel(write_library(tmp_path, monkeypatch, LIBRARY.format(seconds=60)))
    loading = asyncio.create_task(model._start())
    await wait_until(lambda: model._process is not None)
    await model.aclose()
    with pytest.raises(ModelUnavailable, match=r"m\.gguf was closed while it was loaded"):
        await loading


@pytest.mark.anyio
async def test_a_cancelled_start_is_followed_by_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = LocalModel(write_library(tmp_path, monkeypatch, LIBRARY.format(seconds=60)))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(model._start(), 0.2)
    first = model._process
    write_library(tmp_path, monkeypatch, LIBRARY.format(seconds=0))
    await model._start()
    assert first is not None
    assert first.poll() == -signal.SIGKILL
    await model.aclose()


@pytest.mark.anyio
async def test_a_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = LocalModel(write_library(tmp_path, monkeypatch, "raise ImportError"))
    with pytest.raises(BadInput, match=r"needs the extra \"local\""):
        await model._start()
    await model.aclose()


def test_a_program_that_is_killed_leaves_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_library(tmp_path, monkeypatch, LIBRARY.format(seconds=1))
    command = [sys.executable, "-c", PROGRAM, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wait_for_process_end(int(done.stdout))
    assert (done.returncode, done.stderr) == (-signal.SIGKILL, "")
