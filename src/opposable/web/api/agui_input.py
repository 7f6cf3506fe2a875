"""The messages of an AG-UI request as messages of a conversation."""

import asyncio

from ag_ui.core import AssistantMessage, DataSource, DocumentPart, ImagePart, RunAgentInput, UrlSource, UserMessage
from ag_ui.core import ContentPart as AguiPart
from ag_ui.core import TextPart as AguiTextPart
from ag_ui.core import ToolCall as AguiCall
from ag_ui.core import ToolMessage as AguiToolMessage

from opposable.agent.history import match_results_to_calls
from opposable.agent.tool_execution import make_sendable
from opposable.app.inputs import replace_surrogates, validate_task
from opposable.app.media import load_media_from_url
from opposable.domain.content import ContentPart, TextPart, join_text
from opposable.domain.messages import Message, assistant_message, tool_message, user_message
from opposable.domain.tools import ToolCall
from opposable.tools.tool_names import to_safe_name
from opposable.web.api.schemas import MAX_ATTACHMENTS
from opposable.web.errors import bad_input_error


async def read_new_message(run_input: RunAgentInput) -> Message:
    """Return the last message, with its texts, images and documents in their order.

    Raises:
        ApiError: 400, if it is not one of the user, or has a part that is neither text, image nor document.
        BadInput: If it is empty or too long, or an image or document cannot be loaded.
    """
    message = run_input.messages[-1] if run_input.messages else None
    if not isinstance(message, UserMessage):  # an earlier request must not run again
        raise bad_input_error("The last of the messages must be one of the user. Add a message with the next request.")
    new_message = await _read_user_message(message)
    if new_message.content.strip() or not new_message.media:
        validate_task(new_message.content)
    return new_message


def read_earlier_messages(run_input: RunAgentInput) -> tuple[Message, ...]:
    """Return the messages before the last one: those of the user, the model and tools, each call with its result.

    A client gives no instructions: system messages are left out, as are reasoning and activities. Images and documents
    are replaced by their type: a client sends them with every request, also after they have expired.
    """
    tool_names: dict[str, str] = {}
    messages: list[Message] = []
    for message in run_input.messages[:-1]:
        match message:
            case UserMessage(content=content):
                parts = [AguiTextPart(text=content)] if isinstance(content, str) else content
                texts = (part.text if isinstance(part, AguiTextPart) else f"[{part.type}]" for part in parts)
                messages.append(user_message(replace_surrogates("\n".join(filter(None, texts)))))
            case AssistantMessage():
                calls = tuple(_read_call(call) for call in message.tool_calls or ())
                tool_names |= {call.id: call.name for call in calls}
                messages.append(assistant_message(replace_surrogates(message.content or ""), calls))
            case AguiToolMessage(tool_call_id=call_id):
                text = _read_result(message)
                messages.append(tool_message(call_id, tool_names.get(call_id, ""), text, is_error=bool(message.error)))
    return tuple(match_results_to_calls(list(filter(_has_content, messages))))


def _has_content(message: Message) -> bool:
    return bool(message.role == "tool" or message.content.strip() or message.parts or message.tool_calls)


def _read_call(call: AguiCall) -> ToolCall:
    name, arguments = replace_surrogates(call.function.name), replace_surrogates(call.function.arguments)
    return make_sendable(ToolCall.from_json(call.id, name, arguments), to_safe_name(name or "unnamed"))


def _read_result(message: AguiToolMessage) -> str:
    """Return the text of a result, or why its tool failed."""
    if isinstance(message.content, str):
        text = message.content
    else:
        text = "\n".join(part.text for part in message.content if isinstance(part, AguiTextPart))
    return replace_surrogates(text or message.error or "")


async def _read_user_message(message: UserMessage) -> Message:
    if isinstance(message.content, str):
        return user_message(replace_surrogates(message.content))
    if sum(not isinstance(part, AguiTextPart) for part in message.content) > MAX_ATTACHMENTS:
        raise bad_input_error(f"A message may have up to {MAX_ATTACHMENTS} images and documents.")
    written = [part for part in message.content if not isinstance(part, AguiTextPart) or part.text]
    parts = tuple(await asyncio.gather(*map(_load_part, written)))
    has_media = any(not isinstance(part, TextPart) for part in parts)
    return user_message(join_text(parts), parts if has_media else ())


async def _load_part(part: AguiPart) -> ContentPart:
    """Return a part with its data. Its URL may have a public address only."""
    if isinstance(part, AguiTextPart):
        return TextPart(replace_surrogates(part.text))
    return await load_media_from_url(_get_url(part))


def _get_url(part: AguiPart) -> str:
    """Return the data or HTTP URL of an image or document. Raises: `ApiError` 400 for any other part."""
    if isinstance(part, ImagePart | DocumentPart):
        match part.source:
            case DataSource(value=data, mime_type=media_type):
                return f"data:{media_type};base64,{data}"
            case UrlSource(value=url) if url.startswith(("https://", "http://", "data:")):
                return url
    raise bad_input_error(
        f"A part of the type {part.type} cannot be used. Send text, and images and documents as data or with an HTTP URL."
    )
