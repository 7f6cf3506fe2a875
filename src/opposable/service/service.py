"""The service, opened: store, tools, models, agents and runs, and everything that is told of them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from opposable.agent.failure_memory import FailureMemory
from opposable.agent.limits import Limits
from opposable.agent.agent import run_agent
from opposable.app.agents import DEFAULT_INSTRUCTIONS
from opposable.app.ask import TeamPool, create_ask_data_tool
from opposable.app.inputs import FREE_PRICE
from opposable.app.spec_loader import SpecLoader
from opposable.app.stored_tools import load_stored_specs, open_default_store, permissions_from_settings
from opposable.ask.team.team import Team
from opposable.domain.errors import BadInput, OpposableError
from opposable.domain.language import detect_language
from opposable.domain.messages import Message, system_message, user_message
from opposable.domain.records import SHARED_SCOPE, AgentRecord, Conversation, Run, get_utc_now
from opposable.domain.specs import AgentSpec, AgentToolBinding, AnyToolSpec, FunctionToolSpec
from opposable.domain.usage import Price
from opposable.models.base import ForcedTool, Model, ModelOptions, ToolChoice
from opposable.service.runner import ActiveRun, Runner
from opposable.settings import Settings
from opposable.store.recorder import Recorder
from opposable.store.store import Store
from opposable.tools.library import ToolLibrary

DEFAULT_AGENT_ID = "default"
BUILTIN_TOOLS: dict[str, tuple[str, str, str]] = {
    "calculator": ("opposable.builtin_tools.calculator.calculator", "", "calculator"),
    "echo": ("opposable.builtin_tools.echo", "", "echo"),
    "file_search": ("opposable.builtin_tools.file_search", "FileSearch", ""),
    "log_transform": ("opposable.builtin_tools.logs.log_transform", "LogTransform", ""),
    "read_file": ("opposable.builtin_tools.file_search", "FileSearch", ""),
    "time": ("opposable.builtin_tools.clock", "", "time"),
}
"""The built-in tools that an empty store begins with: they read, and nothing else. Module, class, function."""

RECORD_WRITE_SECONDS = 0.2
"""Seconds after which records are written: so late, at most, do other processes know of a run."""

TOOL_POLL_SECONDS = 2.0
"""Seconds between looks at the kept tools, which other processes may change."""


@dataclass(slots=True)
class Service:
    """What routes and commands work with. `models` are the models by the names clients call them."""

    settings: Settings
    store: Store
    recorder: Recorder
    spec_loader: SpecLoader
    runner: Runner
    models: Mapping[str, Model]
    teams: TeamPool
    failure_memory: FailureMemory
    _loaded_specs: dict[str, AnyToolSpec] = field(default_factory=dict, repr=False)
    _agent_libraries: dict[str, tuple[Any, ToolLibrary]] = field(default_factory=dict, repr=False)
    _data_teams: dict[str, Team] = field(default_factory=dict, repr=False)

    @property
    def library(self) -> ToolLibrary:
        """All tools."""
        return self.spec_loader.library

    def get_model(self, name: str) -> Model:
        """The model an agent names; "" is the service's own, the first. Raises: `BadInput`."""
        found = self.models.get(name) if name else next(iter(self.models.values()))
        if found is None:
            raise BadInput(f"There is no model {name!r} here; the models are: {', '.join(self.models)}.")
        return found

    async def get_agent(self, agent_id: str = DEFAULT_AGENT_ID) -> AgentRecord:
        """The agent of that id. Raises: `BadInput` where there is none."""
        record = await self.store.agents.get(agent_id)
        if record is None:
            raise BadInput(f"There is no agent {agent_id!r}.")
        return record

    async def chat(
        self,
        agent: AgentSpec,
        message: str,
        *,
        conversation_id: str = "",
        owner: str = "",
        trace_id: str = "",
        limits: Limits | None = None,
        stream: bool = True,
        is_new_conversation: bool = False,
    ) -> ActiveRun:
        """Begin a run on a message, in a conversation where one is named: it is begun with its first answer.

        `new` says that nobody can know the conversation yet, so that nothing of it is looked for. Raises: `BadInput`
        (the conversation is another owner's, no such model), `StoreUnavailable`.
        """
        model = self.get_model(agent.model)
        history = (
            await self._load_history(conversation_id, owner) if conversation_id and not is_new_conversation else ()
        )
        asked = user_message(message)
        instructions = agent.instructions or DEFAULT_INSTRUCTIONS[detect_language(message)]
        messages = (system_message(instructions), *history, asked)
        library = self.get_agent_tools(await self._add_data_tool(agent))
        options = ModelOptions(stream=stream, tool_choice=self._resolve_tool_choice(agent, library))
        bounds = limits or self.get_agent_limits(agent)
        learning = self.failure_memory.scoped(agent.agent_id if agent.learning == "own" else SHARED_SCOPE)
        run = Run(
            run_id=uuid4().hex,
            started_at=get_utc_now(),
            agent_id=agent.agent_id,
            conversation_id=conversation_id,
            owner=owner,
            trace_id=trace_id or uuid4().hex,
            task=message,
        )
        return await self.runner.start(
            run,
            asked,
            lambda context: run_agent(
                model, library, messages, limits=bounds, options=options, context=context, failure_memory=learning
            ),
        )

    async def ask(
        self,
        question: str,
        database: str,
        semantics: str = "",
        *,
        agent: AgentSpec,
        owner: str = "",
        trace_id: str = "",
    ) -> ActiveRun:
        """Begin a run of the team that answers questions about data, with the agent's model.

        `database` is a URL or a path, `semantics` the file of a semantic model. Raises: `BadInput` (there is no such
        database, the semantic model cannot be read, no such model), `StoreUnavailable`.
        """
        team = await self.teams.get(self.get_model(agent.model), database, semantics)
        run = Run(
            run_id=uuid4().hex,
            started_at=get_utc_now(),
            agent_id=agent.agent_id,
            owner=owner,
            trace_id=trace_id or uuid4().hex,
            task=question,
        )
        return await self.runner.start(run, None, lambda context: team.stream(question, context.run_id))

    async def _add_data_tool(self, agent: AgentSpec) -> AgentSpec:
        """The agent with the team over its database among its tools, where it has one. Raises: as `ask`."""
        if not agent.database:
            return agent
        team = await self.teams.get(self.get_model(agent.model), agent.database, agent.semantics)
        tool_id = f"ask_data.{agent.agent_id}"[:100]
        if self._data_teams.get(tool_id) is not team:
            self.library.unregister(tool_id)
            self.library.register(create_ask_data_tool(team, tool_id))
            self._data_teams[tool_id] = team
        return agent.model_copy(update={"tools": (*agent.tools, AgentToolBinding(tool_id=tool_id))})

    def get_agent_tools(self, agent: AgentSpec) -> ToolLibrary:
        """The tools an agent has, those among them marked that need a person's approval."""
        had = self._agent_libraries.get(agent.agent_id)
        if had is not None and had[0] == (agent.tools, agent.needs_approval):
            return had[1]
        marked = [
            binding.model_copy(update={"config": {**binding.config, "needs_approval": True}})
            if binding.tool_id in agent.needs_approval
            else binding
            for binding in agent.tools
        ]
        made = self.library.with_bindings(marked, self.spec_loader.create_tools)
        self._agent_libraries[agent.agent_id] = ((agent.tools, agent.needs_approval), made)
        return made

    def get_agent_limits(self, agent: AgentSpec) -> Limits:
        """How far one run of an agent may go."""
        name = agent.model or next(iter(self.models))
        per_million = self.settings.prices.get(name)
        price = Price(*per_million) if per_million else FREE_PRICE if name == "local" else None
        given = agent.limits
        cost = given.cost if price is not None else None
        return Limits(given.turns, given.tool_calls, given.tokens, given.seconds, cost=cost, price=price)

    async def get_conversation(self, conversation_id: str, owner: str) -> Conversation | None:
        """The conversation of that id, if it is the owner's: another's is as if it were not there."""
        found = await self.store.conversations.get(conversation_id)
        return found if found is not None and found.owner == owner else None

    async def refresh(self) -> None:
        """Put what changed among the kept tools into the library. Raises: `StoreUnavailable`."""
        kept = {spec.tool_id: spec for spec in await load_stored_specs(self.store)}
        for tool_id, spec in kept.items():
            if self._loaded_specs.get(tool_id) != spec:
                self._loaded_specs[tool_id] = spec
                await self._load_spec(spec)
        for tool_id in [one for one in self._loaded_specs if one not in kept]:
            del self._loaded_specs[tool_id]
            await self.spec_loader.remove(tool_id)

    async def _load_spec(self, spec: AnyToolSpec) -> None:
        if not spec.enabled:
            await self.spec_loader.remove(spec.tool_id)
            return
        await self.spec_loader.load(spec, replace=True)

    async def _load_history(self, conversation_id: str, owner: str) -> tuple[Message, ...]:
        found = await self.store.conversations.get(conversation_id)
        if found is None:
            return ()
        if found.owner != owner:
            raise BadInput(f"There is no conversation {conversation_id!r}; begin one with another id.")
        return await self.store.conversations.list_messages(conversation_id)

    @staticmethod
    def _resolve_tool_choice(agent: AgentSpec, library: ToolLibrary) -> ToolChoice:
        if agent.tool_choice in ("auto", "none", "required"):
            return agent.tool_choice  # type: ignore[return-value]  # narrowed by the line above
        tool = library.find_tool(agent.tool_choice)
        if tool is None:
            raise BadInput(f"The agent's tool_choice names {agent.tool_choice!r}, which is not among its tools.")
        return ForcedTool(tool.definition.name)


