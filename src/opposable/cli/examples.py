"""The commands for confirmed questions: add, list, rm, import."""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from opposable.app.query_examples import add_examples, delete_example, list_examples, read_examples_file
from opposable.cli.errors import run_async
from opposable.cli.help import HelpGroup
from opposable.cli.options import JsonOption, RequiredDatabaseOption, err, out, read_settings
from opposable.cli.rendering import create_progress, render_table, shorten, style_text, to_json
from opposable.domain.records import QueryExample

cli = typer.Typer(cls=HelpGroup, no_args_is_help=True)


@cli.command("add")
def add(
    question: Annotated[str, typer.Argument(help="Question in English or Chinese")],
    sql: Annotated[str, typer.Argument(help="SQL that answers it")],
    db: RequiredDatabaseOption,
    json: JsonOption = False,
) -> None:
    """Store a question with its SQL, as an example for similar questions.

    Example: opposable examples add "How many artists are there?" "SELECT count(*) FROM Artist" --db examples/data/chinook.sqlite
    """
    example = run_async(add_examples(read_settings(), db, [(question, sql)]))[0]
    print(_to_json([example])) if json else out.print(style_text(f"{example.example_id} is stored."))


@cli.command("list")
def list_all(db: RequiredDatabaseOption, json: JsonOption = False) -> None:
    """List the confirmed questions of a database, the latest first.

    Example: opposable examples list --db examples/data/chinook.sqlite
    """
    examples = run_async(list_examples(read_settings(), db))
    if json:
        print(_to_json(examples))
    elif examples:
        rows = [(one.example_id, shorten(one.question), shorten(one.sql)) for one in examples]
        out.print(render_table(("id", "question", "SQL"), rows))
    else:
        out.print(style_text("No example is stored yet."))


@cli.command("rm")
def remove(example_id: Annotated[str, typer.Argument(help="Example id", metavar="ID")]) -> None:
    """Delete a confirmed question.

    Example: opposable examples rm 3fa9c0d1e2b3
    """
    run_async(delete_example(read_settings(), example_id))
    out.print(style_text(f"{example_id} is deleted."))


@cli.command("import")
def import_file(
    file: Annotated[Path, typer.Argument(help="File with a JSON object a line: question, sql")],
    db: RequiredDatabaseOption,
    json: JsonOption = False,
) -> None:
    """Store the questions of a file; nothing is stored if one of them does not run.

    Example: opposable examples import questions.jsonl --db examples/data/chinook.sqlite
    """
    settings, pairs = read_settings(), read_examples_file(file)
    with create_progress(err) if err.is_terminal else nullcontext() as progress:
        checked_pairs = progress.track(pairs, description="examples") if progress else pairs
        examples = run_async(add_examples(settings, db, checked_pairs))
    print(_to_json(examples)) if json else out.print(style_text(f"Stored examples: {len(examples)}."))


def _to_json(examples: Sequence[QueryExample]) -> str:
    return to_json({"examples": [{"id": one.example_id, "question": one.question, "sql": one.sql} for one in examples]})
