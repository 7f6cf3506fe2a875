"""The model factory: models by name, such as `local` or `openai:NAME`."""

import ipaddress
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, get_args
from urllib.parse import urlsplit

from opposable.domain.errors import BadInput
from opposable.domain.input_checks import require_choice
from opposable.models.base import Model
from opposable.models.calling_modes import (
    CALLING_MODES,
    CallingMode,
    apply_calling_mode,
    get_default_calling_mode,
    get_expected_profile,
    load_calling_modes,
)
from opposable.models.embedded.weights import QWEN_CODER, find_installed_weights, get_models_directory
from opposable.models.http_client import RetryPolicy
from opposable.models.openai_compatible import CHAT_APIS, OpenAICompatibleModel, ServerQuirks
from opposable.models.openai_responses import OpenAIResponsesModel
from opposable.models.profile import update_profile
from opposable.models.upstream import ApiPath

ServerApi = Literal["chat", "responses"]
"""The API that a model of OpenAI or a compatible server is asked in."""

_RESPONSES_APIS: frozenset[ApiPath] = frozenset({"responses", "completions", "embeddings"})


@dataclass(frozen=True, slots=True)
class Provider:
    """A hosted provider; a model whose name begins with one of `name_starts` needs no provider before it."""

    base_url: str
    api_key_variable: str
    base_url_variable: str
    name_starts: tuple[str, ...]
    quirks: ServerQuirks = field(default_factory=ServerQuirks)


PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider(
        "https://api.openai.com/v1",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        ("gpt-", "chatgpt-", "o1", "o3", "o4"),
        ServerQuirks(max_tokens_key="max_completion_tokens", apis=CHAT_APIS | {"responses"}),
    ),
    "qwen": Provider(
        "https://dashscope.aliyuncs.com/compatible-mode/v1",
        "DASHSCOPE_API_KEY",
        "DASHSCOPE_BASE_URL",
        ("qwen", "qwq"),
    ),
    "deepseek": Provider(
        "https://api.deepseek.com/v1",
        "DEEPSEEK_API_KEY",
        "DEEPSEEK_BASE_URL",
        ("deepseek-",),
        ServerQuirks(images=False),
    ),
    "anthropic": Provider("https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", ("claude-",)),
}

API_KEY_VARIABLES: Mapping[str, str] = {kind: provider.api_key_variable for kind, provider in PROVIDERS.items()}
"""The environment variable with the API key, by provider."""

MODEL_NAME_FORMS = (
    "local, local:/path/to/model.gguf, openai:NAME, qwen:NAME, deepseek:NAME, anthropic:NAME, ollama:NAME, "
    "or http://HOST:PORT/v1#NAME for any OpenAI-compatible server. gpt-…, o3…, claude-…, qwen… and deepseek-… need no prefix"
)

REASONING_FAMILIES = re.compile(r"(o\d|gpt-[5-9]|codex-|computer-use-)(?!.*-chat-latest)")
"""Models of OpenAI that reason between calls: in chat completions they lose the reasoning, or take no tools."""

DEFAULT_OLLAMA_HOST, DEFAULT_OLLAMA_PORT = "127.0.0.1", ":11434"


def create_model(
    name: str,
    *,
    models_directory: Path | None = None,
    retry_policy: RetryPolicy | None = None,
    calling_mode: CallingMode | None = None,
    api: ServerApi | None = None,
) -> Model:
    """Create the model `name`.

    It connects or loads its weights only with the first request. API keys come from the environment, by the names in
    `API_KEY_VARIABLES`, and OPPOSABLE_API_KEY for a server by URL.

    Args:
        name: The name of the model; `MODEL_NAME_FORMS` lists the forms.
        models_directory: The directory of the model files and of the measured calling modes.
        retry_policy: Time-outs and retries of the requests.
        calling_mode: How it is asked for calls (default: as `opposable models check` found best, else that of its kind).
        api: `chat` or `responses`, at OpenAI or a compatible server (default: `responses` for reasoning models at OpenAI).

    Raises:
        BadInput: The name, the calling mode or the API is unknown, or its API key is missing.
    """
    name = normalize_model_name(name)
    directory = models_directory or get_models_directory()
    mode = calling_mode or load_calling_modes(directory).get(name) or get_default_calling_mode(name)
    require_choice("calling mode", mode, CALLING_MODES)
    require_choice("API", api or "chat", get_args(ServerApi))
    inner = create_unwrapped_model(name, models_directory=directory, retry_policy=retry_policy, api=api)
    return apply_calling_mode(mode, inner, assisted=get_expected_profile(name, mode).assisted)


