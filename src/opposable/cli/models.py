"""The commands on models."""

import asyncio
from typing import Annotated

import typer

from opposable import app
from opposable.cli.options import JsonOption, err, out, read_settings
from opposable.cli.rendering import PullBar, as_json, plain, short, styled, table
from opposable.domain.errors import BadInput
from opposable.models.calling_modes import WAYS, Way
from opposable.models.capability_probe import Mark
from opposable.models.factory import FORMS

cli = typer.Typer(help="Models: which there are, fetch the embedded one, try one.", no_args_is_help=True)


@cli.command("list")
def models_list(json: JsonOption = False) -> None:
    """List the kinds of model, and whether each can be used here now.

    Example: opposable models list --json
    """
    rows = app.model_kinds(read_settings())
    if json:
        print(as_json({"models": [{"model": name, "ready": ready, "note": note} for name, ready, note in rows]}))
        return
    out.print(table(("model", "ready", "note"), [(name, "yes" if ready else "no", note) for name, ready, note in rows]))


@cli.command("pull")
def models_pull(json: JsonOption = False) -> None:
    """Fetch the embedded model (1.1 GB, once); goes on where it was cut and checks the file's SHA-256.

    Example: opposable models pull
    """
    with PullBar(err) as bar:
        path = asyncio.run(app.pull_embedded(read_settings(), bar))
    print(as_json({"path": path})) if json else out.print(styled(f"The embedded model is at {path}"))


@cli.command("check")
def models_check(
    name: Annotated[str, typer.Argument(help=f"Which model: {FORMS}")] = "local",
    way: Annotated[
        list[str] | None,
        typer.Option(
            "--way", help=f"Try only this way: {', '.join(WAYS)}; may be given again. Default: all.", show_default=False
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Try each way of asking a model for calls on a short exam, and remember the best for this model.

    The exit code is 1 when no way gets anything right.

    Example: opposable models check http://127.0.0.1:11434/v1#qwen3
    """

    def told(tried: Way, mark: Mark) -> None:
        line = f"{'✓' if mark.right else '✗'} {tried}, {mark.question.tries}: {short(mark.came)} ({mark.seconds:.1f} s)"
        err.print(plain(line), markup=False, highlight=False)

    unknown = [each for each in way or () if each not in WAYS]
    if unknown:
        raise BadInput(f"There is no way of asking named {unknown[0]!r}; the ways are {', '.join(WAYS)}.")
    ways = [each for each in WAYS if not way or each in way]
    with PullBar(err) as bar:
        marks = asyncio.run(app.check_model(read_settings(), name, ways, bar, None if json else told))
    best = app.best_way(marks)
    passed = any(mark.right for mark in marks[best])
    if json:
        print(as_json({"model": name, "best": best if passed else None, "ways": _marks_as_json(marks)}))
    else:
        rows = [
            (first.question.tries, *("✓" if each[n].right else "✗" for each in marks.values()))
            for n, first in enumerate(marks[best])
        ]
        rows += [
            ("right", *(str(sum(mark.right for mark in each)) for each in marks.values())),
            ("tokens", *(str(sum(mark.tokens for mark in each)) for each in marks.values())),
            ("seconds", *(f"{sum(mark.seconds for mark in each):.1f}" for each in marks.values())),
        ]
        out.print(table(("", *marks), rows))
        out.print(f"Best for {name}: {best}; remembered." if passed else "No way got anything right.", markup=False)
    if not passed:
        raise typer.Exit(1)


def _marks_as_json(marks: dict[Way, list[Mark]]) -> dict[str, list[dict[str, object]]]:
    return {
        tried: [
            {
                "tries": mark.question.tries,
                "right": mark.right,
                "came": mark.came,
                "seconds": round(mark.seconds, 3),
                "tokens": mark.tokens,
            }
            for mark in each
        ]
        for tried, each in marks.items()
    }
