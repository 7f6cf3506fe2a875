"""The commands `run` and `ask`, which ask a model."""

from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Annotated, Literal

import typer

from opposable.agent.agent import Agent
from opposable.app.agents import open_agent
from opposable.app.ask import answer_from_run, answer_to_json, open_data_agent, open_data_team
from opposable.app.default_store import open_existing_store
from opposable.app.execution_log import open_execution_log
from opposable.app.inputs import validate_task
from opposable.app.media import create_user_message
from opposable.app.query_examples import confirm_last_answer, forget_last_answer, save_last_answer
from opposable.cli.approval import TerminalApprover
from opposable.cli.data_answers import format_csv, print_answer
from opposable.cli.errors import run_async
from opposable.cli.function_files import review_changed_files
from opposable.cli.options import (
    AssistOption,
    DatabaseOption,
    DownloadOption,
    JsonOption,
    ModelOption,
    RootOption,
    ToolOption,
    YesOption,
    err,
    out,
    read_settings,
    read_text,
    redirect_tool_output,
    require_database,
)
from opposable.cli.rendering import (
    DownloadBar,
    RunPrinter,
    finished_run_to_json,
    style_text,
    to_json,
)
from opposable.domain.answers import DataAnswer
from opposable.domain.call_context import CallContext
from opposable.domain.errors import BadInput, ModelError
from opposable.domain.events import DataAnswered, ModelReplied, RunFinished, ToolFinished
from opposable.domain.language import detect_language
from opposable.domain.messages import Message, user_message
from opposable.domain.usage import Usage
from opposable.settings import Settings


def run(
    task: Annotated[str, typer.Argument(help="The task in a sentence (- reads standard input)")],
    model: ModelOption = None,
    assist: AssistOption = None,
    root: RootOption = None,
    tool: ToolOption = None,
    image: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Image or PDF: a file or a URL (repeatable)", show_default=False),
    ] = None,
    yes: YesOption = False,
    download: DownloadOption = False,
    json: JsonOption = False,
) -> None:
    """Run one task with the built-in tools.

    Asks before it makes a call that needs approval. Without a terminal, such calls are denied and the exit code is 1.
    It is also 1 if the run ends at a limit, without an answer, or with one that was cut off.

    Example: opposable run "Which errors are in logs/app.log?" --root examples/data/files
    """
    review_changed_files()

    async def run_task() -> None:
        text = validate_task(read_text(task))
        settings = read_settings(root, assist)
        question = await create_user_message(text, image or (), settings.private_hosts)
        with DownloadBar(err, allow_download=download) as bar:
            async with open_agent(settings, text, model, tool or (), bar) as agent:
                printer = RunPrinter(err, None if json else out)
                approver = TerminalApprover(err, printer.end_line, assume_yes=yes)
                run_finished, results = await run_and_print(settings, agent, (question,), printer, approver)
        if json:
            print(to_json(finished_run_to_json(run_finished, results)))
        if approver.denied_unasked:
            names = ", ".join(dict.fromkeys(approver.denied_unasked))
            err.print(style_text(f"{names} needs approval. Run the command in a terminal, or pass --yes."))
            raise typer.Exit(1)
        if run_finished.reason != "answer":
            raise typer.Exit(1)

    run_async(run_task())


