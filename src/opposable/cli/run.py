"""The commands `run` and `ask`, which ask a model."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Annotated, Literal

import typer

from opposable.agent.agent import Agent
from opposable.app.agents import open_agent
from opposable.app.ask import answer_from_run, answer_to_json, open_data_agent, open_data_team
from opposable.app.inputs import validate_task
from opposable.app.media import create_user_message
from opposable.cli.approval import TerminalApprover
from opposable.cli.options import (
    AssistOption,
    DatabaseOption,
    JsonOption,
    ModelOption,
    RootOption,
    ToolOption,
    YesOption,
    err,
    out,
    read_settings,
    read_text,
)
from opposable.cli.rendering import (
    DownloadBar,
    RunPrinter,
    escape_control_characters,
    finished_run_to_json,
    render_chart,
    render_table,
    style_text,
    to_json,
)
from opposable.domain.answers import DataAnswer
from opposable.domain.call_context import CallContext
from opposable.domain.errors import BadInput, ModelError
from opposable.domain.events import DataAnswered, RunFinished, ToolFinished
from opposable.domain.language import Language, detect_language
from opposable.domain.messages import Message, user_message
from opposable.domain.usage import Usage


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
    json: JsonOption = False,
) -> None:
    """Run one task with the built-in tools.

    Asks before it makes a call that needs approval. Without a terminal, such calls are denied and the exit code is 1.

    Example: opposable run "Which errors are in logs/app.log?" --root examples/data/files
    """

    async def run_task() -> None:
        text = validate_task(read_text(task))
        settings = read_settings(root, assist)
        question = await create_user_message(text, image or (), settings.private_hosts)
        with DownloadBar(err, assume_yes=yes) as bar:
            async with open_agent(settings, text, model, tool or (), bar) as agent:
                printer = RunPrinter(err, None if json else out)
                approver = TerminalApprover(err, printer.end_line, assume_yes=yes)
                run_finished, results = await run_and_print(agent, (question,), printer, approver)
        if json:
            print(to_json(finished_run_to_json(run_finished, results)))
        if approver.denied_unasked:
            names = ", ".join(dict.fromkeys(approver.denied_unasked))
            err.print(
                style_text(f"{names} needs approval. Run the command in a terminal, or pass --yes."), soft_wrap=True
            )
            raise typer.Exit(1)

    asyncio.run(run_task())


def ask(
    question: Annotated[str, typer.Argument(help="Question in English or Chinese (- reads standard input)")],
    db: DatabaseOption = None,
    semantics: Annotated[
        Path | None,
        typer.Option("--semantics", help="Semantic model of the database (YAML)"),
    ] = None,
    after: Annotated[
        list[str] | None,
        typer.Option("--after", help="Earlier question, for a follow-up question (repeatable)", show_default=False),
    ] = None,
    use_agent: Annotated[
        bool, typer.Option("--agent", help="Let the model call the SQL tools instead of the team")
    ] = False,
    model: ModelOption = None,
    assist: AssistOption = None,
    yes: YesOption = False,
    json: JsonOption = False,
) -> None:
    """Answer a question about a database.

    Prints a sentence, the SQL, its rows, a chart, the assumptions and the corrections.

    Example: opposable ask "Which country has the most customers?" --db examples/data/chinook.sqlite
    """
    text = validate_task(read_text(question))
    if not db:
        raise BadInput(
            "No database is given. Pass one: --db duckdb:///FILE, --db sqlite:///FILE, --db FILE, "
            "or --db postgresql://USER:PASSWORD@HOST/DATABASE."
        )
    if use_agent and semantics is not None:
        raise BadInput("--semantics and --agent exclude each other. Leave one out.")
    if use_agent and after:
        raise BadInput("--after and --agent exclude each other. Leave one out.")
    answer, usage = asyncio.run(
        _answer_with_agent(text, db, model, assist, DownloadBar(err, assume_yes=yes))
        if use_agent
        else _answer_with_team(
            text, db, str(semantics or ""), model, assist, DownloadBar(err, assume_yes=yes), after or ()
        )
    )
    if json:
        print(to_json(answer_to_json(answer, usage)))
    else:
        _print_answer(answer, detect_language(text))
    if not answer.success:
        raise typer.Exit(1)


async def _answer_with_agent(
    text: str, db: str, model: str | None, assist: Literal["on", "off"] | None, download_bar: DownloadBar
) -> tuple[DataAnswer, Usage]:
    """Answer with an agent that has the SQL tools, and print the trace."""
    with download_bar as bar:
        async with open_data_agent(read_settings(assist=assist), text, db, model, bar) as agent:
            run_finished, results = await run_and_print(agent, (user_message(text),), RunPrinter(err, None))
    return answer_from_run(run_finished, [item.result for item in results], detect_language(text)), run_finished.usage


async def _answer_with_team(
    text: str,
    db: str,
    semantics: str,
    model: str | None,
    assist: Literal["on", "off"] | None,
    download_bar: DownloadBar,
    earlier_questions: Sequence[str],
) -> tuple[DataAnswer, Usage]:
    """Answer with the data team, and print the trace."""
    printer = RunPrinter(err, None)
    with download_bar as bar:
        async with (
            open_data_team(read_settings(assist=assist), db, model, semantics, bar) as team,
            aclosing(team.stream(text, earlier_questions=earlier_questions)) as events,
        ):
            async for event in events:
                printer.show(event)
                if type(event) is DataAnswered:
                    answer = event.answer
                elif type(event) is RunFinished:
                    usage = event.usage
    return answer, usage


async def run_and_print(
    agent: Agent, task: tuple[Message, ...], printer: RunPrinter, approver: TerminalApprover | None = None
) -> tuple[RunFinished, list[ToolFinished]]:
    """Run a task to its end and print its events.

    Raises:
        ModelError: The model returned nothing, as a server that is not a model server often does.
    """
    results: list[ToolFinished] = []
    printer.wait()
    try:
        async with aclosing(agent.stream(task, CallContext(approve=approver))) as events:
            async for event in events:
                if isinstance(event, RunFinished):
                    if not any(message.content or message.tool_calls for message in _get_assistant_messages(event)):
                        break
                    printer.show(event)
                    return event, results
                printer.show(event)
                if isinstance(event, ToolFinished):
                    results.append(event)
    finally:
        printer.end_line()
    raise ModelError(
        f"The model {agent.model.name} returned neither text nor a call. Check that the URL serves a chat model."
    )


def _get_assistant_messages(run_finished: RunFinished) -> list[Message]:
    return [message for message in run_finished.messages if message.role == "assistant"]


_ANSWER_LABELS: dict[Language, tuple[str, str, str, str]] = {
    "en": ("corrected", "assumed", "warning", "more rows are not shown"),
    "zh": ("已更正", "假设", "警告", "还有更多行没有列出"),
}


def _print_answer(answer: DataAnswer, language: Language) -> None:
    corrected, assumed, warning, left_out = _ANSWER_LABELS[language]
    if answer.sql:
        out.print(style_text(("SQL", "bold"), f"  {answer.sql}"))
    for correction in answer.corrections:
        out.print(style_text((corrected, "yellow"), f"  {correction}"))
    for assumption in answer.assumptions:
        out.print(style_text((assumed, "yellow"), f"  {assumption}"))
    for text in answer.warnings:
        out.print(style_text((warning, "yellow"), f"  {text}"))
    if answer.columns:
        out.print(render_table(answer.columns, answer.rows, language=language))
    if answer.chart is not None:
        out.print(render_chart(answer.chart, answer.columns, answer.rows, language=language))
    if answer.truncated:
        out.print(style_text((left_out, "yellow")))
    print(escape_control_characters(answer.text))
