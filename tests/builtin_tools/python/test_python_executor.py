"""Python code returns its output and last value, and stays isolated."""

import asyncio

import anyio
import pytest

from opposable.builtin_tools.python.python_executor import ExecutorLimits, PythonExecutor
from opposable.domain.call_context import NO_CONTEXT
from opposable.domain.errors import InvalidArguments, ToolFailed
from opposable.safety.sandbox.sandbox import Sandbox
from opposable.tools.function import tools_from_object

pytestmark = pytest.mark.anyio
LIMITS = ExecutorLimits(cpu_seconds=0.5, memory_bytes=64 * 2**20, recursion_depth=200, output_bytes=20_000)


@pytest.fixture
async def executor():
    async with PythonExecutor(LIMITS) as made:
        yield made


@pytest.fixture
def full():
    return PythonExecutor(
        ExecutorLimits(cpu_seconds=2, memory_bytes=256 * 2**20, output_bytes=20_000), sandbox=Sandbox()
    )


GOOD = [
    ("6 * 7", {"value": 42}),
    ("print('hi')", {"printed": "hi\n"}),
    ("x = 1\nprint(x)\nx + 1", {"printed": "1\n", "value": 2}),
    ("x = 1", {"value": None}),
    ("```python\nsum([1, 2, 3])\n```", {"value": 6}),
    ("姓名 = '张三'\nprint(f'你好，{姓名}')\n姓名", {"printed": "你好，张三\n", "value": "张三"}),
    ("2**64", {"value": "18446744073709551616"}),
    ("{'a': (1, 2.5, None, True)}", {"value": {"a": [1, 2.5, None, True]}}),
    ("import math\nmath.floor(math.pi * 100)", {"value": 314}),
    ("import json\njson.dumps({'b': [1]})", {"value": '{"b": [1]}'}),
    ("sorted(['b', 'a'], key=lambda w: w)", {"value": ["a", "b"]}),
    ("import re\nre.findall(r'\\d+', 'a1b22')", {"value": ["1", "22"]}),
]


@pytest.mark.parametrize(("code", "expected"), GOOD, ids=[code[:20] for code, _ in GOOD])
async def test_output_and_last_value_are_returned(executor, code, expected):
    assert await executor.python_executor(code) == expected


HOSTILE = [
    ("infinite loop", "while True: pass", "stopped after 0.5 seconds"),
    ("loop that catches", "while True:\n  try:\n    while True: pass\n  except BaseException: pass", "stopped"),
    ("long sleep", "import time\ntime.sleep(100)", "sleep"),
    ("memory by appending", "a = []\nwhile True: a.append('x' * 100000)", "more memory"),
    ("memory at once", "'x' * 10**10", "more memory"),
    ("list at once", "[0] * 10**9", "more memory"),
    ("format bomb", "'%1000000000d' % 1", "more memory"),
    ("f-string bomb", "f'{1:>1000000000}'", "was stopped"),
    ("huge power", "9**9**9", "more memory"),
    ("huge shift", "1 << 10**10", "more memory"),
    ("huge digits", "str(10**100000)", "4300 digits"),
    ("huge value", "10**5000", "Print a part"),
    ("recursion", "def f(): return f()\nf()", "RecursionError"),
    ("deep source", "(" * 5000 + "1" + ")" * 5000, "nested"),
    ("giant output", "while True: print('x' * 1000)", "more memory or output"),
    ("reading a file", "open('/etc/passwd').read()", "PermissionError"),
    ("reading by pathlib", "from pathlib import Path\nPath('/etc/passwd').read_text()", "PermissionError"),
    ("writing a file", "open('/tmp/opposable-probe', 'w').write('x')", "PermissionError"),
    ("environment", "import os\nos.environ['PATH']", "cannot be reached"),
    ("getenv", "import os\nos.getenv('HOME')", "cannot be reached"),
    ("os.system", "import os\nos.system('id')", "cannot be reached"),
    ("subprocess", "import subprocess\nsubprocess.run(['id'])", "ModuleNotFoundError"),
    ("socket", "import socket\nsocket.create_connection(('1.1.1.1', 80))", "ModuleNotFoundError"),
    ("urllib", "import urllib.request", "ModuleNotFoundError"),
    ("ctypes", "import ctypes", "ModuleNotFoundError"),
    ("dynamic import", "__import__('os').system('id')", "underscores"),
    ("class walk", "().__class__.__bases__[0].__subclasses__()", "underscores"),
    ("globals walk", "(lambda: 0).__globals__", "underscores"),
    ("eval of a walk", "eval('().__class__.__base__')", "underscores"),
    ("generator", "def g():\n  yield 1\nlist(g())", "return a list"),
    ("input", "input('name?')", "write the values into the code"),
    ("syntax", "def f(:", "Expected a parameter"),
    ("name", "x = 1\ny + x", "NameError"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "message"), [case[1:] for case in HOSTILE], ids=[case[0] for case in HOSTILE])
