"""Parameters of a request that the gateway does not use itself: passed on, ignored as hints, or rejected."""

from collections.abc import Mapping
from typing import Any

from opposable.models.base import Model
from opposable.models.profile import get_profile
from opposable.models.upstream import find_upstream
from opposable.web.openai_errors import GatewayError, bad_request_error

OWNED_PARAMETERS = frozenset(
    {
        "model",
        "messages",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "stream",
        "stream_options",
        "max_tokens",
        "max_completion_tokens",
        "temperature",
        "stop",
        "seed",
        "response_format",
        "n",
        "functions",
        "function_call",
    }
)
"""The parameters that the gateway parses."""

REPLY_PARAMETERS = frozenset({"logprobs", "top_logprobs", "modalities", "audio", "web_search_options", "prediction"})
"""Parameters that change the reply in a way that is lost when calls are parsed from its text."""

HINTS = frozenset(
    {
        "user",
        "metadata",
        "safety_identifier",
        "prompt_cache_key",
        "prompt_cache_retention",
        "service_tier",
        "store",
    }
)
"""Parameters that do not change the reply."""

_NEUTRAL_VALUES: Mapping[str, tuple[Any, ...]] = {
    "logprobs": (False,),
    "top_logprobs": (0,),
    "modalities": (["text"],),
    "store": (False,),
    "service_tier": ("auto", "default"),
    "top_p": (1,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "logit_bias": ({},),
}
"""Values that are the same as a missing parameter."""


def select_extra_parameters(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that the gateway does not use itself, without those that have no effect."""
    return {
        name: value
        for name, value in body.items()
        if name not in OWNED_PARAMETERS and value is not None and value not in _NEUTRAL_VALUES.get(name, ())
    }


def resolve_extra_body(
    model: Model, parameters: Mapping[str, Any], hints: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the parameters to send to the model's server, with the hints that it supports.

    Raises:
        GatewayError: 400, for a parameter that the model does not support.
    """
    for name in parameters:
        if name in REPLY_PARAMETERS:
            is_native = get_profile(model).calling == "native"
            reason = " in this API" if is_native else ", whose tool calls are parsed from its text"
            raise _unsupported_error(name, f"{name} is not supported for {model.name}{reason}.")
    if find_upstream(model, "chat/completions") is not None:
        return {**(hints or {}), **parameters}
    supported = _get_supported_parameters(model)
    for name in parameters:
        if name not in supported and name not in HINTS:
            raise _unsupported_error(name, f"{name} is not supported by the model {model.name}. Remove it.")
    return {name: value for name, value in {**(hints or {}), **parameters}.items() if name in supported}


def _get_supported_parameters(model: Any) -> frozenset[str]:
    while model is not None:
        supported: frozenset[str] | None = getattr(model, "extra_parameters", None)
        if supported is not None:
            return supported
        model = getattr(model, "inner", None)
    return frozenset()


def _unsupported_error(name: str, message: str) -> GatewayError:
    return bad_request_error(name, message, "unsupported_parameter")
