"""The commands for evaluations: questions about data, and agent runs."""

from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from opposable.agent.assistance.guard_options import RULE_SWITCHES
from opposable.app.models import open_model, open_unwrapped_model
from opposable.ask.semantics.loader import load_semantic_model
from opposable.cli.errors import run_async
from opposable.cli.help import HelpGroup
from opposable.cli.options import JsonOption, ModelOption, err, out, read_settings, warn, write_file
from opposable.cli.rendering import DownloadBar, create_progress, render_table, to_json
from opposable.domain.errors import BadInput
from opposable.evals.agent_runs.harness import (
    VARIANTS,
    ScenarioModelFactory,
    ScenarioScoreSheet,
    get_variant_name,
    score_scenarios,
)
from opposable.evals.agent_runs.scenario import Scenario
from opposable.evals.agent_runs.scenario_loader import DEFAULT_SCENARIO_FOLDER, load_scenarios
from opposable.evals.text_to_sql.datasets import EvalQuestion, read_questions, sample_questions, select_part
from opposable.evals.text_to_sql.harness import AnswererFactory, SqlScoreSheet, make_answerers, score_questions
from opposable.evals.text_to_sql.paired import compare_sheets
from opposable.evals.text_to_sql.recorded_model import RecordedModel
from opposable.evals.text_to_sql.report import render_report

cli = typer.Typer(cls=HelpGroup, no_args_is_help=True)


