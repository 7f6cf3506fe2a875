"""The store: one repository for each kind of record."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from opposable.domain.errors import StoreUnavailable
from opposable.domain.rate_limits import InProcessRateLimiter, RateLimiter
from opposable.store.agents import AgentRepository
from opposable.store.approvals import ApprovalRepository
from opposable.store.batches import BatchRepository
from opposable.store.conversations import ConversationRepository, SqlConversationRepository
from opposable.store.creation import StoreCreation
from opposable.store.database import StoreDatabase
from opposable.store.database_urls import parse_database_url
from opposable.store.executions import ExecutionRepository
from opposable.store.failures import FailureRepository
from opposable.store.keys import ApiKeyRepository
from opposable.store.mcp_pins import McpPinRepository
from opposable.store.migration_runner import migrate_schema
from opposable.store.model_usage import ModelUsageRepository
from opposable.store.query_examples import QueryExampleRepository
from opposable.store.queued_runs import QueuedRunRepository
from opposable.store.responses import ResponseRepository
from opposable.store.retention import Retention
from opposable.store.runs import RunRepository
from opposable.store.schema_location import require_file
from opposable.store.tools import ToolRepository
from opposable.store.workers import WorkerRepository

HealthCheck = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Store:
    """The repositories of one database.

    Every method of every repository raises `StoreUnavailable` when its server does not answer.
    """

    tools: ToolRepository
    agents: AgentRepository
    executions: ExecutionRepository
    conversations: ConversationRepository
    responses: ResponseRepository
    runs: RunRepository
    failures: FailureRepository
    pins: McpPinRepository
    query_examples: QueryExampleRepository
    keys: ApiKeyRepository
    model_usage: ModelUsageRepository
    approvals: ApprovalRepository
    retention: Retention
    workers: WorkerRepository
    batches: BatchRepository
    queued_runs: QueuedRunRepository
    limiter: RateLimiter
    checks: dict[str, HealthCheck]

    async def check_health(self) -> dict[str, str]:
        """Check every server of the store.

        Returns:
            An error message by server name, "" for a server that answers.
        """
        return {name: await _run_check(check) for name, check in self.checks.items()}


@asynccontextmanager
async def connect_store(url: str, valkey_url: str | None, create: StoreCreation) -> AsyncIterator[Store]:
    """Open the store at a URL, migrate its schema, and close it at the end. See `open_store`."""
    parsed_url = parse_database_url(url)
    require_file(parsed_url, create)
    database = StoreDatabase(parsed_url)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(database.close)
        await migrate_schema(database, create)
        checks: dict[str, HealthCheck] = {"database": database.ping}
        conversations: ConversationRepository = SqlConversationRepository(database)
        limiter: RateLimiter = InProcessRateLimiter()
        if valkey_url is not None:
            from opposable.store.valkey import open_valkey  # lazy: the client is an optional extra

            valkey_store = await stack.enter_async_context(open_valkey(valkey_url))
            conversations, limiter, checks["valkey"] = (
                valkey_store.conversations,
                valkey_store.limiter,
                valkey_store.ping,
            )
        yield Store(
            tools=ToolRepository(database),
            agents=AgentRepository(database),
            executions=ExecutionRepository(database),
            conversations=conversations,
            responses=ResponseRepository(database),
            runs=RunRepository(database),
            failures=FailureRepository(database),
            pins=McpPinRepository(database),
            query_examples=QueryExampleRepository(database),
            keys=ApiKeyRepository(database),
            model_usage=ModelUsageRepository(database),
            approvals=ApprovalRepository(database),
            retention=Retention(database),
            workers=WorkerRepository(database),
            batches=BatchRepository(database),
            queued_runs=QueuedRunRepository(database),
            limiter=limiter,
            checks=checks,
        )


async def _run_check(check: HealthCheck) -> str:
    try:
        await check()
    except StoreUnavailable as error:
        return str(error)
    return ""
