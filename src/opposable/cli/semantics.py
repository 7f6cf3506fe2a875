"""The commands for semantic models: checked against a database, drafted from one."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from opposable.app.ask import draft_semantics, lint_semantics
from opposable.cli.options import DatabaseOption, JsonOption, err, out
from opposable.cli.rendering import escape_control_characters, style_text, to_json
from opposable.domain.errors import BadInput

cli = typer.Typer(help="Semantic models: what a business's words mean in a database.", no_args_is_help=True)

_SEVERITY_COLORS = {"error": "red", "warning": "yellow", "info": "dim"}


@cli.command("lint")
def lint(
    file: Annotated[Path, typer.Argument(help="The model: short form, Apache Ossie or MetricFlow YAML.")],
    db: DatabaseOption = None,
    json: JsonOption = False,
) -> None:
    """Bind and run every expression of a model on its database, and count what its joins do to rows.

    Exits with 1 when there is an error. Example: opposable semantics lint evals/semantics/chinook/model.yaml --db examples/data/chinook.sqlite
    """
    findings = asyncio.run(lint_semantics(file, _require_database(db)))
    errors = sum(finding.severity == "error" for finding in findings)
    if json:
        told = [
            {"severity": one.severity, "where": one.location, "problem": one.problem, "hint": one.hint}
            for one in findings
        ]
        print(to_json({"errors": errors, "findings": told}))
    else:
        for one in findings:
            hint = f" → {one.hint}" if one.hint else ""
            out.print(
                style_text((one.severity, _SEVERITY_COLORS[one.severity]), f"  {one.location}: {one.problem}{hint}")
            )
        warnings = sum(finding.severity == "warning" for finding in findings)
        out.print(style_text(f"{errors} errors, {warnings} warnings."))
    if errors:
        raise typer.Exit(1)


@cli.command("init")
def init(
    db: DatabaseOption = None,
    file: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write it here; a file that is there stays. Default: print it."),
    ] = None,
) -> None:
    """Draft a model from a database: its joins as the data bears them out, its measures and dimensions.

    Example: opposable semantics init --db examples/data/chinook.sqlite -o model.yaml
    """
    named = _require_database(db)
    if file is not None and file.exists():
        raise BadInput(f"{file} is there already: name another file, or move it away.")
    text = asyncio.run(draft_semantics(named))
    if file is None:
        print(escape_control_characters(text), end="")
        return
    file.write_text(text, encoding="utf-8")
    err.print(
        style_text(f"{file} is written: put in what people call things (synonyms), then lint it."), soft_wrap=True
    )


def _require_database(db: str | None) -> str:
    if not db:
        raise BadInput("Say which database it is of: --db duckdb:///FILE, --db sqlite:///FILE, or --db postgresql://….")
    return db
