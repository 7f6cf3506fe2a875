"""The Python protocol: tools as Python signatures, calls as Python code, and a no-call option.

Small models call a tool whether one fits or not. The probability of the no-call option decides whether a call is made.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace

from opposable.domain.errors import ModelError
from opposable.domain.events import CUT_OFF, CallDelta, FinishReason, ModelEvent, Reply, Token
from opposable.domain.language import split_words
from opposable.domain.messages import Message, assistant_message, system_message, user_message
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.domain.usage import NO_USAGE, Usage
from opposable.models.base import DEFAULT_OPTIONS, ForcedTool, Model, ModelOptions, ToolChoice
from opposable.models.marker_calls import escape_results
from opposable.models.profile import ModelProfile
from opposable.models.python_protocol import call_acceptance as python_fit
from opposable.models.python_protocol import prompts as texts
from opposable.models.python_protocol import second_attempt as python_second
from opposable.models.python_protocol.call_builder import (
    add_rest_arguments,
    build_calls,
    leaves_out_optional,
    reopen_call,
    replace_argument,
)
from opposable.models.python_protocol.python_call_parser import is_one_call
from opposable.models.python_protocol.uncertain_defaults import drop_uncertain_defaults
from opposable.models.python_protocol.value_formats import find_format_mismatches, find_literal
from opposable.models.text_protocol import TextProtocolModel, flatten_tool_messages

TOP_LOGPROBS = 20
"""Alternatives requested for each token."""

DEFAULT_MAX_REPLY_TOKENS = 1024
"""The default length of a reply: small models can repeat themselves without end."""

MAX_VALUE_TOKENS = 40
"""Tokens for the values of omitted parameters."""

MAX_REFORMATTED_VALUES = 4
"""Values of a reply that are brought into the described format."""

MAX_SECOND_ATTEMPT_TOKENS = 200
"""Tokens of a second attempt."""


PYTHON_PROFILE = ModelProfile("constrained", assisted=True)


class PythonProtocolModel:
    """A model that gets tools as Python functions and makes calls only if a function fits.

    `inner` must continue a last assistant message and return token probabilities, as the server of llama.cpp does. If no
    tool fits, it answers without tools. Raises: as the inner model.
    """

    def __init__(self, inner: Model, profile: ModelProfile = PYTHON_PROFILE) -> None:
        self.inner = inner
        self.profile = profile
        self._text_protocol = TextProtocolModel(inner, "protocol")

    @property
    def name(self) -> str:
        """The name of the inner model."""
        return self.inner.name

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ModelEvent, None]:
        """Stream one reply in parts: calls, or an answer."""
        spent = NO_USAGE
        options = options if options.max_tokens or not tools else replace(options, max_tokens=DEFAULT_MAX_REPLY_TOKENS)
        if not tools or options.tool_choice == "none":
            rest = self.inner.stream(flatten_messages(messages), (), options)
        elif ends_with_results(messages) and not isinstance(options.tool_choice, ForcedTool):
            rest = self._text_protocol.stream(messages, tools, options)
        else:
            reply = await self._generate_calls(messages, tools, options.tool_choice, options)
            if reply.message.tool_calls:
                for n, call in enumerate(reply.message.tool_calls if options.stream else ()):
                    yield CallDelta(n, call.id, call.name, call.arguments_json)
                yield reply
                return
            spent = reply.usage
            forced = options.tool_choice != "auto"  # the seed protocol's form can be enforced by a schema
            rest = (
                self._text_protocol.stream(messages, tools, options)
                if forced
                else self.inner.stream(build_answer_prompt(messages), (), options)
            )
        async with aclosing(rest) as parts:
            async for part in parts:
                yield replace(part, usage=spent + part.usage) if type(part) is Reply else part

    async def aclose(self) -> None:
        """Close the inner model."""
        await self.inner.aclose()

    async def _generate_calls(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], choice: ToolChoice, options: ModelOptions
    ) -> Reply:
        """Return a reply with the calls to make, none if no tool fits, and its usage."""
        begun = texts.REPLY_PREFIX + (texts.render_call_prefix(choice, tools) if isinstance(choice, ForcedTool) else "")
        asked = [
            *build_prompt(messages, tools, texts.NO_CALL_OPTION if choice == "auto" else ""),
            assistant_message(begun),
        ]
        reply = await self._generate(asked, replace(options, stop=(texts.CODE_FENCE,)))
        code = (begun + reply.message.content.removeprefix(begun)).removeprefix(texts.REPLY_PREFIX)
        said = "\n".join(message.content for message in messages)
        doubtful = python_fit.find_doubtful_lines(reply.tokens) if choice == "auto" else ()
        last = next((message.content for message in reversed(messages) if message.role == "user"), "")
        offered = [tool for tool in tools if tool.name == choice.name] if isinstance(choice, ForcedTool) else tools
        calls = build_calls(code, offered, said, last, is_truncated=reply.finish == "length", doubtful_lines=doubtful)
        calls = calls[:1] if isinstance(choice, ForcedTool) else calls
        usage, written = reply.usage, reply
        if choice == "auto" and not calls and (start := python_second.get_likely_call_prefix(reply.tokens, tools)):
            written = await self._generate_second_attempt(
                [*asked[:-1], assistant_message(texts.REPLY_PREFIX + start)], options
            )
            code = start + written.message.content.removeprefix(texts.REPLY_PREFIX + start)
            calls = build_calls(code, tools, said, last, is_truncated=written.finish == "length")
            usage += written.usage
        if not calls:
            return Reply(assistant_message(""), usage=usage)
        second = None if written is reply else written.tokens
        if choice == "auto" and not self._is_accepted(reply.tokens, second, calls, tools, said, last):
            return Reply(assistant_message(""), usage=usage)
        may_go_on = len(calls) == 1 and leaves_out_optional(calls[0], tools)
        if choice == "auto" and len(calls) == 1 and is_one_call(code):
            calls = (drop_uncertain_defaults(calls[0], written.tokens, tools, split_words(said)),)
        if may_go_on and (open_call := reopen_call(code)):
            rest, spent = await self._generate_rest(
                [*asked[:-1], assistant_message(texts.REPLY_PREFIX + open_call)], tools, said, options
            )
            calls, usage = (add_rest_arguments(calls[0], rest, tools, last),), usage + spent
        calls, spent = await self._reformat_values(calls, code, asked[:-1], tools, options)
        is_cut_off = written is reply and reply.finish in CUT_OFF
        finish: FinishReason = reply.finish if is_cut_off else "tool_calls"
        return Reply(assistant_message("", calls), finish, usage + spent)

    async def _generate_second_attempt(self, messages: Sequence[Message], options: ModelOptions) -> Reply:
        """Return how the model continues the name of a likely function.

        An empty reply if it fails.
        """
        most = min(options.max_tokens or DEFAULT_MAX_REPLY_TOKENS, MAX_SECOND_ATTEMPT_TOKENS)
        try:
            return await self._generate(messages, replace(options, stop=(texts.CODE_FENCE,), max_tokens=most))
        except ModelError:
            return Reply(assistant_message(""))

    @staticmethod
    def _is_accepted(
        tokens: Sequence[Token],
        second_tokens: Sequence[Token] | None,
        calls: Sequence[ToolCall],
        tools: Sequence[ToolDefinition],
        conversation: str,
        request: str,
    ) -> bool:
        """Return whether to make calls that the model was free to omit."""
        return python_fit.accepts_calls(
            tokens, calls, tools, conversation, second_tokens
        ) or python_second.is_fully_requested(calls, tools, split_words(request))

    async def _reformat_values(
        self,
        calls: tuple[ToolCall, ...],
        code: str,
        messages: Sequence[Message],
        tools: Sequence[ToolDefinition],
        options: ModelOptions,
    ) -> tuple[tuple[ToolCall, ...], Usage]:
        """Return the calls with values in the described format, continued by the model."""
        made, usage = list(calls), NO_USAGE
        wanting = [(n, each) for n, call in enumerate(calls) for each in find_format_mismatches(call, tools)]
        for n, each in wanting[:MAX_REFORMATTED_VALUES]:
            if (at := find_literal(code, each.value)) is None:
                continue
            begun = assistant_message(texts.REPLY_PREFIX + code[:at] + each.prefix)
            try:
                stop = (code[at - 1], "\n", texts.CODE_FENCE)
                reply = await self._generate(
                    [*messages, begun], replace(options, stop=stop, max_tokens=MAX_VALUE_TOKENS)
                )
            except ModelError:
                break
            usage += reply.usage
            if (value := each.complete_value(reply.message.content.removeprefix(begun.content))) is not None:
                made[n] = replace_argument(made[n], each.name, value)
        return tuple(made), usage

    async def _generate_rest(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], conversation: str, options: ModelOptions
    ) -> tuple[tuple[ToolCall, ...], Usage]:
        """Return the call as the model continues it, to find omitted optional arguments."""
        try:
            reply = await self._generate(
                messages, replace(options, stop=(texts.CODE_FENCE, "\n"), max_tokens=MAX_VALUE_TOKENS)
            )
        except ModelError:
            return (), NO_USAGE
        begun = messages[-1].content
        code = (begun + reply.message.content.removeprefix(begun)).removeprefix(texts.REPLY_PREFIX)
        return build_calls(code, tools, conversation), reply.usage

    async def _generate(self, messages: Sequence[Message], options: ModelOptions) -> Reply:
        """Return the reply to plain messages, with its tokens."""
        asked = replace(options, stream=False, tool_choice="none", top_logprobs=TOP_LOGPROBS, response_schema=None)
        async with aclosing(self.inner.stream(messages, (), asked)) as parts:
            async for part in parts:
                if type(part) is Reply:
                    return part
        raise ModelError(f"The stream of model {self.name!r} ended without a reply.")


def ends_with_results(messages: Sequence[Message]) -> bool:
    """Return whether tool results follow the last user message.

    Then the text protocol is used: the embedded model would repeat its calls here (measured).
    """
    for message in reversed(messages):
        if message.role in ("tool", "user"):
            return message.role == "tool"
    return False


def build_prompt(
    messages: Sequence[Message], tools: Sequence[ToolDefinition], request_suffix: str = ""
) -> list[Message]:
    """Return the messages with the functions first, tool calls and results as text."""
    own = [message.content for message in messages if message.role == "system"]
    first = "\n\n".join([texts.INSTRUCTIONS, texts.render_functions(tools), *own])
    rest = [message for message in flatten_messages(messages) if message.role != "system"]
    last = next((n for n in reversed(range(len(rest))) if rest[n].role == "user"), None)
    if last is not None and request_suffix:
        rest[last] = user_message(rest[last].content + request_suffix)
    return [system_message(first), *rest]


def build_answer_prompt(messages: Sequence[Message]) -> list[Message]:
    """Return the messages for an answer without tools."""
    if any(message.role == "tool" for message in messages):
        return flatten_messages(messages)
    own = [message.content for message in messages if message.role == "system"]
    rest = [message for message in flatten_messages(messages) if message.role != "system"]
    return [system_message("\n\n".join([*own, texts.NO_TOOL_INSTRUCTIONS])), *rest]


def flatten_messages(messages: Sequence[Message]) -> list[Message]:
    """Return the messages for a model that supports only text."""
    return flatten_tool_messages(escape_results(messages), texts.render_results, texts.render_calls)
