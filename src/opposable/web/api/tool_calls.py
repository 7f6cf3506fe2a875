"""The route that calls a tool.

It does without pydantic, because it is called thousands of times per second.
"""

import time
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from opposable.domain.call_context import CallContext
from opposable.domain.content import part_to_json
from opposable.domain.json_text import parse_json
from opposable.domain.language import Language
from opposable.domain.records import execution_from_result
from opposable.domain.tools import ToolResult, new_call_id
from opposable.domain.validation_problems import describe_unknown_field
from opposable.service.service import Service
from opposable.web.api.dependencies import ApiRouter, get_principal
from opposable.web.api.serializers import dump_json
from opposable.web.cancelled_calls import create_cancelled_result
from opposable.web.errors import ApiError, error_responses, missing_scope_error, not_found_error, validation_error
from opposable.web.principal import CALL_SCOPE
from opposable.web.sse_response import CLIENT_CLOSED_REQUEST, ClientDisconnected, run_while_connected
from opposable.web.telemetry.tracing import CURRENT_TRACE

router = ApiRouter(tags=["tools"])

RESULT_EXAMPLE = {
    "success": True,
    "tool": "calculator",
    "output": {"expression": "25*4", "result": 100},
    "content": '{"expression":"25*4","result":100}',
    "error": None,
    "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
    "execution_id": "8f14e45fceea167a5a36dedd4bea2543",
    "meta": {"latency_ms": 0.21, "attempts": 1, "cached": False, "cut": 0},
}
RESULT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "success": {"type": "boolean"},
        "tool": {"type": "string"},
        "output": {"description": "The value of the tool; null if the call failed."},
        "content": {"type": "string", "description": "The text that a model would receive."},
        "media": {
            "type": "array",
            "items": {"type": "object"},
            "description": "Images and files of the result, as parts of a message; absent without any.",
        },
        "error": {
            "anyOf": [
                {"type": "null"},
                {
                    "type": "object",
                    "properties": {"kind": {"type": "string"}, "message": {"type": "string"}},
                    "required": ["kind", "message"],
                },
            ]
        },
        "trace_id": {"type": "string"},
        "execution_id": {"type": "string"},
        "meta": {
            "type": "object",
            "properties": {
                "latency_ms": {"type": "number"},
                "attempts": {"type": "integer"},
                "cached": {"type": "boolean"},
                "cut": {"type": "integer", "description": "The number of characters removed from `content`."},
            },
            "required": ["latency_ms", "attempts", "cached", "cut"],
        },
    },
    "required": ["success", "tool", "output", "content", "error", "trace_id", "execution_id", "meta"],
}


def describe_call_route(summary: str, path_parameter: str, **extra_properties: dict[str, Any]) -> dict[str, Any]:
    """Return the OpenAPI description of a route that calls a tool.

    Args:
        summary: The summary of the route.
        path_parameter: The parameter of the path that names the tool.
        extra_properties: The schemas of the fields of the body besides `arguments`.
    """
    properties = {"arguments": {"type": "object", "description": "The arguments, by name."}, **extra_properties}
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    text = {"schema": {"type": "string"}, "example": "calculator"}
    parameter = {"name": path_parameter, "in": "path", "required": True, **text}
    example = {"arguments": {"expression": "25*4"}}
    success = {
        "description": "The result of the call.",
        "content": {"application/json": {"schema": RESULT_SCHEMA, "example": RESULT_EXAMPLE}},
    }
    return {
        "summary": summary,
        "x-scope": CALL_SCOPE,
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema, "example": example}}},
        "responses": {"200": success},
        "parameters": [parameter],
    }


ACTION_PROPERTY = {"type": "string", "description": "The name of the action, for a tool with several actions."}


async def call_tool(request: Request) -> Response:
    """Call a tool. A call that fails has the status 200 and `success: false`."""
    body = await parse_call_body(request, "action")
    return await call_and_record(request, request.path_params["tool_id"], body.get("action", ""), body["arguments"])


