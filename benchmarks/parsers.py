"""Measures the parsers: megabytes per second of each format, whole and streamed, and public parsers.

Run: python benchmarks/parsers.py [--peers]   (measures the public parsers that are installed:
json_repair, jiter, orjson, agent-tool-parser, and mlx-lm with regex)
"""

import importlib
import importlib.util
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from opposable.parsers import StreamParser, parse

TOOLS = [
    {
        "name": "write_file",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "content": {"type": "string"}, "mode": {"type": "integer"}},
            "required": ["path", "content"],
        },
    }
]
CODE = "".join(f'    total += prices[{i}] * count  # line {i} of "main"\n' for i in range(20))
ARGUMENTS = {"path": "src/main.py", "content": CODE, "mode": 420}
CALL = json.dumps({"name": "write_file", "arguments": ARGUMENTS})
PROSE = "Here is what I found in the report, and what it means for the next quarter.\n\n" * 8
XML_ARGUMENTS = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in ARGUMENTS.items())
GLM_ARGUMENTS = "".join(
    f"<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n" for key, value in ARGUMENTS.items()
)
TAG_ARGUMENTS = "".join(f'<parameter name="{key}">{value}</parameter>\n' for key, value in ARGUMENTS.items())
PYTHON_CALL = f"write_file(path='src/main.py', content={CODE!r}, mode=420)"
REPLIES = {
    "plain text": PROSE,
    "thinking": f"<think>\n{PROSE}</think>\n",
    "hermes": f"<tool_call>\n{CALL}\n</tool_call>\n",
    "qwen xml": f"<tool_call>\n<function=write_file>\n{XML_ARGUMENTS}</function>\n</tool_call>\n",
    "glm": f"<tool_call>write_file\n{GLM_ARGUMENTS}</tool_call>\n",
    "invoke": f'<minimax:tool_call>\n<invoke name="write_file">\n{TAG_ARGUMENTS}</invoke>\n</minimax:tool_call>\n',
    "mistral": f"[TOOL_CALLS]write_file[ARGS]{json.dumps(ARGUMENTS)}",
    "kimi k2": f"<|tool_call_begin|>functions.write_file:0<|tool_call_argument_begin|>{json.dumps(ARGUMENTS)}<|tool_call_end|>",
    "harmony": f"<|channel|>commentary to=functions.write_file<|message|>{json.dumps(ARGUMENTS)}<|call|><|start|>assistant",
    "pythonic": f"<|tool_call_start|>[{PYTHON_CALL}]<|tool_call_end|>\n",
    "fenced JSON": f"```json\n{CALL}\n```\n",
    "bare JSON": f"{CALL}\n",
    "react": f"Thought: I write it.\nAction: write_file\nAction Input: {json.dumps(ARGUMENTS)}\n",
    "seed": json.dumps({"reasoning": "r", "action": "tool_call", "tool_calls": [json.loads(CALL)]}) + "\n",
}
TEXT_CHARACTERS = 500_000
CHUNK_CHARACTERS = 12


def measure_seconds(work: Callable[[], object], times: int = 3) -> float:
    """Return the seconds of the fastest of several runs."""
    best = float("inf")
    for _ in range(times):
        started_at = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - started_at)
    return best


def count_streamed_calls(text: str) -> int:
    """Parse a text in chunks of one or two tokens and return the number of calls."""
    reader = StreamParser(TOOLS)
    for start in range(0, len(text), CHUNK_CHARACTERS):
        reader.feed(text[start : start + CHUNK_CHARACTERS])
    return len(reader.close().calls)


