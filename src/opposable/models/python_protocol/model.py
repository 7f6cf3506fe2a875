"""Tools told as Python functions: the model writes calls of them, or `pass` where none fits.

A small model asked for a call makes one, whether a tool fits or not. Here a way out stands right behind the request,
and how much the model leans towards it decides (`python_fit`). That costs no request of its own.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace

from opposable.domain.errors import ModelError
from opposable.domain.events import CallDelta, ModelPart, Reply, Token
from opposable.domain.language import words
from opposable.domain.messages import Message, assistant, system, user
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.domain.usage import NO_USAGE, Usage
from opposable.models.base import DEFAULT_OPTIONS, Model, ModelOptions, Named, ToolChoice
from opposable.models.python_protocol import alternative_tokens as python_other
from opposable.models.python_protocol import call_acceptance as python_fit
from opposable.models.python_protocol import prompts as texts
from opposable.models.python_protocol import second_attempt as python_second
from opposable.models.python_protocol.call_builder import optional_left, read_calls, unended, with_rest, with_value
from opposable.models.python_protocol.code_parser import is_one_call
from opposable.models.python_protocol.deferred_calls import waiting_calls
from opposable.models.python_protocol.uncertain_defaults import without_wavering
from opposable.models.python_protocol.value_formats import place_of, unshaped
from opposable.models.text_protocol import TextProtocolModel, as_text

ALTERNATIVES = 20
"""How many words' probabilities are asked for at each place."""

LONGEST = 1024
"""Tokens a reply may take where the asker sets no bound: a small model may repeat itself without end."""

MOST_OF_A_VALUE = 40
"""Tokens that the values of parameters left out may take."""

MOST_SHAPED = 4
"""Texts of a reply's calls that are put into the shape their descriptions show."""

MOST_OF_SECOND = 200
"""Tokens that a second look may take."""


