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
from opposable.domain.records import ApiKey
from opposable.store.keys import KEY_PREFIX, Keys, digest_of
from opposable.store.rate_limits import Limiter
from opposable.web.errors import ApiError, forbidden, translated
from opposable.web.middleware.request_limits import Budgets, over_budget, over_limit
from opposable.web.openai_errors import WireError
from opposable.web.principal import OWNER, PRINCIPAL, Principal

OPEN_PATHS = frozenset({"/healthz", "/readyz"})
OPENAI = "/v1/"
"""Where refusals are told in OpenAI's shape, and the scope `chat` is needed."""

KNOWN_FOR = 2.0
"""Seconds for which a key that was looked up is known: a revoked one is refused after that, in every process."""
MOST_KNOWN = 10_000
TOUCH = 60.0
"""Seconds between notes that a key was used."""


@dataclass(slots=True)
class Known:
    """What a look into the store told of a key, and until when that is believed. `principal` is None for no such key.

    `used` are the tokens that the store knows of from other processes.
    """

    principal: Principal | None
    used: int
    until: float
    touched: float = 0.0


class KeyRing:
    """The stored keys as requests bear them: looked up by their hashes, and known for a moment.

    Once there is a key in the store, revoked or not, every request must bear one.
    """

    def __init__(
        self, keys: Keys, limiter: Limiter, budgets: Budgets, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._keys = keys
        self._limiter = limiter
        self._budgets = budgets
        self._clock = clock
        self._known: OrderedDict[str, Known] = OrderedDict()
        self._locked_until = -1.0
        self._is_locked = False
        self._looking = asyncio.Lock()

    async def locked(self) -> bool:
        """Whether there are keys, so that one is needed. Raises: `StoreUnavailable`."""
        if self._is_locked or self._clock() < self._locked_until:
            return self._is_locked
        async with self._looking:  # of many requests that come at once, one looks
            if not self._is_locked and self._clock() >= self._locked_until:
                self._is_locked = bool(await self._keys.list())
                self._locked_until = self._clock() + KNOWN_FOR
        return self._is_locked

    async def find(self, key: str) -> Known | None:
        """What is known of a key that may be used. Raises: `StoreUnavailable`."""
        if not key.startswith(KEY_PREFIX):
            return None
        digest = digest_of(key)
        known = self._known.get(digest)
        if known is None or known.until <= self._clock():
            known = await self._looked_up(digest, known)
        return known if known.principal is not None else None

    async def refusal(self, known: Known) -> ApiError | None:
        """Why a request of this key is not answered now: too many of them, or no tokens left. Raises: `StoreUnavailable`."""
        principal = known.principal
        assert principal is not None
        moment = self._clock()
        if moment - known.touched > TOUCH:
            known.touched = moment
            self._budgets.spend(principal.key_id, 0)
        return over_budget(principal, known.used + self._budgets.noted(principal.key_id)) or await over_limit(
            principal, self._limiter
        )

    def spend(self, key_id: str, tokens: int) -> None:
        """Note tokens that a key used."""
        self._budgets.spend(key_id, tokens)

    async def _looked_up(self, digest: str, before: Known | None) -> Known:
        kept = await self._keys.find(digest)
        good = kept is not None and kept.revoked_at is None and hmac.compare_digest(kept.sha256, digest)
        principal = _principal(kept) if good and kept is not None else None
        used = 0 if kept is None else kept.tokens_used - self._budgets.written_of(kept.key_id)
        touched = before.touched if before is not None else float("-inf")
        known = self._known[digest] = Known(principal, used, self._clock() + KNOWN_FOR, touched)
        self._known.move_to_end(digest)
        while len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)
        return known


@dataclass(frozen=True, slots=True)
class Caller:
    """Who makes the request that is being answered, and where the tokens it uses are noted."""

    principal: Principal
    ring: KeyRing | None

    def spend(self, tokens: int) -> None:
        """Note tokens that were used."""
        if self.ring is not None and self.principal.key_id:
            self.ring.spend(self.principal.key_id, tokens)


_ANYONE = Caller(OWNER, None)
CALLER: ContextVar[Caller] = ContextVar("caller", default=_ANYONE)
"""Who makes the request that is being answered; a run that it begins keeps it."""


