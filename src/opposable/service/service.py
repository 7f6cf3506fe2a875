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
from opposable.agent.loop import run as run_loop
from opposable.app.agents import INSTRUCTIONS
from opposable.app.ask import Teams, ask_data
from opposable.app.inputs import FREE
from opposable.app.spec_loader import Toolbox
from opposable.app.stored_tools import kept_specs, kept_store, reach_of
from opposable.ask.team.team import Team
from opposable.domain.errors import BadInput, OpposableError
from opposable.domain.language import language_of
from opposable.domain.messages import Message, system, user
from opposable.domain.records import SHARED, AgentRecord, Conversation, Run, now
from opposable.domain.specs import AgentSpec, AgentToolBinding, AnyToolSpec, FunctionToolSpec
from opposable.domain.usage import Price
from opposable.models.base import Model, ModelOptions, Named, ToolChoice
from opposable.service.runner import Going, Runner
from opposable.settings import Settings
from opposable.store.recorder import Recorder
from opposable.store.store import Store
from opposable.tools.library import ToolLibrary

DEFAULT_AGENT = "default"
BUILT_IN: dict[str, tuple[str, str, str]] = {
    "calculator": ("opposable.builtin_tools.calculator.calculator", "", "calculator"),
    "echo": ("opposable.builtin_tools.echo", "", "echo"),
    "file_search": ("opposable.builtin_tools.file_search", "FileSearch", ""),
    "log_transform": ("opposable.builtin_tools.logs.log_transform", "LogTransform", ""),
    "read_file": ("opposable.builtin_tools.file_search", "FileSearch", ""),
    "time": ("opposable.builtin_tools.clock", "", "time"),
}
"""The built-in tools that an empty store begins with: they read, and nothing else. Module, class, function."""

RECORD = 0.2
"""Seconds after which records are written: so late, at most, do other processes know of a run."""

FOLLOW = 2.0
"""Seconds between looks at the kept tools, which other processes may change."""


