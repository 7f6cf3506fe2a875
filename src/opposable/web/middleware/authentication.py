"""Authentication by API key, and checks of host and origin without keys."""

import asyncio
import hmac
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address

from starlette.types import ASGIApp, Receive, Scope, Send

from opposable.domain.errors import OpposableError
from opposable.domain.rate_limits import RateLimiter
from opposable.domain.records import ApiKey
from opposable.store.keys import KEY_PREFIX, ApiKeyRepository, hash_key
from opposable.web.errors import ApiError, missing_scope_error, to_api_error
from opposable.web.middleware.request_limits import TokenUsageRecorder, check_rate_limit, check_token_budget
from opposable.web.openai_errors import GATEWAY_PREFIX, format_api_error
from opposable.web.principal import ANONYMOUS, OWNER, PRINCIPAL_SCOPE_KEY, Principal

OPEN_PATHS = frozenset({"/healthz", "/readyz"})
"""Paths that need no key."""

KEY_CACHE_SECONDS = 2.0
"""Seconds for which a key is cached: every process rejects a revoked key after this time."""

MAX_CACHED_KEYS = 10_000

LAST_USED_INTERVAL_SECONDS = 60.0
"""Seconds between updates of the time when a key was last used."""


@dataclass(slots=True)
class CachedKey:
    """A valid key as the store has it.

    Attributes:
        principal: The principal of the key.
        stored_tokens_used: The tokens that other processes have recorded for the key.
        usage_noted_at: When the use of the key was last recorded, on the clock of the cache.
    """

    principal: Principal
    stored_tokens_used: int
    usage_noted_at: float


