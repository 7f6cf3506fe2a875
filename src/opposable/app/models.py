"""Models opened by name, with the embedded model downloaded if necessary."""

import inspect
import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from math import comb
from pathlib import Path
from typing import Protocol, runtime_checkable

from opposable.domain.errors import ModelNotFound
from opposable.domain.events import ModelEvent
from opposable.domain.messages import Message, user_message
from opposable.domain.tools import ToolDefinition
from opposable.models.base import DEFAULT_OPTIONS, Model, ModelOptions
from opposable.models.calling_modes import (
    CALLING_MODES,
    CallingMode,
    apply_calling_mode,
    get_default_calling_mode,
    get_expected_profile,
    load_calling_modes,
    save_calling_mode,
)
from opposable.models.capability_probe import ProbeResult, load_probe_questions, probe_model
from opposable.models.embedded.weights import QWEN_CODER, PullProgress, find_installed_weights, get_models_directory
from opposable.models.factory import (
    API_KEY_VARIABLES,
    PROVIDERS,
    REASONING_FAMILIES,
    ServerApi,
    create_model,
    create_unwrapped_model,
    normalize_model_name,
    uses_responses_api,
)
from opposable.models.http_client import RetryPolicy
from opposable.models.profile import ImageSupport, ModelProfile, set_images, update_profile
from opposable.settings import Settings

MIN_QUESTIONS_TO_RECOMMEND = 30
"""With fewer questions in a compared mode, no other mode than the default one is recommended."""
SIGNIFICANCE_LEVEL = 0.05
"""The probability of recommending another mode than the default one by chance, over all compared modes."""

OnProgress = Callable[[PullProgress], None]
CONNECT_RETRY_POLICY = RetryPolicy(connect_timeout_seconds=2.5)
"""An address without a server is reported within ten seconds, after three attempts."""


def models_directory(settings: Settings) -> Path:
    """Return the folder of downloaded models."""
    return get_models_directory(settings.home)


async def open_model(
    settings: Settings,
    name: str | None = None,
    on_progress: OnProgress | None = None,
    *,
    retry_policy: RetryPolicy = CONNECT_RETRY_POLICY,
    calling_mode: CallingMode | None = None,
    images: ImageSupport | None = None,
    api: ServerApi | None = None,
) -> Model:
    """Open a model by name (default: that of the settings).

    Download the embedded one if it is missing. The calling mode is by default the measured one, else that of its kind.

    Raises:
        BadInput: No model has this name.
        WeightsError: The weights cannot be downloaded.
    """
    name = normalize_model_name(name or settings.model)
    await _download_if_missing(settings, name, on_progress)
    model = create_model(
        name,
        models_directory=models_directory(settings),
        retry_policy=retry_policy,
        calling_mode=calling_mode,
        api=api or settings.api,
    )
    if settings.assist is not None:
        update_profile(model, assisted=settings.assist)
    if image_support := images or settings.images:
        set_images(model, image_support)
    return model


async def open_unwrapped_model(settings: Settings, name: str, on_progress: OnProgress | None = None) -> Model:
    """Open a model without wrappers, whatever its support for tool calls.

    Raises:
        BadInput: No model has this name.
        WeightsError: The weights cannot be downloaded.
    """
    await _download_if_missing(settings, name, on_progress)
    return create_unwrapped_model(
        name, models_directory=models_directory(settings), retry_policy=CONNECT_RETRY_POLICY, api=settings.api
    )


def is_missing(settings: Settings, name: str | None = None) -> bool:
    """Return whether a model (default: that of the settings) is the embedded one and is not downloaded."""
    is_embedded = normalize_model_name(name or settings.model) == "local"
    return is_embedded and find_installed_weights(QWEN_CODER, models_directory(settings)) is None


class MissingModel:
    """The embedded model where it is not downloaded: what asks no model works, a request says how to get it."""

    name = "local"

    def __init__(self, settings: Settings) -> None:
        self.profile = get_model_profile(settings, self.name)

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition] = (), options: ModelOptions = DEFAULT_OPTIONS
    ) -> AsyncGenerator[ModelEvent, None]:
        """Raise: `ModelNotFound`."""
        raise ModelNotFound(
            f"The embedded model is not on this machine. Download it ({QWEN_CODER.size / 1e9:.1f} GB, once) with: "
            "opposable models pull"
        )
        yield  # an async generator, as the protocol requires

    async def aclose(self) -> None:
        """Do nothing: nothing is open."""


