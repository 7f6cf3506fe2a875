"""What every route begins with: the service, and who asks it."""

from typing import Annotated

from fastapi import Depends
from starlette.requests import Request

from opposable.service.service import Service
from opposable.web.errors import forbidden
from opposable.web.principal import OWNER, PRINCIPAL, Principal, Scope


def service_of(request: Request) -> Service:
    """The service behind the application."""
    service: Service = request.app.state.service
    return service


def principal_of(request: Request) -> Principal:
    """Who asks: put into the scope by the check of keys; the owner where there is none."""
    found: Principal = request.scope.get(PRINCIPAL, OWNER)
    return found


class Needs:
    """A dependency that lets through who has a scope: `Depends(Needs("chat"))`. Raises: `ApiError` 403."""

    def __init__(self, scope: Scope) -> None:
        self._scope: Scope = scope

    @property
    def scope(self) -> Scope:
        """What is needed."""
        return self._scope

    async def __call__(self, request: Request) -> None:  # async: others are run in a thread each
        """Let the request through or refuse it."""
        if not principal_of(request).may(self._scope):
            raise forbidden(f"This key lacks the scope {self._scope!r}.")


async def _service(request: Request) -> Service:
    return service_of(request)


async def _principal(request: Request) -> Principal:
    return principal_of(request)


TheService = Annotated[Service, Depends(_service)]
ThePrincipal = Annotated[Principal, Depends(_principal)]


def trace_of(request: Request) -> str:
    """The id of the trace that a request belongs to, "" where nobody gave it one."""
    return str(getattr(request.scope.get("opposable.trace"), "trace_id", ""))
