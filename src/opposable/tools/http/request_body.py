"""The body of a request: JSON, form, multipart, text or bytes."""

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from opposable.domain.argument_problems import is_required, must_be
from opposable.domain.errors import FieldProblem, InvalidArguments
from opposable.domain.json_text import preview_json
from opposable.domain.specs import EndpointConfig, ParameterPlacement
from opposable.tools.http.parameter_styles import (
    format_form,
    scalar_to_text,
    to_field_values,
    to_json_text,
)

if TYPE_CHECKING:
    from aiohttp import payload

FILE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "A file: its name, and its content as text or as base64.",
    "properties": {
        "filename": {"type": "string"},
        "text": {"type": "string"},
        "base64": {"type": "string"},
        "content_type": {"type": "string"},
    },
}
"""The schema of a file argument."""

_CONTENT_TYPES = {
    "json": "application/json",
    "form": "application/x-www-form-urlencoded",
    "text": "text/plain; charset=utf-8",
    "binary": "application/octet-stream",
}
_ESCAPED_IN_NAMES = str.maketrans({'"': "%22", "\r": "%0D", "\n": "%0A"})


async def encode_body(
    endpoint: EndpointConfig, values: Mapping[str, Any], styled: Mapping[str, ParameterPlacement]
) -> tuple[bytes | None, str]:
    """Encode a request body.

    Args:
        endpoint: The endpoint.
        values: The values of the body's parameters, by the names that are sent.
        styled: The placements of the fields of a form that have a style, by the same names.

    Returns:
        The body and its content type; None and "" for a request without a body.

    Raises:
        InvalidArguments: The values cannot be encoded as this type of body.
    """
    if not values and not endpoint.body_required:
        return None, ""
    if endpoint.body_param and not values:
        raise InvalidArguments((FieldProblem(endpoint.body_param, is_required()),))
    body = next(iter(values.values())) if endpoint.body_param else dict(values)
    content_type = endpoint.content_type or _CONTENT_TYPES.get(endpoint.body_type, "")
    match endpoint.body_type:
        case "json":
            return to_json_text(body).encode(), content_type
        case "form":
            return format_form(_require_object(endpoint, body), styled).encode(), content_type
        case "text":
            return scalar_to_text(body).encode("utf-8", "replace"), content_type
        case "binary":
            content, _, file_type = _read_file(endpoint.body_param, body)
            return content, endpoint.content_type or file_type or content_type
        case "multipart":
            return await _encode_multipart(endpoint, _require_object(endpoint, body))


def _require_object(endpoint: EndpointConfig, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidArguments((FieldProblem(endpoint.body_param, must_be("an object"), preview_json(value)),))
    return value


async def _encode_multipart(endpoint: EndpointConfig, values: Mapping[str, Any]) -> tuple[bytes, str]:
    from aiohttp import MultipartWriter, payload  # lazy: start-up time

    writer = MultipartWriter("form-data")
    for name, value in values.items():
        if name not in endpoint.files:
            for item in to_field_values(value):
                kind = "application/json" if isinstance(item, dict | list) else "text/plain; charset=utf-8"
                part = payload.BytesPayload(scalar_to_text(item).encode("utf-8", "replace"), content_type=kind)
                _set_disposition(part, name=name)
                writer.append_payload(part)
            continue
        for item in value if isinstance(value, list) else [value]:
            content, filename, file_type = _read_file(name, item)
            part = payload.BytesPayload(content, content_type=file_type or "application/octet-stream")
            _set_disposition(part, name=name, filename=filename or name)
            writer.append_payload(part)
    return await writer.as_bytes(), writer.content_type


def _set_disposition(part: "payload.Payload", **fields: str) -> None:
    """Set the names of a part as browsers write them: in UTF-8, with quotation marks and line breaks encoded."""
    named = "".join(f'; {key}="{value.translate(_ESCAPED_IN_NAMES)}"' for key, value in fields.items())
    part.headers["Content-Disposition"] = f"form-data{named}"


def _read_file(name: str, value: Any) -> tuple[bytes, str, str]:
    """Return a file's content, name and content type. A plain string is the content."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace"), "", "text/plain; charset=utf-8"
    if not isinstance(value, dict) or ("text" in value) == ("base64" in value):
        problem = must_be('{"filename": …, "text": …} or {"filename": …, "base64": …}')
        raise InvalidArguments((FieldProblem(name, problem, preview_json(value)),))
    content_type = str(value.get("content_type", ""))
    if any(character in content_type for character in "\r\n\0"):
        raise InvalidArguments((FieldProblem(f"{name}.content_type", must_be("one line"), preview_json(content_type)),))
    if "text" in value:
        return str(value["text"]).encode("utf-8", "replace"), str(value.get("filename", "")), content_type
    try:
        return base64.b64decode(str(value["base64"]), validate=True), str(value.get("filename", "")), content_type
    except ValueError as error:
        invalid = FieldProblem(f"{name}.base64", must_be("valid base64"), preview_json(value["base64"]))
        raise InvalidArguments((invalid,)) from error
