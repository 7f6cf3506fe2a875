"""What every route begins with: the service, and who asks it."""

from typing import Annotated

from fastapi import Depends
from starlette.requests import Request

from opposable.service.service import Service
from opposable.web.errors import forbidden_error
from opposable.web.principal import OWNER, PRINCIPAL_SCOPE_KEY, Principal, Scope


def get_service(request: Request) -> Service:
    """The service behind the application."""
    service: Service = request.app.state.service
    return service


def get_principal(request: Request) -> Principal:
    """Who asks: put into the scope by the check of keys; the owner where there is none."""
    found: Principal = request.scope.get(PRINCIPAL_SCOPE_KEY, OWNER)
    return found


class RequireScope:
    """A dependency that lets through who has a scope: `Depends(Needs("chat"))`. Raises: `ApiError` 403."""

    def __init__(self, scope: Scope) -> None:
        self._scope: Scope = scope

    @property
    def scope(self) -> Scope:
        """What is needed."""
        return self._scope

    async def __call__(self, request: Request) -> None:  # async: others are run in a thread each
        """Let the request through or refuse it."""
        if not get_principal(request).has_scope(self._scope):
            raise forbidden_error(f"This key lacks the scope {self._scope!r}.")


async def _provide_service(request: Request) -> Service:
    return get_service(request)


async def _provide_principal(request: Request) -> Principal:
    return get_principal(request)


ServiceDep = Annotated[Service, Depends(_provide_service)]
PrincipalDep = Annotated[Principal, Depends(_provide_principal)]


def get_trace_id(request: Request) -> str:
    """The id of the trace that a request belongs to, "" where nobody gave it one."""
    return str(getattr(request.scope.get("opposable.trace"), "trace_id", ""))
