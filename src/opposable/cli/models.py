"""The commands for models: list, pull, check."""

import asyncio
from typing import Annotated

import typer
from rich.console import RenderableType

from opposable.app.models import check_model as probe_model
from opposable.app.models import list_model_kinds, pull_embedded, save_model_calling_mode, select_best_mode
from opposable.cli.help import HelpGroup
from opposable.cli.options import JsonOption, YesOption, err, out, read_settings
from opposable.cli.rendering import DownloadBar, escape_control_characters, render_table, shorten, style_text, to_json
from opposable.domain.errors import BadInput
from opposable.models.calling_modes import CALLING_MODES, CallingMode
from opposable.models.capability_probe import ProbeResult

cli = typer.Typer(cls=HelpGroup, help="List models, download the embedded one, test one.", no_args_is_help=True)


@cli.command("list")
def list_models(json: JsonOption = False) -> None:
    """List the kinds of model, and whether each can be used now.

    Example: opposable models list --json
    """
    rows = list_model_kinds(read_settings())
    if json:
        print(to_json({"models": [{"model": name, "ready": ready, "note": note} for name, ready, note in rows]}))
        return
    out.print(
        render_table(("model", "ready", "note"), [(name, "yes" if ready else "no", note) for name, ready, note in rows])
    )


@cli.command("pull")
def pull_model(json: JsonOption = False) -> None:
    """Download the embedded model (1.1 GB, once).

    An interrupted download is resumed, and the SHA-256 of the file is checked.

    Example: opposable models pull
    """
    with DownloadBar(err) as bar:
        path = asyncio.run(pull_embedded(read_settings(), bar))
    print(to_json({"path": path})) if json else out.print(style_text(f"The embedded model is at {path}"))


@cli.command("check")
def check_model(
    name: Annotated[str, typer.Argument(help="Model, see `models list`")] = "local",
    modes: Annotated[
        list[str] | None,
        typer.Option(
            "--way",
            help="Calling mode to test (repeatable) (default: all)",
            show_default=False,
        ),
    ] = None,
    save: Annotated[bool, typer.Option("--save", help="Use the best calling mode for this model from now on")] = False,
    yes: YesOption = False,
    json: JsonOption = False,
) -> None:
    """Test each calling mode of a model with a short exam, and name the best one.

    The model is asked as before until you add --save. The exit code is 1 if no answer is correct.

    Example: opposable models check http://127.0.0.1:11434/v1#qwen3
    """

    def print_result(mode: CallingMode, result: ProbeResult) -> None:
        line = f"{'✓' if result.passed else '✗'} {mode}, {result.question.capability}: {shorten(result.actual)} ({result.seconds:.1f} s)"
        err.print(escape_control_characters(line), markup=False, highlight=False)

    unknown = [mode for mode in modes or () if mode not in CALLING_MODES]
    if unknown:
        raise BadInput(f"There is no calling mode {unknown[0]!r}. Use one of: {', '.join(CALLING_MODES)}.")
    selected = [mode for mode in CALLING_MODES if not modes or mode in modes]
    settings = read_settings()
    with DownloadBar(err, assume_yes=yes) as bar:
        results = asyncio.run(probe_model(settings, name, selected, bar, None if json else print_result))
    best_mode = select_best_mode(name, results)
    passed = any(result.passed for result in results[best_mode])
    if save and passed:
        save_model_calling_mode(settings, name, best_mode)
    if json:
        best = best_mode if passed else None
        print(to_json({"model": name, "best": best, "saved": save and passed, "ways": _results_to_json(results)}))
    else:
        out.print(_render_results(results))
        out.print(
            f"Best for {name}: {best_mode}{'; saved' if save else ' (to use it from now on, add --save)'}."
            if passed
            else "No calling mode gave a correct answer.",
            markup=False,
        )
    if not passed:
        raise typer.Exit(1)


def _render_results(results: dict[CallingMode, list[ProbeResult]]) -> RenderableType:
    """Render a row for each question, and the totals, with a column for each mode."""
    columns = list(results.values())
    rows = [
        (same_question[0].question.capability, *("✓" if result.passed else "✗" for result in same_question))
        for same_question in zip(*columns, strict=True)
    ]
    rows += [
        ("correct", *(str(sum(result.passed for result in column)) for column in columns)),
        ("tokens", *(str(sum(result.tokens for result in column)) for column in columns)),
        ("seconds", *(f"{sum(result.seconds for result in column):.1f}" for column in columns)),
    ]
    return render_table(("", *results), rows)


def _results_to_json(results: dict[CallingMode, list[ProbeResult]]) -> dict[str, list[dict[str, object]]]:
    return {
        mode: [
            {
                "tries": result.question.capability,
                "right": result.passed,
                "came": result.actual,
                "seconds": round(result.seconds, 3),
                "tokens": result.tokens,
            }
            for result in mode_results
        ]
        for mode, mode_results in results.items()
    }