def normalize_model_name(name: str) -> str:
    """Return the full form of a model's name: with its provider, and the URL of a model in Ollama.

    The server of Ollama is that of OLLAMA_HOST, by default the one of this machine. Other names are returned as they are.
    """
    kind, _, rest = name.strip().partition(":")
    if kind == "ollama" and rest:
        address = os.environ.get("OLLAMA_HOST", "").strip().rstrip("/")
        if "://" not in address:  # then Ollama has defaults for the host and the port
            address += "" if re.search(r":\d+$", address) else DEFAULT_OLLAMA_PORT
            address = f"http://{DEFAULT_OLLAMA_HOST if address.startswith(':') else ''}{address}"
        return f"{address}/v1#{rest}"
    if kind in (*PROVIDERS, "local", "http", "https"):
        return name
    return next((f"{kind}:{name}" for kind, one in PROVIDERS.items() if name.startswith(one.name_starts)), name)


def create_unwrapped_model(
    name: str,
    *,
    models_directory: Path | None = None,
    retry_policy: RetryPolicy | None = None,
    api: ServerApi | None = None,
) -> Model:
    """Create the model `name` without a calling mode. Raises: as `create_model`."""
    name = normalize_model_name(name)
    model = _create_model_of_kind(name, models_directory, retry_policy, api)
    kind = name.partition(":")[0]
    provider = "openai_compatible" if kind in ("http", "https") else kind
    update_profile(model, provider=provider, local=_has_local_server(name))
    return model


def _has_local_server(name: str) -> bool:
    """Return whether a model's server is on this machine or in a private network."""
    host = urlsplit(name).hostname or "."
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:  # a name
        return "." not in host or host.endswith((".localhost", ".local", ".internal"))


def _create_model_of_kind(
    name: str, models_directory: Path | None, retry_policy: RetryPolicy | None, api: ServerApi | None
) -> Model:
    kind, _, rest = name.partition(":")
    if kind == "local":
        from opposable.models.embedded.llama_cpp import LocalModel  # lazy: as each kind of model

        return LocalModel(_resolve_weights_path(rest, models_directory or get_models_directory()))
    provider = PROVIDERS.get(kind)
    if kind in ("http", "https"):
        url, rest = _split_server_name(name)
        key, quirks, reasons = os.environ.get("OPPOSABLE_API_KEY", ""), ServerQuirks(), True
    elif provider is not None and rest:
        url = os.environ.get(provider.base_url_variable) or provider.base_url
        key, quirks = _get_api_key(provider.api_key_variable, name), provider.quirks
        reasons = kind == "openai" and REASONING_FAMILIES.match(rest) is not None
    else:
        raise BadInput(f"There is no model named {name!r}. Use one of these forms: {MODEL_NAME_FORMS}.")
    if kind == "anthropic":
        from opposable.models.anthropic import AnthropicModel  # lazy: as above

        return AnthropicModel(rest, key, url, retry_policy=retry_policy)
    if not uses_responses_api(kind, rest, url, api):
        return OpenAICompatibleModel(rest, url, key, quirks=quirks, retry_policy=retry_policy)
    if api == "responses":
        quirks = replace(quirks, apis=_RESPONSES_APIS)
    return OpenAIResponsesModel(rest, url, key, reasoning=reasons, quirks=quirks, retry_policy=retry_policy)


def uses_responses_api(kind: str, model: str, url: str, api: ServerApi | None) -> bool:
    """Return whether a server is asked by the responses API: where `api` says so, else for OpenAI's reasoning models."""
    is_at_openai = kind == "openai" and (urlsplit(url).hostname or "").endswith("openai.com")
    return api == "responses" or (api is None and is_at_openai and REASONING_FAMILIES.match(model) is not None)


def _split_server_name(name: str) -> tuple[str, str]:
    """Return the base URL of a server, and the name of its model."""
    url, _, model = name.partition("#")
    host = None
    with suppress(ValueError):  # an incomplete IPv6 address
        host = urlsplit(url).hostname
    if not host or not model:
        raise BadInput(
            f"{name!r} is not the name of a model. Write the base URL of the server, then # and the name of the model, "
            "for example http://127.0.0.1:11434/v1#qwen3"
        )
    return url, model


def _resolve_weights_path(path: str, directory: Path) -> Path:
    if path:
        try:
            return Path(path).expanduser()
        except RuntimeError as error:
            raise BadInput(f"Cannot read the model file {path}: the user does not exist.") from error
    weights_path = find_installed_weights(QWEN_CODER, directory)
    if weights_path is None:
        raise BadInput("The embedded model is not on this machine yet. Download it once with: opposable models pull")
    return weights_path


def _get_api_key(variable: str, name: str) -> str:
    key = os.environ.get(variable, "").strip()
    if not key:
        raise BadInput(f"{name} needs an API key. Set the environment variable {variable}.")
    return key
