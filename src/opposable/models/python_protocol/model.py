"""The Python protocol: tools as Python signatures, calls as Python code, and a no-call option.

Small models call a tool whether one fits or not. The probability of the no-call option decides whether a call is made.
"""

from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing
from dataclasses import replace

from opposable.domain.events import CUT_OFF, CallDelta, FinishReason, ModelEvent, Reply
from opposable.domain.language import Language
from opposable.domain.messages import Message, assistant_message, system_message, user_message
from opposable.domain.tools import ToolDefinition
from opposable.domain.usage import NO_USAGE
from opposable.models import text_protocol_prompts as protocol_texts
from opposable.models.base import DEFAULT_OPTIONS, ForcedTool, Model, ModelOptions, ModelWrapper
from opposable.models.profile import ModelProfile, get_profile
from opposable.models.python_protocol import prompts as texts
from opposable.models.python_protocol.pipeline import OPTIONAL_STEPS, generate_calls
from opposable.models.text_protocol import TextProtocolModel, find_language, flatten_tool_messages

DEFAULT_MAX_REPLY_TOKENS = 1024
"""The default length of a reply: small models can repeat themselves without end."""


class PythonProtocolModel(ModelWrapper):
    """A model that gets tools as Python functions and makes calls only if a function fits.

    `inner` must continue a last assistant message and return token probabilities, as the server of llama.cpp does. If no
    tool fits, it answers without tools. Raises: as the inner model.

    Args:
        inner: The model that writes the calls.
        profile: What is known about the model; by default it is assisted. Without assistance no step withholds a call.
        without: Names of steps of the pipeline to leave out.
    """

    def __init__(self, inner: Model, profile: ModelProfile | None = None, without: Collection[str] = ()) -> None:
        profile = profile or replace(get_profile(inner), calling="constrained", assisted=True)
        super().__init__(inner, profile)
        self._without = frozenset(without if profile.assisted else OPTIONAL_STEPS)
        self._text_protocol = TextProtocolModel(inner, "protocol")

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ModelEvent, None]:
        """Stream one reply in parts: calls, or an answer. After a reply with neither, the model is asked without tools."""
        spent = NO_USAGE
        options = options if options.max_tokens or not tools else replace(options, max_tokens=DEFAULT_MAX_REPLY_TOKENS)
        if not tools or options.tool_choice == "none":
            rest = self.inner.stream(flatten_messages(messages), (), options)
        else:
            is_after_results = options.tool_choice == "auto" and ends_with_results(messages)
            attempt = self._text_protocol.stream if is_after_results else self._stream_calls
            empty_reply = None
            async with aclosing(attempt(messages, tools, options)) as parts:
                async for part in parts:
                    if type(part) is Reply and is_empty(part):
                        empty_reply = part
                    else:
                        yield part
            if empty_reply is None:
                return
            spent = empty_reply.usage
            if options.tool_choice == "auto":
                prompt = build_result_prompt(messages) if is_after_results else build_answer_prompt(messages)
                rest = self.inner.stream(prompt, (), options)
            else:  # the seed protocol's form can be enforced by a schema
                rest = self._text_protocol.stream(messages, tools, options)
        async with aclosing(rest) as parts:
            async for part in parts:
                yield replace(part, usage=spent + part.usage) if type(part) is Reply else part

    async def _stream_calls(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: ModelOptions
    ) -> AsyncGenerator[ModelEvent, None]:
        """Stream the calls to make, and a reply with them; an empty one if no tool fits."""
        choice = options.tool_choice
        reply, calls = await generate_calls(
            self.inner,
            build_prompt(messages, tools),
            [tool for tool in tools if tool.name == choice.name] if isinstance(choice, ForcedTool) else tools,
            options,
            conversation="\n".join(message.content for message in messages),
            choice_prompt=build_prompt(messages, tools, texts.NO_CALL_OPTION) if choice == "auto" else (),
            without=self._without,
        )
        calls = tuple(calls[:1] if isinstance(choice, ForcedTool) else calls)
        for n, call in enumerate(calls if options.stream else ()):
            yield CallDelta(n, call.id, call.name, call.arguments_json)
        finish: FinishReason = reply.finish if reply.finish in CUT_OFF else "tool_calls"
        yield Reply(assistant_message("", calls), finish if calls else "stop", reply.usage)


def ends_with_results(messages: Sequence[Message]) -> bool:
    """Return whether tool results follow the last user message.

    Then the text protocol is used: the embedded model would repeat its calls here (measured).
    """
    roles = [message.role for message in messages if message.role in ("tool", "user")]
    return roles[-1:] == ["tool"]


def build_prompt(
    messages: Sequence[Message], tools: Sequence[ToolDefinition], request_suffix: str = ""
) -> list[Message]:
    """Return the messages with the functions first, tool calls and results as text."""
    own, rest = _split_instructions(messages)
    last = next((n for n in reversed(range(len(rest))) if rest[n].role == "user"), None)
    if last is not None and request_suffix:
        rest[last] = user_message(rest[last].content + request_suffix)
    return [system_message("\n\n".join([texts.INSTRUCTIONS, texts.render_functions(tools), *own])), *rest]


def build_answer_prompt(messages: Sequence[Message]) -> list[Message]:
    """Return the messages for an answer without tools."""
    if any(message.role == "tool" for message in messages):
        return flatten_messages(messages)
    own, rest = _split_instructions(messages)
    return [system_message("\n\n".join([*own, texts.NO_TOOL_INSTRUCTIONS])), *rest]


def _split_instructions(messages: Sequence[Message]) -> tuple[list[str], list[Message]]:
    """Return the texts of the system messages, and the other messages as text."""
    own = [message.content for message in messages if message.role == "system"]
    return own, [message for message in flatten_messages(messages) if message.role != "system"]


def build_result_prompt(messages: Sequence[Message]) -> list[Message]:
    """Return the messages for an answer from results, without tools and in the language of the user."""
    language = find_language(messages)
    *earlier, results = flatten_messages(messages, language)
    return [*earlier, user_message(f"{results.content}\n\n{protocol_texts.ASK_FOR_ANSWER[language]}")]


def is_empty(reply: Reply) -> bool:
    """Return whether a complete reply has neither text nor calls."""
    return not reply.message.content.strip() and not reply.message.tool_calls and reply.finish not in CUT_OFF


def flatten_messages(messages: Sequence[Message], language: Language = "en") -> list[Message]:
    """Return the messages for a model that supports only text, the results with headings in this language."""
    return flatten_tool_messages(messages, language, texts.render_calls)
