"""The authentication of an operation: one of its security requirements, with secrets named after the scheme."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from opposable.domain.specs import AuthConfig
from opposable.tools.http.openapi.document import OpenApiDocument, to_short_text


@dataclass(frozen=True, slots=True)
class OperationAuth:
    """How a request is authenticated: `auth`, and `headers` for further keys."""

    auth: AuthConfig
    headers: Mapping[str, str]


def get_operation_auth(document: OpenApiDocument, operation: Mapping[str, Any], prefix: str) -> OperationAuth:
    """Return the first supported requirement of an operation; plain keys and tokens are preferred to OAuth.

    The authentication is optional if an empty requirement is one of the alternatives.

    Secrets are `env:SCHEME_TOKEN`, `env:SCHEME_API_KEY`, `env:SCHEME_USERNAME` and `env:SCHEME_PASSWORD`, with the
    prefix first.

    Raises:
        LookupError: No requirement is supported.
    """
    security = operation.get("security", document.root.get("security", []))
    requirements = [item for item in security if isinstance(item, Mapping)] if isinstance(security, list) else []
    is_optional = not all(requirements)
    candidates: list[tuple[int, OperationAuth]] = []
    reasons: list[str] = []
    for requirement in filter(None, requirements):
        try:
            candidates.append(_create_operation_auth(document, list(requirement), prefix))
        except LookupError as error:
            reasons.append(str(error))
    if not candidates and reasons and not is_optional:
        raise LookupError(f"cannot be authenticated: {'; '.join(reasons)}")
    if not candidates:
        return OperationAuth(AuthConfig(), {})
    chosen = min(candidates, key=lambda candidate: candidate[0])[1]
    return replace(chosen, auth=chosen.auth.model_copy(update={"optional": is_optional}))


def _create_operation_auth(document: OpenApiDocument, names: list[str], prefix: str) -> tuple[int, OperationAuth]:
    """Return the authentication by schemes that are needed together, after its cost: the lowest is preferred."""
    auths = [_create_auth_config(document, name, prefix) for name in names]
    header_keys = [auth for auth in auths if auth.type == "api_key" and auth.place == "header"]
    main = next((auth for auth in auths if auth not in header_keys), auths[0])
    others = [auth for auth in auths if auth is not main]
    if any(auth not in header_keys for auth in others):
        raise LookupError(f"{' and '.join(names)} are needed together")
    oauth = [name for name in names if _get_scheme(document, name).get("type") in ("oauth2", "openIdConnect")]
    return 10 * len(oauth) + len(names), OperationAuth(main, {auth.name: auth.token for auth in others})


def _get_scheme(document: OpenApiDocument, name: str) -> Mapping[str, Any]:
    schemes = document.get_components("securitySchemes")
    if name not in schemes:
        raise LookupError(f"the security scheme {name} is not described")
    return document.resolve_node(schemes[name])


def _create_auth_config(document: OpenApiDocument, name: str, prefix: str) -> AuthConfig:
    scheme = _get_scheme(document, name)
    variable = re.sub(r"[^A-Z0-9]+", "_", "_".join(filter(None, (prefix, name))).upper()).strip("_") or "API"
    variable = f"_{variable}" if variable[0].isdigit() else variable
    match scheme.get("type"), to_short_text(scheme.get("scheme", "")).lower():
        case ("http", "bearer") | ("oauth2" | "openIdConnect", _):
            return AuthConfig(type="bearer", token=f"env:{variable}_TOKEN")
        case "http", "basic":
            return AuthConfig(type="basic", username=f"env:{variable}_USERNAME", password=f"env:{variable}_PASSWORD")
        case "apiKey", _ if scheme.get("in") in ("header", "query", "cookie") and isinstance(scheme.get("name"), str):
            return AuthConfig(type="api_key", token=f"env:{variable}_API_KEY", name=scheme["name"], place=scheme["in"])
        case scheme_type, scheme_name:
            kind = f"{to_short_text(scheme_type)} {scheme_name}".strip()
            raise LookupError(f"the security scheme {name} ({kind}) is not supported")
