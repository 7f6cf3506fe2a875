"""The demo on the embedded model: tools, recovery from a failed call, and questions to a database.

Each answer is checked against figures that the demo computes from the data itself. The exit code is 1 if a task fails.
"""

import asyncio
import re
import sqlite3
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from opposable import Event, RunFinished, ToolFinished
from opposable.agent.agent import Agent
from opposable.app.agents import DEFAULT_INSTRUCTIONS
from opposable.app.data_sources import open_data_source
from opposable.app.inputs import create_limits
from opposable.app.models import models_directory, pull_embedded
from opposable.app.tool_factory import create_builtin_library
from opposable.app.tools import select_tools
from opposable.ask.team.factory import open_team
from opposable.cli.rendering import DownloadBar, RunPrinter, render_table
from opposable.domain.language import detect_language
from opposable.models.base import Model
from opposable.models.calling_modes import get_default_calling_mode
from opposable.models.factory import create_model
from opposable.settings import Settings

DATA = Path(__file__).parent / "data"
FILES = DATA / "files"
CHINOOK = DATA / "chinook.sqlite"

Check = Callable[[str, Sequence[ToolFinished]], str]
"""Takes the answer and the calls; returns "" if they are right, else what is wrong."""


@dataclass(frozen=True)
class Job:
    """A task: a prompt, its tools or database, and the check of its answer."""

    title: str
    prompt: str
    check: Check
    tools: tuple[str, ...] = ()
    database: Path | None = None


def build_jobs() -> list[Job]:
    """Build the tasks, with the expected figures from the data."""
    log = (FILES / "logs" / "app.log").read_text()
    errors = len(re.findall(r"^\S+ \S+ - \S+ - ERROR - ", log, re.MULTILINE))
    mean = sum((12.5, 18, 7, 30.5)) / 4
    [(country,)] = query_chinook("SELECT Country FROM Customer GROUP BY Country ORDER BY count(*) DESC LIMIT 1")
    [(genre, tracks)] = query_chinook(
        "SELECT g.Name, count(*) FROM Track t JOIN Genre g USING (GenreId) GROUP BY g.Name ORDER BY 2 DESC LIMIT 1"
    )
    return [
        Job(
            "one tool",
            "What is the average of 12.5, 18, 7 and 30.5?",
            combine_checks(expect_in_answer(mean), expect_calls("calculator")),
            ("calculator", "echo", "time"),
        ),
        Job(
            "two tools",
            "Search the files for 'refund', then calculate the mean of [1, 2, 3, 4, 6].",
            combine_checks(expect_in_answer(3.2), expect_calls("file_search", "calculator")),
            ("file_search", "calculator", "time"),
        ),
        Job(
            "recovery from a failed call",
            "Search the folder ./data/docs for the word openSkill. Which file holds it?",
            combine_checks(expect_in_answer("getting-started.md"), expect_calls("file_search"), expect_recovery),
            ("file_search", "calculator", "time"),
        ),
        Job(
            "a log, in Chinese",
            "帮我分析一下 logs/app.log，有多少条 ERROR？",
            combine_checks(expect_in_answer(errors), expect_calls("log_transform")),
            ("log_transform", "calculator", "time"),
        ),
        Job(
            "a question about data",
            "Which country has the most customers?",
            expect_in_answer(country),
            database=CHINOOK,
        ),
        Job(
            "a question about data, in Chinese",
            "哪种音乐类型（Genre）的曲目最多？有多少首？",
            combine_checks(expect_in_answer(genre), expect_in_answer(tracks)),
            database=CHINOOK,
        ),
    ]


def query_chinook(sql: str) -> list[tuple[object, ...]]:
    """Query the database of the demo without the library."""
    connection = sqlite3.connect(f"file:{CHINOOK}?mode=ro", uri=True)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def expect_in_answer(expected: object) -> Check:
    """Check that the answer contains a word or number."""

    def check(answer: str, calls: Sequence[ToolFinished]) -> str:
        numbers = {float(n) for n in re.findall(r"-?\d+(?:\.\d+)?", answer.replace(",", ""))}
        is_right = expected in numbers if isinstance(expected, int | float) else str(expected).lower() in answer.lower()
        return "" if is_right else f"the answer does not say {expected}"

    return check


