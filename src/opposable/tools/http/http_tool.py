"""An HTTP endpoint as a tool."""

import os
from collections.abc import Collection, Mapping
from contextlib import aclosing
from typing import Any

import aiohttp

from opposable.domain.call_context import CallContext
from opposable.domain.errors import ToolError, ToolFailed, ToolRefused, ToolRegistrationError, ToolUnavailable
from opposable.domain.specs import HttpToolSpec
from opposable.domain.tools import ToolDefinition
from opposable.safety.network.guarded_client import GuardedClient
from opposable.tools.http.argument_defaults import ArgumentSchema
from opposable.tools.http.request import build_request, plan_endpoint, read_secrets
from opposable.tools.http.response import (
    EVENT_STREAM,
    LINE_STREAMS,
    ResponseOptions,
    delta_to_text,
    error_from_response,
    join_response_deltas,
    read_deltas,
    read_value,
)
from opposable.tools.http.response_extract import compile_extract
from opposable.tools.http.secrets import Redactor
from opposable.tools.tool_names import to_safe_name

INTERNAL_SCHEME = "internal://"


class HttpTool:
    """An endpoint described as data, called through the guarded client.

    `environ` is where secrets are looked up, at registration and again at each call.
    Raises: `ToolRegistrationError`, saying what of the spec cannot work: URL template, mapping, schema, extract, a
    variable that is not set, a target the guard refuses.
    """

    def __init__(self, spec: HttpToolSpec, client: GuardedClient, environ: Mapping[str, str] = os.environ) -> None:
        self.spec = spec
        self.tool_id = spec.tool_id
        self.timeout = spec.timeout or spec.endpoint.timeout + 1.0  # so that the endpoint's own sentence comes first
        self.streams = spec.mode == "streamable"
        transform = spec.response_transform
        self._plan = plan_endpoint(spec.tool_id, spec.endpoint, tuple(spec.parameters.get("properties", {})))
        schema = _require_path_parameters(spec.parameters, self._plan.template.path_parameters)
        self._argument_schema = ArgumentSchema(spec.tool_id, schema)
        self._response_options = ResponseOptions(
            compile_extract(spec.tool_id, transform.extract), transform.max_bytes, transform.max_characters
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

    def check(self, arguments: dict[str, Any]) -> None:
        """Raises: `InvalidArguments` where they do not fit the schema; does nothing else."""
        self._argument_schema.validate(self._fill_defaults(arguments))

    async def run(self, arguments: dict[str, Any], context: CallContext) -> Any:
        """Call the endpoint; a streaming answer is reported piece by piece and given back joined.

        Raises: `InvalidArguments` where the schema or the server (400, 422) says so, `ToolUnavailable` (429, 503, no
        connection, no secret), `ToolRefused` (the guard), `NoAnswer` (in time), `ToolFailed` (other statuses).
        """
        given = self._fill_defaults(arguments)
        self._argument_schema.validate(given)
        request, redaction = await build_request(self._plan, given, self._environ, context.idempotency_key)
        try:
            async with self._client.send(request) as response:
                if response.status >= 300:
                    raise await error_from_response(response, redaction, given)
                if self._is_streaming_response(response):
                    return await self._read_stream(response, redaction, context)
                return await read_value(response, self._response_options, redaction)
        except (ToolRefused, ToolUnavailable, ToolFailed) as error:  # each is made of its sentence alone
            raise type(error)(redaction.redact_text(str(error))) from None
        except RecursionError:
            raise ToolFailed("The answer is nested too deeply to be read.") from None

    def _fill_defaults(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return self._argument_schema.fill_defaults(arguments) if self.spec.endpoint.defaults else arguments

    def _is_streaming_response(self, response: aiohttp.ClientResponse) -> bool:
        kind = response.content_type
        plain = self.spec.mode == "streamable" and kind == "text/plain"
        return plain or kind == EVENT_STREAM or kind in LINE_STREAMS

    async def _read_stream(self, response: aiohttp.ClientResponse, redactor: Redactor, context: CallContext) -> Any:
        pieces = []
        async with aclosing(read_deltas(response, self._response_options, redactor)) as coming:
            async for piece in coming:
                pieces.append(piece)
                if context.report is not None:
                    context.report(delta_to_text(piece, self._response_options))
        return redactor.redact_data(
            join_response_deltas(pieces, self._response_options)
        )  # a secret may lie across two pieces


def get_internal_tool_name(spec: HttpToolSpec, available_names: Collection[str]) -> str | None:
    """The built-in tool an `internal://NAME` endpoint means; None for an endpoint of HTTP.

    Raises: `ToolRegistrationError` where none of the `known` has that name.
    """
    url = spec.endpoint.url_template
    if not url.startswith(INTERNAL_SCHEME):
        return None
    name = url.removeprefix(INTERNAL_SCHEME).strip("/")
    if name not in available_names:
        raise ToolRegistrationError(
            f"{spec.tool_id}: there is no built-in tool {name!r}; {INTERNAL_SCHEME} knows {', '.join(sorted(available_names))}."
        )
    return name


def _require_path_parameters(schema: dict[str, Any], names: Collection[str]) -> dict[str, Any]:
    """A schema that also requires the parameters of a URL's path, but for those with a default."""
    properties = schema.get("properties", {})
    required = list(schema.get("required", []))
    required += sorted(n for n in names if n not in required and "default" not in properties[n])
    return {"type": "object", **schema, "properties": properties, **({"required": required} if required else {})}
