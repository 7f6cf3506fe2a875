"""Opposable: tool use for any model."""

from typing import TYPE_CHECKING

from opposable.domain.lazy_imports import import_on_first_use

if TYPE_CHECKING:
    from opposable.agent.agent import Agent as Agent
    from opposable.agent.assistance.guard_options import GuardOptions as GuardOptions
    from opposable.agent.failure_memory import FailureMemory as FailureMemory
    from opposable.agent.limits import Limits as Limits
    from opposable.client import Client as Client
    from opposable.domain.call_context import ApprovalRequest as ApprovalRequest
    from opposable.domain.call_context import Approved as Approved
    from opposable.domain.call_context import CallContext as CallContext
    from opposable.domain.call_context import Denied as Denied
    from opposable.domain.errors import BadInput as BadInput
    from opposable.domain.errors import InvalidArguments as InvalidArguments
    from opposable.domain.errors import ModelError as ModelError
    from opposable.domain.errors import OpposableError as OpposableError
    from opposable.domain.errors import ToolFailed as ToolFailed
    from opposable.domain.errors import ToolRefused as ToolRefused
    from opposable.domain.errors import ToolUnavailable as ToolUnavailable
    from opposable.domain.events import CallDelta as CallDelta
    from opposable.domain.events import DataAnswered as DataAnswered
    from opposable.domain.events import DecisionMade as DecisionMade
    from opposable.domain.events import Event as Event
    from opposable.domain.events import ModelReplied as ModelReplied
    from opposable.domain.events import RunFinished as RunFinished
    from opposable.domain.events import RunStarted as RunStarted
    from opposable.domain.events import TextDelta as TextDelta
    from opposable.domain.events import ThinkingDelta as ThinkingDelta
    from opposable.domain.events import ToolDelta as ToolDelta
    from opposable.domain.events import ToolFinished as ToolFinished
    from opposable.domain.events import ToolStarted as ToolStarted
    from opposable.domain.messages import Message as Message
    from opposable.domain.tools import FailureKind as FailureKind
    from opposable.domain.tools import ToolCall as ToolCall
    from opposable.domain.tools import ToolDefinition as ToolDefinition
    from opposable.domain.tools import ToolResult as ToolResult
    from opposable.domain.usage import Price as Price
    from opposable.domain.usage import Usage as Usage
    from opposable.models.base import ForcedTool as ForcedTool
    from opposable.models.base import Model as Model
    from opposable.models.base import ModelOptions as ModelOptions
    from opposable.models.callable import CallableModel as CallableModel
    from opposable.models.scripted import ScriptedModel as ScriptedModel
    from opposable.models.text_protocol import TextProtocolModel as TextProtocolModel
    from opposable.tools.base import Tool as Tool
    from opposable.tools.function import FunctionTool as FunctionTool
    from opposable.tools.function import tool as tool
    from opposable.tools.function import tools_from_object as tools_from_object
    from opposable.tools.library import ToolLibrary as ToolLibrary
else:
    __getattr__, __all__ = import_on_first_use(
        __name__,
        {
            "agent.agent": "Agent",
            "agent.assistance.guard_options": "GuardOptions",
            "agent.failure_memory": "FailureMemory",
            "agent.limits": "Limits",
            "client": "Client",
            "domain.call_context": "ApprovalRequest Approved CallContext Denied",
            "domain.errors": (
                "BadInput InvalidArguments ModelError OpposableError ToolFailed ToolRefused ToolUnavailable"
            ),
            "domain.events": (
                "CallDelta DataAnswered DecisionMade Event ModelReplied RunFinished RunStarted "
                "TextDelta ThinkingDelta ToolDelta ToolFinished ToolStarted"
            ),
            "domain.messages": "Message",
            "domain.tools": "FailureKind ToolCall ToolDefinition ToolResult",
            "domain.usage": "Price Usage",
            "models.base": "ForcedTool Model ModelOptions",
            "models.callable": "CallableModel",
            "models.scripted": "ScriptedModel",
            "models.text_protocol": "TextProtocolModel",
            "tools.base": "Tool",
            "tools.function": "FunctionTool tool tools_from_object",
            "tools.library": "ToolLibrary",
        },
    )