class PythonProtocolModel:
    """`inner` with tools told as Python functions, and calls made only where a function fits.

    `inner` must continue a last message of role "assistant" and give token probabilities, as llama.cpp's server does.
    Where no tool fits, it answers as if there were none. Raises: what `inner` raises.
    """

    def __init__(self, inner: Model) -> None:
        self.inner = inner
        self._protocol = TextProtocolModel(inner, "protocol")

    @property
    def name(self) -> str:
        """The inner model's name."""
        return self.inner.name

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ModelPart, None]:
        """One reply in parts: calls, or an answer as it is written."""
        spent = NO_USAGE
        held: tuple[ToolCall, ...] = ()
        options = options if options.max_tokens or not tools else replace(options, max_tokens=LONGEST)
        if not tools or options.tool_choice == "none":
            rest = self.inner.stream(plain(messages), (), options)
        elif has_results(messages) and not isinstance(options.tool_choice, Named):
            rest = self._protocol.stream(messages, tools, options)
        else:
            choice = options.expected if options.tool_choice == "auto" else options.tool_choice
            choice, spent = await self._settled(choice, messages, tools, options)
            known = Reply(assistant("", texts.whole(choice, tools)), "tool_calls")
            reply = known if known.message.tool_calls else await self._calls(messages, tools, choice, options)
            reply = replace(reply, usage=spent + reply.usage)
            if reply.message.tool_calls:
                for n, call in enumerate(reply.message.tool_calls if options.stream else ()):
                    yield CallDelta(n, call.id, call.name, call.arguments)
                yield reply
                return
            spent, held = reply.usage, reply.held
            forced = options.tool_choice != "auto"  # the seed protocol's form can be enforced by a schema
            rest = (
                self._protocol.stream(messages, tools, options)
                if forced
                else self.inner.stream(without_tools(messages), (), options)
            )
        async with aclosing(rest) as parts:
            async for part in parts:
                yield replace(part, usage=spent + part.usage, held=held) if type(part) is Reply else part

    async def aclose(self) -> None:
        """Close the inner model."""
        await self.inner.aclose()

    async def _calls(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], choice: ToolChoice, options: ModelOptions
    ) -> Reply:
        """A reply with the calls that are to be made, none where no tool fits, and what it took to find them."""
        begun = texts.BEGINNING + (texts.begun(choice, tools) if isinstance(choice, Named) else "")
        asked = [*told(messages, tools, texts.WAY_OUT if choice == "auto" else ""), assistant(begun)]
        reply = await self._whole(asked, replace(options, stop=(texts.FENCE,)))
        if isinstance(choice, Named) and (other := python_other.instead(reply.tokens, choice.avoid)):
            begun += other
            again = await self._whole([*asked[:-1], assistant(begun)], replace(options, stop=(texts.FENCE,)))
            reply = replace(again, usage=reply.usage + again.usage)
        code = (begun + reply.message.content.removeprefix(begun)).removeprefix(texts.BEGINNING)
        said = "\n".join(message.content for message in messages)
        doubtful = python_fit.doubtful_lines(reply.tokens) if choice == "auto" else ()
        last = next((message.content for message in reversed(messages) if message.role == "user"), "")
        offered = [tool for tool in tools if tool.name == choice.name] if isinstance(choice, Named) else tools
        calls = read_calls(code, offered, said, last, cut=reply.finish == "length", doubtful=doubtful)
        calls = calls[:1] if isinstance(choice, Named) else calls
        usage, written = reply.usage, reply
        if choice == "auto" and not calls and (start := python_second.leaning(reply.tokens, tools)):
            written = await self._second([*asked[:-1], assistant(texts.BEGINNING + start)], options)
            code = start + written.message.content.removeprefix(texts.BEGINNING + start)
            calls = read_calls(code, tools, said, last, cut=written.finish == "length")
            usage, doubtful = usage + written.usage, ()
        if not calls:
            return Reply(assistant(""), usage=usage)
        second = None if written is reply else written.tokens
        if choice == "auto" and not self._stand(reply.tokens, second, calls, tools, said, last):
            return Reply(assistant(""), usage=usage, held=calls if second is None else ())
        may_go_on = len(calls) == 1 and optional_left(calls[0], tools)
        if choice == "auto" and len(calls) == 1 and is_one_call(code):
            calls = (without_wavering(calls[0], written.tokens, tools, words(said)),)
        waiting = waiting_calls(code, tools, said, calls, doubtful=doubtful)
        if may_go_on and (open_call := unended(code)):
            rest, spent = await self._rest([*asked[:-1], assistant(texts.BEGINNING + open_call)], tools, said, options)
            calls, usage = (with_rest(calls[0], rest, tools, last),), usage + spent
        calls, spent = await self._shaped(calls, code, asked[:-1], tools, said, options)
        return Reply(assistant("", calls), "tool_calls", usage + spent, waiting=waiting)

    async def _second(self, asked: Sequence[Message], options: ModelOptions) -> Reply:
        """How the model goes on with the name of a function that it leaned towards: a short request more.

        A model that fails here adds nothing.
        """
        most = min(options.max_tokens or LONGEST, MOST_OF_SECOND)
        try:
            return await self._whole(asked, replace(options, stop=(texts.FENCE,), max_tokens=most))
        except ModelError:
            return Reply(assistant(""))

    @staticmethod
    def _stand(
        tokens: Sequence[Token],
        second: Sequence[Token] | None,
        calls: Sequence[ToolCall],
        tools: Sequence[ToolDefinition],
        said: str,
        asked: str,
    ) -> bool:
        """Whether calls that the model was free to leave are to be made; `second` are the tokens of a second look."""
        return python_fit.fits(tokens, calls, tools, said, second) or python_second.is_said_whole(
            calls, tools, words(asked)
        )

    async def _settled(
        self, choice: ToolChoice, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: ModelOptions
    ) -> tuple[ToolChoice, Usage]:
        """The choice with the likeliest of the values that its next argument is among, where one is likely.

        It costs a token for each place where the values differ.
        """
        if not isinstance(choice, Named) or not choice.among:
            return choice, NO_USAGE
        left, begun, usage = list(choice.among), "", NO_USAGE
        asked = told(messages, tools)
        while len(left) > 1:
            last = assistant(texts.BEGINNING + texts.begun(choice, tools) + begun)
            reply = await self._whole([*asked, last], replace(options, max_tokens=1))
            usage += reply.usage
            alternatives = reply.tokens[0].alternatives if reply.tokens else ()
            word = python_other.towards(alternatives, begun, left)
            if not word:
                return Named(choice.name, choice.arguments, choice.avoid), usage
            begun += word
            left = [value for value in left if value.startswith(begun)]
        return Named(choice.name, {**choice.arguments, next(iter(choice.avoid)): left[0]}), usage

    async def _shaped(
        self,
        calls: tuple[ToolCall, ...],
        code: str,
        asked: Sequence[Message],
        tools: Sequence[ToolDefinition],
        said: str,
        options: ModelOptions,
    ) -> tuple[tuple[ToolCall, ...], Usage]:
        """The calls with texts in the shapes that descriptions show: the model goes on from inside of each such text.

        It costs a few tokens each, for `MOST_SHAPED` texts at most; a text stands as it is where the model fails here.
        """
        made, usage = list(calls), NO_USAGE
        wanting = [(n, each) for n, call in enumerate(calls) for each in unshaped(call, tools)]
        spoken = words(said) if wanting else []
        for n, each in wanting[:MOST_SHAPED]:
            if (at := place_of(code, each.value)) is None:
                continue
            begun = assistant(texts.BEGINNING + code[:at] + each.begun)
            try:
                stop = (code[at - 1], "\n", texts.FENCE)
                reply = await self._whole([*asked, begun], replace(options, stop=stop, max_tokens=MOST_OF_A_VALUE))
            except ModelError:
                break
            usage += reply.usage
            if (value := each.whole(reply.message.content.removeprefix(begun.content), spoken)) is not None:
                made[n] = with_value(made[n], each.name, value)
        return tuple(made), usage

    async def _rest(
        self, asked: Sequence[Message], tools: Sequence[ToolDefinition], said: str, options: ModelOptions
    ) -> tuple[tuple[ToolCall, ...], Usage]:
        """The call that the model would have made had it not ended it: an optional value it was told may stand there.

        It costs the few tokens of a value: all that stands before is worked out already. The call stands without it,
        so a model that fails here adds nothing.
        """
        try:
            reply = await self._whole(asked, replace(options, stop=(texts.FENCE, "\n"), max_tokens=MOST_OF_A_VALUE))
        except ModelError:
            return (), NO_USAGE
        begun = asked[-1].content
        code = (begun + reply.message.content.removeprefix(begun)).removeprefix(texts.BEGINNING)
        return read_calls(code, tools, said), reply.usage

    async def _whole(self, messages: Sequence[Message], options: ModelOptions) -> Reply:
        """The reply to plain messages in one piece, with its tokens."""
        asked = replace(options, stream=False, tool_choice="none", alternatives=ALTERNATIVES, response_schema=None)
        async with aclosing(self.inner.stream(messages, (), asked)) as parts:
            async for part in parts:
                if type(part) is Reply:
                    return part
        raise ModelError(f"The stream of model {self.name!r} ended without a reply.")


