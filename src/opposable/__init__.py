"""Opposable: tool use for any model."""

from typing import TYPE_CHECKING, Any

from opposable.agent.agent import Agent
from opposable.agent.failure_memory import FailureMemory
from opposable.agent.guard_options import Guarding
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
    Decided,
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
from opposable.models.base import Model, ModelOptions, Named
from opposable.models.callable import CallableModel
from opposable.models.scripted import ScriptedModel
from opposable.models.text_protocol import TextProtocolModel
from opposable.tools.base import Tool
from opposable.tools.function import FunctionTool, actions, tool
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
    "Decided",
    "Denied",
    "Event",
    "FailureKind",
    "FailureMemory",
    "FunctionTool",
    "Guarding",
    "InvalidArguments",
    "Limits",
    "Message",
    "Model",
    "ModelError",
    "ModelOptions",
    "ModelReplied",
    "Named",
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
    "actions",
    "tool",
]


def __getattr__(name: str) -> Any:
    """The client of a service, loaded when it is first asked for: a library of tools needs none."""
    if name == "Client":
        from opposable.client import Client

        return Client
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
