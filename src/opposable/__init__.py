"""Opposable: tool use for any model."""

from typing import TYPE_CHECKING, Any

from opposable.agent.agent import Agent
from opposable.agent.assistance.guard_options import GuardOptions
from opposable.agent.failure_memory import FailureMemory
from opposable.agent.limits import Limits
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

if TYPE_CHECKING:
    from opposable.client import Client

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
    """Import the service client on first use; the library itself does not need it."""
    if name == "Client":
        from opposable.client import Client  # lazy: needs aiohttp

        return Client
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