async def test_hostile_or_invalid_code_fails_with_a_message(executor, code, message):
    with pytest.raises(ToolFailed, match=message.replace(".", r"\.")) as raised:
        await executor.python_executor(code)
    assert "Traceback" not in str(raised.value)
    assert len(str(raised.value)) < 4000


@pytest.mark.parametrize(
    "code", ["import re\nre.match('(a+)+$', 'a' * 40 + 'b')", "x = []\nfor i in range(9999): x = [x]\nx"]
)
async def test_expensive_code_terminates(executor, code):
    with anyio.fail_after(10):
        assert "value" in await executor.python_executor(code)


async def test_call_after_a_breach_gets_a_fresh_interpreter(executor):
    with pytest.raises(ToolFailed, match="Printed before that:\nkept"):
        await executor.python_executor("secret = 1\nprint('kept')\nwhile True: pass")
    with pytest.raises(ToolFailed, match="NameError"):
        await executor.python_executor("secret")
    assert await executor.python_executor("1 + 1") == {"value": 2}


async def test_a_failure_has_the_last_lines_that_were_printed(executor):
    with pytest.raises(ToolFailed) as raised:
        await executor.python_executor("for n in range(999):\n    print(n)\nraise ValueError('bad')")
    assert "\n0\n1\n" in str(raised.value)
    assert "\n…[1,886 characters left out here]…\n" in str(raised.value)
    assert str(raised.value).endswith("\n997\n998\n")


async def test_many_concurrent_calls_are_answered(executor):
    result = await asyncio.gather(*(executor.python_executor(f"{n} * 2") for n in range(20)))
    assert result == [{"value": n * 2} for n in range(20)]


@pytest.mark.parametrize("code", ["", "  \n", "```python\n\n```", "x" * 60_000])
async def test_missing_code_is_reported(executor, code):
    with pytest.raises(InvalidArguments, match="give Python code"):
        await executor.python_executor(code)


async def test_schema_has_one_parameter(executor):
    [tool] = tools_from_object(executor, "python_executor")
    assert list(tool.definition.parameters["properties"]) == ["code"]
    assert await tool.run({"code": "1"}, NO_CONTEXT) == {"value": 1}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import statistics\ndef g():\n  yield from [1, 2, 3]\nstatistics.mean(g())", {"value": 2}),
        ("print('你好')\n{1, 2}", {"printed": "你好\n", "value": "{1, 2}"}),
        ("[2**100, 2**64]", {"value": ["1267650600228229401496703205376", "18446744073709551616"]}),
        ("'\\ud800'", {"value": "\ud800"}),
        ("print('done')\nimport sys\nsys.exit()", {"printed": "done\n"}),
        ("import sys\nprint('slow', file=sys.stderr)\n5", {"stderr": "slow\n", "value": 5}),
        ("import atexit\natexit.register(print, 'bye')\n5", {"printed": "bye\n", "value": 5}),
    ],
)
async def test_full_python_runs_in_a_sandbox(full, code, expected):
    assert await full.python_executor(code) == expected


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("while True: pass", "it used too much"),
        ("open('/etc/passwd')", "FileNotFoundError.*line 1"),
        ("import socket\nsocket.create_connection(('1.1.1.1', 80), 1)", "unreachable"),
        ("bytearray(10**9)", "MemoryError"),
        ("1 +", "SyntaxError"),
        ("raise ValueError('a\\n  b')", r"^ValueError: a\n  b \(line 1\)"),
        ("import sys\nprint('slow', file=sys.stderr)\n1 / 0", r"^slow\nZeroDivisionError: .* \(line 3\)"),
    ],
)
async def test_sandbox_confines_full_python(full, code, message):
    with pytest.raises(ToolFailed, match=message):
        await full.python_executor(code)
