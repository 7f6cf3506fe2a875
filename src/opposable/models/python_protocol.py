"""Tools told as Python functions, and a verdict before the call: does any of them do what is wanted?

A small model asked for a call makes one, whether a tool fits or not. Here it first says what is wanted and what the
functions do, and then "fits: yes" or "no"; how sure it is of that (the two words' probabilities), together with how
much of its arguments the request says, decides. That costs no request of its own.
"""

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

import orjson

from opposable import dialects
from opposable.dialects import Call
from opposable.domain.errors import ModelError
from opposable.domain.events import CallDelta, ModelPart, Reply, Token
from opposable.domain.messages import Message, assistant, system
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.domain.usage import NO_USAGE
from opposable.models import python_texts as texts
from opposable.models.base import DEFAULT_OPTIONS, Model, ModelOptions, Named
from opposable.models.text_protocol import TextProtocolModel, as_text

_NO_CALL = re.compile(r"\s*(#|print\(\w+\)\s*$)")
_ASSIGNED = re.compile(r"^\s*\w+ = (?=\w+\()")

ALTERNATIVES = 20
"""How many words' probabilities are asked for at each place."""

LONGEST_CALLS = 1024
"""Tokens the calls of one reply may take where the asker sets no bound."""

UNSEEN = -12.0
"""The log-probability taken for a word that is not among the alternatives."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """When a call is made: where `sureness + weight * grounding` is at least `least`.

    Sureness is log p(yes) - log p(no) of the verdict; grounding is the smallest share of a required argument's words
    that the conversation holds (1 where nothing is required). The figures are measured for one model.
    """

    least: float = 5.0
    weight: float = 2.0


class PythonProtocolModel:
    """`inner` with tools told as Python functions and a verdict before each call.

    `inner` must continue a last message of role "assistant" and give token probabilities, as llama.cpp's server does.
    Where no tool fits, it answers as if there were none. Raises: what `inner` raises.
    """

    def __init__(self, inner: Model, threshold: Threshold | None = None) -> None:
        self.inner = inner
        self._threshold = threshold or Threshold()
        self._after_results = TextProtocolModel(inner, "protocol")

    @property
    def name(self) -> str:
        """The inner model's name."""
        return self.inner.name

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ModelPart, None]:
        """One reply in parts: calls, or an answer as it is written."""
        if has_results(messages) and not isinstance(options.tool_choice, Named):
            async with aclosing(self._after_results.stream(messages, tools, options)) as parts:
                async for part in parts:
                    yield part
            return
        usage = NO_USAGE
        if tools and options.tool_choice != "none":
            tried = await self._calls(messages, tools, options)
            if tried.message.tool_calls:
                for n, call in enumerate(tried.message.tool_calls if options.stream else ()):
                    yield CallDelta(n, call.id, call.name, call.arguments)
                yield tried
                return
            usage = tried.usage
        async with aclosing(self.inner.stream(plain(messages), (), options)) as parts:
            async for part in parts:
                yield replace(part, usage=usage + part.usage) if type(part) is Reply else part

    async def aclose(self) -> None:
        """Close the inner model."""
        await self.inner.aclose()

    async def _calls(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: ModelOptions
    ) -> Reply:
        """The calls that are to be made: a reply without any where no tool fits."""
        begun = _beginning(options)
        asked = replace(
            options,
            stream=False,
            tool_choice="none",
            stop=(texts.FENCE,),
            alternatives=ALTERNATIVES,
            max_tokens=options.max_tokens or LONGEST_CALLS,
        )
        reply = None
        async for part in self.inner.stream([*told(messages, tools), assistant(begun)], (), asked):
            if type(part) is Reply:
                reply = part
        if reply is None:
            raise ModelError(f"The stream of model {self.name!r} ended without a reply.")
        written = reply.message.content
        written = written if written.startswith(begun) else begun + written
        calls = read_calls(written, tools, cut=reply.finish == "length")
        if options.tool_choice == "auto" and not self._fits(reply, calls, messages, tools):
            calls = ()
        said = assistant("", tuple(as_tool_call(call) for call in calls))
        return Reply(said, "tool_calls" if calls else "stop", reply.usage)

    def _fits(
        self,
        reply: Reply,
        calls: Sequence[Call],
        messages: Sequence[Message],
        tools: Sequence[ToolDefinition],
    ) -> bool:
        if not calls:
            return False
        sure = sureness(reply.tokens, texts.BEGINNING)
        ground = grounding(calls, messages, tools)
        return sure + self._threshold.weight * ground >= self._threshold.least


