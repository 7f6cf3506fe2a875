"""The main job on the embedded model: real tools, a failing call to get over, questions to a real database.

Each task's answer is checked against the data, worked out here by other means than the model's. Exits with 1 when a
task fails.
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

from opposable import Event, RunFinished, ToolFinished, app
from opposable.agent.agent import Agent
from opposable.app.tools import closing
from opposable.ask.team.factory import open_team
from opposable.cli.rendering import PullBar, Trace, table
from opposable.domain.language import language_of
from opposable.models.base import Model
from opposable.models.calling_modes import default_way
from opposable.models.factory import build
from opposable.settings import Settings
from opposable.sql.factory import open_database

DATA = Path(__file__).parent / "data"
FILES = DATA / "files"
CHINOOK = DATA / "chinook.sqlite"

Check = Callable[[str, Sequence[ToolFinished]], str]
"""Takes the answer and the calls; gives "" when all is right, else what is wrong."""


@dataclass(frozen=True)
class Job:
    """One task: what it shows, what is asked, the tools offered (or the database), and the check of its answer."""

    title: str
    said: str
    check: Check
    tools: tuple[str, ...] = ()
    database: Path | None = None


def jobs() -> list[Job]:
    """The tasks, with what is right taken from the data."""
    log = (FILES / "logs" / "app.log").read_text()
    errors = len(re.findall(r"^\S+ \S+ - \S+ - ERROR - ", log, re.MULTILINE))
    mean = sum((12.5, 18, 7, 30.5)) / 4
    [(country,)] = query("SELECT Country FROM Customer GROUP BY Country ORDER BY count(*) DESC LIMIT 1")
    [(genre, tracks)] = query(
        "SELECT g.Name, count(*) FROM Track t JOIN Genre g USING (GenreId) GROUP BY g.Name ORDER BY 2 DESC LIMIT 1"
    )
    return [
        Job(
            "one tool",
            "What is the average of 12.5, 18, 7 and 30.5?",
            both(says(mean), called("calculator")),
            ("calculator", "echo", "time"),
        ),
        Job(
            "two tools",
            "Search the files for 'refund', then calculate the mean of [1, 2, 3, 4, 6].",
            both(says(3.2), called("file_search", "calculator")),
            ("file_search", "calculator", "time"),
        ),
        Job(
            "a failing call to get over",
            "Search the folder ./data/docs for the word openSkill. Which file holds it?",
            both(says("getting-started.md"), called("file_search"), failed_first),
            ("file_search", "calculator", "time"),
        ),
        Job(
            "a log, in Chinese",
            "帮我分析一下 logs/app.log，有多少条 ERROR？",
            both(says(errors), called("log_transform")),
            ("log_transform", "calculator", "time"),
        ),
        Job("a question about data", "Which country has the most customers?", says(country), database=CHINOOK),
        Job(
            "a question about data, in Chinese",
            "哪种音乐类型（Genre）的曲目最多？有多少首？",
            both(says(genre), says(tracks)),
            database=CHINOOK,
        ),
    ]


def query(sql: str) -> list[tuple[object, ...]]:
    """Rows of the demo's database, without any of the tools shown."""
    connection = sqlite3.connect(f"file:{CHINOOK}?mode=ro", uri=True)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def says(wanted: object) -> Check:
    """The answer holds this word or number."""

    def check(answer: str, calls: Sequence[ToolFinished]) -> str:
        numbers = {float(n) for n in re.findall(r"-?\d+(?:\.\d+)?", answer.replace(",", ""))}
        right = wanted in numbers if isinstance(wanted, int | float) else str(wanted).lower() in answer.lower()
        return "" if right else f"the answer does not say {wanted}"

    return check


def called(*names: str) -> Check:
    """These tools were called and worked."""

    def check(answer: str, calls: Sequence[ToolFinished]) -> str:
        worked = {call.call.name for call in calls if call.result.failure is None}
        missing = [name for name in names if name not in worked]
        return f"no call of {', '.join(missing)} worked" if missing else ""

    return check


def failed_first(answer: str, calls: Sequence[ToolFinished]) -> str:
    """A call failed, and a later one worked."""
    failures = [call.result.failure is not None for call in calls]
    return "" if True in failures and not failures[-1] else "no failing call was followed by one that worked"


def both(*checks: Check) -> Check:
    """All of these."""
    return lambda answer, calls: "; ".join(filter(None, (check(answer, calls) for check in checks)))


async def do(job: Job, model: Model, settings: Settings, console: Console) -> tuple[str, float, RunFinished]:
    """Do one job with its trace; what is wrong with it ("" when nothing), its seconds and its end."""
    started = time.perf_counter()
    calls: list[ToolFinished] = []
    end: Event | None = None
    trace = Trace(console, console)
    async with events_of(job, model, settings) as events:
        async for end in events:
            trace.show(end)
            if isinstance(end, ToolFinished):
                calls.append(end)
    assert isinstance(end, RunFinished)
    return job.check(end.text, calls), time.perf_counter() - started, end


@asynccontextmanager
async def events_of(job: Job, model: Model, settings: Settings) -> AsyncIterator[AsyncIterator[Event]]:
    """What happens in a job: an agent's run, or the team's where a database is asked."""
    if job.database is not None:
        async with (
            closing(await open_database(str(job.database))) as database,
            open_team(model, database) as team,
            aclosing(team.stream(job.said)) as events,
        ):
            yield events
        return
    library = app.chosen(app.ready_tools(settings), job.tools)
    agent = Agent(model, library, instructions=app.INSTRUCTIONS[language_of(job.said)], limits=app.limits(settings))
    async with aclosing(agent.stream(job.said)) as events:
        yield events


async def main() -> int:
    """Do all jobs; 0 when all are right."""
    console = Console(soft_wrap=True)
    settings = Settings(roots=(FILES,), turns=8, seconds=300)
    with PullBar(console) as bar:
        await app.pull_embedded(settings, bar)
    model = build("local", models_directory=app.models_directory(settings), way=default_way("local"))
    rows = []
    try:
        for n, job in enumerate(jobs(), start=1):
            console.print(f"\n[bold]{n}. {job.title}[/]\n[magenta]{escape(job.said)}[/]", highlight=False)
            wrong, seconds, end = await do(job, model, settings, console)
            console.print(f"[red]wrong: {escape(wrong)}[/]" if wrong else "[green]right[/]")
            rows.append((job.title, wrong or "right", end.tool_calls, end.usage.total_tokens, f"{seconds:.1f}"))
    finally:
        await model.aclose()
    console.print()
    console.print(table(("task", "outcome", "calls", "tokens", "seconds"), rows))
    failed = sum(row[1] != "right" for row in rows)
    console.print(f"{len(rows) - failed} of {len(rows)} tasks right on {model.name}", highlight=False)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
