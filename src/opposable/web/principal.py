"""The principal of a request: an API key, or the owner of the server."""

from dataclasses import dataclass
from typing import Literal, get_args

from opposable.domain.specs import RateLimit

Scope = Literal["chat", "approve", "tools:read", "tools:write", "admin"]
"""What an API key may do."""

SCOPES: frozenset[Scope] = frozenset(get_args(Scope))

CALL_SCOPE: Scope = "tools:write"
"""The scope for calling tools, which can do anything that a tool does."""


@dataclass(frozen=True, slots=True)
class Principal:
    """The principal of a request.

    Attributes:
        key_id: The id of the API key, which owns conversations, runs and approvals; "" without keys.
        name: The name of the key.
        scopes: What the key may do.
        rate_limit: The rate limit of the key, None for no limit.
        token_budget: The tokens that the key may use in total, None for no limit.
    """

    key_id: str = ""
    name: str = "owner"
    scopes: frozenset[str] = SCOPES
    rate_limit: RateLimit | None = None
    token_budget: int | None = None

    def has_scope(self, scope: Scope) -> bool:
        """Return whether the principal has the scope; "admin" includes every scope."""
        return scope in self.scopes or "admin" in self.scopes


OWNER = Principal()
"""The principal of requests without a key, or with the key of the server."""

ANONYMOUS = Principal(name="anonymous", scopes=frozenset())
"""The principal of requests without a valid key, on the open paths."""

PRINCIPAL_SCOPE_KEY = "opposable.principal"
"""The key under which the authentication middleware stores the `Principal` in the ASGI scope."""
