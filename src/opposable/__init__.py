"""Opposable: tool use for any model."""

from opposable.agent.agent import Agent
from opposable.agent.limits import Limits
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
from opposable.tools.base import CallContext, Tool
from opposable.tools.function import FunctionTool, actions, tool
from opposable.tools.library import ToolLibrary

__all__ = [
    "Agent",
    "BadInput",
    "CallContext",
    "CallDelta",
    "CallableModel",
    "Event",
    "FailureKind",
    "FunctionTool",
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
