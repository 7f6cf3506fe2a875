"""The arguments of an endpoint: filled with defaults, and checked by a schema that came as data."""

import copy
from typing import Any

import orjson

from opposable.domain.errors import BadInput, ToolRegistrationError
from opposable.tools.argument_validation import compile_validator


class ArgumentSchema:
    """A schema, compiled once. A parameter it does not name is a problem unless it allows more by `additionalProperties`.

    Raises: `ToolRegistrationError` when the schema is no schema, or refers to something outside itself.
    """

    def __init__(self, tool_id: str, schema: dict[str, Any]) -> None:
        more = schema.get("additionalProperties", False)
        try:
            self.validate = compile_validator({"type": "object", **schema, "additionalProperties": more})
        except BadInput as error:
            raise ToolRegistrationError(f"{tool_id}: {error}") from error
        properties = schema.get("properties", {})
        self._defaults = {
            name: inner["default"]
            for name, inner in properties.items()
            if isinstance(inner, dict) and "default" in inner
        }

    def fill_defaults(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments with the schema's defaults for those that are absent."""
        absent = {name: copy.deepcopy(value) for name, value in self._defaults.items() if name not in arguments}
        return {**arguments, **absent}


def preview_json(value: Any) -> str:
    """A value as JSON, at most 200 characters of it."""
    text = orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    return text if len(text) <= 200 else text[:200] + "…"
