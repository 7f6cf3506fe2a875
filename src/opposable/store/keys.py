"""API keys by their hashes."""

import hashlib
import secrets
from datetime import datetime
from typing import Any
from uuid import uuid4

from sqlalchemy import Row, select, update
from sqlalchemy.exc import IntegrityError

from opposable.domain.errors import BadInput
from opposable.domain.records import ApiKey, get_utc_now
from opposable.domain.specs import RateLimit
from opposable.store.database import StoreDatabase
from opposable.store.tables import api_keys

KEY_PREFIX = "opp_"
STORED_PREFIX_LENGTH = 12
"""Characters of a key that are stored so that its owner recognizes it."""


def generate_key(
    name: str, scopes: tuple[str, ...], rate_limit: RateLimit | None = None, token_budget: int | None = None
) -> tuple[str, ApiKey]:
    """A new key, and what is kept of it. The key itself is nowhere else: show it once."""
    key = KEY_PREFIX + secrets.token_urlsafe(32)
    kept = ApiKey(
        uuid4().hex, name, key[:STORED_PREFIX_LENGTH], hash_key(key), get_utc_now(), scopes, rate_limit, token_budget
    )
    return key, kept


def hash_key(key: str) -> str:
    """The SHA-256 of a key, in hexadecimal: all that is kept of it."""
    return hashlib.sha256(key.encode()).hexdigest()


class ApiKeyRepository:
    """Who may use the service, and how much."""

    def __init__(self, database: StoreDatabase) -> None:
        self._database = database

    async def add(self, key: ApiKey) -> None:
        """Keep a new key. Raises: `BadInput` when its id or hash is there already."""
        row = {
            "id": key.key_id,
            "name": key.name,
            "prefix": key.prefix,
            "sha256": key.sha256,
            "scopes": list(key.scopes),
            "rate_limit": None if key.rate_limit is None else key.rate_limit.model_dump(),
            "token_budget": key.token_budget,
            "tokens_used": key.tokens_used,
            "created_at": key.created_at,
            "last_used_at": key.last_used_at,
            "revoked_at": key.revoked_at,
        }
        try:
            async with self._database.begin_write() as connection:
                await connection.execute(api_keys.insert().values(**row))
        except IntegrityError as error:
            raise BadInput(f"The key {key.name!r} is in the store already.") from error

    async def get_by_hash(self, sha256: str) -> ApiKey | None:
        """The key of that hash, revoked or not."""
        [rows] = await self._database.fetch_inline(select(api_keys).where(api_keys.c.sha256 == sha256))
        return _to_api_key(rows[0]) if rows else None

    async def list(self) -> tuple[ApiKey, ...]:
        """All keys, newest first."""
        query = select(api_keys).order_by(api_keys.c.created_at.desc(), api_keys.c.id)
        async with self._database.begin_read() as connection:
            return tuple(_to_api_key(row) for row in (await connection.execute(query)).all())

    async def add_token_usage(self, key_id: str, tokens: int) -> int:
        """Count tokens against a key and say that it was used now. Returns the tokens used in all, 0 for no such key."""
        spent = api_keys.c.tokens_used + tokens
        change = update(api_keys).where(api_keys.c.id == key_id).values(tokens_used=spent, last_used_at=get_utc_now())
        async with self._database.begin_write() as connection:
            return (await connection.execute(change.returning(api_keys.c.tokens_used))).scalar_one_or_none() or 0

    async def revoke(self, key_id: str, revoked_at: datetime | None = None) -> bool:
        """Revoke a key. Returns whether there is one that was not revoked."""
        alive = (api_keys.c.id == key_id) & api_keys.c.revoked_at.is_(None)
        async with self._database.begin_write() as connection:
            done = await connection.execute(
                update(api_keys).where(alive).values(revoked_at=revoked_at or get_utc_now())
            )
        return done.rowcount > 0


def _to_api_key(row: Row[Any]) -> ApiKey:
    return ApiKey(
        key_id=row.id,
        name=row.name,
        prefix=row.prefix,
        sha256=row.sha256,
        created_at=row.created_at,
        scopes=tuple(row.scopes),
        rate_limit=None if row.rate_limit is None else RateLimit(**row.rate_limit),
        token_budget=row.token_budget,
        tokens_used=row.tokens_used,
        last_used_at=row.last_used_at,
        revoked_at=row.revoked_at,
    )