@runtime_checkable
class ConfirmsDownload(Protocol):
    """An observer of a download that is asked before it starts."""

    def confirm_download(self, size_bytes: int) -> None:
        """Return to start the download. Raises: `ModelNotFound` to refuse it."""
        ...


async def _download_if_missing(settings: Settings, name: str, on_progress: OnProgress | None) -> None:
    if is_missing(settings, name):
        if isinstance(on_progress, ConfirmsDownload):
            on_progress.confirm_download(QWEN_CODER.size)
        await pull_embedded(settings, on_progress)


async def pull_embedded(settings: Settings, on_progress: OnProgress | None = None) -> Path:
    """Download the embedded model if it is missing, and return its path.

    Raises:
        WeightsError: The weights cannot be downloaded.
    """
    from opposable.models.embedded.pull import pull_weights  # lazy: only a download needs its libraries

    return await pull_weights(QWEN_CODER, models_directory(settings), on_progress)


def get_model_profile(settings: Settings, name: str) -> ModelProfile:
    """Return the profile that a model or a kind of model is used with. No model is loaded, and no server is asked."""
    name = normalize_model_name(name)
    expected = get_expected_profile(name, get_calling_mode(settings, name))
    assisted = expected.assisted if settings.assist is None else settings.assist
    known = _get_profile_of_kind(settings, name)
    images = known.images if settings.images is None else settings.images == "accept"
    return replace(known, calling=expected.calling, assisted=assisted, images=images)


def _get_profile_of_kind(settings: Settings, name: str) -> ModelProfile:
    """Return the images, the reasoning and the context window with which the factory creates a model."""
    kind, _, rest = name.partition(":")
    if kind == "anthropic":
        from opposable.models.anthropic import AnthropicModel  # lazy: as each kind of model

        return AnthropicModel.profile
    if kind == "local":
        from opposable.models.embedded.llama_cpp import LocalModel  # lazy: as above

        return ModelProfile(context=inspect.signature(LocalModel).parameters["context_tokens"].default)
    provider = PROVIDERS.get(kind)
    if provider is None:
        return ModelProfile(images=True, reasoning=settings.api == "responses")
    url = os.environ.get(provider.base_url_variable) or provider.base_url
    is_reasoning = kind == "openai" and REASONING_FAMILIES.match(rest) is not None
    reasoning = is_reasoning and uses_responses_api(kind, rest, url, settings.api)
    return ModelProfile(images=provider.quirks.images, reasoning=reasoning)


def get_calling_mode(settings: Settings, name: str) -> CallingMode:
    """Return the mode in which a model is asked for tool calls: the saved one, else the default of its kind."""
    name = normalize_model_name(name)
    return load_calling_modes(models_directory(settings)).get(name) or get_default_calling_mode(name)


def list_model_kinds(settings: Settings) -> list[tuple[str, bool | None, str]]:
    """List the kinds of model: the name, whether its file or key is present, and a note.

    None for models of a server, which is not asked.
    """
    weights = find_installed_weights(QWEN_CODER, models_directory(settings))
    note = str(weights) if weights else "download it with: opposable models pull"
    kinds: list[tuple[str, bool | None, str]] = [("local", weights is not None, note)]
    for kind, variable in API_KEY_VARIABLES.items():
        is_set = bool(os.environ.get(variable))
        kinds.append((f"{kind}:NAME", is_set, f"{variable} is {'set' if is_set else 'not set'}"))
    return [
        *kinds,
        ("ollama:NAME", None, "a model of the Ollama server on this machine, or of OLLAMA_HOST"),
        ("http://HOST:PORT/v1#NAME", None, "any OpenAI-compatible server; key in OPPOSABLE_API_KEY if required"),
    ]


