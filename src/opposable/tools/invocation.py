"""What came of one try of a tool: its value as text, or the kind of failure and a sentence."""

import asyncio
import dataclasses
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import orjson

from opposable.domain.call_context import CallContext
from opposable.domain.errors import InvalidArguments, ToolFailed, ToolRefused, ToolUnavailable
from opposable.domain.tools import FailureKind
from opposable.tools import failure_messages as sentences
from opposable.tools.base import Tool


@dataclass(slots=True)
class InvocationResult:
    """`content` is the whole text, uncut; `data` the value itself where the call worked."""

    content: str
    failure: FailureKind | None = None
    data: Any = None
    attempts: int = 1
    cached: bool = False


_ERROR_BODY_KEYS = frozenset(
    "error errors message detail details status status_code code type title hint path request_id timestamp ok success".split()  # noqa: SIM905
)
"""What stands in a body that tells of an error and of nothing else."""


def find_failure_in_value(data: Any) -> FailureKind | None:
    """The failure that a tool tells in a value, as a web service does in a body, and no exception.

    That is `{"ok": false}` or `{"success": false}`, an "error" beside a status of 400 or more, or one beside nothing else.
    """
    if not isinstance(data, dict):
        return None
    if data.get("ok") is False or data.get("success") is False:
        return "failed"
    if not (data.get("error") or data.get("errors")):
        return None
    status = data.get("status", data.get("status_code", data.get("code")))
    if type(status) is int:
        return "failed" if status >= HTTPStatus.BAD_REQUEST else None
    return "failed" if _ERROR_BODY_KEYS.issuperset(data) else None


async def invoke(
    tool: Tool, arguments: dict[str, Any], context: CallContext, timeout_seconds: float
) -> InvocationResult:
    """Run a tool for at most `limit` seconds. Raises nothing but cancellation."""
    name, language = tool.definition.name, context.language
    try:
        async with asyncio.timeout(timeout_seconds) as scope:
            data = await tool.run(arguments, context)
        failure = find_failure_in_value(data)
        return InvocationResult(value_to_text(data), failure, None if failure else data)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return InvocationResult(
            sentences.tool_raised_message(name, ToolFailed("it was cancelled from within"), language), "failed"
        )
    except InvalidArguments as error:
        return InvocationResult(
            sentences.invalid_arguments_message(name, error.problems, language), "invalid_arguments"
        )
    except ToolFailed as error:
        return InvocationResult(str(error), "timeout" if isinstance(error, TimeoutError) else "failed")
    except TimeoutError as error:
        own = sentences.timeout_message(name, timeout_seconds, language)
        return InvocationResult(
            own if scope.expired() else sentences.tool_raised_message(name, error, language), "timeout"
        )
    except ToolRefused as error:
        return InvocationResult(str(error), "refused")
    except ToolUnavailable as error:
        return InvocationResult(str(error), "unavailable")
    except Exception as error:  # noqa: BLE001 - whatever a tool raises is told to the model, not to the caller
        return InvocationResult(sentences.tool_raised_message(name, error, language), "failed")


def value_to_text(value: Any) -> str:
    """A tool's value as text: text as it is, the rest as JSON, nothing as "null"."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode() if _has_surrogates(value) else value
    if isinstance(value, bytes | bytearray):
        return f"<{len(value)} bytes>"
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_SUBCLASS).decode()
    except TypeError:
        return orjson.dumps(_to_jsonable(value), default=str, option=orjson.OPT_NON_STR_KEYS).decode()


def _has_surrogates(text: str) -> bool:
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _to_jsonable(value: Any) -> Any:
    """What orjson does not know, in what it knows."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, dict):
        return {str(key): _to_jsonable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_to_jsonable(inner) for inner in value]
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, bytes | bytearray):
        return f"<{len(value)} bytes>"
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return str(value)
    return value
