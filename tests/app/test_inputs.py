"""Tasks are validated, and limits are created from the settings."""

from pathlib import Path

import pytest
from tests.app.settings import create_settings

from opposable.app.inputs import create_limits, validate_task
from opposable.domain.errors import BadInput
from opposable.domain.usage import Price

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("text", "task"),
    [("What?", "What?"), (" 多少？ ", " 多少？ "), ("a\udcffb", "a?b"), ("很" * 8_000_000, "很" * 8_000_000)],
    ids=["English", "Chinese", "a lone surrogate", "long"],
)
def test_a_valid_task_is_accepted(text: str, task: str) -> None:
    assert validate_task(text) == task


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "The task is empty. Describe in a sentence what to do."),
        (" \n\t", "The task is empty. Describe in a sentence what to do."),
        (
            "很" * 8_000_001,
            "The task has 8,000,001 characters; the maximum is 8,000,000. "
            "Put long material into a file and let a tool read it.",
        ),
    ],
    ids=["nothing", "blanks", "too long"],
)
def test_an_invalid_task_is_rejected(text: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        validate_task(text)
    assert str(caught.value) == message


async def test_a_cost_limit_requires_the_price_of_the_model_except_the_embedded_one(tmp_path: Path) -> None:
    capped = create_settings(tmp_path, cost=1.0)
    with pytest.raises(BadInput, match=r"price of 'openai:gpt' is unknown.*OPPOSABLE_PRICES"):
        create_limits(capped, "openai:gpt")
    assert create_limits(capped, "local").price == Price(0, 0)
    limits = create_limits(create_settings(tmp_path, cost=1.0, prices={"openai:gpt": (0.5, 2.0)}), "openai:gpt")
    assert (limits.cost, limits.price) == (1.0, Price(0.5, 2.0))
