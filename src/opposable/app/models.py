"""Models opened by name: fetched where that is needed, and checked."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path

from opposable.domain.messages import user
from opposable.models.base import Model, ModelOptions
from opposable.models.calling_modes import WAYS, Way, asked, remember
from opposable.models.capability_probe import Mark, examine
from opposable.models.embedded.weights import QWEN_CODER, Progress, default_directory, installed, pull
from opposable.models.factory import KEY_VARIABLES, build, raw
from opposable.models.http_client import Patience
from opposable.settings import Settings

OnProgress = Callable[[Progress], None]
PATIENCE = Patience(connect=2.5)
"""An address where nothing answers is told of within ten seconds, in three tries."""


def models_directory(settings: Settings) -> Path:
    """Where models are kept."""
    return default_directory(settings.home)


async def ready_model(settings: Settings, name: str | None = None, on_progress: OnProgress | None = None) -> Model:
    """The model called `name` (by default the settings'); the embedded one is fetched when it is not there yet.

    Raises: `BadInput` for a name no model has, `WeightsError` when the weights cannot be had.
    """
    name = name or settings.model
    await _fetched(settings, name, on_progress)
    return build(name, models_directory=models_directory(settings), patience=PATIENCE)


async def ready_raw(settings: Settings, name: str, on_progress: OnProgress | None = None) -> Model:
    """The model called `name` as it is, whatever it makes of tools. Raises: as `ready_model`."""
    await _fetched(settings, name, on_progress)
    return raw(name, models_directory=models_directory(settings), patience=PATIENCE)


async def _fetched(settings: Settings, name: str, on_progress: OnProgress | None) -> None:
    directory = models_directory(settings)
    if name == "local" and installed(QWEN_CODER, directory) is None:
        await pull(QWEN_CODER, directory, on_progress)


async def pull_embedded(settings: Settings, on_progress: OnProgress | None = None) -> Path:
    """Fetch the embedded model if it is not there. Raises: `WeightsError`."""
    return await pull(QWEN_CODER, models_directory(settings), on_progress)


def model_kinds(settings: Settings) -> list[tuple[str, bool, str]]:
    """The kinds of model: name, whether it can be used now, and a note."""
    there = installed(QWEN_CODER, models_directory(settings))
    kinds = [("local", there is not None, str(there) if there else "fetch it with: opposable models pull")]
    for kind, variable in KEY_VARIABLES.items():
        is_set = bool(os.environ.get(variable))
        kinds.append((f"{kind}:NAME", is_set, f"{variable} is {'set' if is_set else 'not set'}"))
    return [
        *kinds,
        ("http://HOST:PORT/v1#NAME", True, "any OpenAI-compatible server; key in OPPOSABLE_API_KEY if it wants one"),
    ]


async def check_model(
    settings: Settings,
    name: str,
    ways: Sequence[Way] = WAYS,
    on_progress: OnProgress | None = None,
    on_mark: Callable[[Way, Mark], None] | None = None,
) -> dict[Way, list[Mark]]:
    """Try each way of asking a model for calls on a short exam, and remember the best for this model.

    Raises: `ModelError` when the model cannot be reached at all, else as `ready_model`.
    """
    inner = await ready_raw(settings, name, on_progress)
    marks: dict[Way, list[Mark]] = {}
    try:
        async with aclosing(inner.stream((user("Say hello."),), (), ModelOptions(stream=False, max_tokens=5))) as parts:
            async for _ in parts:  # a wrong key or address is told at once, not as failed questions
                pass
        for way in ways:
            marks[way] = []
            async for mark in examine(asked(way, inner)):
                marks[way].append(mark)
                if on_mark is not None:
                    on_mark(way, mark)
    finally:
        await inner.aclose()
    if any(mark.right for each in marks.values() for mark in each):
        remember(models_directory(settings), name, best_way(marks))
    return marks


def best_way(marks: Mapping[Way, Sequence[Mark]]) -> Way:
    """The way with the most right answers; among equals the one that took the fewest tokens."""
    return max(marks, key=lambda way: (sum(m.right for m in marks[way]), -sum(m.tokens for m in marks[way])))
