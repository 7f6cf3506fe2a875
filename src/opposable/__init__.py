"""Opposable: tool use for any model."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opposable.agent.agent import Agent
    from opposable.agent.assistance.guard_options import GuardOptions
    from opposable.agent.failure_memory import FailureMemory
    from opposable.agent.limits import Limits
    from opposable.client import Client
    from opposable.domain.call_context import ApprovalRequest, Approved, CallContext, Denied
    from opposable.domain.errors import (
        BadInput,
        InvalidArguments,
        ModelError,
        OpposableError,
        ToolFailed,
        ToolRefused,
        ToolUnavailable,
    )
    from opposable.domain.events import (
        CallDelta,
        DataAnswered,
        DecisionMade,
        Event,
        ModelReplied,
        RunFinished,
        RunStarted,
        TextDelta,
        ThinkingDelta,
        ToolDelta,
        ToolFinished,
        ToolStarted,
    )
    from opposable.domain.messages import Message
    from opposable.domain.tools import FailureKind, ToolCall, ToolDefinition, ToolResult
    from opposable.domain.usage import Price, Usage
    from opposable.models.base import ForcedTool, Model, ModelOptions
    from opposable.models.callable import CallableModel
    from opposable.models.scripted import ScriptedModel
    from opposable.models.text_protocol import TextProtocolModel
    from opposable.tools.base import Tool
    from opposable.tools.function import FunctionTool, tool, tools_from_object
    from opposable.tools.library import ToolLibrary

_MODULES = {
    "Agent": "opposable.agent.agent",
    "ApprovalRequest": "opposable.domain.call_context",
    "Approved": "opposable.domain.call_context",
    "BadInput": "opposable.domain.errors",
    "CallContext": "opposable.domain.call_context",
    "CallDelta": "opposable.domain.events",
    "CallableModel": "opposable.models.callable",
    "Client": "opposable.client",
    "DataAnswered": "opposable.domain.events",
    "DecisionMade": "opposable.domain.events",
    "Denied": "opposable.domain.call_context",
    "Event": "opposable.domain.events",
    "FailureKind": "opposable.domain.tools",
    "FailureMemory": "opposable.agent.failure_memory",
    "ForcedTool": "opposable.models.base",
    "FunctionTool": "opposable.tools.function",
    "GuardOptions": "opposable.agent.assistance.guard_options",
    "InvalidArguments": "opposable.domain.errors",
    "Limits": "opposable.agent.limits",
    "Message": "opposable.domain.messages",
    "Model": "opposable.models.base",
    "ModelError": "opposable.domain.errors",
    "ModelOptions": "opposable.models.base",
    "ModelReplied": "opposable.domain.events",
    "OpposableError": "opposable.domain.errors",
    "Price": "opposable.domain.usage",
    "RunFinished": "opposable.domain.events",
    "RunStarted": "opposable.domain.events",
    "ScriptedModel": "opposable.models.scripted",
    "TextDelta": "opposable.domain.events",
    "TextProtocolModel": "opposable.models.text_protocol",
    "ThinkingDelta": "opposable.domain.events",
    "Tool": "opposable.tools.base",
    "ToolCall": "opposable.domain.tools",
    "ToolDefinition": "opposable.domain.tools",
    "ToolDelta": "opposable.domain.events",
    "ToolFailed": "opposable.domain.errors",
    "ToolFinished": "opposable.domain.events",
    "ToolLibrary": "opposable.tools.library",
    "ToolRefused": "opposable.domain.errors",
    "ToolResult": "opposable.domain.tools",
    "ToolStarted": "opposable.domain.events",
    "ToolUnavailable": "opposable.domain.errors",
    "Usage": "opposable.domain.usage",
    "tool": "opposable.tools.function",
    "tools_from_object": "opposable.tools.function",
}
"""The module of each public name, which is imported on first use: most commands and programs need few."""

__all__ = [
    "Agent",
    "ApprovalRequest",
    "Approved",
    "BadInput",
    "CallContext",
    "CallDelta",
    "CallableModel",
    "Client",
    "DataAnswered",
    "DecisionMade",
    "Denied",
    "Event",
    "FailureKind",
    "FailureMemory",
    "ForcedTool",
    "FunctionTool",
    "GuardOptions",
    "InvalidArguments",
    "Limits",
    "Message",
    "Model",
    "ModelError",
    "ModelOptions",
    "ModelReplied",
    "OpposableError",
    "Price",
    "RunFinished",
    "RunStarted",
    "ScriptedModel",
    "TextDelta",
    "TextProtocolModel",
    "ThinkingDelta",
    "Tool",
    "ToolCall",
    "ToolDefinition",
    "ToolDelta",
    "ToolFailed",
    "ToolFinished",
    "ToolLibrary",
    "ToolRefused",
    "ToolResult",
    "ToolStarted",
    "ToolUnavailable",
    "Usage",
    "tool",
    "tools_from_object",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value
