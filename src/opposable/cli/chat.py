"""The command `chat`: a conversation in the terminal."""

import asyncio
import contextlib
import inspect
import sys
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from opposable.agent.agent import Agent
from opposable.app.agents import open_chat_agent
from opposable.app.default_store import state_directory
from opposable.app.inputs import validate_task
from opposable.app.private_files import write_private_file
from opposable.cli import errors
from opposable.cli.approval import TerminalApprover
from opposable.cli.function_files import review_changed_files
from opposable.cli.options import (
    AssistOption,
    DatabaseOption,
    DownloadOption,
    ModelOption,
    RootOption,
    ToolOption,
    YesOption,
    err,
    out,
    read_settings,
)
from opposable.cli.rendering import DownloadBar, RunPrinter, render_table, style_text, to_json
from opposable.cli.run import run_and_print
from opposable.domain.errors import BadInput, OpposableError
from opposable.domain.json_forms import message_from_json, message_to_json
from opposable.domain.messages import Message, user_message
from opposable.safety.filesystem.drafts import open_draft
from opposable.settings import Settings

HELP = """\
/help         show this help
/tools        list the tools
/model NAME   go on with another model (without NAME: show the current one)
/new          begin a new conversation
/save FILE    save the conversation as Markdown, or in a .json file as JSON
/load FILE    go on with a conversation that was saved as JSON
/exit         end (also Ctrl-D)
End a line with \\ to continue on the next line. Or write between \"\"\" and \"\"\".
Pasted lines are one message."""

LONG_TEXT_MARK = '"""'


def chat(
    model: ModelOption = None,
    assist: AssistOption = None,
    root: RootOption = None,
    tool: ToolOption = None,
    db: DatabaseOption = None,
    system: Annotated[str, typer.Option("--system", help="Instructions for the model", show_default=False)] = "",
    resume: Annotated[bool, typer.Option("--continue", "-c", help="Continue the last conversation")] = False,
    yes: YesOption = False,
    download: DownloadOption = False,
) -> None:
    """Chat with a model in the terminal.

    Each call is shown as it happens. /help lists the commands. Ctrl-C stops the current answer and drops its question.
    Ctrl-D or /exit ends the conversation, and so does a second Ctrl-C while a tool does not stop.

    Example: opposable chat --db examples/data/chinook.sqlite
    """
    _enable_line_editing()
    review_changed_files()
    settings = read_settings(root, assist)
    history = load_last_conversation(settings) if resume else []
    # One event loop for the whole chat; each answer is a separate run that Ctrl-C stops.
    with asyncio.Runner() as runner, DownloadBar(err, allow_download=download) as bar:
        session = _Session(runner, settings, model, tool or [], db, system, bar, assume_yes=yes)
        session.history = history
        try:
            session.print_banner()
            while (text := _read_message()) is not None:
                if text.strip() and not session.answer(text):
                    return
        finally:
            session.close()


class _Session:
    """A conversation with the agent that answers it."""

    def __init__(
        self,
        runner: asyncio.Runner,
        settings: Settings,
        model: str | None,
        tools: list[str],
        database: str | None,
        instructions: str,
        bar: DownloadBar,
        *,
        assume_yes: bool,
    ) -> None:
        self.history: list[Message] = []
        self._saved_paths: set[Path] = set()
        self._is_answering = False
        self._runner = runner
        self._settings = settings
        self._tools = tools
        self._database = database
        self._instructions = instructions
        self._bar = bar
        self._assume_yes = assume_yes
        self._opening, self._agent = self._open_agent(model)

    def print_banner(self) -> None:
        """Print the model, the number of tools, and how to end."""
        banner = f"{self._agent.model.name} · {len(self._agent.library.names)} tools · "
        earlier = f"{len(self.history)} earlier messages · " if self.history else ""
        text = f"{banner}{earlier}/help · Ctrl-C stops an answer, Ctrl-D ends"
        err.print(style_text((text, "dim")))

    def answer(self, text: str) -> bool:
        """Answer a message or follow a command; errors are reported. Return False at the end of the conversation."""
        command, _, argument = text.strip().partition(" ")
        try:
            match command:
                case "/exit" | "/quit":
                    return False
                case "/help":
                    err.print(style_text(HELP))
                case "/tools":
                    tools = [(one.name, one.description.partition(". ")[0]) for one in self._agent.library.definitions]
                    err.print(render_table(("tool", "description"), tools, limit=1000))
                case "/model":
                    self._change_model(argument.strip())
                case "/new":
                    self.history = []
                    err.print(style_text(("A new conversation begins.", "dim")))
                case "/save":
                    self._save(argument.strip())
                case "/load":
                    self._load(argument.strip())
                case _ if command[:1] == "/" and command[1:].isalpha():
                    raise BadInput(f"There is no command {command}. /help lists the commands.")
                case _:
                    self._answer_message(text)
        except KeyboardInterrupt:
            if self._is_answering or errors.is_stopped():
                errors.exit_soon()
                raise
            err.print(style_text(("stopped", "yellow")))
        except OpposableError as error:
            errors.report_error(error, err)
        return True

    def close(self) -> None:
        """Close the agent."""
        self._runner.run(self._opening.__aexit__(None, None, None))

    def _open_agent(self, model: str | None) -> tuple[AbstractAsyncContextManager[Agent], Agent]:
        opening = open_chat_agent(
            self._settings, model, self._tools, self._database, self._bar, instructions=self._instructions
        )
        return opening, self._runner.run(opening.__aenter__())

    def _answer_message(self, text: str) -> None:
        question = user_message(validate_task(text))
        printer = RunPrinter(err, out)
        approver = TerminalApprover(err, printer.end_line, assume_yes=self._assume_yes)
        task = (*self.history, question)
        answering = run_and_print(self._settings, self._agent, task, printer, approver)
        try:
            run_finished, _ = self._runner.run(answering)
        except KeyboardInterrupt:
            # After a second Ctrl-C the run may still wait for a tool to end, and would print into the next answer.
            self._is_answering = inspect.getcoroutinestate(answering) != inspect.CORO_CLOSED
            raise
        self.history += [question, *run_finished.messages]
        save_last_conversation(self._settings, self.history)

    def _change_model(self, name: str) -> None:
        if name:
            opened = self._open_agent(name)
            self.close()
            self._opening, self._agent = opened
        self.print_banner()

    def _save(self, name: str) -> None:
        """Save the conversation. A file that this chat did not save is not replaced."""
        if not self.history:
            raise BadInput("The conversation is empty. Ask something before /save.")
        path = Path(name or f"chat-{datetime.now().astimezone():%Y%m%d-%H%M%S}.md")
        text = to_json(_to_forms(self.history)) if path.suffix == ".json" else format_as_markdown(self.history)
        try:
            path = path.expanduser()
            with open_draft(path, replace=path.absolute() in self._saved_paths) as draft:
                draft.write(text.encode("utf-8", "replace"))
        except FileExistsError as error:
            raise BadInput(f"{path} exists already. Save to another file.") from error
        except (OSError, RuntimeError, ValueError) as error:  # no user of this name, no name of a file
            raise BadInput(f"Cannot write {path}: {getattr(error, 'strerror', error)}.") from error
        self._saved_paths.add(path.absolute())
        err.print(style_text((f"The conversation is saved in {path}.", "dim")))

    def _load(self, name: str) -> None:
        if not name:
            raise BadInput("No file is given. Pass one that /save wrote: /load FILE.json")
        self.history = _read_conversation(
            Path(name),
            missing=f"There is no file {name}.",
            unreadable=f"{name} is not a conversation. Pass a .json file that /save wrote.",
        )
        self.print_banner()


