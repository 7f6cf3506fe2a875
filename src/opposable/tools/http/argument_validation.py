"""Validation of the arguments of an endpoint."""

from typing import Any

from opposable.domain.errors import BadInput, ToolRegistrationError
from opposable.tools.json_schema_validation import ValidateArguments, compile_validator

_MORE_PROPERTIES = frozenset(
    {"additionalProperties", "allOf", "anyOf", "dependentSchemas", "if", "oneOf", "patternProperties", "$ref"}
    | {"unevaluatedProperties", "$dynamicRef"}
)
"""Keywords that may describe properties other than those of `properties`."""


def compile_argument_validator(tool_id: str, schema: dict[str, Any]) -> ValidateArguments:
    """Compile a schema. Unknown parameters are refused unless the schema allows more than its `properties`.

    Raises:
        ToolRegistrationError: It is not a valid schema, or refers to another document.
    """
    is_list = not _MORE_PROPERTIES.intersection(schema)
    try:
        return compile_validator({"type": "object", **({"additionalProperties": False} if is_list else {}), **schema})
    except BadInput as error:
        raise ToolRegistrationError(f"{tool_id}: {error}") from error