@asynccontextmanager
async def open_service(
    settings: Settings, models: Mapping[str, Model], *, grace_seconds: float = 0.0
) -> AsyncIterator[Service]:
    """The service over the store that the settings name; closed at the end. The models stay the caller's.

    Runs that go on at the end have `grace` seconds more. An empty store is given the built-in tools and a default agent bound to them. Raises: `BadInput`, `StoreError`.
    """
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_default_store(settings))
        recorder = await stack.enter_async_context(
            Recorder(store.executions, store.runs, flush_interval_seconds=RECORD_WRITE_SECONDS)
        )
        library = ToolLibrary(rate_limiter=store.limiter)
        toolbox = await stack.enter_async_context(
            SpecLoader(library, permissions_from_settings(settings), pins=store.pins)
        )
        runner = await stack.enter_async_context(
            Runner(store, recorder, lambda name: _get_tool_id(library, name), grace_seconds=grace_seconds)
        )
        teams = await stack.enter_async_context(TeamPool(settings))
        memory = await stack.enter_async_context(FailureMemory(store.failures, statistics_store=store.executions))
        service = Service(settings, store, recorder, toolbox, runner, models, teams, memory)
        await _seed_defaults(store)
        await service.refresh()
        following = asyncio.create_task(_poll_stored_tools(service), name="tools")
        try:
            yield service
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)