@cli.command("sql")
def evaluate_sql(
    folder: Annotated[Path, typer.Argument(help="Folder with questions.jsonl and its databases", metavar="SET")],
    model: ModelOption = None,
    number: Annotated[int, typer.Option("--number", "-n", min=0, help="Number of questions to sample (0 = all)")] = 0,
    split: Annotated[
        Literal["dev", "held", "all"], typer.Option("--part", help="Databases: two thirds, one third or all")
    ] = "all",
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only", help='"one prompt", "team", "team with examples", "without …" or "… alone" (repeatable)'
        ),
    ] = None,
    semantics: Annotated[
        Path | None, typer.Option("--semantics", help="Semantic model of the database, for the team")
    ] = None,
    databases: Annotated[
        Path | None, typer.Option("--databases", help="Folder of the databases (default: SET)")
    ] = None,
    report: Annotated[Path | None, typer.Option("--report", help="Write an HTML report of the failures")] = None,
    replies: Annotated[
        Path | None, typer.Option("--replies", help="File of recorded replies, read and extended")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Compare the data team, its parts and a single prompt on the same questions.

    Example: opposable eval sql my-questions --number 50 --only team --report report.html
    """
    if report is not None and not report.parent.is_dir():
        raise BadInput(f"The folder {report.parent} of the report does not exist. Create it first.")
    all_questions = select_part(read_questions(folder, databases), split)
    questions = sample_questions(all_questions, number)
    if not questions:
        raise BadInput(f"{folder} has no questions for --part {split}. Check questions.jsonl.")

    semantic_model = load_semantic_model(semantics) if semantics is not None else None
    settings = read_settings()

    sheets: dict[str, SqlScoreSheet] = {}

    async def score() -> None:
        with DownloadBar(err) as bar:
            opened_model = await open_model(settings, model, bar)
        try:
            if replies is not None:
                opened_model = RecordedModel(opened_model, replies)
            answerers = make_answerers(opened_model, semantics=semantic_model, examples=all_questions)
            selected = _select_answerers(answerers, only)
            await _score_answerers(sheets, selected, sorted(questions, key=lambda q: q.database))
        finally:
            await opened_model.aclose()

    _run_evaluation(score(), sheets, json)
    summaries = {name: sheet.summary() for name, sheet in sheets.items()}
    comparisons = compare_sheets(sheets)
    if json:
        print(to_json({"answerers": summaries, "paired": comparisons}))
    else:
        _print_table([{"": name, **summary} for name, summary in summaries.items()])
        if comparisons:
            _print_table(comparisons)
    if report is not None:  # after the results, which an error must not hide
        write_file(report, render_report(sheets), replace=True)


@cli.command("runs")
def evaluate_runs(
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            help="Model (default: scripted models that misbehave)",
            show_default=False,
        ),
    ] = None,
    scripted_models: Annotated[
        str,
        typer.Option("--models", help="Scripted models: bad, bad-text (calls as text) or good"),
    ] = "bad",
    only: Annotated[
        list[str] | None,
        typer.Option("--only", help='"all guards", "without …" or "bare loop" (repeatable)'),
    ] = None,
    kind: Annotated[list[str] | None, typer.Option("--kind", help="Only scenarios of this kind (repeatable)")] = None,
    scenario_folder: Annotated[
        Path, typer.Option("--scenarios", help="Folder of the scenarios", metavar="FOLDER")
    ] = DEFAULT_SCENARIO_FOLDER,
    held_out: Annotated[
        bool,
        typer.Option("--held", help="Use the held-out scenarios"),
    ] = False,
    unwrapped: Annotated[
        bool,
        typer.Option("--raw", help="With --model: accept only calls parsed by its server"),
    ] = False,
    twice: Annotated[bool, typer.Option(help="Repeat each scenario with the failures of the first run")] = True,
    failed: Annotated[bool, typer.Option("--failed", help="Also list the failed scenarios")] = False,
    json: JsonOption = False,
) -> None:
    """Evaluate runs in simulated environments, with and without each guard.

    Example: opposable eval runs --only "all guards" --only "bare loop"
    """
    suite = load_scenarios(scenario_folder)
    available = suite.held_out_scenarios if held_out else suite.scenarios
    kinds = list(dict.fromkeys(scenario.kind for scenario in available))
    _check_choices("--only", only, list(VARIANTS))
    _check_choices("--kind", kind, kinds)
    models = suite.scripted_models
    if unwrapped and model is None:
        raise BadInput("--raw needs a real model. Pass one with --model.")
    if scripted_models not in models:
        raise BadInput(f"--models takes {', '.join(models)}, not {scripted_models!r}.")
    scenarios = [scenario for scenario in available if not kind or scenario.kind in kind]

    sheets: dict[str, ScenarioScoreSheet] = {}

    async def score() -> None:
        if model is None:
            await _score_variants(sheets, scenarios, models[scripted_models], only, twice)
            return
        with DownloadBar(err) as bar:
            opened_model = await (open_unwrapped_model if unwrapped else open_model)(read_settings(), model, bar)
        try:
            await _score_variants(sheets, scenarios, lambda *_: opened_model, only, twice)
        finally:
            await opened_model.aclose()

    _run_evaluation(score(), sheets, json)
    summaries = {name: sheet.summary() for name, sheet in sheets.items()}
    failed_scenarios = {
        name: [scenario_score.scenario.name for scenario_score in sheet.scores if not scenario_score.success]
        for name, sheet in sheets.items()
    }
    if json:
        print(to_json({name: {**summaries[name], "failed": failed_scenarios[name]} for name in sheets}))
        return
    _print_table([{"": name, **summary} for name, summary in summaries.items()])
    if failed:
        rows = [(name, "; ".join(names)) for name, names in failed_scenarios.items() if names]
        out.print(render_table(("", "failed"), rows))


@cli.command("assistance")
def evaluate_assistance(
    model: ModelOption = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", help='Only rules such as "follow_ups" (repeatable)')
    ] = None,
    scenario_folder: Annotated[
        Path, typer.Option("--scenarios", help="Folder of the scenarios", metavar="FOLDER")
    ] = DEFAULT_SCENARIO_FOLDER,
    json: JsonOption = False,
) -> None:
    """Measure what each rule of assistance is worth: runs with all rules, and without each.

    Example: opposable eval assistance --model local --only follow_ups
    """
    _check_choices("--only", only, list(RULE_SWITCHES))
    rules = [rule for rule in RULE_SWITCHES if not only or rule in only]
    suite = load_scenarios(scenario_folder)
    scenarios = [*suite.scenarios, *suite.held_out_scenarios]

    sheets: dict[str, ScenarioScoreSheet] = {}

    async def score() -> None:
        with DownloadBar(err) as bar:
            opened_model = await open_model(read_settings(), model, bar)
        try:
            variants = ["all guards", *(get_variant_name(rule) for rule in rules)]
            await _score_variants(sheets, scenarios, lambda *_: opened_model, variants, twice=False)
        finally:
            await opened_model.aclose()

    _run_evaluation(score(), sheets, json)
    figures = {name: sheet.summary() for name, sheet in sheets.items()}
    complete = figures["all guards"]
    worth = [
        {
            "rule": rule,
            "success %": complete["success %"],
            "without %": without["success %"],
            "worth": round(complete["success %"] - without["success %"], 1),
            "tokens": complete["tokens"],
            "tokens without": without["tokens"],
        }
        for rule in rules
        for without in [figures[get_variant_name(rule)]]
    ]
    if json:
        print(to_json({"scenarios": len(scenarios), "rules": worth}))
        return
    out.print(f"{len(scenarios)} scenarios")
    _print_table(worth)


def _run_evaluation(
    scoring: Coroutine[Any, Any, None], sheets: Mapping[str, SqlScoreSheet | ScenarioScoreSheet], json: bool
) -> None:
    """Run an evaluation, and print the scores so far if it is interrupted."""
    try:
        run_async(scoring)
    except KeyboardInterrupt:
        if not json and (rows := [{"": name, **sheet.summary()} for name, sheet in sheets.items() if sheet.scores]):
            _print_table(rows)
        raise


def _print_table(rows: Sequence[Mapping[str, object]]) -> None:
    out.print(render_table(tuple(rows[0]), [tuple(row.values()) for row in rows]))


async def _score_variants(
    sheets: dict[str, ScenarioScoreSheet],
    scenarios: list[Scenario],
    model_for: ScenarioModelFactory,
    only: list[str] | None,
    twice: bool,
) -> None:
    with create_progress(err) as progress:
        for name, guards in VARIANTS.items():
            if only and name not in only:
                continue
            sheet = sheets[name] = ScenarioScoreSheet()
            task = progress.add_task(name, total=len(scenarios))
            async for score in score_scenarios(scenarios, model_for, guards, run_twice=twice):
                sheet.scores.append(score)
                progress.update(task, advance=1, description=f"{name}: {sheet.summary()['success %']:g} % done")
            errors = [score.error for score in sheet.scores if score.error is not None]
            if errors and len(errors) == len(scenarios):
                raise errors[0]
            if errors:
                warn(f"{name}: {len(errors)} of {len(scenarios)} runs failed with an error of the model. {errors[0]}")


def _check_choices(option: str, names: list[str] | None, valid_names: list[str]) -> None:
    for name in names or ():
        if name not in valid_names:
            raise BadInput(f"{option} takes one of {', '.join(map(repr, valid_names))}, not {name!r}.")


def _select_answerers(available: dict[str, AnswererFactory], only: list[str] | None) -> dict[str, AnswererFactory]:
    _check_choices("--only", only, list(available))
    return {name: answerer for name, answerer in available.items() if not only or name in only}


async def _score_answerers(
    sheets: dict[str, SqlScoreSheet], selected: dict[str, AnswererFactory], questions: list[EvalQuestion]
) -> None:
    with create_progress(err) as progress:
        for name, answerer in selected.items():
            sheets[name] = SqlScoreSheet()
            task = progress.add_task(name, total=len(questions))
            async for score in score_questions(questions, answerer):
                sheets[name].scores.append(score)
                accuracy = sheets[name].summary()["accuracy"]
                progress.update(task, advance=1, description=f"{name}: {accuracy:g} % correct")
