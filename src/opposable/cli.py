"""The command line: one task, a conversation, a question to a database, tools and models."""

import asyncio
import contextlib
import sys
from contextlib import aclosing
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from pydantic import ValidationError
from pydantic_settings import SettingsError
from rich.console import Console

from opposable import app, exits
from opposable.agent.agent import Agent
from opposable.domain.errors import BadInput, ModelError, OpposableError
from opposable.domain.events import RunFinished, ToolFinished
from opposable.domain.messages import Message, user
from opposable.models.build import FORMS
from opposable.models.exam import Mark
from opposable.models.ways import WAYS, Way
from opposable.settings import Settings
from opposable.terminal import PullBar, Trace, as_json, end_as_json, plain, result_as_json, short, styled, table

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
        with PullBar(err) as bar:
            async with app.agent(_settings(root), text, model, tool or (), bar) as agent:
                end, results = await _follow(agent, (user(text),), Trace(err, None if json else out))
        if json:
            print(as_json(end_as_json(end, results)))

    asyncio.run(work())


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
        with PullBar(err) as bar:
            async with app.data_agent(_settings(), text, db, model, bar) as agent:
                end, results = await _follow(agent, (user(text),), Trace(err, None))
        answer = app.answer(end, [item.result for item in results])
        if json:
            print(as_json(app.answer_as_json(answer)))
            return
        _show_answer(answer)

    asyncio.run(work())


@cli.command()
def serve(
    model: ModelOption = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 takes a free one.")] = 8000,
    api_key_env: Annotated[
        str, typer.Option(metavar="NAME", help="The environment variable with the key that clients must bear.")
    ] = "OPPOSABLE_SERVE_KEY",
) -> None:
    """Serve a model to any OpenAI client, with tool calls that work, until Ctrl-C.

    Example: opposable serve --model local
    """
    from opposable.web import server

    async def work() -> None:
        settings = _settings()
        key = server.key_from(api_key_env)
        server.checked(host, key)
        with PullBar(err) as bar:
            opened = await app.ready_model(settings, model, bar)
        names = server.names_of(model or settings.model, opened)
        try:
            service = server.create_app(dict.fromkeys(names, opened), api_key=key)
            await server.serve(service, host, port, lambda url: err.print(styled(f"{names[0]} is served at {url}")))
        finally:
            await opened.aclose()
        err.print("Stopped.")

    with asyncio.Runner(loop_factory=server.new_loop()) as runner:
        runner.run(work())


@cli.command()
def chat(
    model: ModelOption = None, root: RootOption = None, tool: ToolOption = None, db: DatabaseOption = None
) -> None:
    """Talk with the model in the terminal, with each call shown as it happens.

    Ctrl-C stops the answer being written and forgets its question; Ctrl-D or /exit ends the conversation.

    Example: opposable chat --db examples/data/chinook.sqlite
    """
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 - line editing and history at the prompt
    settings = _settings(root)
    history: list[Message] = []
    # One event loop for all of it; each answer is a run of its own, which Ctrl-C stops.
    with asyncio.Runner() as runner, PullBar(err) as bar:
        opening = app.chat_agent(settings, model, tool or (), db, bar)
        agent = runner.run(opening.__aenter__())
        told = f"{agent.model.name} · {len(agent.library.names)} tools · Ctrl-C stops an answer, Ctrl-D ends"
        err.print(styled((told, "dim")), soft_wrap=True)
        try:
            while (said := _prompt()) is not None:
                if said.strip():
                    _answer(runner, agent, history, said)
        finally:
            runner.run(opening.__aexit__(None, None, None))


@tools_cli.command("list")
def tools_list(root: RootOption = None, db: DatabaseOption = None, json: JsonOption = False) -> None:
    """List the tools, a line each; with --db those over a database too.

    Example: opposable tools list --db examples/data/chinook.sqlite
    """

    async def work() -> None:
        async with app.tools(_settings(root), db) as library:
            rows = [(tool.tool_id, tool.definition.name, tool.definition.description) for tool in library.tools]
        if json:
            print(as_json({"tools": [{"tool_id": r[0], "name": r[1], "description": r[2]} for r in rows]}))
            return
        out.print(table(("tool", "what it does"), [(r[0], r[2].partition(". ")[0]) for r in rows], most=1000))

    asyncio.run(work())


@tools_cli.command("show")
def tools_show(
    name: Annotated[str, typer.Argument(help="The tool's name.")], db: DatabaseOption = None, json: JsonOption = False
) -> None:
    """Show what a model is told of a tool: its name, description and parameters.

    Example: opposable tools show calculator
    """

    async def work() -> None:
        async with app.tools(_settings(), db) as library:
            definition = app.found(library, name).definition
        told = {"name": definition.name, "description": definition.description, "parameters": definition.parameters}
        print(as_json(told)) if json else out.print_json(as_json(told))

    asyncio.run(work())


@tools_cli.command("call")
def tools_call(
    name: Annotated[str, typer.Argument(help="The tool's name.")],
    arguments: Annotated[
        str, typer.Argument(help="The arguments as a JSON object; - reads it from standard input.")
    ] = "{}",
    root: RootOption = None,
    db: DatabaseOption = None,
    json: JsonOption = False,
) -> None:
    """Call a tool yourself. The exit code is 1 when the tool fails.

    Example: opposable tools call calculator '{"expression": "17 * 23"}'
    """

    async def work() -> None:
        given = _arguments(_text(arguments))
        async with app.tools(_settings(root), db) as library:
            tool = app.found(library, name)
            result = await library.call(tool.definition.name, given)
        if json:
            print(as_json(result_as_json(result)))
        elif result.failure is None:
            print(plain(result.content))
        else:
            err.print(styled((result.failure, "red"), f": {result.content}"), soft_wrap=True)
        if result.failure is not None:
            raise typer.Exit(1)

    asyncio.run(work())


