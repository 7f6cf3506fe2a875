"""The service: one object with the store, tools, models, agents and runs."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

from opposable.agent.failure_memory import FailureMemory, get_owner_scope
from opposable.agent.limits import Limits
from opposable.app.agent_check import AgentWarning, find_agent_warnings
from opposable.app.agents import DEFAULT_INSTRUCTIONS
from opposable.app.ask import TeamPool, create_ask_data_tool
from opposable.app.default_store import open_default_store, require_postgresql
from opposable.app.inputs import get_model_price
from opposable.app.spec_loader import SpecLoader
from opposable.app.stored_tools import load_stored_specs, permissions_from_settings
from opposable.ask.team.team import Team
from opposable.domain.content import ContentPart, describe_media
from opposable.domain.errors import BadInput, OpposableError
from opposable.domain.language import detect_language
from opposable.domain.messages import Message, system_message, user_message
from opposable.domain.records import Conversation, Run, get_utc_now, scope_conversation_id
from opposable.domain.specs import MAX_ID_CHARACTERS, AgentSpec, AgentToolBinding, AnyToolSpec, FunctionToolSpec
from opposable.models.base import DEFAULT_OPTIONS, ForcedTool, Model, ModelOptions, ToolChoice
from opposable.models.profile import adapt_media
from opposable.service.background import run_in_background
from opposable.service.remote_runs import RemoteRuns
from opposable.service.run_plan import RunPlan, to_chat_request
from opposable.service.runner import ActiveRun, Runner
from opposable.settings import Settings
from opposable.store.recorder import Recorder
from opposable.store.retention import RetentionLimits
from opposable.store.store import Store
from opposable.tools.disclosure import ToolDisclosure
from opposable.tools.library import ToolLibrary
from opposable.tools.tool_names import to_hashed_name

DEFAULT_AGENT_ID = "default"
BUILTIN_TOOLS: dict[str, tuple[str, str, str]] = {
    "calculator": ("opposable.builtin_tools.calculator.calculator", "", "calculator"),
    "echo": ("opposable.builtin_tools.echo", "", "echo"),
    "file_search": ("opposable.builtin_tools.file_search", "FileSearch", ""),
    "log_transform": ("opposable.builtin_tools.logs.log_transform", "LogTransform", ""),
    "read_file": ("opposable.builtin_tools.file_search", "FileSearch", ""),
    "time": ("opposable.builtin_tools.clock", "", "time"),
}
"""Module, class and function of the tools that an empty store starts with. All of them are read-only."""

RECORD_WRITE_SECONDS = 0.2
"""Seconds between writes of records: other processes see a new run after this time at most."""

TOOL_POLL_SECONDS = 2.0
"""Seconds between reads of the stored tools, which other processes can change."""

RETENTION_SECONDS = 3600.0
"""Seconds between deletions of records that are older than the setting `retention_days`."""

log = logging.getLogger("opposable.service")


@dataclass(slots=True)
class Service:
    """Everything that routes and commands use.

    Attributes:
        settings: The settings that the service was opened with.
        store: The repositories.
        recorder: Writes runs, calls and events in the background.
        spec_loader: Creates tools from specs.
        runner: Executes runs.
        models: The models by the names that clients use; the first is the default.
        teams: Creates the teams that answer questions about data.
        failure_memory: The failures that agents remember across runs.
        remote_runs: Queues chats for worker processes, None where this process executes them.
    """

    settings: Settings
    store: Store
    recorder: Recorder
    spec_loader: SpecLoader
    runner: Runner
    models: Mapping[str, Model]
    teams: TeamPool
    failure_memory: FailureMemory
    remote_runs: RemoteRuns | None = None
    _refresh_lock: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)
    _loaded_specs: dict[str, AnyToolSpec] = field(default_factory=dict, repr=False)
    _agent_libraries: dict[str, tuple[Any, ToolLibrary]] = field(default_factory=dict, repr=False)

    @property
    def library(self) -> ToolLibrary:
        """The library with all enabled tools."""
        return self.spec_loader.library

    def get_model_name(self, name: str) -> str:
        """Return a model's name, that of the default model for ""."""
        return name or next(iter(self.models))

    def get_model(self, name: str) -> Model:
        """Return the model of that name, or the default model for "".

        Raises:
            BadInput: If the service has no such model.
        """
        model = self.models.get(self.get_model_name(name))
        if model is None:
            raise BadInput(f"There is no model {name!r}. Available models: {', '.join(self.models)}.")
        return model

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
        history: Sequence[Message] = (),
        parts: tuple[ContentPart, ...] = (),
        options: ModelOptions = DEFAULT_OPTIONS,
    ) -> ActiveRun:
        """Start a run of an agent on a user message.

        Args:
            agent: The agent.
            message: The text of the user.
            conversation_id: The conversation to continue, or the id of a new one; "" for none. A conversation is
                stored with its first answer.
            owner: The id of the API key that owns the run and the conversation.
            trace_id: The trace of the request, by default a new one.
            limits: Limits of the run, by default those of the agent.
            stream: Whether the model streams its replies.
            is_new_conversation: Whether the id was just generated, so that no history needs to be read.
            history: Earlier messages that are not stored. A conversation gets them together with the answer.
            parts: All parts of the message, if it has images or files.
            options: How the model writes its replies; the tool choice is that of the agent.

        Raises:
            BadInput: If the model or forced tool of the agent is unknown.
            StoreUnavailable: If the store cannot be read.
        """
        if conversation_id and not is_new_conversation:
            conversation_id = await self.find_stored_conversation_id(conversation_id, owner)
        new_message = user_message(message, parts)
        options = replace(options, stream=stream)
        plan = await self.plan_run(
            agent,
            new_message,
            conversation_id="" if is_new_conversation else conversation_id,
            owner=owner,
            limits=limits,
            history=history,
            options=options,
        )
        run = Run(
            run_id=uuid4().hex,
            started_at=get_utc_now(),
            agent_id=agent.agent_id,
            conversation_id=conversation_id,
            owner=owner,
            trace_id=trace_id or uuid4().hex,
            task=message or ", ".join(map(describe_media, new_message.media)),
            model=self.get_model_name(agent.model),
        )
        if self.remote_runs is not None:
            request = to_chat_request(run, agent, plan, new_message, history, options)
            return await self.remote_runs.start(run, request)
        return await self.runner.start(run, (*history, new_message), plan.run, holds_text=plan.holds_text)

    async def plan_run(
        self,
        agent: AgentSpec,
        new_message: Message,
        *,
        conversation_id: str = "",
        stored_count: int | None = None,
        owner: str = "",
        limits: Limits | None = None,
        history: Sequence[Message] = (),
        options: ModelOptions = DEFAULT_OPTIONS,
    ) -> RunPlan:
        """Return what a run of an agent on a user message needs.

        Args:
            agent: The agent.
            new_message: The message of the user.
            conversation_id: The stored id of the owner's conversation to continue, "" for none.
            stored_count: The number of its messages that the run sees, None for all.
            owner: The id of the API key that owns the run and the conversation.
            limits: Limits of the run, by default those of the agent.
            history: Earlier messages that are not stored.
            options: How the model writes its replies; the tool choice is that of the agent.

        Raises:
            BadInput: If another owner has the conversation, the model or forced tool of the agent is unknown, or the
                model takes no images and files.
            StoreUnavailable: If the store cannot be read.
        """
        model = self.get_model(agent.model)
        stored = await self.store.conversations.list_messages(conversation_id) if conversation_id else ()
        stored = stored[:stored_count]
        instructions = agent.instructions or DEFAULT_INSTRUCTIONS[detect_language(new_message.content)]
        library = self.get_agent_tools(agent, await self._get_data_team(agent))
        return RunPlan(
            model,
            library,
            adapt_media(model, (system_message(instructions), *stored, *history, new_message)),
            limits or self.get_agent_limits(agent),
            replace(options, tool_choice=self._resolve_tool_choice(agent, library)),
            self.failure_memory.with_scope(get_owner_scope(owner, agent.agent_id if agent.learning == "own" else "")),
            ToolDisclosure(max_tokens=agent.max_tool_tokens),
            agent.assisted,
            agent.after_untrusted,
            len(stored),
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
        earlier_questions: Sequence[str] = (),
    ) -> ActiveRun:
        """Start a run of the team that answers questions about data.

        The team uses the model of the agent.

        Args:
            question: The question, in English or Chinese.
            database: The URL or path of the database.
            semantics: The path of a semantic model, "" for none.
            agent: The agent whose model is used.
            owner: The id of the API key that owns the run.
            trace_id: The trace of the request, by default a new one.
            earlier_questions: The earlier questions of the conversation, oldest first.

        Raises:
            BadInput: If the database or the semantic model cannot be opened, or the model is unknown.
            StoreUnavailable: If the store is unavailable.
        """
        team = await self.teams.get(self.get_model(agent.model), database, semantics, assisted=agent.assisted)
        run = Run(
            run_id=uuid4().hex,
            started_at=get_utc_now(),
            agent_id=agent.agent_id,
            owner=owner,
            trace_id=trace_id or uuid4().hex,
            task=question,
            kind="data",
            model=self.get_model_name(agent.model),
        )
        return await self.runner.start(
            run, (), lambda context: team.stream(question, context.run_id, earlier_questions)
        )

    async def _get_data_team(self, agent: AgentSpec) -> Team | None:
        """Return the team of an agent with a database.

        Raise the same errors as `ask`.
        """
        if not agent.database:
            return None
        model = self.get_model(agent.model)
        return await self.teams.get(model, agent.database, agent.semantics, assisted=agent.assisted)

    def get_agent_tools(self, agent: AgentSpec, data_team: Team | None = None) -> ToolLibrary:
        """Return the tools bound to an agent, with its approval requirements, and `ask_data` if it has a team.

        No other library has its `ask_data`. The library is cached per agent.
        """
        cached = self._agent_libraries.get(agent.agent_id)
        key = (agent.tools, agent.needs_approval, data_team)
        if cached is not None and cached[0] == key:
            return cached[1]
        data_tools = []
        if data_team is not None:
            tool_id = f"ask_data.{agent.agent_id}"
            is_too_long = len(tool_id) > MAX_ID_CHARACTERS
            tool_id = f"ask_data.{to_hashed_name(agent.agent_id)}" if is_too_long else tool_id
            data_tools = [create_ask_data_tool(data_team, tool_id)]
        bindings = [
            binding.model_copy(update={"config": {**binding.config, "needs_approval": True}})
            if binding.tool_id in agent.needs_approval
            else binding
            for binding in (*agent.tools, *(AgentToolBinding(tool_id=tool.tool_id) for tool in data_tools))
        ]
        library = self.library.with_bindings(bindings, self.spec_loader.create_tools, data_tools)
        self._agent_libraries[agent.agent_id] = (key, library)
        return library

    def find_agent_warnings(self, agent: AgentSpec) -> list[AgentWarning]:
        """Return what the owner of an agent should know about its tools."""
        return find_agent_warnings(agent, self.get_agent_tools(agent))

    def get_agent_limits(self, agent: AgentSpec) -> Limits:
        """Return the limits of a run of an agent.

        The cost limit applies if the price of the model is known.
        """
        price = get_model_price(self.settings, self.get_model_name(agent.model))
        limits = agent.limits.model_dump(exclude={"cost"} if price is None else None)
        return Limits(**limits, price=price)

    async def get_conversation(self, conversation_id: str, owner: str) -> Conversation | None:
        """Return the conversation if it exists and belongs to the owner, else None."""
        for stored_id in (conversation_id, scope_conversation_id(conversation_id, owner)):
            conversation = await self.store.conversations.get(stored_id)
            if conversation is not None and conversation.owner == owner:
                return conversation
        return None

    async def delete_conversation(self, conversation_id: str, owner: str) -> bool:
        """Cancel the active runs of a conversation of the owner, and delete it. Return whether it existed.

        Raises:
            StoreUnavailable: If the store is unavailable.
            StoreConflict: If a run of another process does not end in time.
        """
        stored_id = await self.find_stored_conversation_id(conversation_id, owner)
        await self.runner.cancel_conversation(stored_id, owner)  # a cancelled run stores its conversation
        conversation = await self.get_conversation(conversation_id, owner)
        return conversation is not None and await self.store.conversations.delete(conversation.conversation_id)

    async def find_stored_conversation_id(self, conversation_id: str, owner: str) -> str:
        """Return the id under which a conversation of the owner is stored, or would be.

        It is the id itself, unless another owner has it: a conversation of another owner must not show.
        """
        conversation = await self.store.conversations.get(conversation_id)
        if conversation is not None and conversation.owner == owner:
            return conversation_id
        scoped_id = scope_conversation_id(conversation_id, owner)
        is_taken = conversation is not None or await self.store.conversations.get(scoped_id) is not None
        return scoped_id if is_taken else conversation_id

    async def refresh(self) -> None:
        """Load stored tools that were added or changed, and unload deleted ones.

        Raises:
            StoreUnavailable: If the store cannot be read.
        """
        async with self._refresh_lock:
            stored_specs = {spec.tool_id: spec for spec in await load_stored_specs(self.store)}
            for tool_id, spec in stored_specs.items():
                if self._loaded_specs.get(tool_id) != spec:
                    if spec.enabled:
                        await self.spec_loader.load(spec, replace=True)
                    else:
                        await self.spec_loader.remove(tool_id)
                    self._loaded_specs[tool_id] = spec
            for tool_id in self._loaded_specs.keys() - stored_specs.keys():
                await self.spec_loader.remove(tool_id)
                del self._loaded_specs[tool_id]

    @staticmethod
    def _resolve_tool_choice(agent: AgentSpec, library: ToolLibrary) -> ToolChoice:
        if agent.tool_choice in ("auto", "none", "required"):
            return agent.tool_choice  # type: ignore[return-value]  # narrowed by the line above
        tool = library.find_tool(agent.tool_choice)
        if tool is None:
            raise BadInput(f"The tool_choice of the agent, {agent.tool_choice!r}, is not one of its tools.")
        return ForcedTool(tool.definition.name)


