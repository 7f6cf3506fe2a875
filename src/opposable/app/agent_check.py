"""Checks of stored agents: which tools they cannot use, and whether they can act on untrusted text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from opposable.app.default_store import open_existing_store
from opposable.app.stored_tools import open_spec_loader
from opposable.domain.errors import BadInput
from opposable.domain.records import AgentRecord, load_all_pages
from opposable.domain.specs import AgentSpec
from opposable.settings import Settings
from opposable.tools.library import ToolLibrary

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
    warnings = [
        AgentWarning("unusable_tool", {"tool": tool_id, "reason": reason}, f"{tool_id} cannot be used: {reason}")
        for tool_id, reason in library.rejected_bindings.items()
    ]
    if agent.after_untrusted != "allow":
        return warnings
    traits = {name: traits for name in library.names if (traits := library.get_traits(name)) is not None}
    readers = ", ".join([name for name, of_tool in traits.items() if of_tool.untrusted_output][:5])
    actors = ", ".join([name for name, of_tool in traits.items() if not of_tool.read_only][:5])
    if not readers or not actors:
        return warnings
    message = (
        f"The agent reads untrusted text ({readers}) and can act on it ({actors}). "
        "Set after_untrusted to approve or refuse."
    )
    return [*warnings, AgentWarning("untrusted_text", {"readers": readers, "actors": actors}, message)]


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
    if not specs:
        return {}
    library = ToolLibrary()
    async with open_spec_loader(settings, library) as (loader, _):
        return {
            spec.agent_id: find_agent_warnings(spec, library.with_bindings(spec.tools, loader.create_tools))
            for spec in specs
        }
