"""The command line: one task, a conversation, a question to a database, tools and models."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Coroutine, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from pydantic import ValidationError
from rich.console import Console
from rich.markup import escape

from opposable import app
from opposable.agent.agent import Agent
from opposable.domain.errors import BadInput, OpposableError
from opposable.domain.events import RunFinished, ToolFinished
from opposable.domain.messages import Message, user
from opposable.models.build import FORMS
from opposable.settings import Settings
from opposable.terminal import PullBar, Trace, as_json, end_as_json, short, table

out = Console(soft_wrap=True)
err = Console(stderr=True)

cli = typer.Typer(
    name="opposable",
    help="Tool use for any model. Try: opposable run 'What is 17 * 23?'",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
tools_cli = typer.Typer(help="The tools there are: list them, look at one, call one yourself.", no_args_is_help=True)
models_cli = typer.Typer(help="Models: which there are, fetch the embedded one, try one.", no_args_is_help=True)
cli.add_typer(tools_cli, name="tools")
cli.add_typer(models_cli, name="models")

ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model", "-m", help=f"Which model: {FORMS}. Default: OPPOSABLE_MODEL, else local.", show_default=False
    ),
]
RootOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--root", help="A folder the file tools may read; may be given again. Default: this folder.", show_default=False
    ),
]
ToolOption = Annotated[
    list[str] | None,
    typer.Option("--tool", "-t", help="Offer only this tool; may be given again. Default: all.", show_default=False),
]
DatabaseOption = Annotated[
    str | None,
    typer.Option("--db", help="A database: duckdb:///FILE, sqlite:///FILE, or just FILE.", show_default=False),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else on standard output.")]


@cli.command()
def run(
    task: Annotated[str, typer.Argument(help="What to do, in a sentence; - reads it from standard input.")],
    model: ModelOption = None,
    root: RootOption = None,
    tool: ToolOption = None,
    json: JsonOption = False,
) -> None:
    """Do one task with the built-in tools.

    Example: opposable run "Which errors are in logs/app.log?" --root examples/data/files
    """

    async def work() -> None:
        text = app.task(_text(task))
        async with app.agent(_settings(root), text, model, tool or (), PullBar(err)) as agent:
            end, results = await _follow(agent, (user(text),), quiet=json)
        if json:
            print(as_json(end_as_json(end, results)))

    _do(work(), json)


@cli.command()
def ask(
    question: Annotated[
        str, typer.Argument(help="A question about the data, in English or Chinese; - reads it from standard input.")
    ],
    db: DatabaseOption = None,
    model: ModelOption = None,
    json: JsonOption = False,
) -> None:
    """Answer a question about a database, with the SQL and its rows.

    Example: opposable ask "Which country has the most customers?" --db examples/data/chinook.sqlite
    """

    async def work() -> None:
        text = app.task(_text(question))
        if not db:
            raise BadInput("Say which database to ask: --db duckdb:///FILE, --db sqlite:///FILE, or just --db FILE.")
        async with app.data_agent(_settings(), text, db, model, PullBar(err)) as agent:
            end, results = await _follow(agent, (user(text),), quiet=True, trace=not json)
        answer = app.answer(end, [item.result for item in results])
        if json:
            print(as_json(app.answer_as_json(answer)))
            return
        _show_answer(answer)

    _do(work(), json)


@cli.command()
def chat(
    model: ModelOption = None, root: RootOption = None, tool: ToolOption = None, db: DatabaseOption = None
) -> None:
    """Talk with the model in the terminal, with each call shown as it happens.

    Ctrl-C stops the answer being written and keeps the conversation; Ctrl-D or /exit ends it.
    """
    _guarded(lambda: _chat(model, root, tool, db))


@tools_cli.command("list")
def tools_list(root: RootOption = None, db: DatabaseOption = None, json: JsonOption = False) -> None:
    """List the tools, a line each; with --db those over a database too."""

    async def work() -> None:
        async with app.tools(_settings(root), db) as library:
            rows = [(tool.tool_id, tool.definition.name, tool.definition.description) for tool in library.tools]
        if json:
            print(as_json([{"tool_id": r[0], "name": r[1], "description": r[2]} for r in rows]))
            return
        out.print(table(("tool", "what it does"), [(r[0], r[2].partition(". ")[0]) for r in rows], most=1000))

    _do(work(), json)


@tools_cli.command("show")
def tools_show(name: str, db: DatabaseOption = None, json: JsonOption = False) -> None:
    """Show what a model is told of a tool: its name, description and parameters."""

    async def work() -> None:
        async with app.tools(_settings(), db) as library:
            definition = app.found(library, name).definition
        told = {"name": definition.name, "description": definition.description, "parameters": definition.parameters}
        print(as_json(told)) if json else out.print_json(as_json(told))

    _do(work(), json)


@tools_cli.command("call")
def tools_call(
    name: str,
    arguments: Annotated[
        str, typer.Argument(help="The arguments as a JSON object; - reads it from standard input.")
    ] = "{}",
    root: RootOption = None,
    db: DatabaseOption = None,
    json: JsonOption = False,
) -> None:
    """Call a tool yourself.

    Example: opposable tools call calculator '{"expression": "17 * 23"}'
    """

    async def work() -> None:
        given = _arguments(_text(arguments))
        async with app.tools(_settings(root), db) as library:
            tool = app.found(library, name)
            result = await library.call(tool.definition.name, given)
        if json:
            print(
                as_json(
                    {
                        "content": result.content,
                        "failure": result.failure,
                        "data": result.data,
                        "cut": result.cut,
                        "seconds": round(result.seconds, 4),
                    }
                )
            )
        elif result.failure is None:
            print(result.content)
        if result.failure is not None:
            if not json:
                err.print(f"[red]{result.failure}[/]: {escape(result.content)}", highlight=False)
            raise typer.Exit(1)

    _do(work(), json)


@models_cli.command("list")
def models_list(json: JsonOption = False) -> None:
    """List the kinds of model, and whether each can be used here now."""

    async def work() -> None:
        rows = app.model_kinds(_settings())
        if json:
            print(as_json([{"model": name, "ready": ready, "note": note} for name, ready, note in rows]))
            return
        out.print(
            table(("model", "ready", "note"), [(name, "yes" if ready else "no", note) for name, ready, note in rows])
        )

    _do(work(), json)


@models_cli.command("pull")
def models_pull(json: JsonOption = False) -> None:
    """Fetch the embedded model (1.1 GB, once); goes on where it was cut and checks the file's SHA-256."""

    async def work() -> None:
        bar = PullBar(err)
        try:
            path = await app.pull_embedded(_settings(), bar)
        finally:
            bar.stop()
        print(as_json({"path": path})) if json else out.print(f"The embedded model is at {path}", highlight=False)

    _do(work(), json)


