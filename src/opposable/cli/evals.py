"""The commands that measure."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from opposable import app
from opposable.app.ask import catalogs
from opposable.ask.semantics.loader import load_semantics
from opposable.cli.options import JsonOption, ModelOption, err, out, read_settings
from opposable.cli.rendering import PullBar, as_json, table
from opposable.domain.errors import BadInput
from opposable.evals.agent_runs.harness import VARIANTS, ModelFor, Sheet, scripted, well_behaved, written
from opposable.evals.agent_runs.harness import scored as runs_scored
from opposable.evals.agent_runs.held_out_scenarios import HELD
from opposable.evals.agent_runs.scenarios import SCENARIOS, Scenario
from opposable.evals.text_to_sql.datasets import Question, drawn, part, read_set
from opposable.evals.text_to_sql.harness import Answerer, Tally, answerers, scored
from opposable.evals.text_to_sql.report import write_report

cli = typer.Typer(help="Measure what works how well.", no_args_is_help=True)


@cli.command("sql")
def sql(
    folder: Annotated[Path, typer.Argument(help="A folder with questions.jsonl and its databases.", metavar="SET")],
    model: ModelOption = None,
    number: Annotated[int, typer.Option("--number", "-n", min=0, help="Draw so many questions; 0 takes all.")] = 0,
    which: Annotated[
        str, typer.Option("--part", help="dev: two thirds of the databases; held: the third kept unseen; or all.")
    ] = "all",
    only: Annotated[
        list[str] | None,
        typer.Option("--only", help='Measure only this: "one prompt", "team", "without …"; may be given again.'),
    ] = None,
    semantics: Annotated[
        Path | None, typer.Option("--semantics", help="A semantic model of the set's database, for the team.")
    ] = None,
    databases: Annotated[
        Path | None, typer.Option("--databases", help="The folder of the databases, where it is not the set's.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="Also write an HTML page with the failures to read.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Measure the team that answers questions about data beside one prompt, and with each of its parts switched off.

    Example: opposable eval sql my-questions --number 50 --only team --report report.html
    """
    if which not in ("dev", "held", "all"):
        raise BadInput(f"--part takes dev, held or all, not {which!r}.")
    questions = drawn(part(read_set(folder, databases), which), number)
    if not questions:
        raise BadInput(f"There is no question in {folder}.")

    defined = load_semantics(semantics) if semantics is not None else None
    settings = read_settings()

    async def work() -> dict[str, Tally]:
        with PullBar(err) as bar:
            opened = await app.ready_model(settings, model, bar)
        try:
            every = answerers(opened, semantics=defined, cache=catalogs(settings))
            return await _measured(_chosen(every, only), sorted(questions, key=lambda q: q.database))
        finally:
            await opened.aclose()

    tallies = asyncio.run(work())
    if report is not None:
        write_report(report, tallies)
    summaries = {name: tally.summary() for name, tally in tallies.items()}
    if json:
        print(as_json(summaries))
        return
    columns = ("", *next(iter(summaries.values())))
    out.print(table(columns, [(name, *summary.values()) for name, summary in summaries.items()]))


@cli.command("runs")
def runs(
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            help="A real model. Default: scripted ones, each misbehaving in its own way.",
            show_default=False,
        ),
    ] = None,
    which: Annotated[
        str,
        typer.Option("--models", help="Scripted models: bad, bad-text (they write calls as text), or good."),
    ] = "bad",
    only: Annotated[
        list[str] | None,
        typer.Option("--only", help='Only this: "all of it", "without …", "bare loop"; again for more.'),
    ] = None,
    kind: Annotated[
        list[str] | None, typer.Option("--kind", help="Only scenarios of this kind; again for more.")
    ] = None,
    held: Annotated[
        bool,
        typer.Option("--held", help="The scenarios that were held out, in place of the others."),
    ] = False,
    raw: Annotated[
        bool,
        typer.Option("--raw", help="Of a real model, take only the calls that its server reads, as other loops do."),
    ] = False,
    twice: Annotated[bool, typer.Option(help="Do each scenario once more with what the first time taught.")] = True,
    failed: Annotated[bool, typer.Option("--failed", help="Also list the scenarios that failed.")] = False,
    json: JsonOption = False,
) -> None:
    """Measure runs in simulated worlds: with all guarding, without each of its parts, and in a loop that has none.

    Example: opposable eval runs --only "all of it" --only "bare loop"
    """
    every = HELD if held else SCENARIOS
    kinds = list(dict.fromkeys(scenario.kind for scenario in every))
    for given, known, option in ((only, list(VARIANTS), "--only"), (kind, kinds, "--kind")):
        for name in given or ():
            if name not in known:
                raise BadInput(f"{option} takes one of {', '.join(map(repr, known))}, not {name!r}.")
    models = {"bad": scripted, "bad-text": written, "good": well_behaved}
    if raw and model is None:
        raise BadInput("--raw says how a real model is asked: name one with --model.")
    if which not in models:
        raise BadInput(f"--models takes {', '.join(models)}, not {which!r}.")
    scenarios = [scenario for scenario in every if not kind or scenario.kind in kind]

    async def work() -> dict[str, Sheet]:
        if model is None:
            return await _sheets(scenarios, models[which], only, twice)
        with PullBar(err) as bar:
            opened = await (app.ready_raw if raw else app.ready_model)(read_settings(), model, bar)
        try:
            return await _sheets(scenarios, lambda *_: opened, only, twice)
        finally:
            await opened.aclose()

    sheets = asyncio.run(work())
    summaries = {name: sheet.summary() for name, sheet in sheets.items()}
    lost = {name: [one.scenario.name for one in sheet.scores if not one.success] for name, sheet in sheets.items()}
    if json:
        print(as_json({name: {**summaries[name], "failed": lost[name]} for name in sheets}))
        return
    out.print(table(("", *next(iter(summaries.values()))), [(name, *row.values()) for name, row in summaries.items()]))
    if failed:
        out.print(table(("", "failed"), [(name, "; ".join(names)) for name, names in lost.items() if names]))


async def _sheets(
    scenarios: list[Scenario], model_for: ModelFor, only: list[str] | None, twice: bool
) -> dict[str, Sheet]:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    sheets: dict[str, Sheet] = {}
    with Progress(*columns, console=err) as shown:
        for name, guarding in VARIANTS.items():
            if only and name not in only:
                continue
            sheet = sheets[name] = Sheet()
            task = shown.add_task(name, total=len(scenarios))
            async for score in runs_scored(scenarios, model_for, guarding, twice=twice):
                sheet.scores.append(score)
                shown.update(task, advance=1, description=f"{name}: {sheet.summary()['success %']:g} % done")
    return sheets


def _chosen(every: dict[str, Answerer], only: list[str] | None) -> dict[str, Answerer]:
    for name in only or ():
        if name not in every:
            raise BadInput(f"--only takes one of {', '.join(repr(one) for one in every)}, not {name!r}.")
    return {name: answerer for name, answerer in every.items() if not only or name in only}


async def _measured(chosen: dict[str, Answerer], questions: list[Question]) -> dict[str, Tally]:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    tallies: dict[str, Tally] = {}
    with Progress(*columns, console=err) as shown:
        for name, answerer in chosen.items():
            tallies[name] = Tally()
            task = shown.add_task(name, total=len(questions))
            async for score in scored(questions, answerer):
                tallies[name].scores.append(score)
                right = tallies[name].summary()["accuracy"]
                shown.update(task, advance=1, description=f"{name}: {right:g} % right")
    return tallies
