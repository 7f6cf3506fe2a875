"""The models of a gateway as a YAML file: names, aliases, fallbacks, retries, and which keys may use them."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from opposable.app.models import CONNECT_RETRY_POLICY, OnProgress, open_model
from opposable.domain.errors import BadInput
from opposable.domain.validation_problems import describe_problems, describe_yaml_error
from opposable.domain.yaml_checks import check_yaml_events
from opposable.models.base import Model
from opposable.models.calling_modes import CallingMode
from opposable.models.factory import ServerApi
from opposable.models.fallback import DEFAULT_FALLBACK_KINDS, FallbackKind, FallbackModel
from opposable.models.profile import ImageSupport
from opposable.settings import Settings


class ModelRoute(BaseModel):
    """A model under the name that clients use.

    Attributes:
        name: The name that clients use.
        model: The model, such as `openai:NAME`; by default `name`.
        aliases: Further names.
        fallbacks: The models that are asked if it fails: names of this file, or models.
        fallback_on: The failures after which a fallback is asked.
        retries: Attempts after the first one.
        timeout_seconds: Time without any data from the server.
        calling: The calling mode, by default the measured one, else that of its kind.
        api: The API of a server of OpenAI or a compatible one, by default as for `create_model`.
        images: What happens to images and files, by default as the model's profile says.
    """

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1)
    model: str = ""
    aliases: list[str] = []
    fallbacks: list[str] = []
    fallback_on: list[FallbackKind] = list(DEFAULT_FALLBACK_KINDS)
    retries: int = Field(default=2, ge=0, le=10)
    timeout_seconds: float = Field(default=600.0, gt=0)
    calling: CallingMode | None = None
    api: ServerApi | None = None
    images: ImageSupport | None = None


class GatewayConfig(BaseModel):
    """The models of a gateway, in the order in which they are listed; the first is the default.

    Attributes:
        models: The models.
        keys: The models that an API key may use, by the name of the key. A key that is not listed may use all.
    """

    model_config = ConfigDict(extra="forbid")

    models: list[ModelRoute] = Field(min_length=1)
    keys: dict[str, list[str]] = {}

    @model_validator(mode="after")
    def _check_names(self) -> "GatewayConfig":
        names = [name for route in self.models for name in (route.name, *route.aliases)]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"names and aliases must be unique; these are repeated: {', '.join(repeated)}")
        if circular := [route.name for route in self.models if {route.name, *route.aliases} & {*route.fallbacks}]:
            raise ValueError(f"a model cannot be its own fallback: {', '.join(circular)}")
        allowed = {name for names in self.keys.values() for name in names if not name.startswith("agent/")}
        if unknown := sorted(allowed - set(names)):
            raise ValueError(
                f"keys lists {', '.join(unknown)}, but the models of this file are {', '.join(names)} (and agent/NAME)"
            )
        return self


def load_gateway_config(path: Path) -> GatewayConfig:
    """Read a configuration.

    Raises:
        BadInput: The file cannot be read, or is not a valid configuration; the message names the field.
    """
    import yaml  # lazy: the extra "serve"

    try:
        text = path.read_text(encoding="utf-8")
        check_yaml_events(yaml.parse(text, Loader=yaml.SafeLoader))
        data = yaml.safe_load(text)
    except OSError as error:
        raise BadInput(f"Cannot read {path}: {error.strerror}.") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise BadInput(f"{path} is not valid YAML: {describe_yaml_error(error)}.") from error
    if not isinstance(data, dict):
        raise BadInput(f"{path} is not a valid configuration. It must have the list `models`.")
    try:
        return GatewayConfig.model_validate(data)
    except ValidationError as error:
        problems = describe_problems(error, GatewayConfig).removeprefix("the data: ")
        raise BadInput(f"{path} is not a valid configuration. {problems}.") from error


@asynccontextmanager
async def open_configured_models(
    settings: Settings, config: GatewayConfig, on_progress: OnProgress | None = None
) -> AsyncIterator[dict[str, Model]]:
    """Open the models of a configuration under their names; closed at the end.

    Raises:
        BadInput: No model has this name.
        WeightsError: The weights of the embedded model cannot be downloaded.
    """
    routes = {name: route for route in config.models for name in (route.name, *route.aliases)}
    opened: dict[str, Model] = {}
    async with AsyncExitStack() as stack:

        async def open_once(name: str) -> Model:
            route = routes.get(name)
            key = name if route is None else route.name
            if key not in opened:
                opened[key] = await _open_route(settings, name, route, on_progress)
                stack.push_async_callback(opened[key].aclose)
            return opened[key]

        models: dict[str, Model] = {}
        for route in config.models:
            model = await open_once(route.name)
            if route.fallbacks:
                replacements = [await open_once(name) for name in route.fallbacks]
                model = FallbackModel(route.name, [model, *replacements], route.fallback_on)
            models |= dict.fromkeys((route.name, *route.aliases), model)
        yield models


async def _open_route(settings: Settings, name: str, route: ModelRoute | None, on_progress: OnProgress | None) -> Model:
    if route is None:
        return await open_model(settings, name, on_progress)
    retry_policy = replace(
        CONNECT_RETRY_POLICY, max_attempts=route.retries + 1, read_timeout_seconds=route.timeout_seconds
    )
    return await open_model(
        settings,
        route.model or route.name,
        on_progress,
        retry_policy=retry_policy,
        calling_mode=route.calling,
        images=route.images,
        api=route.api,
    )