async def _seed_defaults(store: Store) -> None:
    """The built-in tools and a default agent, where there is none of either."""
    if not (await store.tools.list(limit=1)).items:
        for tool_id, (module, cls, function) in BUILTIN_TOOLS.items():
            spec = FunctionToolSpec(
                tool_id=tool_id,
                module_path=module,
                class_name=cls,
                function_name=function,
                category="built-in",
                idempotent=True,
            )
            await store.tools.save(spec)
    if await store.agents.get(DEFAULT_AGENT_ID) is None and not (await store.agents.list(limit=1)).items:
        there = {spec.tool_id for spec in await load_stored_specs(store)}
        bindings = tuple(AgentToolBinding(tool_id=tool_id) for tool_id in BUILTIN_TOOLS if tool_id in there)
        with contextlib.suppress(BadInput):  # another process was first
            await store.agents.add(AgentSpec(agent_id=DEFAULT_AGENT_ID, name="Default", tools=bindings))


async def _poll_stored_tools(service: Service) -> None:
    while True:
        await asyncio.sleep(TOOL_POLL_SECONDS)
        with contextlib.suppress(OpposableError):
            await service.refresh()


def _get_tool_id(library: ToolLibrary, name: str) -> str:
    tool = library.find_tool(name)
    return tool.tool_id if tool is not None else name
