"""Validation of a user's task, and the limits of a run."""

from opposable.agent.limits import Limits
from opposable.domain.errors import BadInput
from opposable.domain.usage import Price
from opposable.models.factory import normalize_model_name
from opposable.settings import Settings

FREE_PRICE = Price(0, 0)
MAX_TASK_CHARACTERS = 8_000_000
"""The maximum length of a task or question. It protects the service: a request body has at most 32 MB."""


def validate_task(text: str, *, is_question: bool = False) -> str:
    """Return the text of a task or question, checked.

    Raises:
        BadInput: It is empty or too long.
    """
    text = replace_surrogates(text)
    if not text.strip():
        empty_question = "The question is empty. Ask it in a sentence."
        raise BadInput(empty_question if is_question else "The task is empty. Describe in a sentence what to do.")
    if len(text) > MAX_TASK_CHARACTERS:
        raise BadInput(
            f"The task has {len(text):,} characters; the maximum is {MAX_TASK_CHARACTERS:,}. Put long material into a file and let a tool read it."
        )
    return text


def replace_surrogates(text: str) -> str:
    """Return a text with question marks for lone surrogates, which databases and servers reject."""
    return text.encode("utf-8", "replace").decode()


def get_model_price(settings: Settings, name: str) -> Price | None:
    """Return the price of a model, which is set under its name as given or in full; None if it is unknown."""
    per_million = settings.prices.get(name) or settings.prices.get(normalize_model_name(name))
    return Price(*per_million) if per_million else FREE_PRICE if name == "local" else None


def create_limits(settings: Settings, model: str | None = None) -> Limits:
    """Create the limits of one run with a model.

    Raises:
        BadInput: There is a cost limit, but the price of the model is unknown.
    """
    name = model or settings.model
    price = get_model_price(settings, name)
    if settings.cost is not None and price is None:
        raise BadInput(
            f"A cost limit is set, but the price of {name!r} is unknown. Set the price of a million input and output "
            f"tokens, as in OPPOSABLE_PRICES='{{\"{name}\": [0.5, 2]}}'."
        )
    return Limits(
        turns=settings.turns,
        tool_calls=settings.tool_calls,
        seconds=settings.seconds,
        tokens=settings.tokens,
        cost=settings.cost,
        price=price,
    )
