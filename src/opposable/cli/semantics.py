"""The commands for semantic models: lint and init."""

from pathlib import Path
from typing import Annotated

import typer

from opposable.app.ask import draft_semantics, lint_semantics
from opposable.cli.errors import run_async
from opposable.cli.help import HelpGroup
from opposable.cli.options import DatabaseOption, JsonOption, err, out, require_database, require_new_file, write_file
from opposable.cli.rendering import style_text, to_json, write_text

cli = typer.Typer(cls=HelpGroup, no_args_is_help=True)

_SEVERITY_COLORS = {"error": "red", "warning": "yellow", "info": "dim"}


@cli.command("lint")
def lint(
    file: Annotated[Path, typer.Argument(help="Semantic model: short form, Apache Ossie or MetricFlow")],
    db: DatabaseOption = None,
    json: JsonOption = False,
) -> None:
    """Check every expression and join of a semantic model on its database.

    The exit code is 1 if there is an error.

    Example: opposable semantics lint evals/semantics/chinook/model.yaml --db examples/data/chinook.sqlite
    """
    findings = run_async(lint_semantics(file, require_database(db)))
    errors = sum(finding.severity == "error" for finding in findings)
    if json:
        forms = [
            {"severity": finding.severity, "where": finding.location, "problem": finding.problem, "hint": finding.hint}
            for finding in findings
        ]
        print(to_json({"errors": errors, "findings": forms}))
    else:
        for finding in findings:
            hint = f" → {finding.hint}" if finding.hint else ""
            out.print(
                style_text(
                    (finding.severity, _SEVERITY_COLORS[finding.severity]),
                    f"  {finding.location}: {finding.problem}{hint}",
                )
            )
        warnings = sum(finding.severity == "warning" for finding in findings)
        counts = ((errors, "error"), (warnings, "warning"))
        out.print(style_text(", ".join(f"{number} {noun}{'' if number == 1 else 's'}" for number, noun in counts), "."))
    if errors:
        raise typer.Exit(1)


@cli.command("init")
def init(
    db: DatabaseOption = None,
    file: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="New output file (default: standard output)"),
    ] = None,
) -> None:
    """Draft a semantic model from a database: joins, measures and dimensions.

    Example: opposable semantics init --db examples/data/chinook.sqlite -o model.yaml
    """
    database = require_database(db)
    if file is not None:
        require_new_file(file)
    text = run_async(draft_semantics(database))
    if file is None:
        write_text(out, text)
        return
    write_file(file, text)
    command = f"opposable semantics lint {file} --db DATABASE"
    err.print(style_text(f"{file} is written. Add synonyms, then check it: {command}"))
