"""Authorization of tools and agents that HTTP requests define."""

import asyncio
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from opposable.domain.errors import BadInput, ToolError
from opposable.domain.specs import AgentSpec, AnyToolSpec, AuthConfig, HttpToolSpec, McpServerSpec, SkillSpec
from opposable.safety.network.ssrf_guard import SsrfGuard
from opposable.safety.secret_references import find_variable, get_referenced_variables
from opposable.service.service import Service
from opposable.settings import Settings
from opposable.tools.bindings import merge_config
from opposable.web.errors import forbidden_error
from opposable.web.principal import Principal


async def authorize_spec(spec: AnyToolSpec, service: Service, principal: Principal) -> None:
    """Check that a request may create a tool.

    Raises:
        ApiError: 403, with the setting that the owner of the server would have to change.
    """
    _check_secrets(spec, service.settings)
    match spec:
        case McpServerSpec():
            await _check_server(spec, service.settings, principal)
        case SkillSpec():
            _check_folder(spec.path, service.settings)


async def authorize_agent(
    spec: AgentSpec, service: Service, principal: Principal, previous: AgentSpec | None = None
) -> None:
    """Check that a request may create or change an agent.

    Args:
        spec: The agent. Its model must exist, and its bindings must be allowed.
        service: The service.
        principal: The principal of the request.
        previous: The current version of the agent. What it already has is not checked again.

    Raises:
        BadInput: If the model or a bound tool does not exist.
        ApiError: As `authorize_spec`.
    """
    service.get_model(spec.model)
    changed = [
        name for name in ("database", "semantics") if getattr(spec, name) not in ("", getattr(previous, name, ""))
    ]
    if changed and not principal.has_scope("admin"):
        raise forbidden_error(f"Setting {' and '.join(changed)} of an agent needs the scope 'admin'.")
    for binding in spec.tools:
        if previous is None or binding not in previous.tools:
            await authorize_binding(binding.tool_id, binding.config, service, principal)


async def authorize_binding(tool_id: str, config: dict[str, Any], service: Service, principal: Principal) -> None:
    """Check that a request may bind a tool with these overrides.

    Raises:
        BadInput: If the tool does not exist or the overrides are not valid.
        ApiError: As `authorize_spec`.
    """
    spec = await service.store.tools.get(tool_id)
    if spec is None:
        raise BadInput(f"There is no tool {tool_id!r}.")
    if config:
        await authorize_spec(merge_config(spec, config), service, principal)


def without_refused_auth(spec: AnyToolSpec, settings: Settings) -> AnyToolSpec:
    """Return a spec without its optional authentication, if tools that come over HTTP may not read its variables."""
    if not isinstance(spec, HttpToolSpec) or not spec.endpoint.auth.optional or not _list_refused(spec, settings):
        return spec
    headers = {name: value for name, value in spec.endpoint.headers.items() if not find_variable(value)}
    endpoint = spec.endpoint.model_copy(update={"auth": AuthConfig(), "headers": headers})
    return spec.model_copy(update={"endpoint": endpoint})


def _check_secrets(spec: AnyToolSpec, settings: Settings) -> None:
    for name in _list_refused(spec, settings):
        raise forbidden_error(
            f"{spec.tool_id} refers to the environment variable {name}, which tools that come over HTTP may not "
            f"read for {_get_host(spec) or 'it'}; the owner can list it in OPPOSABLE_SECRETS."
        )


def _list_refused(spec: AnyToolSpec, settings: Settings) -> list[str]:
    """Return the variables of a tool that the owner has not listed for its host."""
    host, allowed = _get_host(spec), settings.secrets
    return [name for name in get_referenced_variables(spec) if not {name, f"{name}@{host}"} & {*allowed}]


def _get_host(spec: AnyToolSpec) -> str:
    """Return the host that receives the secrets of a tool, "" for a program."""
    url = spec.endpoint.url_template if isinstance(spec, HttpToolSpec) else getattr(spec, "url", "")
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""


async def _check_server(spec: McpServerSpec, settings: Settings, principal: Principal) -> None:
    if not principal.has_scope("admin"):
        raise forbidden_error("Adding an MCP server needs the scope 'admin'.")
    if spec.command and not settings.programs:
        raise forbidden_error(
            "MCP servers may not be started as programs over HTTP; the owner can set OPPOSABLE_PROGRAMS=true."
        )
    if spec.url:
        await _check_address(spec.url, settings)


async def _check_address(url: str, settings: Settings) -> None:
    """Reject a URL whose host or addresses tools may not connect to."""
    guard = SsrfGuard(settings.private_hosts)
    try:
        target = guard.check_url(url)
        if target.address is None:
            await _check_resolved_addresses(guard, target.host, target.port)
    except ToolError as error:
        raise forbidden_error(str(error)) from error


async def _check_resolved_addresses(guard: SsrfGuard, host: str, port: int) -> None:
    try:
        addresses = await asyncio.get_running_loop().getaddrinfo(host, port)
    except OSError:
        return  # the name does not resolve now; connecting will report it
    for *_, address in addresses:
        guard.check_address(ip_address(str(address[0]).partition("%")[0]), host, port)


def _check_folder(path: Path, settings: Settings) -> None:
    """Reject a skill outside the folders in OPPOSABLE_SKILLS."""
    try:
        skill_path = path.resolve()
    except ValueError as error:
        raise BadInput(f"{str(path)!r} is not a valid path.") from error
    if not any(skill_path.is_relative_to(folder.resolve()) for folder in settings.skills):
        raise forbidden_error(
            "The skill is outside the allowed folders. The owner of the server can list folders in OPPOSABLE_SKILLS."
        )
