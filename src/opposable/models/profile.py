"""What is known about a model: how it calls tools, and whether it needs assistance."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from opposable.domain.content import TextPart, describe_media
from opposable.domain.errors import BadInput
from opposable.domain.messages import Message

Calling = Literal["native", "auto", "text", "constrained"]
"""How a model writes its tool calls.

`native`: the provider parses calls, and the text of a reply is text. `auto`: native, and a reply without native calls
is searched for whole calls in a chat template's own markers. `text`: calls are parsed from the reply in every form.
`constrained`: a grammar or schema enforces the form of the reply.
"""

ImageSupport = Literal["accept", "reject", "placeholder"]
"""What happens to images and files: the model gets them, a request with them is an error, or it gets a short text."""


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """What is known about a model. The factory sets it; the loop and `ask` read only `assisted`.

    Attributes:
        calling: How the model writes its tool calls.
        assisted: Whether assistance for small models is on.
        images: Whether messages may contain images and files.
        image_placeholders: Whether a model without images gets a short text for each image or file, instead of an error.
        reasoning: Whether replies carry reasoning apart from the answer.
        context: The context window in tokens; None where it is not known.
        provider: The name of the provider in traces, such as `openai`; "" where it is not known.
        local: Whether its server is on this machine or in a private network, and may render results into a text prompt.
    """

    calling: Calling = "native"
    assisted: bool = False
    images: bool = False
    image_placeholders: bool = False
    reasoning: bool = False
    context: int | None = None
    provider: str = ""
    local: bool = False


DEFAULT_PROFILE = ModelProfile()


def adapt_media(model: Any, messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the messages for a model: without images and files, if it gets placeholders for them.

    Raises:
        BadInput: If it takes text only.
    """
    profile = get_profile(model)
    if profile.images or not any(message.parts for message in messages):
        return tuple(messages)
    if not profile.image_placeholders:
        raise BadInput(
            f"The model {model.name} takes no images and files. Use a model that does, send text only, or set "
            "OPPOSABLE_IMAGES=placeholder to replace each by a short text."
        )
    return tuple(_replace_media(message) if message.parts else message for message in messages)


def _replace_media(message: Message) -> Message:
    """Return the message with a short text for each image and file; results of tools may have it already."""
    texts = [part.text if isinstance(part, TextPart) else describe_media(part) for part in message.ordered_parts]
    distinct = [text for n, text in enumerate(texts) if n == 0 or text not in texts[0]]
    return replace(message, content="\n".join(distinct), parts=())


def set_images(model: Any, images: ImageSupport) -> None:
    """Set what happens to images and files, in place of what the model's profile says."""
    update_profile(model, images=images == "accept", image_placeholders=images == "placeholder")


def update_profile(model: Any, **changes: Any) -> None:
    """Change fields of a model's profile."""
    model.profile = replace(get_profile(model), **changes)


def get_profile(model: Any) -> ModelProfile:
    """Return a model's `profile`; a model without one calls tools natively and needs no assistance."""
    profile = getattr(model, "profile", None)
    return profile if isinstance(profile, ModelProfile) else DEFAULT_PROFILE
