"""What a user gave, made into a task and into limits."""

from opposable.agent.limits import Limits
from opposable.domain.errors import BadInput
from opposable.domain.usage import Price
from opposable.settings import Settings

FREE_PRICE = Price(0, 0)
MAX_TASK_CHARACTERS = 100_000
"""Characters of one task or question; what is longer belongs into a file."""


def validate_task(text: str) -> str:
    """A task or question as given by a user. Raises: `BadInput` when it is empty or too long."""
    text = text.encode("utf-8", "replace").decode()
    if not text.strip():
        raise BadInput("The task is empty; say in a sentence what to do.")
    if len(text) > MAX_TASK_CHARACTERS:
        raise BadInput(
            f"The task has {len(text):,} characters; at most {MAX_TASK_CHARACTERS:,} are taken. Put long material into a file and let a tool read it."
        )
    return text


def create_limits(settings: Settings, model: str | None = None) -> Limits:
    """The limits of one run with `model`. Raises: `BadInput` for a cost when the model's price is not known."""
    name = model or settings.model
    per_million = settings.prices.get(name)
    price = Price(*per_million) if per_million else FREE_PRICE if name == "local" else None
    if settings.cost is not None and price is None:
        raise BadInput(
            f"A limit on the cost is set, but the price of {name!r} is not: give what a million tokens cost, read and "
            f"written, as in OPPOSABLE_PRICES='{{\"{name}\": [0.5, 2]}}'."
        )
    return Limits(
        turns=settings.turns,
        tool_calls=settings.tool_calls,
        seconds=settings.seconds,
        tokens=settings.tokens,
        cost=settings.cost,
        price=price,
    )
