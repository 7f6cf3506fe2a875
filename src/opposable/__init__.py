"""Opposable: tool use for any model."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from opposable.agent.agent import Agent
from opposable.agent.assistance.guard_options import GuardOptions
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
from opposable.tools.base import Tool
from opposable.tools.function import FunctionTool, tool, tools_from_object
from opposable.tools.library import ToolLibrary

if TYPE_CHECKING:
    from opposable.agent.failure_memory import FailureMemory
    from opposable.client import Client
    from opposable.models.callable import CallableModel
    from opposable.models.scripted import ScriptedModel
    from opposable.models.text_protocol import TextProtocolModel

_LAZY_ATTRIBUTES = {
    "CallableModel": "opposable.models.callable",
    "Client": "opposable.client",
    "FailureMemory": "opposable.agent.failure_memory",
    "ScriptedModel": "opposable.models.scripted",
    "TextProtocolModel": "opposable.models.text_protocol",
}

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
    """Import on first use what most programs do not need."""
    if name not in _LAZY_ATTRIBUTES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_LAZY_ATTRIBUTES[name]), name)
    globals()[name] = value
    return value
