"""The messages of an AG-UI request as messages of a conversation."""

from collections.abc import Sequence

from ag_ui.core import ContentPart as AguiPart
from ag_ui.core import DataSource, DocumentPart, ImagePart, RunAgentInput, UrlSource, UserMessage
from ag_ui.core import TextPart as AguiTextPart

from opposable.app.inputs import validate_task
from opposable.app.media import load_media_from_url
from opposable.domain.content import ContentPart, TextPart, join_text
from opposable.domain.messages import Message, user_message
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


async def _read_user_message(message: UserMessage) -> Message:
    if isinstance(message.content, str):
        return user_message(_replace_surrogates(message.content))
    parts = await _load_parts(message.content)
    has_media = any(not isinstance(part, TextPart) for part in parts)
    return user_message(join_text(parts), parts if has_media else ())


async def _load_parts(parts: Sequence[AguiPart]) -> tuple[ContentPart, ...]:
    """Return the parts without empty texts. URLs may have public addresses only."""
    urls = [None if isinstance(part, AguiTextPart) else _get_url(part) for part in parts]
    if len(urls) - urls.count(None) > MAX_ATTACHMENTS:
        raise bad_input_error(f"A message may have up to {MAX_ATTACHMENTS} images and documents.")
    loaded: list[ContentPart] = []
    for part, url in zip(parts, urls, strict=True):
        if url is not None:
            loaded.append(await load_media_from_url(url))
        elif isinstance(part, AguiTextPart) and part.text:
            loaded.append(TextPart(_replace_surrogates(part.text)))
    return tuple(loaded)


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


def _replace_surrogates(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