def print_families() -> None:
    """Print the figures of each format."""
    print(f"{'form':14} {'calls':>6} {'whole MB/s':>11} {'streamed MB/s':>14} {'µs/chunk':>11}")
    for name, reply in REPLIES.items():
        text = reply * (TEXT_CHARACTERS // len(reply))
        size = len(text.encode()) / 1e6
        whole, pieces = (
            measure_seconds(lambda text=text: parse(text, TOOLS)),
            measure_seconds(lambda text=text: count_streamed_calls(text)),
        )
        each = pieces / (len(text) / CHUNK_CHARACTERS) * 1e6
        print(f"{name:14} {len(parse(text, TOOLS).calls):6} {size / whole:11.1f} {size / pieces:14.1f} {each:11.2f}")


def print_json_peers() -> None:
    """Print public JSON parsers on one call, and the whole parser, of which JSON is one part."""
    print(f"\n{'one call of ' + str(len(CALL)) + ' bytes':34} {'µs':>8}")
    runs = 2000
    parsers_by_name = {"opposable: tag, JSON and types": lambda: parse(f"<tool_call>{CALL}</tool_call>", TOOLS)}
    public_parsers = {
        "orjson: valid JSON only": ("orjson", "loads"),
        "jiter: valid JSON only": ("jiter", "from_json"),
        "json_repair": ("json_repair", "loads"),
    }
    for name, (module, function) in public_parsers.items():
        try:
            parse = getattr(importlib.import_module(module), function)
        except ImportError:
            print(f"{name:34} not installed")
            continue
        call_text = CALL.encode() if module == "jiter" else CALL
        parsers_by_name[name] = lambda parse=parse, call_text=call_text: parse(call_text)
    broken = CALL[:-1].replace('"mode"', "mode") + ",}"
    parsers_by_name["opposable: broken JSON"] = lambda: parse(f"<tool_call>{broken}</tool_call>", TOOLS)
    if importlib.util.find_spec("json_repair"):
        repair = importlib.import_module("json_repair").loads
        parsers_by_name["json_repair: broken JSON"] = lambda: repair(broken)
    for name, work in parsers_by_name.items():
        print(f"{name:34} {measure_seconds(lambda work=work: [work() for _ in range(runs)], 2) / runs * 1e6:8.1f}")


MLX_PARSERS = {  # the format: the module of mlx-lm that parses it, and the markers around its input
    "hermes": ("json_tools", "<tool_call>", "</tool_call>"),
    "qwen xml": ("qwen3_coder", "<tool_call>", "</tool_call>"),
    "glm": ("glm47", "<tool_call>", "</tool_call>"),
    "invoke": ("minimax_m2", "<minimax:tool_call>", "</minimax:tool_call>"),
    "mistral": ("mistral", "[TOOL_CALLS]", ""),
    "kimi k2": ("kimi_k2", "", ""),
    "pythonic": ("pythonic", "<|tool_call_start|>", "<|tool_call_end|>"),
}


def print_call_parsers() -> None:
    """Print the microseconds of parsers of calls on one reply; ✓ marks an exact result."""
    print(f"\n{'one reply with one call, µs':28} {'opposable':>12} {'agent-tool-parser':>18} {'mlx-lm':>12}")
    rust = importlib.util.find_spec("agent_tool_parser") and importlib.import_module("agent_tool_parser")
    for family, text in REPLIES.items():
        if family in ("plain text", "thinking"):
            continue
        cells = [
            format_cell(lambda text=text: [(call.name, call.arguments) for call in parse(text, TOOLS).calls]),
            format_cell(lambda text=text: [(call.name, call.args) for call in rust.try_parse_tool_calls(text)])
            if rust
            else "-",
            format_cell(load_mlx_parser(family, text))
            if family in MLX_PARSERS and importlib.util.find_spec("mlx_lm")
            else "-",
        ]
        print(f"{family:28} {cells[0]:>12} {cells[1]:>18} {cells[2]:>12}")


def format_cell(work: Callable[[], object], runs: int = 300) -> str:
    """Return the microseconds of `work` and whether its result is exact; "fails" if it raises."""
    try:
        exact = work() == [("write_file", ARGUMENTS)]
    except Exception:  # noqa: BLE001 - a peer may raise anything on an unknown format
        return "fails"
    return f"{measure_seconds(lambda: [work() for _ in range(runs)], 2) / runs * 1e6:.1f} {'✓' if exact else '✗'}"


def load_mlx_parser(family: str, text: str) -> Callable[[], object]:
    """Load the parser module of mlx-lm for a format, without its package, which needs a runtime."""
    module, before, after = MLX_PARSERS[family]
    folder = Path(importlib.util.find_spec("mlx_lm").origin).parent / "tool_parsers"
    spec = importlib.util.spec_from_file_location(module, folder / f"{module}.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    inner = text.strip().removeprefix(before).removesuffix(after)

    def work() -> object:
        result = loaded.parse_tool_call(inner, [{"type": "function", "function": tool} for tool in TOOLS])
        calls = result if isinstance(result, list) else [result]
        return [(call["name"], json.loads(a) if isinstance(a := call["arguments"], str) else a) for call in calls]

    return work


if __name__ == "__main__":
    print_families()
    if "--peers" in sys.argv:
        print_json_peers()
        print_call_parsers()
