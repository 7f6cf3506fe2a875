"""What is known about a model: how it calls tools, and whether it needs assistance."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

from opposable.domain.errors import BadInput
from opposable.domain.messages import Message

Calling = Literal["native", "auto", "text", "constrained"]
"""How a model writes its tool calls.

`native`: the provider parses calls, and the text of a reply is text. `auto`: native, and a reply without native calls
is searched for whole calls in a chat template's own markers. `text`: calls are parsed from the reply in every form.
`constrained`: a grammar or schema enforces the form of the reply.
"""


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """What is known about a model. The factory sets it; the loop and `ask` read only `assisted`.

    Attributes:
        calling: How the model writes its tool calls.
        assisted: Whether assistance for small models is on.
        images: Whether messages may contain images.
        reasoning: Whether replies carry reasoning apart from the answer.
        context: The context window in tokens; None where it is not known.
    """

    calling: Calling = "native"
    assisted: bool = False
    images: bool = False
    reasoning: bool = False
    context: int | None = None


DEFAULT_PROFILE = ModelProfile()


def check_media(model: Any, messages: Iterable[Message]) -> None:
    """Check that a model takes the images and files of the messages.

    Raises:
        BadInput: If it takes text only.
    """
    if any(message.parts for message in messages) and not get_profile(model).images:
        raise BadInput(f"The model {model.name} takes no images and files. Use a model that does, or send text only.")


def set_assisted(model: Any, assisted: bool) -> None:
    """Turn assistance for small models on or off, in place of what the model's profile says."""
    model.profile = replace(get_profile(model), assisted=assisted)


def get_profile(model: Any) -> ModelProfile:
    """Return a model's `profile`; a model without one calls tools natively and needs no assistance."""
    profile = getattr(model, "profile", None)
    return profile if isinstance(profile, ModelProfile) else DEFAULT_PROFILE
