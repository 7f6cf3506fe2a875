"""Request and response models of chats, conversations and runs."""

from datetime import datetime
from typing import Annotated, Any, Literal
from urllib.parse import unquote_to_bytes

from fastapi import Header
from pydantic import BaseModel, BeforeValidator, Field

from opposable.domain.records import RunKind, RunStatus
from opposable.domain.specs import ID_PATTERN, MAX_ID_CHARACTERS

CONVERSATION_ID = r"^[A-Za-z0-9][A-Za-z0-9._:\-]{0,199}$"

MAX_ATTACHMENTS = 20
"""Images and files of one message."""


def _decode_header(value: str | None) -> str | None:
    """Decode percent-encoded or plain UTF-8; a browser cannot send other letters than those of Latin-1 in a header."""
    if value is None:
        return None
    try:
        return unquote_to_bytes(value.encode("latin-1")).decode()
    except UnicodeDecodeError:
        return value


AgentHeader = Annotated[
    str | None,
    BeforeValidator(_decode_header),
    Header(
        alias="X-Agent-ID",
        pattern=ID_PATTERN,
        max_length=MAX_ID_CHARACTERS,
        description="The id of the agent, percent-encoded or in UTF-8; default: the default agent.",
    ),
]


class Attachment(BaseModel):
    """An image (PNG, JPEG, GIF or WebP) or a PDF of at most 20 MB."""

    model_config = {"extra": "forbid"}

    url: str = Field(
        pattern=r"^(data:|https?://)",
        description="A data URL with the content in Base64, or an HTTP URL with a public address, which is fetched.",
        examples=["data:image/png;base64,iVBORw0KGgo="],
    )
    name: str = Field(default="", max_length=200, description="The name of a file.", examples=["invoice.pdf"])


class ChatRequest(BaseModel):
    """A message to an agent."""

    model_config = {"extra": "forbid"}

    message: str = Field(min_length=1, description="The text of the user.", examples=["请计算 25 乘以 4"])
    attachments: list[Attachment] = Field(
        default=[], max_length=MAX_ATTACHMENTS, description="Images and files of the message."
    )
    conversation_id: str | None = Field(
        default=None,
        pattern=CONVERSATION_ID,
        description="The conversation to continue, or the id of a new one.",
        examples=["conv-123"],
    )
    model: str | None = Field(
        default=None, max_length=200, description="The name of a model; default: that of the agent."
    )
    max_tool_calls: int | None = Field(
        default=None,
        ge=0,
        le=1000,
        description="The maximum number of tool calls; default: the limit of the agent.",
        examples=[5],
    )
    max_tokens: int | None = Field(
        default=None,
        gt=0,
        le=2**53,
        description="The maximum number of input and output tokens; default: the limit of the agent.",
        examples=[20000],
    )


class AgentChatRequest(ChatRequest):
    """A message to an agent, answered with a stream of events or a whole answer."""

    stream: bool = Field(default=True, strict=True, description="Whether to respond with a stream of events.")
    detach: bool = Field(
        default=False, strict=True, description="Whether the run continues when the client disconnects."
    )


class ToolResultResponse(BaseModel):
    """The result of a tool call, in the same form for every tool."""

    success: bool
    output: Any = Field(default=None, description="The value of the tool: JSON if possible, else text.")
    error: dict[str, str] | None = Field(default=None, examples=[{"kind": "timeout", "message": "No answer in 30 s."}])
    duration_ms: float = 0
    attempts: int = 1


class ToolCallResponse(BaseModel):
    """A tool call and its result."""

    tool: str = Field(examples=["calculator"])
    arguments: dict[str, Any] = Field(examples=[{"expression": "25*4"}])
    result: ToolResultResponse


class ChatMetadata(BaseModel):
    """Metadata of an answer.

    `reason` is why the run ended: `answer`, `no_answer`, `repeats` (calls without progress), or the exceeded limit.
    """

    total_tokens: int = Field(examples=[1500])
    tool_calls_count: int = Field(examples=[1])
    latency_ms: int = Field(examples=[2500])
    run_id: str = ""
    agent_id: str = "default"
    reason: str = Field(default="answer", examples=["answer"])


class ChatResponse(BaseModel):
    """An answer and its tool calls."""

    success: bool
    response: str = Field(examples=["25 × 4 = 100"])
    conversation_id: str = Field(examples=["conv-123"])
    trace_id: str = Field(examples=["trace-456"])
    tool_calls: list[ToolCallResponse] = []
    meta: ChatMetadata


class AgentChatResponse(ChatResponse):
    """An answer. `content` repeats `response` under the name that streams use."""

    content: str = Field(examples=["25 × 4 = 100"])


class MessageToolCall(BaseModel):
    """A tool call of the model. `arguments` is JSON text."""

    id: str
    name: str
    arguments: str


class MessagePart(BaseModel):
    """A text, image or file of a message: `text`, or `url`, or `data` in Base64 with its `media_type`."""

    type: Literal["text", "image", "file"]
    text: str = ""
    url: str = ""
    data: str = ""
    media_type: str = ""
    name: str = ""
    detail: str = ""


class MessageResponse(BaseModel):
    """A message.

    `call_id` and `name` belong to role "tool", `thinking` to role "assistant". A message with images or files has all
    its `parts` in order.
    """

    role: str = Field(examples=["user"])
    content: str
    parts: list[MessagePart] = []
    tool_calls: list[MessageToolCall] = []
    call_id: str = ""
    name: str = ""
    thinking: str = ""


class ConversationResponse(BaseModel):
    """A conversation without its messages."""

    conversation_id: str
    agent_id: str = ""
    title: str = ""
    messages_count: int = 0
    created_at: datetime | None = None
    updated_at: datetime | None = None


class ConversationDetailResponse(ConversationResponse):
    """A conversation with its messages."""

    messages: list[MessageResponse] = []


class RenameRequest(BaseModel):
    """A new title of a conversation."""

    model_config = {"extra": "forbid"}

    title: str = Field(min_length=1, max_length=200, examples=["Stock of May"])


class DeleteResponse(BaseModel):
    """The confirmation of a deletion."""

    deleted: bool = True


class RunResponse(BaseModel):
    """A run. The status `waiting` means that a call waits for human approval."""

    run_id: str
    status: RunStatus
    agent_id: str = ""
    conversation_id: str = ""
    trace_id: str = ""
    task: str = ""
    text: str = Field(default="", description="The answer.")
    reason: str = Field(
        default="", description="Why the run ended: answer, no_answer, repeats, the exceeded limit, or lost."
    )
    input_tokens: int = 0
    output_tokens: int = 0
    turns: int = 0
    tool_calls: int = 0
    started_at: datetime
    ended_at: datetime | None = None
    kind: RunKind = Field(default="chat", description="`data` for a question about data.")
    model: str = Field(default="", description="The name of its model; empty for runs of earlier versions.")


class CancelResponse(BaseModel):
    """The outcome of a cancellation.

    `cancelled` is false if the run had already ended.
    """

    run_id: str
    cancelled: bool
