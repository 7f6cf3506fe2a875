"""A DNS resolver that applies the guard to each answer."""

from ipaddress import ip_address
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult

from opposable.domain.errors import ToolUnavailable
from opposable.safety.network.ssrf_guard import SsrfGuard


class GuardedResolver(AbstractResolver):
    """A resolver that rejects an answer with any address that is not allowed."""

    def __init__(self, guard: SsrfGuard, resolver: AbstractResolver) -> None:
        self._guard = guard
        self._resolver = resolver

    async def resolve(self, host: str, port: int = 0, family: Any = 0) -> list[ResolveResult]:
        """Resolve a host.

        Raises:
            ToolRefused: An address is not allowed.
            ToolUnavailable: The name cannot be resolved.
        """
        try:
            results = await self._resolver.resolve(host, port, family)
        except OSError as error:
            raise ToolUnavailable(f"There is no host {host}, or its name cannot be looked up now.") from error
        for result in results:
            self._guard.check_address(ip_address(result["host"]), host, port)
        return results

    async def close(self) -> None:
        """Close the inner resolver."""
        await self._resolver.close()
