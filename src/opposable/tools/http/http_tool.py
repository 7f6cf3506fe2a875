"""An HTTP endpoint as a tool."""

import copy
import os
from collections.abc import Collection, Mapping
from typing import Any

from opposable.domain.call_context import CallContext
from opposable.domain.errors import (
    FieldProblem,
    InvalidArguments,
    ToolError,
    ToolFailed,
    ToolRefused,
    ToolRegistrationError,
    ToolUnavailable,
)
from opposable.domain.parameter_names import replace_names
from opposable.domain.specs import HttpToolSpec
from opposable.domain.tools import ToolDefinition
from opposable.safety.network.guarded_client import GuardedClient
from opposable.tools.http.argument_validation import compile_argument_validator
from opposable.tools.http.parameter_names import rename_parameters
from opposable.tools.http.request import build_request, plan_endpoint, read_secrets
from opposable.tools.http.response import (
    EVENT_STREAM,
    LINE_STREAMS,
    ResponseOptions,
    add_headers,
    error_from_response,
    read_stream,
    read_value,
)
from opposable.tools.http.response_extract import compile_extract
from opposable.tools.tool_names import to_safe_name

INTERNAL_SCHEME = "internal://"


class HttpTool:
    """An endpoint described as data, called through the guarded client."""

    takes_context = False
    """An endpoint does not get the context of a call."""

    def __init__(self, spec: HttpToolSpec, client: GuardedClient, environ: Mapping[str, str] = os.environ) -> None:
        """Create the tool.

        Args:
            spec: The description of the endpoint.
            client: The client that checks the target of each request.
            environ: Where secrets are looked up, now and again at each call.

        Raises:
            ToolRegistrationError: The spec cannot work: URL template, mapping, schema, extract, a missing environment
                variable, or a target that the guard refuses.
        """
        self.spec = spec
        self.tool_id = spec.tool_id
        # More than the endpoint, whose own time-out has the better message, also where the event loop is late.
        self.timeout = spec.timeout or spec.endpoint.timeout + 5.0
        self.streams = spec.mode == "streamable"
        transform = spec.response_transform
        endpoint, parameters, self._new_names = rename_parameters(spec.endpoint, spec.parameters)
        self._plan = plan_endpoint(spec.tool_id, endpoint, tuple(parameters.get("properties", {})))
        schema = _require_path_parameters(parameters, self._plan.template.path_parameters)
        self._validate_arguments = compile_argument_validator(spec.tool_id, schema)
        self._defaults = {
            name: parameter["default"]
            for name, parameter in schema["properties"].items()
            if isinstance(parameter, dict) and "default" in parameter
            if spec.endpoint.defaults or name in self._plan.template.path_parameters
        }
        self._response_options = ResponseOptions(
            compile_extract(spec.tool_id, transform.extract),
            transform.max_bytes,
            transform.max_characters,
            spec.failure_when,
            transform.headers,
        )
        self._client = client
        self._environ = environ
        try:
            client.guard.check_url(f"{self._plan.template.origin}/")
            read_secrets(spec.endpoint, environ)
        except ToolError as error:
            raise ToolRegistrationError(f"{spec.tool_id}: {error}") from error
        description = spec.description or spec.display_name or spec.tool_id
        self.definition = ToolDefinition(to_safe_name(spec.tool_id), description, schema)

    def check(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments with defaults: of the path's parameters, and of others if the endpoint sends them.

        The spec's name of a renamed parameter is replaced by the new one.

        Raises:
            InvalidArguments: They do not fit the schema.
        """
        if self._new_names:
            arguments = replace_names(arguments, self._new_names)
        if self._defaults:
            missing = {name: copy.deepcopy(value) for name, value in self._defaults.items() if name not in arguments}
            arguments = {**arguments, **missing}
        return self._validate_arguments(arguments)

    async def run(self, arguments: dict[str, Any], context: CallContext) -> Any:
        """Call the endpoint and return its answer. A streaming answer is reported in deltas and returned joined.

        Raises:
            InvalidArguments: An argument cannot be sent.
            ToolUnavailable: The server is busy or cannot be reached (429, 503, …), or a secret is missing.
            ToolRefused: The guard refuses the target.
            ResponseTimeout: The server does not answer in time.
            ToolFailed: Any other status, or an answer that is a failure by the spec's `failure_when`.
        """
        try:
            request, redactor = await build_request(self._plan, arguments, self._environ, context.idempotency_key)
        except RecursionError as error:
            problem = FieldProblem("", "must be nested less deeply where they are not a JSON body")
            raise InvalidArguments((problem,)) from error
        try:
            async with self._client.send(request) as response:
                if response.status >= 300:
                    raise await error_from_response(response, redactor)
                is_text_stream = self.streams and response.content_type == "text/plain"
                if is_text_stream or response.content_type in (EVENT_STREAM, *LINE_STREAMS):
                    return await read_stream(response, self._response_options, redactor, context.report)
                value = await read_value(response, self._response_options, redactor)
                return add_headers(value, response, self._response_options, redactor)
        except (ToolRefused, ToolUnavailable, ToolFailed) as error:
            error.args = (redactor.redact_text(str(error)),)
            raise error from None
        except RecursionError:
            raise ToolFailed("The answer is nested too deeply to be read.") from None


def get_internal_tool_name(spec: HttpToolSpec, available_names: Collection[str]) -> str | None:
    """Return the built-in tool that an `internal://NAME` endpoint names; None for an HTTP endpoint.

    Raises:
        ToolRegistrationError: The name is not one of `available_names`.
    """
    url = spec.endpoint.url_template
    if not url.startswith(INTERNAL_SCHEME):
        return None
    name = url.removeprefix(INTERNAL_SCHEME).strip("/")
    if name not in available_names:
        raise ToolRegistrationError(
            f"{spec.tool_id}: there is no built-in tool {name!r}. "
            f"{INTERNAL_SCHEME} knows {', '.join(sorted(available_names))}."
        )
    return name


def _require_path_parameters(schema: dict[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return the schema with the parameters of the URL's path required, except those with a default."""
    properties = schema.get("properties", {})
    required = list(schema.get("required", []))
    required += sorted(name for name in names if name not in required and "default" not in properties[name])
    return {"type": "object", **schema, "properties": properties, **({"required": required} if required else {})}
