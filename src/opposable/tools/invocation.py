"""One invocation of a tool: its result as text, or the kind of failure with a message for the model."""

import asyncio
import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from opposable.domain.call_context import CallContext
from opposable.domain.errors import FieldProblem, InvalidArguments, ToolFailed, ToolRefused, ToolUnavailable
from opposable.domain.json_text import preview_json
from opposable.domain.language import Language
from opposable.domain.tools import FailureKind, ToolCall, ToolResult
from opposable.tools import failure_messages
from opposable.tools.base import Tool
from opposable.tools.failure_rules import NO_RULES, is_failure
from opposable.tools.raised_errors import get_error_text, is_connection_error, is_timeout_error, may_have_been_sent
from opposable.tools.registry import RegisteredTool
from opposable.tools.result_text import value_to_text
from opposable.tools.schema_phrases import must_be_type
from opposable.tools.traits import ToolTraits

Arguments = TypeVar("Arguments")


@dataclass(slots=True)
class InvocationResult:
    """The result of running a tool.

    `content` is the whole text, not truncated. `data` is the returned value, None after a failure. `attempts` is 0
    if the tool was not run. `retry_after` and `outcome_unknown` are those of `ToolUnavailable`.
    """

    content: str
    failure: FailureKind | None = None
    data: Any = None
    attempts: int = 1
    cached: bool = False
    retry_after: float = 0.0
    outcome_unknown: bool = False


@dataclass(frozen=True, slots=True)
class CheckedArguments:
    """The arguments of a call after validation.

    `given` is the JSON object that was validated by `tool`, and `checked` is what its `check` returned.
    """

    tool: RegisteredTool
    given: dict[str, Any]
    checked: dict[str, Any]


def copy_arguments(arguments: Arguments) -> Arguments:
    """Return a copy, which the tool may change; the same object if it is nested too deeply, some 400 lists deep."""
    try:
        return copy.deepcopy(arguments)
    except RecursionError:
        return arguments


def check_arguments(tool: RegisteredTool, arguments: dict[str, Any]) -> CheckedArguments:
    """Validate a call's arguments.

    Raises:
        InvalidArguments: The arguments do not fit the tool's schema.
    """
    if not isinstance(arguments, Mapping):  # the JSON text of a call, for example
        raise InvalidArguments((FieldProblem("", must_be_type("object"), preview_json(arguments)),))
    return CheckedArguments(tool, arguments, tool.check(arguments))


def check_call(tool: RegisteredTool, arguments: dict[str, Any]) -> CheckedArguments | None:
    """Validate the arguments of a call before it is made, also by the JSON Schema of a tool without `check`.

    None if the code of the tool's author fails: the call itself reports that.

    Raises:
        InvalidArguments: The arguments do not fit the tool's schema.
    """
    try:
        checked = check_arguments(tool, arguments)
        tool.check_schema(checked.given)
    except InvalidArguments:
        raise
    except Exception:  # noqa: BLE001 - see above
        return None
    return checked


async def invoke(
    tool: Tool,
    arguments: dict[str, Any],
    context: CallContext,
    timeout_seconds: float,
    failure_when: Mapping[str, Any] = NO_RULES,
    *,
    limit_seconds: float | None = None,
) -> InvocationResult:
    """Run a tool once, for at most `timeout_seconds`. Only a cancellation of the caller is raised.

    The message of a time-out names `limit_seconds`, the time of all attempts, if it is given. A value is a failure only
    if `failure_when` says so; see `ToolSpec`.
    """
    name, language = tool.definition.name, context.language
    try:
        async with asyncio.timeout(timeout_seconds) as scope:
            data = await tool.run(arguments, context)
        if is_failure(data, failure_when):
            return InvocationResult(value_to_text(data), "failed")
        return InvocationResult(value_to_text(data), None, data)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        cancelled = ToolFailed("it was cancelled from within")
        return InvocationResult(failure_messages.tool_raised_message(name, cancelled, language), "failed")
    except TimeoutError as error:
        if not scope.expired() or isinstance(error, ToolFailed):
            return result_from_error(error, name, language)
        return InvocationResult(
            failure_messages.timeout_message(name, limit_seconds or timeout_seconds, language), "timeout"
        )
    except Exception as error:  # noqa: BLE001 - whatever a tool raises is reported to the model, not to the caller
        return result_from_error(error, name, language)
    except BaseException as error:  # `sys.exit()` of a tool, or a panic in its Rust code, must not end the process
        task = asyncio.current_task()
        # Ctrl-C cancels the task first, and a closed coroutine must end.
        if task is None or task.cancelling() or isinstance(error, GeneratorExit):
            raise
        return result_from_error(error, name, language)


def create_interrupted_result(
    call: ToolCall, traits: ToolTraits | None, language: Language, *, has_started: bool, seconds: float = 0.0
) -> ToolResult:
    """Return the result of a cancelled call. Unless it is idempotent, it may have taken effect once it has started."""
    is_unknown = has_started and not (traits is not None and traits.idempotent)
    message = failure_messages.cancelled_call_message(call.name, language)
    message = failure_messages.unknown_outcome_message(message, language) if is_unknown else message
    return ToolResult(call.id, call.name, message, "cancelled", seconds=seconds, outcome_unknown=is_unknown)


def result_from_error(error: BaseException, name: str, language: Language) -> InvocationResult:
    """Convert an error that the tool `name` raised."""
    match error:
        case InvalidArguments():
            message = failure_messages.invalid_arguments_message(name, error.problems, language)
            return InvocationResult(message, "invalid_arguments")
        case ToolFailed():
            return InvocationResult(get_error_text(error), "timeout" if isinstance(error, TimeoutError) else "failed")
        case ToolRefused():
            return InvocationResult(get_error_text(error), "refused")
        case ToolUnavailable():
            result = InvocationResult(get_error_text(error), "unavailable", retry_after=error.retry_after)
            result.outcome_unknown = error.outcome_unknown
            return result
    message = failure_messages.tool_raised_message(name, error, language)
    if is_timeout_error(error):
        return InvocationResult(message, "timeout")
    if is_connection_error(error):
        return InvocationResult(message, "unavailable", outcome_unknown=may_have_been_sent(error))
    return InvocationResult(message, "failed")
