"""The routes of API keys."""

import logging
from datetime import datetime
from typing import Annotated

from fastapi import Body, Depends, Path, Response
from pydantic import BaseModel, Field

from opposable.domain.specs import RateLimit
from opposable.store.keys import generate_key
from opposable.web.api.dependencies import ApiRouter, RequireScope, ServiceDep
from opposable.web.api.pagination import PageResponse
from opposable.web.errors import error_responses, not_found_error
from opposable.web.principal import SCOPES, Scope

log = logging.getLogger("opposable.keys")
router = ApiRouter(prefix="/api/keys", tags=["keys"], dependencies=[Depends(RequireScope("admin"))])


class CreateKeyRequest(BaseModel):
    """A new API key."""

    model_config = {"extra": "forbid"}

    name: str = Field(min_length=1, max_length=100, examples=["front end"])
    scopes: list[Scope] = Field(default=["chat"], min_length=1, max_length=len(SCOPES))
    rate_limit: RateLimit | None = None
    token_budget: int | None = Field(
        default=None, ge=0, le=2**53, description="The total number of tokens that the key may use."
    )


class KeyResponse(BaseModel):
    """An API key without its secret."""

    model_config = {"from_attributes": True}

    key_id: str
    name: str
    prefix: str = Field(description="The first characters of the key.", examples=["opp_Ab3dEf9h"])
    scopes: list[str]
    rate_limit: RateLimit | None
    token_budget: int | None
    tokens_used: int
    created_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None


class CreateKeyResponse(BaseModel):
    """A new API key with its secret, which is shown only once."""

    key: str
    details: KeyResponse


@router.get("", responses=error_responses(), summary="List API keys")
async def list_keys(service: ServiceDep) -> PageResponse[KeyResponse]:
    """List all API keys without their secrets, including revoked ones, newest first."""
    return PageResponse(items=[KeyResponse.model_validate(key) for key in await service.store.keys.list()])


@router.post("", status_code=201, responses=error_responses(), summary="Create an API key")
async def create_key(
    service: ServiceDep, body: Annotated[CreateKeyRequest, Body(examples=[{"name": "front end", "scopes": ["chat"]}])]
) -> CreateKeyResponse:
    """Create an API key.

    Only this response contains it. Within two seconds, every request needs a key.
    """
    scopes = tuple(dict.fromkeys(body.scopes))
    key, stored_key = generate_key(body.name, scopes, body.rate_limit, body.token_budget)
    await service.store.keys.add(stored_key)
    log.info("key created", extra={"key_id": stored_key.key_id, "scopes": " ".join(scopes)})
    return CreateKeyResponse(key=key, details=KeyResponse.model_validate(stored_key))


@router.delete("/{key_id}", status_code=204, responses=error_responses(404), summary="Revoke an API key")
async def revoke_key(service: ServiceDep, key_id: Annotated[str, Path(max_length=100)]) -> Response:
    """Revoke an API key. All processes reject it within seconds."""
    if not await service.store.keys.revoke(key_id):
        raise not_found_error(f"There is no active key {key_id!r}.")
    log.info("key revoked", extra={"key_id": key_id})
    return Response(status_code=204)
