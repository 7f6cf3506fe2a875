"""Repository of API keys, stored as hashes."""

import hashlib
import secrets
from typing import Any
from uuid import uuid4

from sqlalchemy import Row, select, update
from sqlalchemy.exc import IntegrityError

from opposable.domain.errors import BadInput
from opposable.domain.records import ApiKey, get_utc_now
from opposable.domain.specs import RateLimit
from opposable.store.database import Repository
from opposable.store.rows import to_record, to_row
from opposable.store.tables import api_keys

KEY_PREFIX = "opp_"
STORED_PREFIX_LENGTH = 12
"""Characters of a key that are stored, so that its owner can recognize it."""


def generate_key(
    name: str, scopes: tuple[str, ...], rate_limit: RateLimit | None = None, token_budget: int | None = None
) -> tuple[str, ApiKey]:
    """Generate a key.

    Returns:
        The key and its record. The record holds only a hash: show the key once.
    """
    key = KEY_PREFIX + secrets.token_urlsafe(32)
    record = ApiKey(
        uuid4().hex, name, key[:STORED_PREFIX_LENGTH], hash_key(key), get_utc_now(), scopes, rate_limit, token_budget
    )
    return key, record


def hash_key(key: str) -> str:
    """Return the SHA-256 of a key, in hexadecimal."""
    return hashlib.sha256(key.encode()).hexdigest()


class ApiKeyRepository(Repository):
    """API keys of the service, with their scopes, limits and use."""

    async def add(self, key: ApiKey) -> None:
        """Store a new key.

        Raises:
            BadInput: Its id or hash is taken.
        """
        row = to_row(key, "key_id") | {
            "id": key.key_id,
            "scopes": list(key.scopes),
            "rate_limit": None if key.rate_limit is None else key.rate_limit.model_dump(),
        }
        try:
            await self._database.execute(api_keys.insert().values(**row))
        except IntegrityError as error:
            raise BadInput(f"The key {key.name!r} already exists. Generate a new key.") from error

    async def get(self, key_id: str) -> ApiKey | None:
        """Return the key with this id, revoked or not."""
        [rows] = await self._database.fetch_inline(select(api_keys).where(api_keys.c.id == key_id))
        return _to_api_key(rows[0]) if rows else None

    async def get_by_hash(self, sha256: str) -> ApiKey | None:
        """Return the key with this hash, revoked or not."""
        [rows] = await self._database.fetch_inline(select(api_keys).where(api_keys.c.sha256 == sha256))
        return _to_api_key(rows[0]) if rows else None

    async def list(self) -> tuple[ApiKey, ...]:
        """Return all keys, newest first."""
        query = select(api_keys).order_by(api_keys.c.created_at.desc(), api_keys.c.id)
        return tuple(_to_api_key(row) for row in await self._database.fetch(query))

    async def add_token_usage(self, key_id: str, tokens: int) -> int:
        """Add used tokens to a key and set its time of last use.

        Returns:
            The tokens used in total, 0 for an unknown key.
        """
        total = api_keys.c.tokens_used + tokens
        statement = update(api_keys).where(api_keys.c.id == key_id)
        statement = statement.values(tokens_used=total, last_used_at=get_utc_now())
        async with self._database.begin_write() as connection:
            result = await connection.execute(statement.returning(api_keys.c.tokens_used))
            return result.scalar_one_or_none() or 0

    async def revoke(self, key_id: str) -> bool:
        """Revoke a key. Return whether it existed and was not revoked."""
        is_active = (api_keys.c.id == key_id) & api_keys.c.revoked_at.is_(None)
        return await self._database.execute(update(api_keys).where(is_active).values(revoked_at=get_utc_now())) > 0


def _to_api_key(row: Row[Any]) -> ApiKey:
    rate_limit = None if row.rate_limit is None else RateLimit(**row.rate_limit)
    return to_record(ApiKey, row, key_id=row.id, scopes=tuple(row.scopes), rate_limit=rate_limit)