@models_cli.command("check")
def models_check(
    name: Annotated[str, typer.Argument(help=f"Which model: {FORMS}")] = "local", json: JsonOption = False
) -> None:
    """Try a model: a plain answer, one call, and the right answer from its result."""

    async def work() -> None:
        rows = await app.check_model(_settings(), name, PullBar(err))
        if json:
            print(as_json([{"check": what, "passed": passed, "note": note} for what, passed, note in rows]))
        else:
            out.print(
                table(
                    ("check", "passed", "note"),
                    [(what, "yes" if passed else "no", short(note)) for what, passed, note in rows],
                )
            )
        if not all(passed for _, passed, _ in rows):
            raise typer.Exit(1)

    _do(work(), json)


def main() -> None:
    """Run the command line. Whatever goes wrong ends in one sentence and a non-zero exit."""
    cli()


async def _follow(
    agent: Agent, task: Sequence[Message], *, quiet: bool, trace: bool = True
) -> tuple[RunFinished, list[ToolFinished]]:
    """Run a task to its end with its trace on standard error, and its answer on standard output unless `quiet`."""
    shown = Trace(err, None if quiet else out)
    results: list[ToolFinished] = []
    async with aclosing(agent.stream(task)) as events:
        async for event in events:
            if trace and not (quiet and isinstance(event, RunFinished)):
                shown.show(event)
            if isinstance(event, ToolFinished):
                results.append(event)
            if isinstance(event, RunFinished):
                return event, results
    raise OpposableError("The run ended without an end.")


