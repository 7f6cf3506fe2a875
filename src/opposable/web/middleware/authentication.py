"""Who may ask, and how much: the key, the addresses without one, the size of a request."""

import asyncio
import hmac
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from contextvars import ContextVar
from dataclasses import dataclass
from ipaddress import ip_address

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from opposable.domain.errors import OpposableError
from opposable.domain.rate_limits import RateLimiter
from opposable.domain.records import ApiKey
from opposable.store.keys import KEY_PREFIX, ApiKeyRepository, hash_key
from opposable.web.errors import ApiError, forbidden_error, to_api_error
from opposable.web.middleware.request_limits import TokenUsageRecorder, check_rate_limit, check_token_budget
from opposable.web.openai_errors import GatewayError
from opposable.web.principal import OWNER, PRINCIPAL_SCOPE_KEY, Principal

OPEN_PATHS = frozenset({"/healthz", "/readyz"})
GATEWAY_PREFIX = "/v1/"
"""Where refusals are told in OpenAI's shape, and the scope `chat` is needed."""

KEY_CACHE_SECONDS = 2.0
"""Seconds for which a key that was looked up is known: a revoked one is refused after that, in every process."""
MAX_CACHED_KEYS = 10_000
LAST_USED_INTERVAL_SECONDS = 60.0
"""Seconds between notes that a key was used."""


@dataclass(slots=True)
class CachedKey:
    """What a look into the store told of a key, and until when that is believed. `principal` is None for no such key.

    `used` are the tokens that the store knows of from other processes.
    """

    principal: Principal | None
    stored_tokens_used: int
    expires_at: float
    usage_noted_at: float = 0.0