@asynccontextmanager
async def open_service(
    settings: Settings, models: Mapping[str, Model], *, is_durable: bool = False
) -> AsyncIterator[Service]:
    """Open the service, and close it at the end of the block.

    The caller closes the models.

    An empty store gets the built-in tools and a default agent that is bound to them.

    Args:
        settings: Where the store is, and which permissions tools have.
        models: The models by the names that clients use; the first is the default.
        is_durable: Whether chats are executed by worker processes on the same PostgreSQL database.

    Raises:
        BadInput: If a setting is wrong.
        StoreError: If the store cannot be opened.
    """
    if is_durable:
        require_postgresql(settings)
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_default_store(settings, uses_valkey=True))
        recorder = await stack.enter_async_context(
            Recorder(store.executions, store.runs, flush_interval_seconds=RECORD_WRITE_SECONDS)
        )
        library = ToolLibrary(rate_limiter=store.limiter)
        spec_loader = await stack.enter_async_context(
            SpecLoader(library, permissions_from_settings(settings), pins=store.pins)
        )
        runner = await stack.enter_async_context(Runner(store, recorder, library))
        teams = await stack.enter_async_context(TeamPool(settings, store.query_examples.list_for_database))
        failure_memory = await stack.enter_async_context(FailureMemory(store.failures))
        service = Service(settings, store, recorder, spec_loader, runner, models, teams, failure_memory)
        if is_durable:
            service.remote_runs = RemoteRuns(store, runner)
        await _seed_defaults(store)
        await service.refresh()
        await stack.enter_async_context(run_in_background(_poll_stored_tools(service), "stored tools"))
        if settings.retention_days is not None:
            limits = RetentionLimits(max_age=timedelta(days=settings.retention_days))
            await stack.enter_async_context(run_in_background(_enforce_retention(store, limits), "retention"))
        yield service


