"""Temporary failures of tools."""

from opposable.domain.errors import ToolUnavailable


class Outage:
    """A service that is unavailable for a number of calls and available from then on.

    Args:
        failure_count: The number of calls that fail.
        message: The message of the failures.
    """

    def __init__(self, failure_count: int, message: str) -> None:
        self._remaining_failures = failure_count
        self._message = message

    def fail_while_active(self) -> None:
        """Raise the failure while calls still have to fail.

        Raises:
            ToolUnavailable: The service is not available yet.
        """
        if self._remaining_failures > 0:
            self._remaining_failures -= 1
            raise ToolUnavailable(self._message)
