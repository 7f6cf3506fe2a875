"""What chats are asked with, and what they answer."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import Header
from pydantic import BaseModel, Field

from opposable.domain.records import RunStatus
from opposable.domain.specs import ID_PATTERN

CONVERSATION_ID = r"^[A-Za-z0-9][A-Za-z0-9._:\-]{0,199}$"

AgentHeader = Annotated[
    str | None,
    Header(alias="X-Agent-ID", pattern=ID_PATTERN, description="The agent to ask; the default one without it."),
]


class ChatRequest(BaseModel):
    """What every chat is asked with."""

    message: str = Field(min_length=1, description="What the user says.", examples=["请计算 25 乘以 4"])
    conversation_id: str | None = Field(
        default=None,
        pattern=CONVERSATION_ID,
        description="The conversation to continue, or the id of one to begin.",
        examples=["conv-123"],
    )
    max_tool_calls: int | None = Field(
        default=None, ge=0, le=1000, description="Tool calls at most; the agent's own limit without it.", examples=[5]
    )
    max_tokens: int | None = Field(
        default=None,
        gt=0,
        le=2**53,
        description="Tokens at most, read and written; the agent's own limit without it.",
        examples=[20000],
    )


class AgentChatRequest(ChatRequest):
    """A message for an agent, answered as a stream of events or whole."""

    stream: bool = Field(default=True, description="Whether to answer as a stream of events.")
    detach: bool = Field(default=False, description="Whether the run goes on when the client leaves.")


class ToolResultResponse(BaseModel):
    """What came of one call, the same for every tool."""

    success: bool
    output: Any = Field(default=None, description="What the tool gave: JSON where it is, else text.")
    error: dict[str, str] | None = Field(default=None, examples=[{"kind": "timeout", "message": "No answer in 30 s."}])
    duration_ms: float = 0
    attempts: int = 1


class ToolCallResponse(BaseModel):
    """A call that was made."""

    tool: str = Field(examples=["calculator"])
    arguments: dict[str, Any] = Field(examples=[{"expression": "25*4"}])
    result: ToolResultResponse


class ChatMetadata(BaseModel):
    """What an answer took. `reason` says why the run ended: with an `answer`, or at the limit named."""

    total_tokens: int = Field(examples=[1500])
    tool_calls_count: int = Field(examples=[1])
    latency_ms: int = Field(examples=[2500])
    run_id: str = ""
    agent_id: str = "default"
    reason: str = Field(default="answer", examples=["answer"])


class ChatResponse(BaseModel):
    """An answer, with the calls made on the way."""

    success: bool
    response: str = Field(examples=["25 × 4 = 100"])
    conversation_id: str = Field(examples=["conv-123"])
    trace_id: str = Field(examples=["trace-456"])
    tool_calls: list[ToolCallResponse] = []
    meta: ChatMetadata


class AgentChatResponse(ChatResponse):
    """An answer; `content` is the same text as `response`, under the name that streams use."""

    content: str = Field(examples=["25 × 4 = 100"])


class MessageToolCall(BaseModel):
    """A call that the model wanted made; `arguments` is JSON text."""

    id: str
    name: str
    arguments: str


class MessageResponse(BaseModel):
    """One message. `call_id` and `name` belong to role "tool"."""

    role: str = Field(examples=["user"])
    content: str
    tool_calls: list[MessageToolCall] = []
    call_id: str = ""
    name: str = ""


class ConversationResponse(BaseModel):
    """A conversation without its messages; `messages_count` counts them."""

    conversation_id: str
    agent_id: str = ""
    title: str = ""
    messages_count: int = 0
    created_at: datetime | None = None
    updated_at: datetime | None = None


class ConversationDetailResponse(ConversationResponse):
    """A conversation with what was said, or the part of it that was asked for."""

    messages: list[MessageResponse] = []


class DeleteResponse(BaseModel):
    """That it is gone."""

    deleted: bool = True


class RunResponse(BaseModel):
    """A run. `status` is running, waiting (for a person), finished, failed or cancelled."""

    run_id: str
    status: RunStatus
    agent_id: str = ""
    conversation_id: str = ""
    trace_id: str = ""
    task: str = ""
    text: str = Field(default="", description="Its answer.")
    reason: str = Field(default="", description="Why it ended: answer, the limit reached, or lost with its process.")
    input_tokens: int = 0
    output_tokens: int = 0
    turns: int = 0
    tool_calls: int = 0
    started_at: datetime
    ended_at: datetime | None = None


class CancelResponse(BaseModel):
    """Whether a run was still going on, so that it was cancelled or will be at once."""

    run_id: str
    cancelled: bool
