"""The argument schema of an endpoint, with its defaults."""

import copy
from typing import Any

from opposable.domain.errors import BadInput, ToolRegistrationError
from opposable.tools.json_schema_validation import compile_validator


class ArgumentSchema:
    """A compiled JSON Schema. Unknown parameters are refused unless `additionalProperties` allows them."""

    def __init__(self, tool_id: str, schema: dict[str, Any]) -> None:
        """Compile the schema.

        Raises:
            ToolRegistrationError: It is not a valid schema, or refers to another document.
        """
        allows_more = schema.get("additionalProperties", False)
        try:
            self.validate = compile_validator({"type": "object", **schema, "additionalProperties": allows_more})
        except BadInput as error:
            raise ToolRegistrationError(f"{tool_id}: {error}") from error
        self._defaults = {
            name: parameter["default"]
            for name, parameter in schema.get("properties", {}).items()
            if isinstance(parameter, dict) and "default" in parameter
        }

    def fill_defaults(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments with the schema's defaults for those that are missing."""
        missing = {name: copy.deepcopy(value) for name, value in self._defaults.items() if name not in arguments}
        return {**arguments, **missing}