@models_cli.command("list")
def models_list(json: JsonOption = False) -> None:
    """List the kinds of model, and whether each can be used here now.

    Example: opposable models list --json
    """
    rows = app.model_kinds(_settings())
    if json:
        print(as_json({"models": [{"model": name, "ready": ready, "note": note} for name, ready, note in rows]}))
        return
    out.print(table(("model", "ready", "note"), [(name, "yes" if ready else "no", note) for name, ready, note in rows]))


@models_cli.command("pull")
def models_pull(json: JsonOption = False) -> None:
    """Fetch the embedded model (1.1 GB, once); goes on where it was cut and checks the file's SHA-256.

    Example: opposable models pull
    """
    with PullBar(err) as bar:
        path = asyncio.run(app.pull_embedded(_settings(), bar))
    print(as_json({"path": path})) if json else out.print(styled(f"The embedded model is at {path}"))


@models_cli.command("check")
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
        marks = asyncio.run(app.check_model(_settings(), name, ways, bar, None if json else told))
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


def main() -> None:
    """Run the command line. Whatever goes wrong ends in one sentence and a non-zero exit."""
    exits.end(lambda: int(cli(standalone_mode=False) or 0), err)


async def _follow(agent: Agent, task: tuple[Message, ...], shown: Trace) -> tuple[RunFinished, list[ToolFinished]]:
    """Run a task to its end and show what happens.

    Raises: `ModelError` when the model gave nothing at all: what is no model server often answers so.
    """
    results: list[ToolFinished] = []
    try:
        async with aclosing(agent.stream(task)) as events:
            async for event in events:
                if isinstance(event, RunFinished):
                    if not any(message.content or message.tool_calls for message in _said(event)):
                        break
                    shown.show(event)
                    return event, results
                shown.show(event)
                if isinstance(event, ToolFinished):
                    results.append(event)
    finally:
        shown.end_line()
    raise ModelError(
        f"The model {agent.model.name} gave neither an answer nor a call: is it a chat model, at this URL?"
    )


def _said(end: RunFinished) -> list[Message]:
    return [message for message in end.messages if message.role == "assistant"]


def _answer(runner: asyncio.Runner, agent: Agent, history: list[Message], said: str) -> None:
    """Answer what was said and remember both; errors are told and end nothing."""
    try:
        asked = user(app.task(said))
        end, _ = runner.run(_follow(agent, (*history, asked), Trace(err, out)))
        history += [asked, *end.messages]
    except KeyboardInterrupt:
        err.print(styled(("stopped", "yellow")))
    except OpposableError as error:
        exits.tell(error, err)


def _prompt() -> str | None:
    """The next thing the user says, None at the end."""
    while sys.stdin is not None:
        try:
            said = input("> " if sys.stdin.isatty() else "")
        except EOFError:
            return None
        except KeyboardInterrupt:
            err.print(styled(("\n(Ctrl-D ends the conversation)", "dim")))
            continue
        return None if said.strip() in ("/exit", "/quit") else said
    return None


def _show_answer(answer: app.Answer) -> None:
    if answer.sql:
        out.print(styled(("SQL", "bold"), f"  {answer.sql}"))
    for correction in answer.corrections:
        out.print(styled(("corrected", "yellow"), f"  {correction}"))
    if answer.columns:
        out.print(table(answer.columns, answer.rows))
    if answer.truncated:
        out.print(styled(("more rows were left out", "yellow")))
    print(plain(answer.text))


def _settings(root: list[Path] | None = None) -> Settings:
    try:
        settings = Settings()
    except ValidationError as error:
        first = error.errors()[0]
        name = "OPPOSABLE_" + "_".join(str(step) for step in first["loc"]).upper()
        raise BadInput(f"The setting {name} is wrong: {first['msg']} (given: {first['input']!r}).") from error
    except SettingsError as error:
        raise BadInput(f'A setting is wrong ({error}); lists are written as JSON, like ["docs", "logs"].') from error
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"The file .env in this folder cannot be read: {short(str(error))}.") from error
    if not root:
        return settings
    for folder in root:
        if not folder.is_dir():
            raise BadInput(f"There is no folder {folder}; --root takes a folder that exists.")
    return settings.model_copy(update={"roots": tuple(root)})


def _text(given: str) -> str:
    """What was given, or standard input for a dash. Raises: `BadInput`."""
    if given != "-":
        return given
    if sys.stdin is None:
        raise BadInput("Standard input is closed, so - has nothing to read.")
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"Standard input is no UTF-8 text (its byte {error.start + 1} is wrong).") from error


def _arguments(text: str) -> dict[str, Any]:
    try:
        value = orjson.loads(text.encode("utf-8", "replace"))
    except orjson.JSONDecodeError as error:
        raise BadInput(f'The arguments are no JSON ({error}); give an object like \'{{"text": "hello"}}\'.') from error
    if not isinstance(value, dict):
        raise BadInput('The arguments must be a JSON object like \'{"text": "hello"}\'.')
    return value
