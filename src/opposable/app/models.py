"""Models opened by name: fetched where that is needed, and checked."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path

from opposable.domain.messages import user_message
from opposable.models.base import Model, ModelOptions
from opposable.models.calling_modes import CALLING_MODES, CallingMode, apply_calling_mode, save_calling_mode
from opposable.models.capability_probe import ProbeResult, probe_model
from opposable.models.embedded.weights import (
    QWEN_CODER,
    PullProgress,
    find_installed_weights,
    get_models_directory,
    pull_weights,
)
from opposable.models.factory import API_KEY_VARIABLES, create_model, create_unwrapped_model
from opposable.models.http_client import RetryPolicy
from opposable.settings import Settings

OnProgress = Callable[[PullProgress], None]
CONNECT_RETRY_POLICY = RetryPolicy(connect_timeout_seconds=2.5)
"""An address where nothing answers is told of within ten seconds, in three tries."""


def models_directory(settings: Settings) -> Path:
    """Where models are kept."""
    return get_models_directory(settings.home)


async def open_model(settings: Settings, name: str | None = None, on_progress: OnProgress | None = None) -> Model:
    """The model called `name` (by default the settings'); the embedded one is fetched when it is not there yet.

    Raises: `BadInput` for a name no model has, `WeightsError` when the weights cannot be had.
    """
    name = name or settings.model
    await _download_if_missing(settings, name, on_progress)
    return create_model(name, models_directory=models_directory(settings), retry_policy=CONNECT_RETRY_POLICY)


async def open_unwrapped_model(settings: Settings, name: str, on_progress: OnProgress | None = None) -> Model:
    """The model called `name` as it is, whatever it makes of tools. Raises: as `ready_model`."""
    await _download_if_missing(settings, name, on_progress)
    return create_unwrapped_model(name, models_directory=models_directory(settings), retry_policy=CONNECT_RETRY_POLICY)


async def _download_if_missing(settings: Settings, name: str, on_progress: OnProgress | None) -> None:
    directory = models_directory(settings)
    if name == "local" and find_installed_weights(QWEN_CODER, directory) is None:
        await pull_weights(QWEN_CODER, directory, on_progress)


async def pull_embedded(settings: Settings, on_progress: OnProgress | None = None) -> Path:
    """Fetch the embedded model if it is not there. Raises: `WeightsError`."""
    return await pull_weights(QWEN_CODER, models_directory(settings), on_progress)


def list_model_kinds(settings: Settings) -> list[tuple[str, bool, str]]:
    """The kinds of model: name, whether it can be used now, and a note."""
    there = find_installed_weights(QWEN_CODER, models_directory(settings))
    kinds = [("local", there is not None, str(there) if there else "fetch it with: opposable models pull")]
    for kind, variable in API_KEY_VARIABLES.items():
        is_set = bool(os.environ.get(variable))
        kinds.append((f"{kind}:NAME", is_set, f"{variable} is {'set' if is_set else 'not set'}"))
    return [
        *kinds,
        ("http://HOST:PORT/v1#NAME", True, "any OpenAI-compatible server; key in OPPOSABLE_API_KEY if it wants one"),
    ]


async def check_model(
    settings: Settings,
    name: str,
    modes: Sequence[CallingMode] = CALLING_MODES,
    on_progress: OnProgress | None = None,
    on_result: Callable[[CallingMode, ProbeResult], None] | None = None,
) -> dict[CallingMode, list[ProbeResult]]:
    """Try each way of asking a model for calls on a short exam, and remember the best for this model.

    Raises: `ModelError` when the model cannot be reached at all, else as `ready_model`.
    """
    inner = await open_unwrapped_model(settings, name, on_progress)
    marks: dict[CallingMode, list[ProbeResult]] = {}
    try:
        async with aclosing(
            inner.stream((user_message("Say hello."),), (), ModelOptions(stream=False, max_tokens=5))
        ) as parts:
            async for _ in parts:  # a wrong key or address is told at once, not as failed questions
                pass
        for way in modes:
            marks[way] = []
            async for mark in probe_model(apply_calling_mode(way, inner)):
                marks[way].append(mark)
                if on_result is not None:
                    on_result(way, mark)
    finally:
        await inner.aclose()
    if any(mark.passed for each in marks.values() for mark in each):
        save_calling_mode(models_directory(settings), name, select_best_mode(marks))
    return marks


def select_best_mode(results: Mapping[CallingMode, Sequence[ProbeResult]]) -> CallingMode:
    """The way with the most right answers; among equals the one that took the fewest tokens."""
    return max(results, key=lambda way: (sum(m.passed for m in results[way]), -sum(m.tokens for m in results[way])))