async def check_model(
    settings: Settings,
    name: str,
    modes: Sequence[CallingMode] = CALLING_MODES,
    on_progress: OnProgress | None = None,
    on_result: Callable[[CallingMode, ProbeResult], None] | None = None,
    question_count: int | None = None,
) -> dict[CallingMode, list[ProbeResult]]:
    """Test each calling mode of a model with the same questions. Nothing is saved: `save_model_calling_mode` does that.

    Args:
        settings: The settings.
        name: The name of the model.
        modes: The calling modes to test.
        on_progress: Called while the embedded model is downloaded.
        on_result: Called with each result.
        question_count: How many of the questions to ask, the first ones; None for all.

    Raises:
        ModelError: The model cannot be reached.
        BadInput: No model has this name.
        WeightsError: The weights cannot be downloaded.
    """
    name = normalize_model_name(name)
    inner = await open_unwrapped_model(settings, name, on_progress)
    results: dict[CallingMode, list[ProbeResult]] = {}
    try:
        async with aclosing(
            inner.stream((user_message("Say hello."),), (), ModelOptions(stream=False, max_tokens=5))
        ) as events:
            async for _ in events:  # a wrong key or address fails here, not as wrong answers
                pass
        for mode in modes:
            results[mode] = []
            async for result in probe_model(apply_calling_mode(mode, inner), load_probe_questions()[:question_count]):
                results[mode].append(result)
                if on_result is not None:
                    on_result(mode, result)
    finally:
        await inner.aclose()
    return results


@dataclass(frozen=True, slots=True)
class ModeRecommendation:
    """The calling mode to use for a model.

    Attributes:
        mode: The mode.
        reason: Why, as the end of a sentence.
        is_measured: Whether enough questions were asked to compare another mode with the default one.
    """

    mode: CallingMode
    reason: str
    is_measured: bool


def select_best_mode(name: str, results: Mapping[CallingMode, Sequence[ProbeResult]]) -> ModeRecommendation:
    """Recommend the default mode of the model `name`, or one that is clearly better on the same questions.

    A mode is clearly better if it wins more questions than it loses, by an exact one-sided sign test at 5 %, divided
    by the number of compared modes (Bonferroni). Of several, the one with the most correct answers is recommended.
    Tokens and time do not count.
    """
    default_mode = get_default_calling_mode(normalize_model_name(name))
    others = [mode for mode in results if mode != default_mode]
    number = min(map(len, results.values()), default=0)
    if default_mode not in results or not others or number < MIN_QUESTIONS_TO_RECOMMEND:
        needs = f"another mode needs {MIN_QUESTIONS_TO_RECOMMEND} questions, in it and in the default mode"
        return ModeRecommendation(default_mode, f"the default; to recommend {needs}", False)
    wins = {mode: _count_wins(results[mode], results[default_mode]) for mode in others}
    losses = {mode: _count_wins(results[default_mode], results[mode]) for mode in others}
    better = [mode for mode in others if compute_sign_test(wins[mode], losses[mode]) * len(others) < SIGNIFICANCE_LEVEL]
    if not better:
        return ModeRecommendation(default_mode, "the default; no other mode is clearly better", True)
    best = max(better, key=lambda mode: sum(result.passed for result in results[mode]))
    reason = f"against {default_mode}, {wins[best]} questions won and {losses[best]} lost"
    return ModeRecommendation(best, reason, True)


def _count_wins(results: Sequence[ProbeResult], others: Sequence[ProbeResult]) -> int:
    """Return how many questions are answered correctly here, but not there."""
    return sum(result.passed and not other.passed for result, other in zip(results, others, strict=True))


def compute_sign_test(wins: int, losses: int) -> float:
    """Return the probability of `wins` or more wins, if wins and losses are equally likely."""
    number = wins + losses
    probability: float = sum(comb(number, count) for count in range(wins, number + 1)) / 2**number
    return probability


def save_model_calling_mode(settings: Settings, name: str, mode: CallingMode) -> None:
    """Store the mode that `open_model` uses for the model `name` from now on.

    Raises:
        OSError: The file cannot be written.
    """
    save_calling_mode(models_directory(settings), normalize_model_name(name), mode)
