"""Checks of stored agents: which tools they cannot use, and whether they can act on untrusted text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from opposable.agent.untrusted_text import find_untrusted_text_exposure
from opposable.app.stored_tools import open_existing_store, open_spec_loader
from opposable.domain.errors import BadInput
from opposable.domain.records import AgentRecord, load_all_pages
from opposable.domain.specs import AgentSpec
from opposable.settings import Settings
from opposable.tools.library import ToolLibrary

if TYPE_CHECKING:
    from opposable.store.store import Store

WarningId = Literal["unusable_tool", "untrusted_text"]


@dataclass(frozen=True, slots=True)
class AgentWarning:
    """What the owner of an agent should know.

    Attributes:
        warning_id: What the warning is about, for catalogs of messages.
        parameters: The values in the message, by name.
        message: The message in English.
    """

    warning_id: WarningId
    parameters: dict[str, str]
    message: str


def find_agent_warnings(agent: AgentSpec, library: ToolLibrary) -> list[AgentWarning]:
    """Return what the owner of an agent should know. `library` has the tools that are bound to the agent."""
    warnings = [_warn_of_unusable_tool(tool_id, reason) for tool_id, reason in library.rejected_bindings.items()]
    exposure = find_untrusted_text_exposure(library, agent.after_untrusted)
    if exposure is None:
        return warnings
    readers, actors = ", ".join(exposure.readers[:5]), ", ".join(exposure.actors[:5])
    message = (
        f"The agent reads untrusted text ({readers}) and can act on it ({actors}). "
        "Set after_untrusted to approve or refuse."
    )
    return [*warnings, AgentWarning("untrusted_text", {"readers": readers, "actors": actors}, message)]


async def explain_disabled_tools(warnings: Sequence[AgentWarning], store: "Store") -> list[AgentWarning]:
    """Return the warnings; the reason of a tool that is stored but disabled says how to enable it."""
    explained = []
    for warning in warnings:
        if warning.warning_id == "unusable_tool":
            tool_id = warning.parameters["tool"]
            reason = await describe_unusable_tool(store, tool_id, warning.parameters["reason"])
            warning = _warn_of_unusable_tool(tool_id, reason)
        explained.append(warning)
    return explained


async def describe_unusable_tool(store: "Store", tool_id: str, reason: str) -> str:
    """Return why a bound tool cannot be used: it is disabled, or else `reason`."""
    spec = await store.tools.get(tool_id)
    if spec is None or spec.enabled:
        return reason
    return f"{tool_id!r} is disabled. Enable it with: opposable tools enable {tool_id}"


async def check_agents(settings: Settings, agent_ids: Sequence[str] = ()) -> dict[str, list[AgentWarning]]:
    """Return the warnings of stored agents by id, those of all agents if none is named. MCP servers are connected.

    Raises:
        BadInput: There is no such agent.
        StoreError: The store cannot be read.
    """
    async with open_existing_store(settings) as store:
        records: list[AgentRecord] = []
        if store is not None:
            records = await load_all_pages(lambda after: store.agents.list(after=after, limit=500))
        missing = [agent_id for agent_id in agent_ids if agent_id not in {record.spec.agent_id for record in records}]
        if missing:
            raise BadInput(f"There is no agent {missing[0]!r}.")
        specs = [record.spec for record in records if not agent_ids or record.spec.agent_id in agent_ids]
        if store is None or not specs:
            return {}
        library = ToolLibrary()
        async with open_spec_loader(settings, library) as (loader, _):
            found = {
                spec.agent_id: find_agent_warnings(spec, library.with_bindings(spec.tools, loader.create_tools))
                for spec in specs
            }
        return {agent_id: await explain_disabled_tools(warnings, store) for agent_id, warnings in found.items()}


def _warn_of_unusable_tool(tool_id: str, reason: str) -> AgentWarning:
    return AgentWarning("unusable_tool", {"tool": tool_id, "reason": reason}, f"{tool_id} cannot be used: {reason}")
