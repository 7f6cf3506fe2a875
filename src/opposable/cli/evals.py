"""The commands that measure."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from opposable.app.ask import catalog_directory
from opposable.app.models import open_model, open_unwrapped_model
from opposable.ask.semantics.loader import load_semantic_model
from opposable.cli.options import JsonOption, ModelOption, err, out, read_settings
from opposable.cli.rendering import DownloadBar, render_table, to_json
from opposable.domain.errors import BadInput
from opposable.evals.agent_runs.harness import (
    VARIANTS,
    ScenarioModelFactory,
    ScenarioScoreSheet,
    score_scenarios,
)
from opposable.evals.agent_runs.scenario import Scenario
from opposable.evals.agent_runs.scenario_loader import DEFAULT_SCENARIO_FOLDER, load_scenarios
from opposable.evals.text_to_sql.datasets import EvalQuestion, read_questions, sample_questions, select_part
from opposable.evals.text_to_sql.harness import AnswererFactory, SqlScoreSheet, make_answerers, score_questions
from opposable.evals.text_to_sql.report import write_report

cli = typer.Typer(help="Measure what works how well.", no_args_is_help=True)


@cli.command("sql")
def evaluate_sql(
    folder: Annotated[Path, typer.Argument(help="A folder with questions.jsonl and its databases.", metavar="SET")],
    model: ModelOption = None,
    number: Annotated[int, typer.Option("--number", "-n", min=0, help="Draw so many questions; 0 takes all.")] = 0,
    split: Annotated[
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
    if split not in ("dev", "held", "all"):
        raise BadInput(f"--part takes dev, held or all, not {split!r}.")
    questions = sample_questions(select_part(read_questions(folder, databases), split), number)
    if not questions:
        raise BadInput(f"There is no question in {folder}.")

    defined = load_semantic_model(semantics) if semantics is not None else None
    settings = read_settings()

    async def work() -> dict[str, SqlScoreSheet]:
        with DownloadBar(err) as bar:
            opened = await open_model(settings, model, bar)
        try:
            every = make_answerers(opened, semantics=defined, cache_directory=catalog_directory(settings))
            return await _score_answerers(_select_answerers(every, only), sorted(questions, key=lambda q: q.database))
        finally:
            await opened.aclose()

    tallies = asyncio.run(work())
    if report is not None:
        write_report(report, tallies)
    summaries = {name: tally.summary() for name, tally in tallies.items()}
    if json:
        print(to_json(summaries))
        return
    columns = ("", *next(iter(summaries.values())))
    out.print(render_table(columns, [(name, *summary.values()) for name, summary in summaries.items()]))


@cli.command("runs")
def evaluate_runs(
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            help="A real model. Default: scripted ones, each misbehaving in its own way.",
            show_default=False,
        ),
    ] = None,
    scripted_models: Annotated[
        str,
        typer.Option("--models", help="Scripted models: bad, bad-text (they write calls as text), or good."),
    ] = "bad",
    only: Annotated[
        list[str] | None,
        typer.Option("--only", help='Only this: "all guards", "without …", "bare loop"; again for more.'),
    ] = None,
    kind: Annotated[
        list[str] | None, typer.Option("--kind", help="Only scenarios of this kind; again for more.")
    ] = None,
    scenario_folder: Annotated[
        Path, typer.Option("--scenarios", help="Folder of the scenarios.", metavar="FOLDER")
    ] = DEFAULT_SCENARIO_FOLDER,
    held_out: Annotated[
        bool,
        typer.Option("--held", help="The scenarios that were held out, in place of the others."),
    ] = False,
    unwrapped: Annotated[
        bool,
        typer.Option("--raw", help="Of a real model, take only the calls that its server reads, as other loops do."),
    ] = False,
    twice: Annotated[bool, typer.Option(help="Do each scenario once more with what the first time taught.")] = True,
    failed: Annotated[bool, typer.Option("--failed", help="Also list the scenarios that failed.")] = False,
    json: JsonOption = False,
) -> None:
    """Measure runs in simulated worlds: with all guarding, without each of its parts, and in a loop that has none.

    Example: opposable eval runs --only "all guards" --only "bare loop"
    """
    suite = load_scenarios(scenario_folder)
    every = suite.held_out_scenarios if held_out else suite.scenarios
    kinds = list(dict.fromkeys(scenario.kind for scenario in every))
    for given, known, option in ((only, list(VARIANTS), "--only"), (kind, kinds, "--kind")):
        for name in given or ():
            if name not in known:
                raise BadInput(f"{option} takes one of {', '.join(map(repr, known))}, not {name!r}.")
    models = suite.scripted_models
    if unwrapped and model is None:
        raise BadInput("--raw says how a real model is asked: name one with --model.")
    if scripted_models not in models:
        raise BadInput(f"--models takes {', '.join(models)}, not {scripted_models!r}.")
    scenarios = [scenario for scenario in every if not kind or scenario.kind in kind]

    async def work() -> dict[str, ScenarioScoreSheet]:
        if model is None:
            return await _score_variants(scenarios, models[scripted_models], only, twice)
        with DownloadBar(err) as bar:
            opened = await (open_unwrapped_model if unwrapped else open_model)(read_settings(), model, bar)
        try:
            return await _score_variants(scenarios, lambda *_: opened, only, twice)
        finally:
            await opened.aclose()

    sheets = asyncio.run(work())
    summaries = {name: sheet.summary() for name, sheet in sheets.items()}
    lost = {name: [one.scenario.name for one in sheet.scores if not one.success] for name, sheet in sheets.items()}
    if json:
        print(to_json({name: {**summaries[name], "failed": lost[name]} for name in sheets}))
        return
    out.print(
        render_table(("", *next(iter(summaries.values()))), [(name, *row.values()) for name, row in summaries.items()])
    )
    if failed:
        out.print(render_table(("", "failed"), [(name, "; ".join(names)) for name, names in lost.items() if names]))


async def _score_variants(
    scenarios: list[Scenario], model_for: ScenarioModelFactory, only: list[str] | None, twice: bool
) -> dict[str, ScenarioScoreSheet]:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    sheets: dict[str, ScenarioScoreSheet] = {}
    with Progress(*columns, console=err) as shown:
        for name, guarding in VARIANTS.items():
            if only and name not in only:
                continue
            sheet = sheets[name] = ScenarioScoreSheet()
            task = shown.add_task(name, total=len(scenarios))
            async for score in score_scenarios(scenarios, model_for, guarding, run_twice=twice):
                sheet.scores.append(score)
                shown.update(task, advance=1, description=f"{name}: {sheet.summary()['success %']:g} % done")
    return sheets


def _select_answerers(available: dict[str, AnswererFactory], only: list[str] | None) -> dict[str, AnswererFactory]:
    for name in only or ():
        if name not in available:
            raise BadInput(f"--only takes one of {', '.join(repr(one) for one in available)}, not {name!r}.")
    return {name: answerer for name, answerer in available.items() if not only or name in only}


async def _score_answerers(
    selected: dict[str, AnswererFactory], questions: list[EvalQuestion]
) -> dict[str, SqlScoreSheet]:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    tallies: dict[str, SqlScoreSheet] = {}
    with Progress(*columns, console=err) as shown:
        for name, answerer in selected.items():
            tallies[name] = SqlScoreSheet()
            task = shown.add_task(name, total=len(questions))
            async for score in score_questions(questions, answerer):
                tallies[name].scores.append(score)
                right = tallies[name].summary()["accuracy"]
                shown.update(task, advance=1, description=f"{name}: {right:g} % right")
    return tallies