def _chat(model: str | None, root: list[Path] | None, tool: list[str] | None, db: str | None) -> None:
    """A conversation: one event loop for all of it, each answer a run of its own that Ctrl-C stops."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 - line editing and history at the prompt
    settings = _settings(root)
    history: list[Message] = []
    with asyncio.Runner() as runner:
        opening = app.chat_agent(settings, model, tool or (), db, PullBar(err))
        agent = runner.run(opening.__aenter__())
        try:
            err.print(
                f"[dim]{escape(agent.model.name)} · {len(agent.library.names)} tools · Ctrl-C stops an answer, Ctrl-D ends[/]"
            )
            while (said := _prompt()) is not None:
                if not said.strip():
                    continue
                asked = user(app.task(said))
                try:
                    end, _ = runner.run(_follow(agent, (*history, asked), quiet=False))
                    history += [asked, *end.messages]
                except KeyboardInterrupt:
                    err.print("[yellow]stopped[/]")
                except OpposableError as error:
                    err.print(f"[red]{escape(str(error))}[/]", highlight=False)
        finally:
            runner.run(opening.__aexit__(None, None, None))


def _prompt() -> str | None:
    """The next thing the user says, None at the end."""
    while True:
        try:
            said = input("> ")
        except EOFError:
            return None
        except KeyboardInterrupt:
            err.print("[dim](Ctrl-D ends the conversation)[/]")
            continue
        return None if said.strip() in ("/exit", "/quit") else said


def _show_answer(answer: app.Answer) -> None:
    if answer.sql:
        out.print(f"[bold]SQL[/]  {escape(answer.sql)}", highlight=False)
    for correction in answer.corrections:
        out.print(f"[yellow]corrected[/]  {escape(correction)}", highlight=False)
    if answer.columns:
        out.print(table(answer.columns, answer.rows))
    if answer.truncated:
        out.print("[yellow]more rows were left out[/]")
    out.print(answer.text, markup=False, highlight=False)


def _settings(root: list[Path] | None = None) -> Settings:
    try:
        settings = Settings()
    except ValidationError as error:
        first = error.errors()[0]
        name = "OPPOSABLE_" + "_".join(str(step) for step in first["loc"]).upper()
        raise BadInput(f"The setting {name} is wrong: {first['msg']} (given: {first['input']!r}).") from error
    if root:
        for folder in root:
            if not folder.is_dir():
                raise BadInput(f"There is no folder {folder}; --root takes a folder that exists.")
        settings = settings.model_copy(update={"roots": tuple(root)})
    return settings


def _text(given: str) -> str:
    return sys.stdin.read() if given == "-" else given


def _arguments(text: str) -> dict[str, Any]:
    try:
        value = orjson.loads(text.encode("utf-8", "replace"))
    except orjson.JSONDecodeError as error:
        raise BadInput(f'The arguments are no JSON ({error}); give an object like \'{{"text": "hello"}}\'.') from error
    if not isinstance(value, dict):
        raise BadInput('The arguments must be a JSON object like \'{"text": "hello"}\'.')
    return value


def _do(work: Coroutine[Any, Any, None], json: bool = False) -> None:
    """Run a command; errors become one sentence on standard error (or one JSON object) and a non-zero exit."""
    _guarded(lambda: asyncio.run(work), json)


def _guarded(command: Any, json: bool = False) -> None:
    try:
        command()
    except KeyboardInterrupt:
        err.print("[yellow]Stopped.[/]")
        raise typer.Exit(130) from None
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(141) from None
    except OpposableError as error:
        if json:
            print(as_json({"error": {"kind": type(error).__name__, "message": str(error)}}))
        else:
            err.print(f"[red]Error:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        raise typer.Exit(2 if isinstance(error, BadInput) else 1) from None
