"""Runs the Berkeley function-calling questions through the gateway and measures accuracy and latency.

    opposable serve --model local --port 8000
    python evals/raw_server.py                      # prints the URL for --raw
    python evals/berkeley.py --gateway http://127.0.0.1:8000/v1 --raw http://127.0.0.1:…/v1 --number 40
    python evals/berkeley.py --ablate --part held   # what each step of the embedded model's pipeline is worth

Each question is one chat-completions request with its tools. With --raw the raw server receives the same question
immediately afterwards, so that both medians come from the same minutes. Use the `dev` questions for tuning. Use the
`held` third for final figures only: once you have looked at its questions, they no longer measure unseen ones.
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
from berkeley_ablation import ablate, format_table
from berkeley_questions import CATEGORIES, BerkeleyQuestion, ToolCallPair, fetch_wheel, load_checker, read_questions


@dataclass(frozen=True, slots=True)
class AnswerResult:
    """The result of one question; the fields of the raw server are None without --raw."""

    id: str
    category: str
    right: bool
    seconds: float
    raw_right: bool | None
    raw_seconds: float | None
    calls: list[ToolCallPair]
    text: str


async def ask_question(
    session: aiohttp.ClientSession,
    url: str,
    question: BerkeleyQuestion,
    options: argparse.Namespace,
    *,
    names_model: bool,
) -> tuple[list[ToolCallPair], str, float]:
    """Send a question and return the calls, the text and the seconds of the answer."""
    body: dict[str, Any] = {"messages": question.messages, "tools": question.tools, "temperature": 0}
    body["max_tokens"] = options.max_tokens
    if names_model:
        body["model"] = options.model
    started_at = time.perf_counter()
    async with session.post(f"{url.rstrip('/')}/chat/completions", json=body) as response:
        answer = await response.json()
    seconds = time.perf_counter() - started_at
    if "choices" not in answer:
        return [], json.dumps(answer), seconds
    message = answer["choices"][0]["message"]
    calls = [
        (call["function"]["name"], parse_arguments(call["function"]["arguments"]))
        for call in message.get("tool_calls") or ()
    ]
    return calls, message.get("content") or "", seconds


def parse_arguments(text: str) -> dict[str, Any]:
    """Parse the arguments of a call; return {} if they are not a JSON object, which no checker accepts."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


async def run_questions(options: argparse.Namespace) -> list[AnswerResult]:
    """Ask all questions, one of each category in turn, and check the answers."""
    folder = await fetch_wheel()
    is_right = load_checker(folder)
    questions_by_category = [
        read_questions(folder, name, options.part, options.skip + options.number, options.seed)
        for name in options.categories
    ]
    results: list[AnswerResult] = []
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=1800)) as session:
        for index in range(options.skip, options.skip + options.number):
            for question in [questions[index] for questions in questions_by_category if index < len(questions)]:
                calls, text, seconds = await ask_question(session, options.gateway, question, options, names_model=True)
                raw_right, raw_seconds = None, None
                if options.raw:
                    raw_calls, _, raw_seconds = await ask_question(
                        session, options.raw, question, options, names_model=False
                    )
                    raw_right = is_right(question, raw_calls)
                result = AnswerResult(
                    question.id,
                    question.category,
                    is_right(question, calls),
                    seconds,
                    raw_right,
                    raw_seconds,
                    calls,
                    text,
                )
                results.append(result)
                if options.log:
                    print(json.dumps(asdict(result), ensure_ascii=False), file=options.log, flush=True)
    return results


def summarize_results(results: list[AnswerResult]) -> dict[str, Any]:
    """Return the accuracy, the median seconds, and their ratio to the raw server."""
    median = statistics.median(result.seconds for result in results)
    raw_seconds = [result.raw_seconds for result in results if result.raw_seconds is not None]
    return {
        "questions": len(results),
        "right": sum(result.right for result in results) / len(results),
        "median_s": median,
        "raw_right": sum(bool(result.raw_right) for result in results) / len(results) if raw_seconds else None,
        "raw_median_s": statistics.median(raw_seconds) if raw_seconds else None,
        "ratio": median / statistics.median(raw_seconds) if raw_seconds else None,
    }


def main() -> int:
    """Run the questions and print a table or JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", 1)[0])
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--gateway", metavar="URL", help="the gateway's base URL, up to /v1")
    source.add_argument("--ablate", action="store_true", help="leave out each step of the embedded model in turn")
    parser.add_argument("--model", default="local", help="the model's name at the gateway")
    parser.add_argument("--raw", metavar="URL", help="the raw server's base URL")
    parser.add_argument("--categories", type=lambda text: text.split(","), default=list(CATEGORIES))
    parser.add_argument("--number", type=int, default=25, help="questions of each category")
    parser.add_argument("--skip", type=int, default=0, help="questions of each category to skip")
    parser.add_argument("--part", choices=("dev", "held"), default="dev")
    parser.add_argument("--max-tokens", type=int, default=512, help="tokens per answer")
    parser.add_argument("--seed", type=int, default=7, help="seed of the split into parts")
    parser.add_argument("--log", type=argparse.FileType("a", encoding="utf-8"), help="a JSONL file for the answers")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    if options.ablate:
        print(format_table(asyncio.run(ablate(options))))
        return 0
    try:
        answers = asyncio.run(run_questions(options))
    except aiohttp.ClientConnectorError as error:
        advice = (
            "Start the gateway with `opposable serve --model local`, the raw server with `python evals/raw_server.py`."
        )
        print(f"No server answers at {error.host}:{error.port}. {advice}", file=sys.stderr)
        return 1
    groups = {name: [answer for answer in answers if answer.category == name] for name in options.categories}
    results = {name: summarize_results(group) for name, group in {**groups, "all": answers}.items() if group}
    if options.json:
        print(json.dumps(results, indent=1))
        return 0
    print(f"{'category':18}{'n':>5}{'right':>8}{'median s':>10}{'raw right':>11}{'raw s':>8}{'ratio':>7}")
    for name, row in results.items():
        raw_columns = (
            f"{row['raw_right']:>11.1%}{row['raw_median_s']:>8.2f}{row['ratio']:>7.2f}" if row["ratio"] else ""
        )
        print(f"{name:18}{row['questions']:>5}{row['right']:>8.1%}{row['median_s']:>10.2f}{raw_columns}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
