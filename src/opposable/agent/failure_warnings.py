"""Warnings about earlier failures, for tool descriptions and requests. They never quote the output of a tool."""

from collections.abc import Iterable
from datetime import timedelta

from opposable.agent.failure_fingerprints import format_arguments, format_correction, parse_failed_arguments
from opposable.domain.language import Language
from opposable.domain.records import Failure, get_utc_now
from opposable.domain.tools import FailureKind

MAX_WARNINGS_PER_TOOL = 3
"""Warnings in the description of one tool."""
STORED_FAILURE_KINDS: tuple[FailureKind, ...] = ("invalid_arguments", "refused", "failed", "timeout")
"""Failures that are stored and lead to a warning: those that the arguments may have caused."""
HALF_LIFE_DAYS = 14.0
"""Days without the failure after which it counts half as much."""


def format_warnings(failures: Iterable[Failure], language: Language) -> str:
    """Return the warnings about one tool, one a line.

    A failure without a correction counts only if it occurred twice or is pinned. One with a correction counts for
    longer.
    """
    warnings: dict[str, None] = {}
    for failure in failures:
        failed_arguments, worked_arguments = format_correction(failure.correction)
        if failure.kind not in STORED_FAILURE_KINDS or compute_weight(failure) < (0.25 if worked_arguments else 1.0):
            continue
        if not worked_arguments and failure.count < 2 and not failure.pinned:
            continue
        failed_arguments = failed_arguments or format_arguments(parse_failed_arguments(failure.message).items())
        if failed_arguments or worked_arguments:
            warnings[_format_warning(failed_arguments, worked_arguments, language)] = None
        if len(warnings) == MAX_WARNINGS_PER_TOOL:
            break
    return "\n".join(warnings)


def compute_weight(failure: Failure) -> float:
    """Return the weight of a failure today."""
    if failure.pinned or failure.last_seen is None:
        return float(failure.count)
    days = (get_utc_now() - failure.last_seen) / timedelta(days=1)
    return float(failure.count * 0.5 ** (max(days, 0.0) / HALF_LIFE_DAYS))


def _format_warning(failed_arguments: str, worked_arguments: str, language: Language) -> str:
    if language == "zh":
        failure = f"{failed_arguments} 曾经失败" if failed_arguments else "曾经失败"
        return f"以往经验：{failure}" + (f"；可行的是 {worked_arguments}。" if worked_arguments else "。")
    failure = f"{failed_arguments} failed" if failed_arguments else "a call failed"
    return f"Known from before: {failure}" + (f"; {worked_arguments} worked." if worked_arguments else ".")
