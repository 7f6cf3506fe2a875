"""Parameters of a request that the gateway does not use itself: passed on, ignored as hints, or rejected."""

from collections.abc import Container, Iterable, Mapping
from typing import Any
from urllib.parse import quote

from opposable.models.base import Model
from opposable.models.profile import get_profile
from opposable.models.upstream import ClientRequest, find_upstream
from opposable.web.openai_errors import GatewayError, bad_request_error

OWNED_PARAMETERS = frozenset(
    {"model", "messages", "tools", "tool_choice", "parallel_tool_calls", "functions", "function_call", "stream", "n"}
    | {"stream_options", "max_tokens", "max_completion_tokens", "temperature", "stop", "seed", "response_format"}
)
"""The parameters that the gateway parses."""

REPLY_PARAMETERS = frozenset({"logprobs", "top_logprobs", "modalities", "audio", "web_search_options", "prediction"})
"""Parameters that change the reply in a way that is lost when calls are parsed from its text."""

HINTS = frozenset(
    {"user", "metadata", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "service_tier", "store"}
    | {"reasoning_effort", "verbosity"}
)
"""Parameters that do not change what a valid reply is; models that do not support them ignore and report them."""

IGNORED_HEADER = "opposable-ignored-parameters"
"""The header of a response that names the parameters that had no effect."""

_OPTIONS: Mapping[str, str] = {"max_completion_tokens": "max_tokens", "max_output_tokens": "max_tokens"}
"""The option that a parameter sets, if it has another name."""

_HINT_PATHS: Mapping[str, str] = {"reasoning_effort": "reasoning.effort", "verbosity": "text.verbosity"}
"""The parameters of the responses API that are hints with another name for servers of chat completions."""

_NEUTRAL_VALUES: Mapping[str, tuple[Any, ...]] = {
    "logprobs": (False,),
    "top_logprobs": (0,),
    "modalities": (["text"],),
    "store": (False,),
    "service_tier": ("auto", "default"),
    "logit_bias": ({},),
    "truncation": ("disabled",),
    "include": ([],),
    "thinking": ({"type": "disabled"},),
}
"""Values that are the same as a missing parameter."""

_NEUTRAL_SAMPLING: Mapping[str, float] = {"top_p": 1, "presence_penalty": 0, "frequency_penalty": 0}
"""Values that need no support of a model. A server gets them, because its own default may be another."""


def select_parameters(body: Mapping[str, Any], names: Container[str]) -> dict[str, Any]:
    """Return these parameters of a body, without values that are the same as a missing parameter."""
    return {
        name: value
        for name, value in body.items()
        if name in names and value is not None and value not in _NEUTRAL_VALUES.get(name, ())
    }


def resolve_extra_body(model: Model, parameters: Mapping[str, Any], hints: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters to send to the model's server, with the hints that it supports.

    Raises:
        GatewayError: 400, for a parameter that the model does not support.
    """
    for name in parameters:
        if name in REPLY_PARAMETERS:
            is_native = get_profile(model).calling in ("native", "auto")
            reason = " in this API" if is_native else ", whose tool calls are parsed from its text"
            raise _unsupported_error(name, f"{name} is not supported for {model.name}{reason}.")
    if find_upstream(model, "chat/completions") is not None:
        return {**hints, **parameters}
    supported = find_names(model, "extra_parameters")
    for name, value in parameters.items():
        if name not in supported and _NEUTRAL_SAMPLING.get(name) != value:
            raise _unsupported_error(name, f"{name} is not supported by the model {model.name}. Remove it.")
    return {name: value for name, value in {**hints, **parameters}.items() if name in supported}


def report_ignored_parameters(client: ClientRequest, model: Model, hints: Mapping[str, Any], *ignored: str) -> None:
    """Name the parameters that have no effect in a header of the response.

    Args:
        client: The request.
        model: The model, which may not support some of the hints and options.
        hints: The hints of the request.
        ignored: Parameters that no model of this kind supports.
    """
    unsupported = find_names(model, "unsupported_options") - {"response_schema"}
    names = [*ignored, *(name for name in client.body if _OPTIONS.get(name, name) in unsupported)]
    if hints and find_upstream(model, "chat/completions") is None:
        supported = find_names(model, "extra_parameters")
        unsupported_hints = [name for name in hints if name not in supported]
        names += [name if name in client.body else _HINT_PATHS.get(name, name) for name in unsupported_hints]
    set_ignored_header(client, names)


def set_ignored_header(client: ClientRequest, names: Iterable[str]) -> None:
    """Name parameters in the header of the response, percent-encoded where a header has no place for a character."""
    if listed := ", ".join(map(quote, names)):
        client.response_headers[IGNORED_HEADER] = listed


def find_names(model: Any, attribute: str) -> frozenset[str]:
    """Return the names in an attribute of a model, which may be wrapped; none without one."""
    while model is not None:
        names: frozenset[str] | None = getattr(model, attribute, None)
        if names is not None:
            return names
        model = getattr(model, "inner", None)
    return frozenset()


def _unsupported_error(name: str, message: str) -> GatewayError:
    return bad_request_error(name, message, "unsupported_parameter")