@dataclass(slots=True)
class Service:
    """What routes and commands work with. `models` are the models by the names clients call them."""

    settings: Settings
    store: Store
    recorder: Recorder
    toolbox: Toolbox
    runner: Runner
    models: Mapping[str, Model]
    teams: Teams
    memory: FailureMemory
    _offered: dict[str, AnyToolSpec] = field(default_factory=dict, repr=False)
    _bound: dict[str, tuple[Any, ToolLibrary]] = field(default_factory=dict, repr=False)
    _asked: dict[str, Team] = field(default_factory=dict, repr=False)

    @property
    def library(self) -> ToolLibrary:
        """All tools."""
        return self.toolbox.library

    def model(self, name: str) -> Model:
        """The model an agent names; "" is the service's own, the first. Raises: `BadInput`."""
        found = self.models.get(name) if name else next(iter(self.models.values()))
        if found is None:
            raise BadInput(f"There is no model {name!r} here; the models are: {', '.join(self.models)}.")
        return found

    async def agent(self, agent_id: str = DEFAULT_AGENT) -> AgentRecord:
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
        new: bool = False,
    ) -> Going:
        """Begin a run on a message, in a conversation where one is named: it is begun with its first answer.

        `new` says that nobody can know the conversation yet, so that nothing of it is looked for. Raises: `BadInput`
        (the conversation is another owner's, no such model), `StoreUnavailable`.
        """
        model = self.model(agent.model)
        history = await self._history(conversation_id, owner) if conversation_id and not new else ()
        asked = user(message)
        instructions = agent.instructions or INSTRUCTIONS[language_of(message)]
        messages = (system(instructions), *history, asked)
        library = self.tools_of(await self._with_data(agent))
        options = ModelOptions(stream=stream, tool_choice=self._choice(agent, library))
        bounds = limits or self.limits_of(agent)
        learning = self.memory.of(agent.agent_id if agent.learning == "own" else SHARED)
        run = Run(
            run_id=uuid4().hex,
            started_at=now(),
            agent_id=agent.agent_id,
            conversation_id=conversation_id,
            owner=owner,
            trace_id=trace_id or uuid4().hex,
            task=message,
        )
        return await self.runner.start(
            run,
            asked,
            lambda context: run_loop(
                model, library, messages, limits=bounds, options=options, context=context, learning=learning
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
    ) -> Going:
        """Begin a run of the team that answers questions about data, with the agent's model.

        `database` is a URL or a path, `semantics` the file of a semantic model. Raises: `BadInput` (there is no such
        database, the semantic model cannot be read, no such model), `StoreUnavailable`.
        """
        team = await self.teams.get(self.model(agent.model), database, semantics)
        run = Run(
            run_id=uuid4().hex,
            started_at=now(),
            agent_id=agent.agent_id,
            owner=owner,
            trace_id=trace_id or uuid4().hex,
            task=question,
        )
        return await self.runner.start(run, None, lambda context: team.stream(question, context.run_id))

    async def _with_data(self, agent: AgentSpec) -> AgentSpec:
        """The agent with the team over its database among its tools, where it has one. Raises: as `ask`."""
        if not agent.database:
            return agent
        team = await self.teams.get(self.model(agent.model), agent.database, agent.semantics)
        tool_id = f"ask_data.{agent.agent_id}"[:100]
        if self._asked.get(tool_id) is not team:
            self.library.unregister(tool_id)
            self.library.register(ask_data(team, tool_id))
            self._asked[tool_id] = team
        return agent.model_copy(update={"tools": (*agent.tools, AgentToolBinding(tool_id=tool_id))})

    def tools_of(self, agent: AgentSpec) -> ToolLibrary:
        """The tools an agent has, those among them marked that need a person's approval."""
        had = self._bound.get(agent.agent_id)
        if had is not None and had[0] == (agent.tools, agent.needs_approval):
            return had[1]
        marked = [
            binding.model_copy(update={"config": {**binding.config, "needs_approval": True}})
            if binding.tool_id in agent.needs_approval
            else binding
            for binding in agent.tools
        ]
        made = self.library.bound(marked, self.toolbox.make)
        self._bound[agent.agent_id] = ((agent.tools, agent.needs_approval), made)
        return made

    def limits_of(self, agent: AgentSpec) -> Limits:
        """How far one run of an agent may go."""
        name = agent.model or next(iter(self.models))
        per_million = self.settings.prices.get(name)
        price = Price(*per_million) if per_million else FREE if name == "local" else None
        given = agent.limits
        cost = given.cost if price is not None else None
        return Limits(given.turns, given.tool_calls, given.tokens, given.seconds, cost=cost, price=price)

    async def conversation(self, conversation_id: str, owner: str) -> Conversation | None:
        """The conversation of that id, if it is the owner's: another's is as if it were not there."""
        found = await self.store.conversations.get(conversation_id)
        return found if found is not None and found.owner == owner else None

    async def refresh(self) -> None:
        """Put what changed among the kept tools into the library. Raises: `StoreUnavailable`."""
        kept = {spec.tool_id: spec for spec in await kept_specs(self.store)}
        for tool_id, spec in kept.items():
            if self._offered.get(tool_id) != spec:
                self._offered[tool_id] = spec
                await self._offer(spec)
        for tool_id in [one for one in self._offered if one not in kept]:
            del self._offered[tool_id]
            await self.toolbox.remove(tool_id)

    async def _offer(self, spec: AnyToolSpec) -> None:
        if not spec.enabled:
            await self.toolbox.remove(spec.tool_id)
            return
        await self.toolbox.add(spec, replace=True)

    async def _history(self, conversation_id: str, owner: str) -> tuple[Message, ...]:
        found = await self.store.conversations.get(conversation_id)
        if found is None:
            return ()
        if found.owner != owner:
            raise BadInput(f"There is no conversation {conversation_id!r}; begin one with another id.")
        return await self.store.conversations.messages(conversation_id)

    @staticmethod
    def _choice(agent: AgentSpec, library: ToolLibrary) -> ToolChoice:
        if agent.tool_choice in ("auto", "none", "required"):
            return agent.tool_choice  # type: ignore[return-value]  # narrowed by the line above
        tool = library.find(agent.tool_choice)
        if tool is None:
            raise BadInput(f"The agent's tool_choice names {agent.tool_choice!r}, which is not among its tools.")
        return Named(tool.definition.name)


@asynccontextmanager
async def open_service(
    settings: Settings, models: Mapping[str, Model], *, grace: float = 0.0
) -> AsyncIterator[Service]:
    """The service over the store that the settings name; closed at the end. The models stay the caller's.

    Runs that go on at the end have `grace` seconds more. An empty store is given the built-in tools and a default agent bound to them. Raises: `BadInput`, `StoreError`.
    """
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(kept_store(settings))
        recorder = await stack.enter_async_context(Recorder(store.executions, store.runs, every=RECORD))
        library = ToolLibrary(limiter=store.limiter)
        toolbox = await stack.enter_async_context(Toolbox(library, reach_of(settings), pins=store.pins))
        runner = await stack.enter_async_context(
            Runner(store, recorder, lambda name: _tool_id(library, name), grace=grace)
        )
        teams = await stack.enter_async_context(Teams(settings))
        memory = await stack.enter_async_context(FailureMemory(store.failures, records=store.executions))
        service = Service(settings, store, recorder, toolbox, runner, models, teams, memory)
        await _furnish(store)
        await service.refresh()
        following = asyncio.create_task(_follow(service), name="tools")
        try:
            yield service
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)


async def _furnish(store: Store) -> None:
    """The built-in tools and a default agent, where there is none of either."""
    if not (await store.tools.list(limit=1)).items:
        for tool_id, (module, cls, function) in BUILT_IN.items():
            spec = FunctionToolSpec(
                tool_id=tool_id,
                module_path=module,
                class_name=cls,
                function_name=function,
                category="built-in",
                idempotent=True,
            )
            await store.tools.save(spec)
    if await store.agents.get(DEFAULT_AGENT) is None and not (await store.agents.list(limit=1)).items:
        there = {spec.tool_id for spec in await kept_specs(store)}
        bindings = tuple(AgentToolBinding(tool_id=tool_id) for tool_id in BUILT_IN if tool_id in there)
        with contextlib.suppress(BadInput):  # another process was first
            await store.agents.add(AgentSpec(agent_id=DEFAULT_AGENT, name="Default", tools=bindings))


async def _follow(service: Service) -> None:
    while True:
        await asyncio.sleep(FOLLOW)
        with contextlib.suppress(OpposableError):
            await service.refresh()


def _tool_id(library: ToolLibrary, name: str) -> str:
    tool = library.find(name)
    return tool.tool_id if tool is not None else name
