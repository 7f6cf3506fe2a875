"""Tool that runs a model's Python code in an isolated interpreter or in a sandbox."""

import asyncio
import json
import math
import re
import reprlib
import secrets
from dataclasses import dataclass
from typing import Any

import orjson

from opposable.builtin_tools.python.hints import get_hint
from opposable.domain.errors import FieldProblem, InvalidArguments, ToolFailed, ToolUnavailable
from opposable.safety.sandbox.limits import SandboxLimits
from opposable.safety.sandbox.sandbox import Sandbox

_MAX_CODE_CHARACTERS = 50_000
_MAX_VALUE_CHARACTERS = 20_000
_MAX_PRINTED_CHARACTERS = 2_000
"""The beginning and the end of what failed code printed, together."""
_GRACE_SECONDS = 2.0
_MAX_VALUE_DEPTH = 12
_FENCE_PATTERN = re.compile(r"\A\s*```(?:python|py)?[ \t]*\n(?P<code>.*?)\n?```\s*\Z", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ExecutorLimits:
    """Limits of one execution.

    Attributes:
        cpu_seconds: Processor time.
        memory_bytes: Memory.
        recursion_depth: Nested calls.
        output_bytes: Printed output.
    """

    cpu_seconds: float = 5.0
    memory_bytes: int = 128 * 2**20
    recursion_depth: int = 500
    output_bytes: int = 100_000


class PythonExecutor:
    """Execution of untrusted Python, each call in a fresh interpreter process.

    Without a sandbox, the code runs in Monty, a small Python without files, network or processes. With a sandbox, it
    runs in full Python inside it. Leaving `async with` ends the interpreters. They also end with this process.

    Args:
        limits: Limits of one execution.
        max_concurrent: Number of executions in Monty at the same time.
        sandbox: The sandbox to run in.
    """

    def __init__(
        self, limits: ExecutorLimits | None = None, *, max_concurrent: int = 4, sandbox: Sandbox | None = None
    ) -> None:
        self._limits = limits or ExecutorLimits()
        self._max_concurrent = max_concurrent
        self._sandbox = sandbox
        self._pool: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pool_lock = asyncio.Lock()

    async def python_executor(self, code: str) -> dict[str, Any]:
        """Run Python code; returns what it printed and the value of its last expression.

        Args:
            code: Python code. Each call starts afresh: nothing is kept from earlier calls. No files, no network.

        Raises:
            InvalidArguments: there is no code, or far too much.
            ToolFailed: the code is wrong, or ran into a limit.
            ToolUnavailable: the interpreter is not installed.
        """
        text = _strip_code_fence(code)
        if not text.strip() or len(text) > _MAX_CODE_CHARACTERS:
            problem = f"give Python code of at most {_MAX_CODE_CHARACTERS:,} characters"
            raise InvalidArguments((FieldProblem("code", problem, repr(code[:60])),))
        if self._sandbox is not None:
            return await _run_in_sandbox(self._sandbox, text, self._limits)
        return await self._run_in_monty(text)

    async def __aenter__(self) -> "PythonExecutor":
        return self

    async def __aexit__(self, *_: object) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.__aexit__(None, None, None)

    async def _run_in_monty(self, code: str) -> dict[str, Any]:
        pool = await self._get_pool()
        import pydantic_monty as monty

        limits = self._limits
        resource_limits: monty.ResourceLimits = {
            "max_feed_duration_secs": limits.cpu_seconds,
            "max_memory": limits.memory_bytes,
            "max_recursion_depth": limits.recursion_depth,
            "max_total_sleep_secs": 1.0,
            "max_suspensions": 100,
        }
        output_collector = monty.CollectString(max_bytes=limits.output_bytes)
        try:
            async with pool.checkout(limits=resource_limits) as session:
                value = await session.feed_run(code, print_callback=output_collector)
        except monty.MontyCrashedError as error:
            raise ToolFailed(
                _format_failure("The interpreter was stopped: the code went beyond its limits", output_collector)
            ) from error
        except monty.MontyError as error:
            raise ToolFailed(_format_failure(_format_error(error, limits), output_collector)) from error
        except TimeoutError as error:
            raise ToolUnavailable("All Python interpreters are busy; try again later.") from error
        return _to_result(output_collector.output, to_plain_value(value))

    async def _get_pool(self) -> Any:
        async with self._pool_lock:
            if self._pool is None or self._loop is not asyncio.get_running_loop():
                try:
                    import pydantic_monty as monty
                except ImportError as error:
                    message = 'Running Python needs the extra "code": pip install "opposable[code]".'
                    raise ToolUnavailable(message) from error
                self._loop = asyncio.get_running_loop()
                pool = monty.AsyncMonty(
                    min_processes=1,
                    max_processes=self._max_concurrent,
                    max_checkouts_per_worker=1,
                    checkout_timeout=30.0,
                    request_timeout=self._limits.cpu_seconds + _GRACE_SECONDS,
                )
                self._pool = await pool.__aenter__()
        return self._pool


_DRIVER_SCRIPT = """
import ast, json, sys
request = json.loads(sys.stdin.read())
tree = ast.parse(request["code"], "code.py")
last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
names = {"__name__": "__main__"}
exec(compile(tree, "code.py", "exec"), names)
value = eval(compile(ast.Expression(last.value), "code.py", "eval"), names) if last else None
try:
    value_json = json.dumps(value, allow_nan=False)
except (TypeError, ValueError, RecursionError):
    value_json = json.dumps(repr(value)[:20000])
sys.stdout.flush()
print(request["mark"] + value_json)
"""


async def _run_in_sandbox(sandbox: Sandbox, code: str, limits: ExecutorLimits) -> dict[str, Any]:
    mark = secrets.token_hex(16)
    bounds = SandboxLimits(
        seconds=limits.cpu_seconds + _GRACE_SECONDS,
        cpu_seconds=math.ceil(limits.cpu_seconds),
        memory_bytes=max(limits.memory_bytes, 64 * 2**20),
        output_bytes=limits.output_bytes,
    )
    request = orjson.dumps({"code": code, "mark": mark})
    process = await sandbox.run([sandbox.python_program, "-I", "-c", _DRIVER_SCRIPT], stdin=request, limits=bounds)
    printed, _, value_json = process.stdout.partition(mark)
    if process.exit_code == 0:
        if not value_json:  # the code called `sys.exit`, or replaced its output
            return _to_result(printed, None, process.stderr)
        value, end = json.JSONDecoder().raw_decode(value_json)
        printed_at_exit = value_json[end:].removeprefix("\n")
        return _to_result(printed + printed_at_exit, to_plain_value(value), process.stderr)
    if process.breach:
        raise ToolFailed(f"The code was stopped, it used too much ({process.breach}).{_format_earlier_output(printed)}")
    lines = process.stderr.splitlines()
    last_frame = next((line.strip() for line in reversed(lines) if 'File "code.py"' in line), "")
    error = process.error_text or f"It ended with exit code {process.exit_code}."
    line_number = last_frame.rpartition("line ")[2].split(",")[0] if last_frame else ""
    raise ToolFailed(f"{error}{f' (line {line_number})' if line_number else ''}{_format_earlier_output(printed)}")


def _strip_code_fence(code: str) -> str:
    """Return the code without its Markdown fence."""
    match = _FENCE_PATTERN.match(code)
    return match["code"] if match else code


def _to_result(printed: str, value: Any, stderr: str = "") -> dict[str, Any]:
    result = {name: text for name, text in (("printed", printed), ("stderr", stderr)) if text}
    if value is not None or not printed:
        result["value"] = value
    return result


def _format_error(error: Any, limits: ExecutorLimits) -> str:
    frames = error.traceback() if hasattr(error, "traceback") else []
    message = error.display("type-msg") if hasattr(error, "display") else str(error)
    line = frames[-1].line if frames else None
    line_note = f" (line {line})" if line else ""
    if message.startswith("TimeoutError") and "time limit" in message:
        return f"The code was stopped after {limits.cpu_seconds:g} seconds. Find a way that takes fewer steps"
    if message.startswith("MemoryError"):
        return f"The code was stopped: it needs more memory or output than it may have ({message.partition(': ')[2]}){line_note}"
    return f"{message[:1000]}{line_note}{get_hint(message)}"


def _format_failure(message: str, output_collector: Any) -> str:
    return f"{message.rstrip('.')}.{_format_earlier_output(output_collector.output)}"


def _format_earlier_output(printed: str) -> str:
    if len(printed) > _MAX_PRINTED_CHARACTERS:
        half = _MAX_PRINTED_CHARACTERS // 2
        left_out = f"…[{len(printed) - 2 * half:,} characters left out here]…"
        printed = f"{printed[:half]}\n{left_out}\n{printed[-half:]}"
    return f"\nPrinted before that:\n{printed}" if printed else ""


def to_plain_value(value: Any) -> Any:
    """Return a value as JSON if it is small and simple, otherwise its text, at most 20,000 characters.

    Raises:
        ToolFailed: It has an integer that is too long to be written.
    """
    try:
        simple = _to_simple_value(value, _MAX_VALUE_DEPTH)
        if len(orjson.dumps(simple)) <= _MAX_VALUE_CHARACTERS:
            return simple
    except (TypeError, ValueError, RecursionError):
        pass
    if isinstance(value, str):
        return f"{value[:_MAX_VALUE_CHARACTERS]}…" if len(value) > _MAX_VALUE_CHARACTERS else value
    short = reprlib.Repr()
    short.maxlevel, short.maxlist, short.maxtuple, short.maxdict, short.maxset = 8, 200, 200, 200, 200
    short.maxstring = short.maxother = short.maxlong = 2000
    try:
        return short.repr(value)[:_MAX_VALUE_CHARACTERS]
    except ValueError as error:
        raise ToolFailed(f"{error}{get_hint(str(error))}.") from error


def _to_simple_value(value: Any, depth: int) -> Any:
    if depth == 0:
        raise ValueError("too deep")
    match value:
        case None | bool() | str():
            return value
        case int():
            return value if -(2**53) < value < 2**53 else str(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case list() | tuple():
            return [_to_simple_value(item, depth - 1) for item in value]
        case dict():
            return {
                key if isinstance(key, str) else repr(key): _to_simple_value(item, depth - 1)
                for key, item in value.items()
            }
        case set() | frozenset():
            return [_to_simple_value(item, depth - 1) for item in sorted(value, key=repr)]
    raise TypeError(type(value).__name__)