def has_results(messages: Sequence[Message]) -> bool:
    """Whether tools have answered since the user last spoke.

    Then the question is no longer whether a tool fits but whether more is needed: the seed protocol's question, which
    the embedded model answers better than this one's (measured: here it makes the same calls again).
    """
    for message in reversed(messages):
        if message.role in ("tool", "user"):
            return message.role == "tool"
    return False


def told(messages: Sequence[Message], tools: Sequence[ToolDefinition], behind: str = "") -> list[Message]:
    """The messages with the functions in front, calls and results written as text, and `behind` after the request.

    What is the same for every request stands first, so that a server keeps it worked out.
    """
    own = [message.content for message in messages if message.role == "system"]
    first = "\n\n".join([texts.INSTRUCTIONS, texts.functions(tools), *own])
    rest = [message for message in plain(messages) if message.role != "system"]
    last = next((n for n in reversed(range(len(rest))) if rest[n].role == "user"), None)
    if last is not None and behind:
        rest[last] = user(rest[last].content + behind)
    return [system(first), *rest]


def without_tools(messages: Sequence[Message]) -> list[Message]:
    """The messages for an answer where no tool fits: a small model asked for today's weather makes one up."""
    if any(message.role == "tool" for message in messages):
        return plain(messages)
    own = [message.content for message in messages if message.role == "system"]
    rest = [message for message in plain(messages) if message.role != "system"]
    return [system("\n\n".join([*own, texts.NO_TOOL])), *rest]


def plain(messages: Sequence[Message]) -> list[Message]:
    """The messages for a model that knows only text."""
    return as_text(messages, texts.results_as_text, texts.calls_as_text)
