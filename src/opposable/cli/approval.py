"""Human approval of tool calls at the terminal."""

import asyncio
import sys
from collections.abc import Callable

from rich.console import Console

from opposable.cli.rendering import escape_control_characters, style_text, to_json
from opposable.domain.call_context import ApprovalRequest, Approved, Denied

QUESTION = "Run it? y (yes), n REASON (no), a (always in this run): "


class TerminalApprover:
    """Asks the person at the terminal whether a call may run, one call at a time.

    Args:
        err: Where the question is printed.
        before_question: Called before each question, to end an open line.
        assume_yes: Whether to approve every call without a question.
        read_line: Reads a line of the person; "" at the end of the input.

    Attributes:
        denied_unasked: The calls that were denied because there is no terminal.
    """

    def __init__(
        self,
        err: Console,
        before_question: Callable[[], None],
        *,
        assume_yes: bool = False,
        read_line: Callable[[], str] | None = None,
    ) -> None:
        self._err = err
        self._before_question = before_question
        self._assume_yes = assume_yes
        self._read_line = read_line
        self._approved_tools: set[str] = set()
        self._lock = asyncio.Lock()
        self.denied_unasked: list[str] = []

    async def __call__(self, request: ApprovalRequest) -> Approved | Denied:
        """Return the person's decision on exactly these arguments."""
        async with self._lock:
            if self._assume_yes or request.tool_id in self._approved_tools:
                return Approved()
            if self._read_line is None and not (sys.stdin and sys.stdin.isatty() and self._err.is_terminal):
                self.denied_unasked.append(request.name)
                return Denied("there is no terminal to ask at")
            self._before_question()
            self._err.print(style_text(("? ", "yellow"), (request.name, "bold"), " needs approval:"))
            for name, value in request.arguments.items():
                text = value if isinstance(value, str) else to_json(value)
                self._err.print(style_text(f"    {name}: ", escape_control_characters(text)))
            return await self._ask(request.tool_id)

    async def _ask(self, tool_id: str) -> Approved | Denied:
        while True:
            self._err.print(style_text((QUESTION, "yellow")), end="")
            line = self._read_line() if self._read_line is not None else await _read_terminal_line()
            word, _, reason = line.strip().partition(" ")
            match word.lower():
                case "y" | "yes" | "是":
                    return Approved()
                case "a" | "always":
                    self._approved_tools.add(tool_id)
                    return Approved()
                case "n" | "no" | "否":
                    return Denied(reason.strip())
            if not line:  # the end of the input
                self._err.print()
                return Denied()


async def _read_terminal_line() -> str:
    """Read a line without blocking the event loop, so that Ctrl-C and the time-outs of other calls work."""
    loop = asyncio.get_running_loop()
    is_readable: asyncio.Future[None] = loop.create_future()
    try:
        loop.add_reader(sys.stdin, lambda: None if is_readable.done() else is_readable.set_result(None))
    except NotImplementedError:  # Windows
        return sys.stdin.readline()
    try:
        await is_readable
        return sys.stdin.readline()
    finally:
        loop.remove_reader(sys.stdin)
