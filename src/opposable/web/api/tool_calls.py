"""The route that calls a tool: read, run, recorded and answered by hand, since others wait for it thousands of times."""

import time
from typing import Any

import orjson
from fastapi import APIRouter
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from opposable.domain.call_context import CallContext
from opposable.domain.language import Language
from opposable.domain.records import execution_from_result
from opposable.domain.tools import ToolResult, new_call_id
from opposable.web.api.dependencies import get_principal, get_service, get_trace_id
from opposable.web.errors import ApiError, error_responses, forbidden_error, not_found_error
from opposable.web.principal import Scope

router = APIRouter(tags=["tools"])
CALL_SCOPE: Scope = "tools:write"
"""What it takes to call a tool: it may do anything that the tool does."""

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
        "output": {"description": "The value the tool brought; null where it failed."},
        "content": {"type": "string", "description": "What a model is told of it."},
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
                "cut": {"type": "integer", "description": "Characters left out of `content`."},
            },
            "required": ["latency_ms", "attempts", "cached", "cut"],
        },
    },
    "required": ["success", "tool", "output", "content", "error", "trace_id", "execution_id", "meta"],
}


def describe_call_route(
    arguments_field: str, extra_properties: dict[str, Any], example: dict[str, Any], summary: str
) -> dict[str, Any]:
    """What the OpenAPI document says of a route that calls; `argument` names the field with the arguments."""
    properties = {arguments_field: {"type": "object", "description": "The arguments, by name."}, **extra_properties}
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    told = {
        "description": "What came of it.",
        "content": {"application/json": {"schema": RESULT_SCHEMA, "example": RESULT_EXAMPLE}},
    }
    return {
        "summary": summary,
        "x-scope": CALL_SCOPE,
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema, "example": example}}},
        "responses": {"200": told},
    }


ACTION_PROPERTY = {"action": {"type": "string", "description": "The action's own name, of a tool that has several."}}


async def call_tool(request: Request) -> Response:
    """Call one tool; a call that fails is answered with 200 and says so, as a tool's result does."""
    given = await parse_call_body(request, "arguments", "action")
    return await call_and_record(request, request.path_params["tool_id"], given.get("action", ""), given["arguments"])


router.add_api_route(
    "/api/tools/{tool_id}/call",
    call_tool,
    methods=["POST"],
    responses=error_responses(404),
    response_class=Response,
    openapi_extra={
        **describe_call_route("arguments", ACTION_PROPERTY, {"arguments": {"expression": "25*4"}}, "Call a tool"),
        "parameters": [
            {"name": "tool_id", "in": "path", "required": True, "schema": {"type": "string"}, "example": "calculator"}
        ],
    },
)


async def parse_call_body(request: Request, arguments_field: str, *text_fields: str) -> dict[str, Any]:
    """The body of a call: an object with arguments and perhaps texts. Raises: `ApiError` 403, 400 or 422."""
    if not get_principal(request).has_scope(CALL_SCOPE):
        raise forbidden_error(f"This key lacks the scope {CALL_SCOPE!r}.")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise ApiError(400, "bad_input", "The body must be sent as Content-Type: application/json.")
    try:
        given = orjson.loads(await request.body() or b"{}")
    except ClientDisconnect:
        raise ApiError(400, "bad_input", "The body broke off.") from None
    except orjson.JSONDecodeError as error:
        raise ApiError(422, "invalid_request", f"The body is no JSON: {error}.") from error
    if not isinstance(given, dict):
        raise _validation_error("body", "give a JSON object")
    for name, value in given.items():
        if name == arguments_field and not isinstance(value, dict):
            raise _validation_error(f"body.{name}", "must be a JSON object with the arguments by name")
        if name != arguments_field and (name not in text_fields or not isinstance(value, str)):
            raise _validation_error(f"body.{name}", "must be a text" if name in text_fields else "is not known here")
    given.setdefault(arguments_field, {})
    return given


async def call_and_record(request: Request, tool_id: str, action: str, arguments: dict[str, Any]) -> Response:
    """Call a tool, record it, and answer with what came of it. Raises: `ApiError` 404 where there is no such tool."""
    service = get_service(request)
    if service.library.get_spec(tool_id) is None:
        raise not_found_error(f"There is no tool {tool_id!r} that can be called.")
    trace_id = get_trace_id(request)
    context = CallContext(call_id=new_call_id(), trace_id=trace_id, language=_get_language(request))
    begun = time.perf_counter()
    result = await service.library.call_action(tool_id, action, arguments, context)
    seconds = time.perf_counter() - begun
    whole = f"{tool_id}.{action}" if action else tool_id
    execution = execution_from_result(result, whole, arguments, trace_id=trace_id)
    service.recorder.record(execution)
    return Response(
        serialize_tool_result(whole, result, trace_id, execution.execution_id, seconds), media_type="application/json"
    )


def serialize_tool_result(tool: str, result: ToolResult, trace_id: str, execution_id: str, seconds: float) -> bytes:
    """A result as it is told over HTTP, whatever kind of tool it came from."""
    failure = result.failure
    told = {
        "success": failure is None,
        "tool": tool,
        "output": (result.content if result.data is None else result.data) if failure is None else None,
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
    try:
        return orjson.dumps(told, default=str, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:  # a number beyond 64 bits, text that is no Unicode
        return orjson.dumps(told | {"output": result.content})


def _get_language(request: Request) -> Language:
    return "zh" if request.headers.get("accept-language", "").lower().startswith("zh") else "en"


def _validation_error(field: str, problem: str) -> ApiError:
    return ApiError(422, "invalid_request", f"The request does not fit: {field} {problem}.", fields=[(field, problem)])