def expect_calls(*names: str) -> Check:
    """Check that calls of these tools succeeded."""

    def check(answer: str, calls: Sequence[ToolFinished]) -> str:
        successful_tools = {call.call.name for call in calls if call.result.failure is None}
        missing = [name for name in names if name not in successful_tools]
        return f"no call of {', '.join(missing)} succeeded" if missing else ""

    return check


def expect_recovery(answer: str, calls: Sequence[ToolFinished]) -> str:
    """Check that a call failed and a later one succeeded."""
    failures = [call.result.failure is not None for call in calls]
    return "" if True in failures and not failures[-1] else "no failed call was followed by a successful one"


def combine_checks(*checks: Check) -> Check:
    """Combine checks."""
    return lambda answer, calls: "; ".join(filter(None, (check(answer, calls) for check in checks)))


async def run_job(job: Job, model: Model, settings: Settings, console: Console) -> tuple[str, float, RunFinished]:
    """Run one job with its trace; return what is wrong ("" for nothing), the seconds and the end."""
    started_at = time.perf_counter()
    calls: list[ToolFinished] = []
    event: Event | None = None
    printer = RunPrinter(console, console)
    async with stream_job_events(job, model, settings) as events:
        async for event in events:
            printer.show(event)
            if isinstance(event, ToolFinished):
                calls.append(event)
    assert isinstance(event, RunFinished)
    return job.check(event.text, calls), time.perf_counter() - started_at, event


@asynccontextmanager
async def stream_job_events(job: Job, model: Model, settings: Settings) -> AsyncIterator[AsyncIterator[Event]]:
    """Yield the events of a job: of the team for a question to a database, else of an agent."""
    if job.database is not None:
        async with (
            open_data_source(str(job.database)) as database,
            open_team(model, database) as team,
            aclosing(team.stream(job.prompt)) as events,
        ):
            yield events
        return
    library = select_tools(create_builtin_library(settings), job.tools)
    agent = Agent(
        model,
        library,
        instructions=DEFAULT_INSTRUCTIONS[detect_language(job.prompt)],
        limits=create_limits(settings),
    )
    async with aclosing(agent.stream(job.prompt)) as events:
        yield events


async def main() -> int:
    """Run all jobs and return 0 if all answers are right."""
    console = Console(soft_wrap=True)
    settings = Settings(roots=(FILES,), turns=8, seconds=300)
    with DownloadBar(console) as bar:
        await pull_embedded(settings, bar)
    model = create_model(
        "local", models_directory=models_directory(settings), calling_mode=get_default_calling_mode("local")
    )
    rows = []
    try:
        for number, job in enumerate(build_jobs(), start=1):
            console.print(f"\n[bold]{number}. {job.title}[/]\n[magenta]{escape(job.prompt)}[/]", highlight=False)
            problem, seconds, run_finished = await run_job(job, model, settings, console)
            console.print(f"[red]wrong: {escape(problem)}[/]" if problem else "[green]right[/]")
            rows.append(
                (
                    job.title,
                    problem or "right",
                    run_finished.tool_calls,
                    run_finished.usage.total_tokens,
                    f"{seconds:.1f}",
                )
            )
    finally:
        await model.aclose()
    console.print()
    console.print(render_table(("task", "outcome", "calls", "tokens", "seconds"), rows))
    failed_count = sum(row[1] != "right" for row in rows)
    console.print(f"{len(rows) - failed_count} of {len(rows)} tasks right on {model.name}", highlight=False)
    console.print("\nOpen the web console: .venv/bin/opposable serve, then http://127.0.0.1:8000/", highlight=False)
    return 1 if failed_count else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