def format_as_markdown(history: list[Message]) -> str:
    """Return the questions and answers of a conversation as Markdown, without the calls."""
    titles = {"user": "You", "assistant": "Model"}
    parts = [
        f"## {titles[message.role]}\n\n{message.content.strip()}\n"
        for message in history
        if message.role in titles and message.content.strip()
    ]
    return "\n".join(parts)


def load_last_conversation(settings: Settings) -> list[Message]:
    """Return the messages of the last conversation in this user's state folder.

    Raises:
        BadInput: No conversation is stored, or its file is damaged.
    """
    path = _get_last_conversation_path(settings)
    return _read_conversation(
        path,
        missing="No conversation is stored yet. Leave --continue out.",
        unreadable=f"The last conversation in {path} cannot be read. Leave --continue out.",
    )


def _read_conversation(path: Path, *, missing: str, unreadable: str) -> list[Message]:
    try:
        forms = orjson.loads(path.expanduser().read_bytes())
        messages = [message_from_json(form) for form in forms]
    except FileNotFoundError as error:
        raise BadInput(missing) from error
    except (OSError, RuntimeError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(unreadable) from error
    if not isinstance(forms, list) or not all(isinstance(message.content, str) for message in messages):
        raise BadInput(unreadable)
    return messages


def save_last_conversation(settings: Settings, history: list[Message]) -> None:
    """Store a conversation for `--continue`, readable by this user alone. A folder that cannot be written is no error."""
    with contextlib.suppress(OSError):
        content = to_json(_to_forms(history)).encode("utf-8", "replace")
        write_private_file(_get_last_conversation_path(settings), content)


def _to_forms(history: list[Message]) -> list[dict[str, Any]]:
    return [message_to_json(message, include_parsing=True) for message in history]


def _get_last_conversation_path(settings: Settings) -> Path:
    return state_directory(settings) / "last_chat.json"


def _enable_line_editing() -> None:
    """Enable line editing and history at the prompt; pasted lines stay together."""
    with contextlib.suppress(ImportError):
        import readline

        readline.parse_and_bind("set enable-bracketed-paste on")


def _read_message() -> str | None:
    """Read the next message of one or more lines; return None at the end of the conversation."""
    while sys.stdin is not None:
        try:
            text = _read_line("> ")
            if text.startswith(LONG_TEXT_MARK) and "\n" not in text:
                return _read_long_text(text.removeprefix(LONG_TEXT_MARK))
            while text.endswith("\\"):
                text = f"{text[:-1]}\n{_read_line('… ')}"
        except EOFError:
            return None
        except KeyboardInterrupt:
            if errors.is_stopped():
                raise
            err.print(style_text(("\n(Ctrl-D ends the conversation)", "dim")))
            continue
        return text
    return None


def _read_long_text(text: str) -> str:
    """Read on until the mark that ends the text."""
    while not text.rstrip().endswith(LONG_TEXT_MARK):
        text += "\n" + _read_line("… ")
    return text.rstrip().removesuffix(LONG_TEXT_MARK).strip("\n")


def _read_line(prompt: str) -> str:
    return input(prompt if sys.stdin.isatty() else "")
