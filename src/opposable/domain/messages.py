"""Messages of a conversation, independent of a provider."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from opposable.domain.content import ContentPart, FilePart, ImagePart, TextPart, join_text
from opposable.domain.errors import BadInput
from opposable.domain.tools import ToolCall

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class NativeReply:
    """A reply as its API returned it, with encrypted reasoning that only its model can read.

    Attributes:
        model: The name of the model on its server.
        items: The items of the reply, in the form of the API.
        api: The API, "" if it is not known: a model of the same name may be asked by another one.
    """

    model: str
    items: tuple[dict[str, Any], ...]
    api: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a conversation.

    `tool_calls`, `thinking` (the model's reasoning) and `native` belong to role "assistant"; `call_id`, `name` and
    `is_error` (whether the call failed) to role "tool". `content` is the text. A message with images or files has all
    its `parts` in order; plain text has none. `native` is sent back to the model that wrote the reply, in place of the
    text and calls. `is_refusal` is whether the server marked the text of a reply as a refusal.
    """

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    name: str = ""
    thinking: str = ""
    parts: tuple[ContentPart, ...] = ()
    native: NativeReply | None = None
    is_error: bool = False
    is_refusal: bool = False
    _wire_cache: dict[str, bytes] = field(default_factory=dict, init=False, compare=False, repr=False)

    def get_native_items(self, model: str, api: str) -> tuple[dict[str, Any], ...]:
        """Return the items of `native` if this model wrote them by this API, else none."""
        native = self.native
        return native.items if native is not None and native.model == model and native.api in ("", api) else ()

    @property
    def media(self) -> tuple[ImagePart | FilePart, ...]:
        """The images and files of the message."""
        return tuple(part for part in self.parts if not isinstance(part, TextPart))

    @property
    def ordered_parts(self) -> tuple[ContentPart, ...]:
        """The whole message as parts; a text that was changed later comes before the images and files."""
        if self.parts and join_text(self.parts) == self.content:
            return self.parts
        text = (TextPart(self.content),) if self.content else ()
        return (*text, *self.media)


def encode_messages(messages: Iterable[Message], wire_format: str, encode: Callable[[Message], bytes]) -> list[bytes]:
    """Return `encode(message)` of each message, computed once for each wire format."""
    encoded = []
    for message in messages:
        cache = message._wire_cache  # noqa: SLF001 - of this module
        if wire_format not in cache:
            cache[wire_format] = encode(message)
        encoded.append(cache[wire_format])
    return encoded


def system_message(content: str) -> Message:
    """Create a message with the instructions of a conversation."""
    return Message("system", content)


def add_instructions(messages: Sequence[Message], text: str) -> list[Message]:
    """Return the messages with further instructions: at the end of a first system message, else in a new one."""
    if messages and messages[0].role == "system":
        return [system_message(f"{messages[0].content}\n\n{text}"), *messages[1:]]
    return [system_message(text), *messages]


def user_message(content: str, parts: tuple[ContentPart, ...] = ()) -> Message:
    """Create a message of the user, with all its parts if it has images or files."""
    return Message("user", content, parts=parts)


def to_task_messages(task: str | Iterable[Message]) -> tuple[Message, ...]:
    """Return the messages of a task; a text is a message of the user.

    Raises:
        BadInput: The task is neither a text nor messages.
    """
    if isinstance(task, str):
        return (user_message(task),)
    messages = tuple(task) if isinstance(task, Iterable) else ()
    if not isinstance(task, Iterable) or not all(isinstance(message, Message) for message in messages):
        raise BadInput(f"A task is a text, or a list of messages such as Message('user', 'Hello'), not {task!r:.200}.")
    return messages


def assistant_message(content: str, tool_calls: tuple[ToolCall, ...] = (), thinking: str = "") -> Message:
    """Create a message of the model, with its tool calls and reasoning."""
    return Message("assistant", content, tool_calls=tool_calls, thinking=thinking)


def tool_message(
    call_id: str, name: str, content: str, parts: tuple[ContentPart, ...] = (), *, is_error: bool = False
) -> Message:
    """Create a message with the result of the call `call_id`."""
    return Message("tool", content, call_id=call_id, name=name, parts=parts, is_error=is_error)
