"""The routes of API keys: made and shown once, listed, revoked."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Body, Depends, Path, Response
from pydantic import BaseModel, Field

from opposable.domain.records import ApiKey
from opposable.domain.specs import RateLimit
from opposable.store.keys import generate_key
from opposable.web.api.dependencies import RequireScope, ServiceDep
from opposable.web.api.pagination import PageResponse
from opposable.web.errors import error_responses, not_found_error
from opposable.web.principal import Scope

router = APIRouter(prefix="/api/keys", tags=["keys"], dependencies=[Depends(RequireScope("admin"))])


class CreateKeyRequest(BaseModel):
    """A key to be made."""

    model_config = {"extra": "forbid"}

    name: str = Field(min_length=1, max_length=100, examples=["front end"])
    scopes: list[Scope] = Field(default=["chat"], min_length=1, max_length=4)
    rate_limit: RateLimit | None = None
    token_budget: int | None = Field(default=None, ge=0, le=2**53, description="Tokens in all.")


class KeyResponse(BaseModel):
    """A key without the key."""

    key_id: str
    name: str
    prefix: str = Field(description="Its first characters, to know it by.", examples=["opp_Ab3dEf9h"])
    scopes: list[str]
    rate_limit: RateLimit | None
    token_budget: int | None
    tokens_used: int
    created_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None


class CreateKeyResponse(BaseModel):
    """A key that was made: the only time that it is shown."""

    key: str
    kept: KeyResponse


@router.get("", responses=error_responses(), summary="API keys, newest first")
async def list_keys(service: ServiceDep) -> PageResponse[KeyResponse]:
    """Every key, revoked ones too, without the keys themselves."""
    return PageResponse(items=[_to_response(key) for key in await service.store.keys.list()])


@router.post("", status_code=201, responses=error_responses(), summary="Make an API key")
async def create_key(
    service: ServiceDep, body: Annotated[CreateKeyRequest, Body(examples=[{"name": "front end", "scopes": ["chat"]}])]
) -> CreateKeyResponse:
    """Make a key. It is told in this answer and never again; from now on every request needs one."""
    scopes = tuple(dict.fromkeys(body.scopes))
    key, kept = generate_key(body.name, scopes, body.rate_limit, body.token_budget)
    await service.store.keys.add(kept)
    return CreateKeyResponse(key=key, kept=_to_response(kept))


@router.delete("/{key_id}", status_code=204, responses=error_responses(404), summary="Revoke an API key")
async def revoke_key(service: ServiceDep, key_id: Annotated[str, Path(max_length=100)]) -> Response:
    """Refuse a key from now on; other processes do within seconds."""
    if not await service.store.keys.revoke(key_id):
        raise not_found_error(f"There is no key {key_id!r} that could be revoked.")
    return Response(status_code=204)


def _to_response(key: ApiKey) -> KeyResponse:
    return KeyResponse(
        **{name: getattr(key, name) for name in KeyResponse.model_fields if name != "scopes"}, scopes=list(key.scopes)
    )