def ask(
    question: Annotated[
        str | None, typer.Argument(help="Question in English or Chinese (- reads standard input)", show_default=False)
    ] = None,
    db: DatabaseOption = None,
    semantics: Annotated[
        Path | None,
        typer.Option("--semantics", help="Semantic model of the database (YAML)"),
    ] = None,
    after: Annotated[
        list[str] | None,
        typer.Option("--after", help="Earlier question, for a follow-up question (repeatable)", show_default=False),
    ] = None,
    good: Annotated[
        bool, typer.Option("--good", help="Confirm the last answer as an example for similar questions")
    ] = False,
    use_agent: Annotated[
        bool, typer.Option("--agent", help="Let the model call the SQL tools instead of the team")
    ] = False,
    model: ModelOption = None,
    assist: AssistOption = None,
    download: DownloadOption = False,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="Rows to print, up to 1000 (default: 50; all with --csv)", show_default=False),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show each step of the work")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the rows as CSV on standard output")] = False,
    json: JsonOption = False,
) -> None:
    """Answer a question about a database.

    Prints a sentence, the SQL, its rows, a chart, the assumptions and the corrections.

    Example: opposable ask "Which country has the most customers?" --db examples/data/chinook.sqlite
    """
    if good:
        example = run_async(confirm_last_answer(read_settings()))
        out.print(style_text(f"{example.example_id} is stored: {example.question}"))
        return
    if question is None:
        raise BadInput("No question is given. Pass one: opposable ask QUESTION --db DATABASE.")
    text = validate_task(read_text(question), is_question=True)
    db = require_database(db)
    if use_agent and semantics is not None:
        raise BadInput("--semantics and --agent exclude each other. Leave one out.")
    if use_agent and after:
        raise BadInput("--after and --agent exclude each other. Leave one out.")
    if as_csv and json:
        raise BadInput("--csv and --json exclude each other. Leave one out.")
    bar, printer = DownloadBar(err, allow_download=download), RunPrinter(err, None, is_quiet=not verbose)
    answer, usage = run_async(
        _answer_with_agent(text, db, model, assist, bar, printer)
        if use_agent
        else _answer_with_team(text, db, str(semantics or ""), model, assist, bar, printer, after or ())
    )
    if json:
        print(to_json(answer_to_json(answer, usage)))
    elif as_csv:
        print(format_csv(answer, limit), end="")
        err.print(style_text(answer.text))
    else:
        print_answer(out, answer, detect_language(text), limit or 50)
    if not answer.success:
        raise typer.Exit(1)


async def _answer_with_agent(
    text: str,
    db: str,
    model: str | None,
    assist: Literal["on", "off"] | None,
    download_bar: DownloadBar,
    printer: RunPrinter,
) -> tuple[DataAnswer, Usage]:
    """Answer with an agent that has the SQL tools, and print the trace."""
    settings = read_settings(assist=assist)
    with download_bar as bar:
        async with open_data_agent(settings, text, db, model, bar) as agent:
            run_finished, results = await run_and_print(settings, agent, (user_message(text),), printer)
    forget_last_answer(settings)
    return answer_from_run(run_finished, [item.result for item in results], detect_language(text)), run_finished.usage


async def _answer_with_team(
    text: str,
    db: str,
    semantics: str,
    model: str | None,
    assist: Literal["on", "off"] | None,
    download_bar: DownloadBar,
    printer: RunPrinter,
    earlier_questions: Sequence[str],
) -> tuple[DataAnswer, Usage]:
    """Answer with the data team, and print the trace."""
    settings = read_settings(assist=assist)
    with download_bar as bar, printer:
        async with (
            open_data_team(settings, db, model, semantics, bar) as team,
            aclosing(team.stream(text, earlier_questions=earlier_questions)) as events,
        ):
            printer.wait()
            async for event in events:
                printer.show(event)
                if type(event) is DataAnswered:
                    answer = event.answer
                elif type(event) is RunFinished:
                    usage = event.usage
        if earlier_questions:
            forget_last_answer(settings)
        else:
            save_last_answer(settings, team.database.identity, text, answer)
    return answer, usage


async def run_and_print(
    settings: Settings,
    agent: Agent,
    task: tuple[Message, ...],
    printer: RunPrinter,
    approver: TerminalApprover | None = None,
) -> tuple[RunFinished, list[ToolFinished]]:
    """Run a task to its end and print its events. Its calls are recorded if a store exists.

    Raises:
        ModelError: The model returned nothing, as a server that is not a model server often does.
    """
    results: list[ToolFinished] = []
    has_reply = False
    with redirect_tool_output(), printer:
        printer.wait()
        async with (
            open_existing_store(settings) as store,
            open_execution_log(store, agent.library) as record_call,
            aclosing(agent.stream(task, CallContext(approve=approver))) as events,
        ):
            async for event in events:
                if isinstance(event, ModelReplied):
                    has_reply = has_reply or bool(event.message.content or event.message.tool_calls)
                if isinstance(event, RunFinished):
                    if not has_reply and event.reason != "time":
                        break
                    printer.show(event)
                    return event, results
                printer.show(event)
                if isinstance(event, ToolFinished):
                    results.append(event)
                    record_call(event.call.name, event.call.arguments, event.result)
    raise ModelError(
        f"The model {agent.model.name} returned neither text nor a call. Check that the URL serves a chat model."
    )