class ApiKeyCache:
    """A cache of the stored API keys, by hash, for `KEY_CACHE_SECONDS`.

    Once the store has a key, revoked or not, every request must carry one.

    Attributes:
        token_usage: Counts the tokens of the keys.
    """

    def __init__(
        self,
        keys: ApiKeyRepository,
        limiter: RateLimiter,
        token_usage: TokenUsageRecorder,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._keys = keys
        self._limiter = limiter
        self.token_usage = token_usage
        self._clock = clock
        self._cached_keys: OrderedDict[str, tuple[float, CachedKey | None]] = OrderedDict()  # with when they expire
        self._requires_key_until = -1.0
        self._requires_key = False
        self._key_list: asyncio.Task[bool] | None = None
        self._lookups: dict[str, asyncio.Task[CachedKey | None]] = {}

    async def requires_key(self) -> bool:
        """Return whether the store has keys, so that requests need one.

        Raises:
            StoreUnavailable: If the store cannot be read.
        """
        if self._requires_key or self._clock() < self._requires_key_until:
            return self._requires_key
        if self._key_list is None:  # one of many concurrent requests reads the store, also if it fails
            self._key_list = asyncio.create_task(self._list_keys())
            self._key_list.add_done_callback(self._forget_key_list)
        return await asyncio.shield(self._key_list)

    async def find(self, key: str) -> CachedKey | None:
        """Return the key if it is valid, else None.

        Raises:
            StoreUnavailable: If the store cannot be read.
        """
        if not key.startswith(KEY_PREFIX):
            return None
        digest = hash_key(key)
        expires_at, cached_key = self._cached_keys.get(digest, (float("-inf"), None))
        if self._clock() < expires_at:
            return cached_key
        lookup = self._lookups.get(digest)
        if lookup is None:  # one of many concurrent requests reads the store, for all of them
            lookup = self._lookups[digest] = asyncio.create_task(self._look_up(digest, cached_key))
            lookup.add_done_callback(lambda _: self._lookups.pop(digest))
        return await asyncio.shield(lookup)

    async def check_limits(self, cached_key: CachedKey) -> ApiError | None:
        """Return the error for a key beyond its rate limit or token budget, else None.

        Raises:
            StoreUnavailable: If the rate limit cannot be checked.
        """
        principal = cached_key.principal
        now = self._clock()
        if now - cached_key.usage_noted_at > LAST_USED_INTERVAL_SECONDS:
            cached_key.usage_noted_at = now
            self.token_usage.record_tokens(principal.key_id, 0)
        tokens_used = cached_key.stored_tokens_used + self.token_usage.get_recorded_tokens(principal.key_id)
        return check_token_budget(principal, tokens_used) or await check_rate_limit(principal, self._limiter)

    async def _list_keys(self) -> bool:
        has_keys = bool(await self._keys.list())
        self._requires_key |= has_keys  # which another lookup may have set meanwhile
        self._requires_key_until = self._clock() + KEY_CACHE_SECONDS
        return self._requires_key

    def _forget_key_list(self, task: asyncio.Task[bool]) -> None:
        self._key_list = None

    async def _look_up(self, digest: str, previous: CachedKey | None) -> CachedKey | None:
        stored_key, tokens_used = await self.token_usage.load_key(lambda: self._keys.get_by_hash(digest))
        self._requires_key |= stored_key is not None
        cached_key = None
        if stored_key is not None and stored_key.revoked_at is None:
            usage_noted_at = previous.usage_noted_at if previous is not None else float("-inf")
            cached_key = CachedKey(_to_principal(stored_key), tokens_used, usage_noted_at)
        self._cached_keys[digest] = (self._clock() + KEY_CACHE_SECONDS, cached_key)
        self._cached_keys.move_to_end(digest)
        while len(self._cached_keys) > MAX_CACHED_KEYS:
            self._cached_keys.popitem(last=False)
        return cached_key


@dataclass(frozen=True, slots=True)
class Caller:
    """The principal of the current request, and what counts its tokens.

    `stored_tokens_used` are the tokens that other processes have recorded.
    """

    principal: Principal
    token_usage: TokenUsageRecorder | None
    stored_tokens_used: int = 0

    def get_remaining_tokens(self) -> int | None:
        """Return what is left of the token budget of the caller, None without a budget."""
        principal = self.principal
        if principal.token_budget is None or self.token_usage is None:
            return None
        recorded = self.token_usage.get_recorded_tokens(principal.key_id)
        return principal.token_budget - self.stored_tokens_used - recorded

    def record_tokens(self, tokens: int) -> None:
        """Record tokens that the caller used."""
        if self.token_usage is not None and self.principal.key_id:
            self.token_usage.record_tokens(self.principal.key_id, tokens)


_DEFAULT_CALLER = Caller(OWNER, None)
CURRENT_CALLER: ContextVar[Caller] = ContextVar("caller", default=_DEFAULT_CALLER)
"""The caller of the current request; a run inherits it from the request that starts it."""


class AuthenticationMiddleware:
    """Rejects requests without a valid API key.

    Without any key, it accepts only requests that were sent to localhost, from no other origin: this protects against
    DNS rebinding and against other websites.

    Args:
        app: The application.
        api_key: A key with all scopes, "" for none.
        key_cache: The stored keys, None for a server without a store.
        origins: The origins of websites that may send requests without a key.
    """

    def __init__(
        self, app: ASGIApp, api_key: str, key_cache: ApiKeyCache | None = None, origins: Collection[str] = ()
    ) -> None:
        self._app = app
        self._api_key = api_key.encode()
        self._key_cache = key_cache
        self._origins = frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond with 401, 403, 429 or 503, or pass the request on."""
        if scope["type"] == "http":
            error = await self._authorize(scope)
            if error is not None:
                await format_api_error(error, scope).to_response()(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _authorize(self, scope: Scope) -> ApiError | None:
        """Store the principal in the scope, or return why the request is rejected."""
        headers = dict(scope["headers"])
        is_open = scope["path"] in OPEN_PATHS
        try:
            authenticated = await self._authenticate(headers)
            if isinstance(authenticated, ApiError):
                scope[PRINCIPAL_SCOPE_KEY] = ANONYMOUS
                return None if is_open else authenticated
            principal, cached_key = authenticated
            scope[PRINCIPAL_SCOPE_KEY] = principal
            stored_tokens_used = 0 if cached_key is None else cached_key.stored_tokens_used
            token_usage = None if self._key_cache is None else self._key_cache.token_usage
            CURRENT_CALLER.set(Caller(principal, token_usage, stored_tokens_used))
            if is_open:
                return None
            if scope["path"].startswith(GATEWAY_PREFIX) and not principal.has_scope("chat"):
                return missing_scope_error("chat")
            if self._key_cache is None or cached_key is None:
                return None
            return await self._key_cache.check_limits(cached_key)
        except OpposableError as error:
            scope[PRINCIPAL_SCOPE_KEY] = ANONYMOUS
            return None if is_open else to_api_error(error)

    async def _authenticate(self, headers: dict[bytes, bytes]) -> tuple[Principal, CachedKey | None] | ApiError:
        scheme, _, credentials = headers.get(b"authorization", b"").partition(b" ")
        key = credentials.strip() if scheme.lower() == b"bearer" else headers.get(b"x-api-key", b"").strip()
        if self._api_key and key and hmac.compare_digest(key, self._api_key):
            return OWNER, None
        if key and self._key_cache is not None:  # first: the key may be newer than what `requires_key` has cached
            cached_key = await self._key_cache.find(key.decode("latin-1"))
            if cached_key is not None:
                return cached_key.principal, cached_key
        if not self._api_key and (self._key_cache is None or not await self._key_cache.requires_key()):
            return _check_local_request(headers, self._origins) or (OWNER, None)
        if key:
            message = "The API key is not valid."
        else:
            message = "This request needs an API key. Send it in the header: Authorization: Bearer KEY."
        return ApiError(401, "invalid_api_key", message, headers={"www-authenticate": "Bearer"})


def _to_principal(stored_key: ApiKey) -> Principal:
    return Principal(
        stored_key.key_id,
        stored_key.name,
        frozenset(stored_key.scopes),
        rate_limit=stored_key.rate_limit,
        token_budget=stored_key.token_budget,
    )


@lru_cache(maxsize=64)
def is_loopback(host: str) -> bool:
    """Return whether a host name or address is that of localhost."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _get_hostname(host: str) -> str:
    return host.partition("]")[0] if host.startswith("[") else host.partition(":")[0]


def _check_local_request(headers: dict[bytes, bytes], origins: frozenset[str]) -> ApiError | None:
    """Return the error for a request from another host or origin, else None."""
    host = headers.get(b"host", b"").decode("latin-1")
    if not is_loopback(_get_hostname(host)):
        message = f"Without an API key, requests must be sent to localhost, not to {host[:100]!r}."
        return ApiError(403, "host_not_allowed", message)
    origin = headers.get(b"origin", b"").decode("latin-1")
    if not origin or origin in origins or is_loopback(_get_hostname(origin.partition("://")[2])):
        return None
    return ApiError(403, "origin_not_allowed", f"Requests from the origin {origin[:100]!r} need an API key.")