def has_results(messages: Sequence[Message]) -> bool:
    """Whether tools have answered since the user last spoke.

    Then the question is no longer whether a tool fits but whether more is needed: the seed protocol's question, which
    the embedded model answers better than the verdict's (measured: with the verdict it makes the same calls again).
    """
    for message in reversed(messages):
        if message.role in ("tool", "user"):
            return message.role == "tool"
    return False


def told(messages: Sequence[Message], tools: Sequence[ToolDefinition]) -> list[Message]:
    """The messages with the functions in front, calls and results written as text."""
    own = [message.content for message in messages if message.role == "system"]
    first = "\n\n".join([texts.preamble() + "\n" + texts.functions(tools), *own])
    return [system(first), *(message for message in plain(messages) if message.role != "system")]


def plain(messages: Sequence[Message]) -> list[Message]:
    """The messages for a model that knows only text."""
    return as_text(messages, texts.results_as_text, texts.calls_as_text)


def read_calls(written: str, tools: Sequence[ToolDefinition], *, cut: bool) -> tuple[Call, ...]:
    """The calls of a reply in this protocol: the lines that are no comment, read as a block of calls."""
    lines = written.removeprefix(f"{texts.FENCE}python\n").splitlines()
    code = "\n".join(_ASSIGNED.sub("", line) for line in lines if not _NO_CALL.match(line)).strip()
    if not code:
        return ()
    return dialects.read(
        f"{texts.FENCE}python\n{code}\n" + ("" if cut else texts.FENCE), tuple(tools), truncated=cut
    ).calls


def sureness(tokens: Sequence[Token], before: str) -> float:
    """Log p(yes) - log p(no) at the place of the verdict; `before` is what was written for the model."""
    written = before
    for token in tokens:
        if written.endswith(texts.VERDICT):
            likely: dict[str, float] = {}
            for word, logprob in token.alternatives:
                likely.setdefault(word.strip().lower(), logprob)
            return likely.get("yes", UNSEEN) - likely.get("no", UNSEEN)
        written += token.text
    return UNSEEN


def grounding(calls: Sequence[Call], messages: Sequence[Message], tools: Sequence[ToolDefinition]) -> float:
    """The smallest share of a required argument's words that the conversation holds; 1 where nothing is required.

    Choices and yes-or-no values are left out: they are meant, not said.
    """
    said = {word for message in messages for word in _words(message.content)}
    starts = {word[:4] for word in said if len(word) > 3}
    schemas = {tool.name: tool.parameters for tool in tools}
    shares = [1.0]
    for call in calls:
        schema = schemas.get(call.name, {})
        for name, value in call.arguments.items():
            about = (schema.get("properties") or {}).get(name) or {}
            if name not in (schema.get("required") or ()) or isinstance(value, bool) or "enum" in about:
                continue
            words = _words(str(value))
            if words:
                held = sum(word in said or (len(word) > 3 and word[:4] in starts) for word in words)
                shares.append(held / len(words))
    return min(shares)


def as_tool_call(call: Call) -> ToolCall:
    """A call that was read, as the domain has it."""
    return ToolCall(call.id, call.name, orjson.dumps(call.arguments).decode(), call.dialect, call.repairs)


def _beginning(options: ModelOptions) -> str:
    """What is written for the model: more of it where a call must be made."""
    choice = options.tool_choice
    if choice == "auto":
        return texts.BEGINNING
    forced = f"{texts.BEGINNING} what the user asks for\n# functions: do that\n{texts.VERDICT} yes\n"
    return f"{forced}{choice.name}(" if isinstance(choice, Named) else forced


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z]+|\d+|[^\x00-\x7f]", text.lower())