router.add_api_route(
    "/api/tools/{tool_id}/call",
    call_tool,
    methods=["POST"],
    responses=error_responses(404),
    response_class=Response,
    openapi_extra=describe_call_route("Call a tool", "tool_id", action=ACTION_PROPERTY),
)


async def parse_call_body(request: Request, *text_fields: str) -> dict[str, Any]:
    """Return the body: an object with `arguments` and optional string fields.

    Raises:
        ApiError: 403 without the scope, 400 or 422 for a body that is not valid.
    """
    if not get_principal(request).has_scope(CALL_SCOPE):
        raise missing_scope_error(CALL_SCOPE)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise ApiError(400, "bad_input", "The body must be sent as Content-Type: application/json.")
    try:
        body = parse_json(await request.body() or b"{}")
    except ClientDisconnect:
        raise ApiError(400, "bad_input", "The connection closed before the whole body was received.") from None
    except ValueError as error:
        raise ApiError(422, "invalid_request", f"The body is not valid JSON: {error}.") from error
    if not isinstance(body, dict):
        raise validation_error([("body", "must be a JSON object")])
    for name, value in body.items():
        if name == "arguments" and not isinstance(value, dict):
            raise validation_error([(f"body.{name}", "must be a JSON object with the arguments by name")])
        if name != "arguments" and (name not in text_fields or not isinstance(value, str)):
            is_known = name in text_fields
            problem = "must be text" if is_known else describe_unknown_field(name, ("arguments", *text_fields))
            raise validation_error([(f"body.{name}", problem)])
    body.setdefault("arguments", {})
    return body


async def call_and_record(request: Request, tool_id: str, action: str, arguments: dict[str, Any]) -> Response:
    """Call a tool, record the call, and return its result. A client that disconnects cancels the call.

    Raises:
        ApiError: 404, if there is no such tool.
    """
    service: Service = request.app.state.service
    if service.library.get_spec(tool_id) is None:
        raise not_found_error(f"There is no enabled tool {tool_id!r}.")
    trace_id = CURRENT_TRACE.get().trace_id
    owner = get_principal(request).key_id
    context = CallContext(call_id=new_call_id(), owner=owner, trace_id=trace_id, language=_get_language(request))
    started_at = time.perf_counter()
    tool_name = f"{tool_id}.{action}" if action else tool_id
    call = service.library.call_action(tool_id, action, arguments, context)
    is_connected = True
    try:
        result = await run_while_connected(request.receive, call)
    except ClientDisconnected:
        is_connected = False
        result = create_cancelled_result(context, tool_name, started_at)
    seconds = time.perf_counter() - started_at
    execution = execution_from_result(result, tool_name, arguments, trace_id=trace_id)
    service.recorder.record(execution)
    if not is_connected:
        return CLIENT_CLOSED_REQUEST
    return Response(
        serialize_tool_result(tool_name, result, trace_id, execution.execution_id, seconds),
        media_type="application/json",
    )


def serialize_tool_result(tool: str, result: ToolResult, trace_id: str, execution_id: str, seconds: float) -> bytes:
    """Return a result as JSON, in the same form for every type of tool."""
    failure = result.failure
    form = {
        "success": failure is None,
        "tool": tool,
        "output": result.data if failure is None else None,
        "content": result.content,
        "error": None if failure is None else {"kind": failure, "message": result.content},
        "trace_id": trace_id,
        "execution_id": execution_id,
        "meta": {
            "latency_ms": round(seconds * 1000, 3),
            "attempts": result.attempts,
            "cached": result.cached,
            "cut": result.cut,
        },
    }
    if result.media:
        form["media"] = [part_to_json(part) for part in result.media]
    return dump_json(form)


def _get_language(request: Request) -> Language:
    return "zh" if request.headers.get("accept-language", "").lower().startswith("zh") else "en"
