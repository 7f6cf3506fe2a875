"""FastAPI routers and dependencies: the service, the principal, required scopes."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.requests import Request

from opposable.service.service import Service
from opposable.web.api.serializers import ApiResponse
from opposable.web.errors import missing_scope_error
from opposable.web.principal import OWNER, PRINCIPAL_SCOPE_KEY, Principal, Scope


class ApiRouter(APIRouter):
    """A router whose routes each application serves as they are.

    `FastAPI.include_router` builds every route a second time, at the first request that it compares with it.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(
            default_response_class=ApiResponse, generate_unique_id_function=lambda route: route.name, **options
        )


def get_principal(request: Request) -> Principal:
    """Return the principal of the authentication middleware, or the owner without it."""
    principal: Principal = request.scope.get(PRINCIPAL_SCOPE_KEY, OWNER)
    return principal


class RequireScope:
    """A dependency that requires a scope, or one of several: `Depends(RequireScope("chat"))`."""

    def __init__(self, scope: Scope, *alternatives: Scope) -> None:
        self.scope: Scope = scope
        self._alternatives = alternatives

    async def __call__(self, request: Request) -> None:  # async, because FastAPI runs sync dependencies in threads
        """Check the scope of the principal.

        Raises:
            ApiError: 403, if the principal does not have it.
        """
        principal = get_principal(request)
        if not any(principal.has_scope(scope) for scope in (self.scope, *self._alternatives)):
            raise missing_scope_error(self.scope)


async def _provide_service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


async def _provide_principal(request: Request) -> Principal:
    return get_principal(request)


ServiceDep = Annotated[Service, Depends(_provide_service)]
PrincipalDep = Annotated[Principal, Depends(_provide_principal)]
