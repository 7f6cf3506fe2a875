"""The OpenAPI document of the service, and its page `/docs`, which needs no network."""

import base64
import hashlib
import re
from importlib.resources import files
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.openapi.utils import get_openapi
from starlette.responses import HTMLResponse, Response

from opposable.web.console_files import SESSION_COOKIE
from opposable.web.middleware.authentication import OPEN_PATHS

SECURITY_SCHEMES: dict[str, Any] = {
    "api_key": {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key: `Authorization: Bearer KEY`. Without any key, the service accepts local requests.",
    },
    "session": {"type": "apiKey", "in": "cookie", "name": SESSION_COOKIE, "description": "The session of the console."},
}
ASSETS = {"swagger-ui-bundle.js": "text/javascript", "swagger-ui.css": "text/css"}
"""The files of Swagger UI, with their media types."""


def install_api_docs(app: FastAPI) -> None:
    """Describe the security of the API in its document, and serve the page `/docs`."""

    def create_document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _add_security(get_openapi(title=app.title, version=app.version, routes=app.routes))
        return app.openapi_schema

    app.openapi = create_document  # type: ignore[method-assign]  # as FastAPI documents
    app.add_api_route("/docs", _serve_page, include_in_schema=False)
    app.add_api_route("/docs/{name}", _serve_asset, include_in_schema=False)


def _add_security(document: dict[str, Any]) -> dict[str, Any]:
    document.setdefault("components", {})["securitySchemes"] = SECURITY_SCHEMES
    document["security"] = [{name: []} for name in SECURITY_SCHEMES]
    for path in OPEN_PATHS & document["paths"].keys():
        for operation in document["paths"][path].values():
            operation["security"] = []
    return document


async def _serve_page() -> Response:
    page = get_swagger_ui_html(
        openapi_url="/openapi.json",
        title="Opposable: API",
        swagger_js_url="/docs/swagger-ui-bundle.js",
        swagger_css_url="/docs/swagger-ui.css",
        swagger_favicon_url="data:,",
    )
    html = bytes(page.body).decode()
    scripts = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in scripts
    )
    policy = (
        f"default-src 'none'; connect-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; "
        f"script-src 'self' {hashes}; frame-ancestors 'none'"
    )
    return HTMLResponse(html, headers={"content-security-policy": policy})


async def _serve_asset(name: str) -> Response:
    if name not in ASSETS:
        return Response(status_code=404)
    content = files("fastapi_swagger.resources").joinpath(name).read_bytes()
    return Response(content, media_type=ASSETS[name], headers={"cache-control": "max-age=86400"})
