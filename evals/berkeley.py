"""The Berkeley function-calling questions through the gateway: accuracy, and what it costs beside the raw server.

    opposable serve --model local --port 8000
    python evals/raw_server.py                      # prints the raw server's URL; for --raw
    python evals/berkeley.py --gateway http://127.0.0.1:8000/v1 --raw http://127.0.0.1:…/v1 --number 40

Each question is asked once, tools and all, by an ordinary chat-completions request. With --raw it is asked of the raw
server right after, so that both medians come from the same minutes. `dev` questions are for tuning; the `held` third
is for the end: whoever looks at its questions has used them up.
"""

import argparse
import asyncio
import json
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any

import aiohttp
from berkeley_questions import CATEGORIES, BerkeleyQuestion, ToolCallPair, fetch_wheel, load_checker, read_questions


@dataclass(frozen=True, slots=True)
class AnswerResult:
    """How one question went; seconds of the raw server are None where it was not asked."""

    id: str
    category: str
    right: bool
    seconds: float
    raw_right: bool | None
    raw_seconds: float | None
    calls: list[ToolCallPair]
    said: str


async def ask_question(
    session: aiohttp.ClientSession,
    url: str,
    question: BerkeleyQuestion,
    options: argparse.Namespace,
    *,
    names_model: bool,
) -> tuple[list[ToolCallPair], str, float]:
    """The calls and the text of one answer, and its seconds. `named` says whether the request names the model."""
    body: dict[str, Any] = {"messages": question.messages, "tools": question.tools, "temperature": 0}
    body["max_tokens"] = options.max_tokens
    if names_model:
        body["model"] = options.model
    started = time.perf_counter()
    async with session.post(f"{url.rstrip('/')}/chat/completions", json=body) as response:
        answer = await response.json()
    seconds = time.perf_counter() - started
    if "choices" not in answer:
        return [], json.dumps(answer), seconds
    message = answer["choices"][0]["message"]
    calls = [
        (call["function"]["name"], parse_arguments(call["function"]["arguments"]))
        for call in message.get("tool_calls") or ()
    ]
    return calls, message.get("content") or "", seconds


def parse_arguments(text: str) -> dict[str, Any]:
    """The arguments of a call; none where they are no JSON object, which no question takes for right."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


async def run_questions(options: argparse.Namespace) -> list[AnswerResult]:
    """Ask all questions, categories in turn, and mark the answers."""
    folder = await fetch_wheel()
    right = load_checker(folder)
    lists = [
        read_questions(folder, name, options.part, options.skip + options.number, options.seed)
        for name in options.categories
    ]
    marks: list[AnswerResult] = []
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=1800)) as session:
        for n in range(options.skip, options.skip + options.number):
            for question in [each[n] for each in lists if n < len(each)]:
                calls, said, seconds = await ask_question(session, options.gateway, question, options, names_model=True)
                raw_right, raw_seconds = None, None
                if options.raw:
                    raw_calls, _, raw_seconds = await ask_question(
                        session, options.raw, question, options, names_model=False
                    )
                    raw_right = right(question, raw_calls)
                mark = AnswerResult(
                    question.id, question.category, right(question, calls), seconds, raw_right, raw_seconds, calls, said
                )
                marks.append(mark)
                if options.log:
                    print(json.dumps(asdict(mark), ensure_ascii=False), file=options.log, flush=True)
    return marks


def summarize_results(results: list[AnswerResult]) -> dict[str, Any]:
    """Accuracy and median seconds of a list of marks, and the ratio of the medians where the raw server was asked."""
    median = statistics.median(mark.seconds for mark in results)
    raw = [mark.raw_seconds for mark in results if mark.raw_seconds is not None]
    return {
        "questions": len(results),
        "right": sum(mark.right for mark in results) / len(results),
        "median_s": median,
        "raw_right": sum(bool(mark.raw_right) for mark in results) / len(results) if raw else None,
        "raw_median_s": statistics.median(raw) if raw else None,
        "ratio": median / statistics.median(raw) if raw else None,
    }


def main() -> int:
    """Ask, mark, and print a table or JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", 1)[0])
    parser.add_argument("--gateway", required=True, metavar="URL", help="the gateway's base URL, up to /v1")
    parser.add_argument("--model", default="local", help="the model's name at the gateway")
    parser.add_argument("--raw", metavar="URL", help="the raw server's base URL, asked the same in turn")
    parser.add_argument("--categories", type=lambda text: text.split(","), default=list(CATEGORIES))
    parser.add_argument("--number", type=int, default=25, help="questions of each category")
    parser.add_argument("--skip", type=int, default=0, help="questions of each category to leave out before")
    parser.add_argument("--part", choices=("dev", "held"), default="dev")
    parser.add_argument("--max-tokens", type=int, default=512, help="of each answer; small models repeat themselves")
    parser.add_argument("--seed", type=int, default=7, help="of the split into parts")
    parser.add_argument("--log", type=argparse.FileType("a", encoding="utf-8"), help="a file for each answer, as JSONL")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    try:
        marks = asyncio.run(run_questions(options))
    except aiohttp.ClientConnectorError as error:
        start = "Start the gateway by `opposable serve --model local`, the raw server by `python evals/raw_server.py`."
        print(f"Nothing answers at {error.host}:{error.port}. {start}", file=sys.stderr)
        return 1
    groups = {name: [mark for mark in marks if mark.category == name] for name in options.categories}
    results = {name: summarize_results(group) for name, group in {**groups, "all": marks}.items() if group}
    if options.json:
        print(json.dumps(results, indent=1))
        return 0
    print(f"{'category':18}{'n':>5}{'right':>8}{'median s':>10}{'raw right':>11}{'raw s':>8}{'ratio':>7}")
    for name, row in results.items():
        beside = f"{row['raw_right']:>11.1%}{row['raw_median_s']:>8.2f}{row['ratio']:>7.2f}" if row["ratio"] else ""
        print(f"{name:18}{row['questions']:>5}{row['right']:>8.1%}{row['median_s']:>10.2f}{beside}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
