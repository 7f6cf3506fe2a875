"""Validation of the arguments of an endpoint."""

from typing import Any

from opposable.domain.errors import BadInput, ToolRegistrationError
from opposable.tools.json_schema_validation import ValidateArguments, compile_validator


def compile_argument_validator(tool_id: str, schema: dict[str, Any]) -> ValidateArguments:
    """Compile a schema. Unknown parameters are refused unless `additionalProperties` allows them.

    Raises:
        ToolRegistrationError: It is not a valid schema, or refers to another document.
    """
    allows_more = schema.get("additionalProperties", False)
    try:
        return compile_validator({"type": "object", **schema, "additionalProperties": allows_more})
    except BadInput as error:
        raise ToolRegistrationError(f"{tool_id}: {error}") from error