async def _seed_defaults(store: Store) -> None:
    """Store the built-in tools and the default agent in a store without agents.

    The agent has these tools, and those that the owner has added before.
    """
    if (await store.agents.list(limit=1)).items:
        return
    tool_ids = {spec.tool_id for spec in await load_stored_specs(store)}
    for tool_id, (module_path, class_name, function_name) in BUILTIN_TOOLS.items():
        if tool_id in tool_ids:
            continue
        spec = FunctionToolSpec(
            tool_id=tool_id,
            module_path=module_path,
            class_name=class_name,
            function_name=function_name,
            category="built-in",
            read_only=True,
        )
        await store.tools.save(spec)
    bindings = tuple(AgentToolBinding(tool_id=tool_id) for tool_id in sorted(tool_ids | BUILTIN_TOOLS.keys()))
    with contextlib.suppress(BadInput):  # another process has just added it
        await store.agents.add(AgentSpec(agent_id=DEFAULT_AGENT_ID, name="Default", tools=bindings))


async def _poll_stored_tools(service: Service) -> None:
    while True:
        await asyncio.sleep(TOOL_POLL_SECONDS)
        try:
            await service.refresh()
        except OpposableError as error:
            log.debug("Cannot refresh the stored tools yet: %s", error)
        except Exception:
            log.exception("Cannot refresh the stored tools.")


async def _enforce_retention(store: Store, limits: RetentionLimits) -> None:
    while True:
        with contextlib.suppress(OpposableError):
            await store.retention.enforce(limits)
        await asyncio.sleep(RETENTION_SECONDS)
