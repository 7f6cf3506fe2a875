"""Extraction of a part of an answer's JSON by a JMESPath expression."""

from collections.abc import Callable
from typing import Any

from opposable.domain.errors import ToolFailed, ToolRegistrationError

Extract = Callable[[Any], Any]


def compile_extract(tool_id: str, expression: str) -> Extract | None:
    """Compile an expression; an empty one gives None.

    Returns:
        A function that extracts from JSON data. It raises `ToolFailed` if the data do not fit the expression.

    Raises:
        ToolRegistrationError: The expression is not valid, or the extra "http" is missing.
    """
    if not expression:
        return None
    try:
        import jmespath  # lazy: the extra "http"
        from jmespath.exceptions import JMESPathError
    except ModuleNotFoundError as error:
        raise ToolRegistrationError(
            f'{tool_id}: extracting from a response needs the extra "http": pip install "opposable[http]".'
        ) from error
    try:
        compiled = jmespath.compile(expression)
    except (JMESPathError, ValueError, RecursionError) as error:
        first_line = str(error).splitlines()[0]
        raise ToolRegistrationError(f"{tool_id}: extract is not a valid JMESPath expression: {first_line}") from error

    def extract(value: Any) -> Any:
        try:
            return compiled.search(value)
        except (JMESPathError, ValueError, TypeError, RecursionError) as error:
            raise ToolFailed(f"The answer does not have the form this tool expects ({expression}).") from error

    return extract
