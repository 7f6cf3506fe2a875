"""The command `doctor`, which checks the installation."""

from dataclasses import asdict

import typer

from opposable.app.diagnosis import Check, diagnose
from opposable.cli.errors import run_async
from opposable.cli.options import JsonOption, ModelOption, out, read_settings
from opposable.cli.rendering import style_text, to_json

_MARKS = {"ok": ("✓", "green"), "note": ("–", "yellow"), "failed": ("✗", "red")}


def doctor(model: ModelOption = None, json: JsonOption = False) -> None:
    """Check the installation: model, keys, store, folders, extras.

    Nothing is downloaded or created. The exit code is 1 if a check fails.

    Example: opposable doctor
    """

    async def collect() -> list[Check]:
        return [check async for check in diagnose(read_settings(), model)]

    checks = run_async(collect())
    if json:
        print(to_json({"checks": [asdict(check) for check in checks]}))
    else:
        for check in checks:
            out.print(style_text(_MARKS[check.state], f" {check.name}: {check.detail}"))
            if check.advice:
                out.print(style_text((f"  → {check.advice}", "bold")))
    if any(check.state == "failed" for check in checks):
        raise typer.Exit(1)
