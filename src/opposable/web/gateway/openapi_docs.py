"""OpenAPI descriptions of the routes of the gateway.

The requests are parsed without pydantic, for speed.
"""

from typing import Any

_ERROR_SCHEMA = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"]},
                "code": {"type": ["string", "null"]},
            },
            "required": ["message", "type", "param", "code"],
        }
    },
    "required": ["error"],
}
_TOOL_EXAMPLE = {
    "type": "function",
    "function": {
        "name": "stock",
        "description": "How many pieces of an item are in stock.",
        "parameters": {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]},
    },
}
_QUESTION = "How many bolts are in stock?"
_USER_MESSAGES = [{"role": "user", "content": _QUESTION}]
_REQUEST_EXAMPLE = {"model": "local", "messages": _USER_MESSAGES, "tools": [_TOOL_EXAMPLE]}
_TOOL_CALL_EXAMPLE = {"id": "call_1", "type": "function", "function": {"name": "stock", "arguments": '{"item":"bolt"}'}}
_COMPLETION_EXAMPLE = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1790000000,
    "model": "local",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": None, "tool_calls": [_TOOL_CALL_EXAMPLE]},
            "finish_reason": "tool_calls",
        }
    ],
    "usage": {"prompt_tokens": 120, "completion_tokens": 18, "total_tokens": 138},
}
_MODEL_EXAMPLE = {
    "id": "local",
    "object": "model",
    "created": 1790000000,
    "owned_by": "opposable",
    "type": "model",
    "display_name": "local",
    "created_at": "2026-09-21T14:13:20Z",
}


_ERRORS = {
    "400": "The request is not valid or exceeds the context of the model.",
    "401": "The API key is missing or not valid.",
    "404": "There is no such model, or its server does not have the API.",
    "413": "The request body is too large.",
    "429": "The rate limit of the key or of the model's server is reached.",
    "502": "The server of the model rejected its key or failed.",
    "503": "The model is unavailable. Try again later.",
    "5XX": "The server of the model failed with this status.",
}


def _describe_responses(example: Any, **errors: str) -> dict[str, Any]:
    error_responses = {
        status: {"description": description, "content": {"application/json": {"schema": _ERROR_SCHEMA}}}
        for status, description in errors.items()
    }
    success = {"description": "Successful response", "content": {"application/json": {"example": example}}}
    return {"200": success, **error_responses}


def _describe_route(
    summary: str, description: str, request: dict[str, Any], example: Any, *fields: str, **properties: dict[str, Any]
) -> dict[str, Any]:
    """Describe a route with a JSON body that has these required fields, and properties with these schemas."""
    all_properties = {"model": {"type": "string"}, **properties}
    schema = {"type": "object", "properties": all_properties, "required": ["model", *fields]}
    return {
        "summary": summary,
        "description": description,
        "tags": ["gateway"],
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema, "example": request}}},
        "responses": _describe_responses(example, **_ERRORS),
    }


CHAT_COMPLETIONS_DOCS = _describe_route(
    "Create a chat completion",
    "Create a chat completion, whole or streamed, with tool calls for any model.",
    _REQUEST_EXAMPLE,
    _COMPLETION_EXAMPLE,
    "messages",
    messages={"type": "array", "items": {"type": "object"}, "minItems": 1},
    tools={"type": "array", "items": {"type": "object"}},
    tool_choice={},
    parallel_tool_calls={"type": "boolean"},
    stream={"type": "boolean"},
    stream_options={"type": "object"},
    max_completion_tokens={"type": "integer", "minimum": 1},
    temperature={"type": "number", "minimum": 0, "maximum": 2},
    stop={},
    seed={"type": "integer"},
    response_format={"type": "object"},
)
MESSAGES_DOCS = _describe_route(
    "Create a message",
    "Create a message of Anthropic's API, whole or streamed, with tool calls for any model.",
    {"model": "local", "max_tokens": 1024, "messages": _USER_MESSAGES},
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "local",
        "content": [{"type": "text", "text": "12 bolts."}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 120, "output_tokens": 4},
    },
    "max_tokens",
    "messages",
)
COUNT_TOKENS_DOCS = _describe_route(
    "Count the tokens of a message",
    "Count the tokens of a request to Anthropic's API: by its server, else an estimate.",
    {"model": "local", "messages": _USER_MESSAGES},
    {"input_tokens": 120},
    "messages",
)
RESPONSES_DOCS = _describe_route(
    "Create a response",
    "Create a response of OpenAI's responses API, whole or streamed, with tool calls for any model.",
    {"model": "local", "input": _QUESTION},
    {"id": "resp_1", "object": "response", "status": "completed", "model": "local", "output": []},
    "input",
)
INPUT_TOKENS_DOCS = _describe_route(
    "Count the input tokens of a response",
    "Count the tokens of a request to OpenAI's responses API: by its server, else an estimate.",
    {"model": "local", "input": _QUESTION},
    {"object": "response.input_tokens", "input_tokens": 120},
)
COMPACT_DOCS = _describe_route(
    "Compact a conversation",
    "Relayed to the server of the model, if it has OpenAI's responses API.",
    {"model": "openai:gpt-5", "input": _QUESTION},
    {"id": "resp_1", "object": "response.compaction", "output": []},
)
EMBEDDINGS_DOCS = _describe_route(
    "Create embeddings",
    "Relayed to the server of the model.",
    {"model": "m", "input": "bolt"},
    {"object": "list", "data": [], "model": "m"},
    "input",
)
COMPLETIONS_DOCS = _describe_route(
    "Create a text completion",
    "Relayed to the server of the model.",
    {"model": "m", "prompt": "Once"},
    {"id": "cmpl-1", "object": "text_completion", "model": "m", "choices": []},
)


def _describe_stored_response(summary: str, example: Any, **errors: str) -> dict[str, Any]:
    return {
        "summary": summary,
        "tags": ["gateway"],
        "parameters": [{"name": "response_id", "in": "path", "required": True, "schema": {"type": "string"}}],
        "responses": _describe_responses(example, **{"404": "There is no such response."}, **errors),
    }


GET_RESPONSE_DOCS = _describe_stored_response(
    "Get a stored response", {"id": "resp_1", "object": "response", "status": "completed", "output": []}
)
DELETE_RESPONSE_DOCS = _describe_stored_response(
    "Delete a stored response", {"id": "resp_1", "object": "response", "deleted": True}
)
INPUT_ITEMS_DOCS = _describe_stored_response(
    "List the items that a stored response was created from",
    {"object": "list", "data": [], "first_id": None, "last_id": None, "has_more": False},
)
CANCEL_RESPONSE_DOCS = _describe_stored_response(
    "Cancel a response that runs in the background at the server of its model",
    {"id": "resp_1", "object": "response", "status": "cancelled"},
    **{"400": "The response does not run in the background."},
)
LIST_MODELS_DOCS: dict[str, Any] = {
    "summary": "List models",
    "tags": ["gateway"],
    "responses": _describe_responses(
        {"object": "list", "data": [_MODEL_EXAMPLE], "has_more": False, "first_id": "local", "last_id": "local"}
    ),
}
GET_MODEL_DOCS: dict[str, Any] = {
    "summary": "Get a model",
    "tags": ["gateway"],
    "parameters": [{"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}],
    "responses": _describe_responses(_MODEL_EXAMPLE, **{"404": "There is no such model."}),
}
HEALTH_DOCS: dict[str, Any] = {
    "summary": "Get the liveness of the service",
    "tags": ["service"],
    "responses": _describe_responses({"status": "ok"}),
}
