"""A sandboxed program is isolated, limited and leaves no process."""

import asyncio
import subprocess
import sys
import sysconfig
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from tests.waiting import wait_until

from opposable.domain.errors import ToolUnavailable
from opposable.safety.sandbox import bubblewrap, process
from opposable.safety.sandbox.limits import SandboxLimits
from opposable.safety.sandbox.sandbox import Sandbox

pytestmark = pytest.mark.anyio
SHORT_LIMITS = SandboxLimits(
    seconds=3, cpu_seconds=1, memory_bytes=256 * 2**20, processes=8, file_bytes=1_000_000, output_bytes=10_000
)

PATIENT_LIMITS = replace(SHORT_LIMITS, seconds=60)  # a busy machine gives a program little CPU time


async def run_code(code, **more):
    sandbox = Sandbox(SHORT_LIMITS)
    return await sandbox.run([sandbox.python_program, "-c", code], **more)


async def test_this_machine_can_isolate_programs():
    assert await Sandbox().get_isolation_problem() == ""


async def test_a_program_receives_input_and_returns_output():
    result = await run_code(
        "import sys; print(sys.stdin.read()[::-1]); print('糟', file=sys.stderr)", stdin="你好".encode()
    )
    assert (result.exit_code, result.stdout, result.stderr, result.breach) == (0, "好你\n", "糟\n", None)


@pytest.mark.skipif(not sysconfig.get_config_var("Py_ENABLE_SHARED"), reason="This Python has no shared library.")
@pytest.mark.skipif(bubblewrap.find_python().host_folder is None, reason="The loader knows the libraries in /usr.")
async def test_the_interpreter_has_its_own_library():
    result = await run_code("print(*{line.split()[-1] for line in open('/proc/self/maps') if 'libpython' in line})")
    assert (result.exit_code, result.stdout) == (0, f"/python/lib/{sysconfig.get_config_var('INSTSONAME')}\n")


@pytest.mark.parametrize(
    ("code", "breach"),
    [
        ("while True: pass", "cpu"),
        ("import time; time.sleep(60)", "time"),
        ("print('x' * 10**7)", "output"),
        ("import sys\nwhile True: sys.stderr.write('x' * 1000)", "output"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "killed"),
    ],
)
async def test_a_program_that_exceeds_a_limit_is_stopped(code, breach):
    result = await run_code(code, limits=SHORT_LIMITS if breach == "time" else PATIENT_LIMITS)
    assert (result.exit_code, result.breach) == (None, breach)
    assert len(result.stdout) <= 10_000


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("open('/etc/passwd')", "No such file"),
        ("open('/proc/1/environ').read()", "Permission denied"),
        ("open('/proc/1/root/etc/shadow').read()", "Permission denied"),
        ("import os; os.listdir(os.path.expanduser('~root'))", "No such file"),
        ("open('/usr/x', 'w')", "Read-only file system"),
        ("open('/x', 'w')", "Read-only file system"),
        ("open('/dev/x', 'w')", "Read-only file system"),
        ("import socket; socket.create_connection(('1.1.1.1', 80), 2)", "unreachable"),
        (
            "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('8.8.8.8', 53))",
            "unreachable",
        ),
        ("import socket; socket.getaddrinfo('example.com', 80)", "gaierror"),
        ("import socket; socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).connect((2, 22))", "not supported"),
        ("import socket; socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET)", "not supported"),
        ("bytearray(10**9)", "MemoryError"),
        ("open('/tmp/big', 'wb').write(b'x' * 10**7)", "File too large"),
        ("import os\nfor _ in range(100):\n  if os.fork() == 0: os.read(0, 1)", "temporarily unavailable"),
        ("[open('/dev/null') for _ in range(100)]", "Too many open files"),
        ("import os; os.kill(1, 9); os.setuid(0)", "not permitted"),
        (
            "import ctypes; l = ctypes.CDLL(None, use_errno=True); l.unshare(0x10000000) and exit('no rights')",
            "no rights",
        ),
        (
            "import subprocess; subprocess.run(['unshare', '-Ur', 'true'], check=True)",
            "non-zero exit status",
        ),
    ],
)
async def test_forbidden_access_fails(code, message):
    result = await run_code(code)
    assert result.exit_code not in (0, None)
    assert message in result.stderr