class ApiKeyCache:
    """The stored keys as requests bear them: looked up by their hashes, and known for a moment.

    Once there is a key in the store, revoked or not, every request must bear one.
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
        self._token_usage = token_usage
        self._clock = clock
        self._cached_keys: OrderedDict[str, CachedKey] = OrderedDict()
        self._requires_key_until = -1.0
        self._requires_key = False
        self._lookup_lock = asyncio.Lock()

    async def requires_key(self) -> bool:
        """Whether there are keys, so that one is needed. Raises: `StoreUnavailable`."""
        if self._requires_key or self._clock() < self._requires_key_until:
            return self._requires_key
        async with self._lookup_lock:  # of many requests that come at once, one looks
            if not self._requires_key and self._clock() >= self._requires_key_until:
                self._requires_key = bool(await self._keys.list())
                self._requires_key_until = self._clock() + KEY_CACHE_SECONDS
        return self._requires_key

    async def find(self, key: str) -> CachedKey | None:
        """What is known of a key that may be used. Raises: `StoreUnavailable`."""
        if not key.startswith(KEY_PREFIX):
            return None
        digest = hash_key(key)
        known = self._cached_keys.get(digest)
        if known is None or known.expires_at <= self._clock():
            known = await self._look_up(digest, known)
        return known if known.principal is not None else None

    async def check_limits(self, cached_key: CachedKey) -> ApiError | None:
        """Why a request of this key is not answered now: too many of them, or no tokens left. Raises: `StoreUnavailable`."""
        principal = cached_key.principal
        assert principal is not None
        moment = self._clock()
        if moment - cached_key.usage_noted_at > LAST_USED_INTERVAL_SECONDS:
            cached_key.usage_noted_at = moment
            self._token_usage.record_tokens(principal.key_id, 0)
        return check_token_budget(
            principal, cached_key.stored_tokens_used + self._token_usage.get_recorded_tokens(principal.key_id)
        ) or await check_rate_limit(principal, self._limiter)

    def record_tokens(self, key_id: str, tokens: int) -> None:
        """Note tokens that a key used."""
        self._token_usage.record_tokens(key_id, tokens)

    async def _look_up(self, digest: str, previous: CachedKey | None) -> CachedKey:
        kept = await self._keys.get_by_hash(digest)
        good = kept is not None and kept.revoked_at is None and hmac.compare_digest(kept.sha256, digest)
        principal = _to_principal(kept) if good and kept is not None else None
        used = 0 if kept is None else kept.tokens_used - self._token_usage.get_stored_tokens(kept.key_id)
        touched = previous.usage_noted_at if previous is not None else float("-inf")
        known = self._cached_keys[digest] = CachedKey(principal, used, self._clock() + KEY_CACHE_SECONDS, touched)
        self._cached_keys.move_to_end(digest)
        while len(self._cached_keys) > MAX_CACHED_KEYS:
            self._cached_keys.popitem(last=False)
        return known


@dataclass(frozen=True, slots=True)
class Caller:
    """Who makes the request that is being answered, and where the tokens it uses are noted."""

    principal: Principal
    key_cache: ApiKeyCache | None

    def record_tokens(self, tokens: int) -> None:
        """Note tokens that were used."""
        if self.key_cache is not None and self.principal.key_id:
            self.key_cache.record_tokens(self.principal.key_id, tokens)


_DEFAULT_CALLER = Caller(OWNER, None)
CURRENT_CALLER: ContextVar[Caller] = ContextVar("caller", default=_DEFAULT_CALLER)
"""Who makes the request that is being answered; a run that it begins keeps it."""


class AuthenticationMiddleware:
    """Lets requests through that bear a key: the one given, or one of the ring's.

    Where there is neither, only those are let through that were sent to this machine by name or address: a web page
    whose own name was made to point at 127.0.0.1 sends another, and one of any name says so in `Origin`, which must be
    this machine's or one of `origins`.
    """

    def __init__(
        self, app: ASGIApp, api_key: str, key_cache: ApiKeyCache | None = None, origins: Collection[str] = ()
    ) -> None:
        self._app = app
        self._api_key = api_key.encode()
        self._key_cache = key_cache
        self._origins = frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 401, 403, 429 or 503, or pass the request on."""
        if scope["type"] == "http":
            refusal = await self._authorize(scope)
            if refusal is not None:
                answer = _to_gateway_error(refusal) if scope["path"].startswith(GATEWAY_PREFIX) else refusal
                await answer.to_response()(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _authorize(self, scope: Scope) -> ApiError | None:
        """Why a request is refused; None after its principal was put into the scope."""
        headers = dict(scope["headers"])
        is_open = scope["path"] in OPEN_PATHS
        try:
            found = await self._authenticate(headers)
            if isinstance(found, ApiError):
                scope[PRINCIPAL_SCOPE_KEY] = ANONYMOUS
                return None if is_open else found
            principal, known = found
            scope[PRINCIPAL_SCOPE_KEY] = principal
            CURRENT_CALLER.set(Caller(principal, self._key_cache))
            if is_open:
                return None
            if scope["path"].startswith(GATEWAY_PREFIX) and not principal.has_scope("chat"):
                return forbidden_error("This key lacks the scope 'chat'.")
            return (
                await self._key_cache.check_limits(known) if self._key_cache is not None and known is not None else None
            )
        except OpposableError as error:
            scope[PRINCIPAL_SCOPE_KEY] = ANONYMOUS
            return None if is_open else to_api_error(error)

    async def _authenticate(self, headers: dict[bytes, bytes]) -> tuple[Principal, CachedKey | None] | ApiError:
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        given = given.strip() if kind.lower() == b"bearer" else b""
        if self._api_key and given and hmac.compare_digest(given, self._api_key):
            return OWNER, None
        if not self._api_key and (self._key_cache is None or not await self._key_cache.requires_key()):
            return _check_local_request(headers, self._origins) or (OWNER, None)
        if given and self._key_cache is not None:
            known = await self._key_cache.find(given.decode("latin-1"))
            if known is not None and known.principal is not None:
                return known.principal, known
        said = "The API key is wrong." if given else "An API key is needed: Authorization: Bearer KEY."
        return ApiError(401, "invalid_api_key", said, headers={"www-authenticate": "Bearer"})


ANONYMOUS = Principal(name="nobody", scopes=frozenset())
"""Who asks where no key was given and one is needed, on the few routes that are open to all."""


def _to_principal(stored_key: ApiKey) -> Principal:
    return Principal(
        stored_key.key_id,
        stored_key.name,
        frozenset(stored_key.scopes),
        rate_limit=stored_key.rate_limit,
        token_budget=stored_key.token_budget,
    )


def _to_gateway_error(error: ApiError) -> GatewayError:
    """An error of ours in OpenAI's shape."""
    kind = "server_error" if error.status >= 500 else "invalid_request_error"
    return GatewayError(error.status, str(error), kind=kind, code=error.body["error"]["kind"], headers=error.headers)


def is_loopback(host: str) -> bool:
    """Whether a host name or address means this machine alone."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


async def read_json_body(request: Request, max_bytes: int) -> bytes:
    """The JSON body of a request. Raises: `WireError` 400 for another kind of body, 413 for a larger one."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise GatewayError(400, "The body must be sent as Content-Type: application/json.", code="invalid_content_type")
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > max_bytes:
        raise _too_large_error(max_bytes)
    pieces: list[bytes] = []
    size = 0
    async for piece in request.stream():
        size += len(piece)
        if size > max_bytes:
            raise _too_large_error(max_bytes)
        pieces.append(piece)
    return b"".join(pieces)


def _get_hostname(host: str) -> str:
    return host.partition("]")[0] if host.startswith("[") else host.partition(":")[0]


def _check_local_request(headers: dict[bytes, bytes], origins: frozenset[str]) -> ApiError | None:
    """Why a request without a key is not taken for one of this machine's own; None where it is."""
    host = headers.get(b"host", b"").decode("latin-1")
    if not is_loopback(_get_hostname(host)):
        return _host_not_allowed_error(host)
    origin = headers.get(b"origin", b"").decode("latin-1")
    if not origin or origin in origins or is_loopback(_get_hostname(origin.partition("://")[2])):
        return None
    return ApiError(403, "origin_not_allowed", f"Without an API key pages of {origin[:100]!r} are not answered.")


def _host_not_allowed_error(host: str) -> ApiError:
    said = f"Without an API key only requests to localhost are answered, not to {host[:100]!r}."
    return ApiError(403, "host_not_allowed", said)


def _too_large_error(max_bytes: int) -> GatewayError:
    return GatewayError(413, f"The request is larger than {max_bytes:,} bytes.", code="request_too_large")
