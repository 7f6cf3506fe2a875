"""Who asks: an API key's owner, or the person at this machine."""

from dataclasses import dataclass
from typing import Literal

from opposable.domain.specs import RateLimit

Scope = Literal["chat", "tools:read", "tools:write", "admin"]
"""What a key may do."""

SCOPES: frozenset[Scope] = frozenset(("chat", "tools:read", "tools:write", "admin"))


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks. `key_id` owns the conversations, runs and approvals that come of it; "" where there are no keys.

    `agent` is the one agent that may be asked, "" for any. `rate_limit` and `token_budget` are None for no limit.
    """

    key_id: str = ""
    name: str = "owner"
    scopes: frozenset[str] = SCOPES
    agent_id: str = ""
    rate_limit: RateLimit | None = None
    token_budget: int | None = None

    def has_scope(self, scope: Scope) -> bool:
        """Whether this is allowed: "admin" allows everything."""
        return scope in self.scopes or "admin" in self.scopes


OWNER = Principal()
"""The person at this machine, where no keys are used."""

PRINCIPAL_SCOPE_KEY = "opposable.principal"
"""Key of the ASGI scope under which the authentication middleware stores the `Principal`."""