async def test_environment_variables_of_the_host_are_hidden(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    result = await run_code("import os; print(sorted(os.environ))")
    assert "OPENAI_API_KEY" not in result.stdout
    assert "PATH" in result.stdout


async def test_only_mounted_folders_are_visible_and_read_only(tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "data.txt").write_text("上海")
    (tmp_path.parent / "sibling.txt").write_text("secret")
    mounts = {"/skill": tmp_path}
    result = await run_code(
        "import os; print(os.listdir('/skill'), open('/skill/data.txt').read())", read_only_mounts=mounts
    )
    assert result.stdout == "['data.txt'] 上海\n"
    refused = await run_code("open('/skill/new', 'w')", read_only_mounts=mounts)
    assert "Read-only file system" in refused.stderr
    assert (await run_code("open('/skill/../sibling.txt')", read_only_mounts=mounts)).exit_code == 1


async def test_runs_share_no_folder_and_leave_no_process():
    await run_code("open('/tmp/left', 'w').write('x')")
    assert "FileNotFoundError" in (await run_code("open('/tmp/left')")).stderr
    result = await run_code("import os, time\nif os.fork() == 0:\n  os.setsid(); time.sleep(60)\nprint('gone')")
    assert (result.exit_code, result.stdout) == (0, "gone\n")


async def test_cancellation_stops_the_program():
    code = "import time; time.sleep(61)"
    task = asyncio.create_task(run_code(code))
    await wait_until(lambda: _is_running(code))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await wait_until(lambda: not _is_running(code), seconds=10)  # the kernel kills those below the first process


async def test_cancellation_of_a_start_stops_what_the_program_has_started(monkeypatch):
    create, created, returned = asyncio.create_subprocess_exec, asyncio.Event(), asyncio.Event()

    async def create_slowly(*args, **options):
        child = await create(*args, **options)
        created.set()
        await returned.wait()
        return child

    monkeypatch.setattr(asyncio, "create_subprocess_exec", create_slowly)
    command = ["/bin/sh", "-c", "sleep 60.063 & sleep 60.063"]
    task = asyncio.create_task(process.run_process(command, b"", seconds=60, output_bytes=1, environment={}))
    await created.wait()
    await wait_until(lambda: _is_running("sleep\x0060.063"))
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()  # its caller would close files that the program inherits
    returned.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    await wait_until(lambda: not _is_running("60.063"))


def test_the_end_of_the_loop_stops_a_program_that_is_being_started():
    """All tasks are cancelled at once, also the one of asyncio that connects the pipes."""
    code = (
        "import asyncio\n"
        "from opposable.safety.sandbox import process\n"
        "process._START_SECONDS = 0.2\n"
        "async def main():\n"
        "    run = process.run_process(['/bin/sleep', '62'], b'', seconds=60, output_bytes=1, environment={})\n"
        "    asyncio.create_task(run)\n"
        "    await asyncio.sleep(0)\n"
        "asyncio.run(main())\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)
    deadline = time.monotonic() + 10
    while _is_running("/bin/sleep\x0062"):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _is_running(code: str) -> bool:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if code.encode() in path.read_bytes():
                return True
    return False


async def test_nothing_runs_where_programs_cannot_be_isolated(monkeypatch):
    monkeypatch.setattr(bubblewrap, "find_bubblewrap", lambda: None)
    sandbox = Sandbox(SHORT_LIMITS)
    with pytest.raises(ToolUnavailable, match="needs bubblewrap"):
        await sandbox.run([sandbox.python_program, "-c", "print(1)"])


async def test_a_refusal_of_the_system_is_reported_with_its_reason(monkeypatch, tmp_path):
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho 'bwrap: No permissions to create a new namespace' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(bubblewrap, "find_bubblewrap", lambda: str(program))
    with pytest.raises(ToolUnavailable, match=r"none is run \(bwrap: No permissions to create a new namespace\)"):
        await Sandbox(SHORT_LIMITS).run(["/bin/true"])


async def test_a_temporary_problem_ends_with_its_cause(monkeypatch, tmp_path):
    sandbox = Sandbox(SHORT_LIMITS)
    program = [sandbox.python_program, "-c", "print(1)"]
    with monkeypatch.context() as patch:
        patch.setattr(bubblewrap, "find_bubblewrap", lambda: str(tmp_path / "being-upgraded"))
        with pytest.raises(ToolUnavailable, match="bubblewrap does not start"):
            await sandbox.run(program)
    assert (await sandbox.run(program, limits=PATIENT_LIMITS)).stdout == "1\n"


async def test_an_owner_may_allow_runs_without_isolation(monkeypatch):
    monkeypatch.setattr(bubblewrap, "find_bubblewrap", lambda: None)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    sandbox = Sandbox(PATIENT_LIMITS, allow_unprotected=True)
    result = await sandbox.run([sandbox.python_program, "-c", "import os; print('OPENAI_API_KEY' in os.environ)"])
    assert (result.exit_code, result.stdout) == (0, "False\n")
    assert (await sandbox.run([sandbox.python_program, "-c", "while True: pass"])).breach == "cpu"


async def test_python_runs_isolated_although_runs_without_isolation_are_allowed():
    sandbox = Sandbox(PATIENT_LIMITS, allow_unprotected=True)
    result = await sandbox.run([sandbox.python_program, "-c", "open('/etc/passwd')"])
    assert (result.exit_code, result.stderr.strip().splitlines()[-1]) == (
        1,
        "FileNotFoundError: [Errno 2] No such file or directory: '/etc/passwd'",
    )
