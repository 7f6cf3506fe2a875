"""What of an answer's JSON is handed on: a JMESPath expression."""

from collections.abc import Callable
from typing import Any

from opposable.domain.errors import ToolFailed, ToolRegistrationError

Extract = Callable[[Any], Any]


def compile_extract(tool_id: str, expression: str) -> Extract | None:
    """A compiled expression, None for an empty one.

    Raises: `ToolRegistrationError` for an expression that is none, or where the extra "http" is missing. The function
    given back raises `ToolFailed` where the expression does not fit the data.
    """
    if not expression:
        return None
    try:
        import jmespath
        from jmespath.exceptions import JMESPathError
    except ModuleNotFoundError as error:
        raise ToolRegistrationError(
            f'{tool_id}: extracting from a response needs the extra "http": pip install "opposable[http]".'
        ) from error
    try:
        compiled = jmespath.compile(expression)
    except (JMESPathError, ValueError, RecursionError) as error:
        first = str(error).splitlines()[0]
        raise ToolRegistrationError(f"{tool_id}: extract is no JMESPath expression: {first}") from error

    def extract(value: Any) -> Any:
        try:
            return compiled.search(value)
        except (JMESPathError, ValueError, TypeError, RecursionError) as error:
            raise ToolFailed(f"The answer does not have the form this tool expects ({expression}).") from error

    return extract
