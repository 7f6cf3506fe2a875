"""The store: one repository for each noun."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from opposable.domain.errors import StoreUnavailable
from opposable.store.agents import Agents
from opposable.store.approvals import Approvals
from opposable.store.conversations import Conversations, SqlConversations
from opposable.store.database import Database
from opposable.store.database_urls import database_url
from opposable.store.executions import Executions
from opposable.store.failures import Failures
from opposable.store.keys import Keys
from opposable.store.mcp_pins import Pins
from opposable.store.rate_limits import Limiter, ProcessLimiter
from opposable.store.retention import Retention
from opposable.store.runs import Runs
from opposable.store.schema_migration import migrate
from opposable.store.tools import Tools
from opposable.store.workers import Workers

Check = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Store:
    """What is kept, by noun. Every method of every part raises `StoreUnavailable` when its server is away."""

    tools: Tools
    agents: Agents
    executions: Executions
    conversations: Conversations
    runs: Runs
    failures: Failures
    pins: Pins
    keys: Keys
    approvals: Approvals
    retention: Retention
    workers: Workers
    limiter: Limiter
    checks: dict[str, Check]

    async def ready(self) -> dict[str, str]:
        """Each server the store needs, with what is wrong with it: "" when nothing is."""
        return {name: await _wrong(check) for name, check in self.checks.items()}


@asynccontextmanager
async def opened(url: str, valkey: str | None) -> AsyncIterator[Store]:
    """The store at a URL; see `open_store`."""
    database = Database(database_url(url))
    async with AsyncExitStack() as stack:
        stack.push_async_callback(database.close)
        await migrate(database)
        checks: dict[str, Check] = {"database": database.check}
        conversations: Conversations = SqlConversations(database)
        limiter: Limiter = ProcessLimiter()
        if valkey is not None:
            from opposable.store.valkey import open_valkey  # its client is an extra of its own

            shared = await stack.enter_async_context(open_valkey(valkey))
            conversations, limiter, checks["valkey"] = shared.conversations, shared.limiter, shared.check
        yield Store(
            tools=Tools(database),
            agents=Agents(database),
            executions=Executions(database),
            conversations=conversations,
            runs=Runs(database),
            failures=Failures(database),
            pins=Pins(database),
            keys=Keys(database),
            approvals=Approvals(database),
            retention=Retention(database),
            workers=Workers(database),
            limiter=limiter,
            checks=checks,
        )


async def _wrong(check: Check) -> str:
    try:
        await check()
    except StoreUnavailable as error:
        return str(error)
    return ""
