"""The routes of API keys: made and shown once, listed, revoked."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Body, Depends, Path, Response
from pydantic import BaseModel, Field

from opposable.domain.records import ApiKey
from opposable.domain.specs import RateLimit
from opposable.store.keys import new_key
from opposable.web.api.dependencies import Needs, TheService
from opposable.web.api.pagination import Part
from opposable.web.errors import documented, not_found
from opposable.web.principal import Scope

router = APIRouter(prefix="/api/keys", tags=["keys"], dependencies=[Depends(Needs("admin"))])


class NewKey(BaseModel):
    """A key to be made."""

    model_config = {"extra": "forbid"}

    name: str = Field(min_length=1, max_length=100, examples=["front end"])
    scopes: list[Scope] = Field(default=["chat"], min_length=1, max_length=4)
    rate_limit: RateLimit | None = None
    token_budget: int | None = Field(default=None, ge=0, le=2**53, description="Tokens in all.")


class KeptKey(BaseModel):
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


class MadeKey(BaseModel):
    """A key that was made: the only time that it is shown."""

    key: str
    kept: KeptKey


@router.get("", responses=documented(), summary="API keys, newest first")
async def list_keys(service: TheService) -> Part[KeptKey]:
    """Every key, revoked ones too, without the keys themselves."""
    return Part(items=[_shown(key) for key in await service.store.keys.list()])


@router.post("", status_code=201, responses=documented(), summary="Make an API key")
async def create_key(
    service: TheService, wanted: Annotated[NewKey, Body(examples=[{"name": "front end", "scopes": ["chat"]}])]
) -> MadeKey:
    """Make a key. It is told in this answer and never again; from now on every request needs one."""
    scopes = tuple(dict.fromkeys(wanted.scopes))
    key, kept = new_key(wanted.name, scopes, wanted.rate_limit, wanted.token_budget)
    await service.store.keys.add(kept)
    return MadeKey(key=key, kept=_shown(kept))


@router.delete("/{key_id}", status_code=204, responses=documented(404), summary="Revoke an API key")
async def revoke_key(service: TheService, key_id: Annotated[str, Path(max_length=100)]) -> Response:
    """Refuse a key from now on; other processes do within seconds."""
    if not await service.store.keys.revoke(key_id):
        raise not_found(f"There is no key {key_id!r} that could be revoked.")
    return Response(status_code=204)


def _shown(key: ApiKey) -> KeptKey:
    return KeptKey(
        **{name: getattr(key, name) for name in KeptKey.model_fields if name != "scopes"}, scopes=list(key.scopes)
    )
