"""The commands on models."""

import asyncio
from typing import Annotated

import typer

from opposable.app.models import check_model as probe_model
from opposable.app.models import list_model_kinds, pull_embedded, select_best_mode
from opposable.cli.options import JsonOption, err, out, read_settings
from opposable.cli.rendering import DownloadBar, escape_control_characters, render_table, shorten, style_text, to_json
from opposable.domain.errors import BadInput
from opposable.models.calling_modes import CALLING_MODES, CallingMode
from opposable.models.capability_probe import ProbeResult
from opposable.models.factory import MODEL_NAME_FORMS

cli = typer.Typer(help="Models: which there are, fetch the embedded one, try one.", no_args_is_help=True)


@cli.command("list")
def list_models(json: JsonOption = False) -> None:
    """List the kinds of model, and whether each can be used here now.

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
    """Fetch the embedded model (1.1 GB, once); goes on where it was cut and checks the file's SHA-256.

    Example: opposable models pull
    """
    with DownloadBar(err) as bar:
        path = asyncio.run(pull_embedded(read_settings(), bar))
    print(to_json({"path": path})) if json else out.print(style_text(f"The embedded model is at {path}"))


@cli.command("check")
def check_model(
    name: Annotated[str, typer.Argument(help=f"Which model: {MODEL_NAME_FORMS}")] = "local",
    modes: Annotated[
        list[str] | None,
        typer.Option(
            "--way",
            help=f"Try only this way: {', '.join(CALLING_MODES)}; may be given again. Default: all.",
            show_default=False,
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Try each way of asking a model for calls on a short exam, and remember the best for this model.

    The exit code is 1 when no way gets anything right.

    Example: opposable models check http://127.0.0.1:11434/v1#qwen3
    """

    def told(tried: CallingMode, mark: ProbeResult) -> None:
        line = f"{'✓' if mark.passed else '✗'} {tried}, {mark.question.capability}: {shorten(mark.actual)} ({mark.seconds:.1f} s)"
        err.print(escape_control_characters(line), markup=False, highlight=False)

    unknown = [each for each in modes or () if each not in CALLING_MODES]
    if unknown:
        raise BadInput(f"There is no way of asking named {unknown[0]!r}; the ways are {', '.join(CALLING_MODES)}.")
    ways = [each for each in CALLING_MODES if not modes or each in modes]
    with DownloadBar(err) as bar:
        marks = asyncio.run(probe_model(read_settings(), name, ways, bar, None if json else told))
    best = select_best_mode(marks)
    passed = any(mark.passed for mark in marks[best])
    if json:
        print(to_json({"model": name, "best": best if passed else None, "ways": _results_to_json(marks)}))
    else:
        rows = [
            (first.question.capability, *("✓" if each[n].passed else "✗" for each in marks.values()))
            for n, first in enumerate(marks[best])
        ]
        rows += [
            ("right", *(str(sum(mark.passed for mark in each)) for each in marks.values())),
            ("tokens", *(str(sum(mark.tokens for mark in each)) for each in marks.values())),
            ("seconds", *(f"{sum(mark.seconds for mark in each):.1f}" for each in marks.values())),
        ]
        out.print(render_table(("", *marks), rows))
        out.print(f"Best for {name}: {best}; remembered." if passed else "No way got anything right.", markup=False)
    if not passed:
        raise typer.Exit(1)


def _results_to_json(results: dict[CallingMode, list[ProbeResult]]) -> dict[str, list[dict[str, object]]]:
    return {
        tried: [
            {
                "tries": mark.question.capability,
                "right": mark.passed,
                "came": mark.actual,
                "seconds": round(mark.seconds, 3),
                "tokens": mark.tokens,
            }
            for mark in each
        ]
        for tried, each in results.items()
    }