class Access:
    """Lets requests through that bear a key: the one given, or one of the ring's.

    Where there is neither, only those are let through that were sent to this machine by name or address: a web page
    whose own name was made to point at 127.0.0.1 sends another, and one of any name says so in `Origin`, which must be
    this machine's or one of `origins`.
    """

    def __init__(self, app: ASGIApp, key: str, ring: KeyRing | None = None, origins: Collection[str] = ()) -> None:
        self._app = app
        self._key = key.encode()
        self._ring = ring
        self._origins = frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 401, 403, 429 or 503, or pass the request on."""
        if scope["type"] == "http":
            refusal = await self._refusal(scope)
            if refusal is not None:
                answer = _as_openai(refusal) if scope["path"].startswith(OPENAI) else refusal
                await answer.response()(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _refusal(self, scope: Scope) -> ApiError | None:
        """Why a request is refused; None after its principal was put into the scope."""
        headers = dict(scope["headers"])
        is_open = scope["path"] in OPEN_PATHS
        try:
            found = await self._principal(headers)
            if isinstance(found, ApiError):
                scope[PRINCIPAL] = NOBODY
                return None if is_open else found
            principal, known = found
            scope[PRINCIPAL] = principal
            CALLER.set(Caller(principal, self._ring))
            if is_open:
                return None
            if scope["path"].startswith(OPENAI) and not principal.may("chat"):
                return forbidden("This key lacks the scope 'chat'.")
            return await self._ring.refusal(known) if self._ring is not None and known is not None else None
        except OpposableError as error:
            scope[PRINCIPAL] = NOBODY
            return None if is_open else translated(error)

    async def _principal(self, headers: dict[bytes, bytes]) -> tuple[Principal, Known | None] | ApiError:
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        given = given.strip() if kind.lower() == b"bearer" else b""
        if self._key and given and hmac.compare_digest(given, self._key):
            return OWNER, None
        if not self._key and (self._ring is None or not await self._ring.locked()):
            return _at_this_machine(headers, self._origins) or (OWNER, None)
        if given and self._ring is not None:
            known = await self._ring.find(given.decode("latin-1"))
            if known is not None and known.principal is not None:
                return known.principal, known
        said = "The API key is wrong." if given else "An API key is needed: Authorization: Bearer KEY."
        return ApiError(401, "invalid_api_key", said, headers={"www-authenticate": "Bearer"})


NOBODY = Principal(name="nobody", scopes=frozenset())
"""Who asks where no key was given and one is needed, on the few routes that are open to all."""


def _principal(kept: ApiKey) -> Principal:
    return Principal(
        kept.key_id, kept.name, frozenset(kept.scopes), rate_limit=kept.rate_limit, token_budget=kept.token_budget
    )


def _as_openai(error: ApiError) -> WireError:
    """An error of ours in OpenAI's shape."""
    kind = "server_error" if error.status >= 500 else "invalid_request_error"
    return WireError(error.status, str(error), kind=kind, code=error.body["error"]["kind"], headers=error.headers)


def is_loopback(host: str) -> bool:
    """Whether a host name or address means this machine alone."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


async def body_of(request: Request, largest: int) -> bytes:
    """The JSON body of a request. Raises: `WireError` 400 for another kind of body, 413 for a larger one."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise WireError(400, "The body must be sent as Content-Type: application/json.", code="invalid_content_type")
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > largest:
        raise _too_large(largest)
    pieces: list[bytes] = []
    size = 0
    async for piece in request.stream():
        size += len(piece)
        if size > largest:
            raise _too_large(largest)
        pieces.append(piece)
    return b"".join(pieces)


def _hostname(host: str) -> str:
    return host.partition("]")[0] if host.startswith("[") else host.partition(":")[0]


def _at_this_machine(headers: dict[bytes, bytes], origins: frozenset[str]) -> ApiError | None:
    """Why a request without a key is not taken for one of this machine's own; None where it is."""
    host = headers.get(b"host", b"").decode("latin-1")
    if not is_loopback(_hostname(host)):
        return _elsewhere(host)
    origin = headers.get(b"origin", b"").decode("latin-1")
    if not origin or origin in origins or is_loopback(_hostname(origin.partition("://")[2])):
        return None
    return ApiError(403, "origin_not_allowed", f"Without an API key pages of {origin[:100]!r} are not answered.")


def _elsewhere(host: str) -> ApiError:
    said = f"Without an API key only requests to localhost are answered, not to {host[:100]!r}."
    return ApiError(403, "host_not_allowed", said)


def _too_large(largest: int) -> WireError:
    return WireError(413, f"The request is larger than {largest:,} bytes.", code="request_too_large")
