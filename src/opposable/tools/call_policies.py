"""Runs a tool call under its rules: approval, cache, circuit breaker, rate limits and retries."""

import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from opposable.domain.call_context import ApprovalHandler, ApprovalRequest, Approved, CallContext, Denied
from opposable.domain.errors import OpposableError
from opposable.domain.localized_text import LocalizedText, localize
from opposable.domain.rate_limits import RateLimiter
from opposable.tools import failure_messages
from opposable.tools.circuit_breaker import CircuitBreaker, CircuitBreakerOptions
from opposable.tools.invocation import (
    CheckedArguments,
    InvocationResult,
    check_arguments,
    copy_arguments,
    invoke,
    result_from_error,
)
from opposable.tools.registry import CallPolicy, RegisteredTool
from opposable.tools.result_cache import ResultCache, canonicalize_arguments
from opposable.tools.result_media import find_media
from opposable.tools.retries import NO_ANSWER_FAILURES, ToolRetryOptions, retry

DEFAULT_POLICY = CallPolicy()

MAX_FAILURE_CHARACTERS = 500
"""Characters of the last failure in a health report."""

log = logging.getLogger("opposable.tools")

_INVALID_DECISION = LocalizedText(
    "the approval handler returned neither Approved nor Denied", "审批程序返回的既不是 Approved 也不是 Denied"
)


@dataclass(frozen=True, slots=True)
class PolicyContext:
    """What the calls of a library share.

    `timeout_seconds` is for tools that set none. `find_alternative_names` returns the names of tools that may replace
    one that is out of service.
    """

    rate_limiter: RateLimiter
    cache: ResultCache
    retries: ToolRetryOptions
    circuit_breaker: CircuitBreakerOptions | None
    clock: Callable[[], float]
    timeout_seconds: float
    approve: ApprovalHandler | None
    find_alternative_names: Callable[[RegisteredTool], list[str]]


async def call_tool(
    tool: RegisteredTool,
    arguments: dict[str, Any],
    context: CallContext,
    checked: CheckedArguments | None,
    policy_context: PolicyContext,
) -> tuple[InvocationResult, float]:
    """Check the arguments, run the tool under its policy, and record the result in its state.

    `checked` are the arguments if they are already checked. Only a cancellation of the caller is raised.

    Returns:
        The result and the seconds that the call took.
    """
    timeout = policy_context.timeout_seconds if tool.timeout is None else tool.timeout
    state = tool.entry.state
    has_policies = bool(
        tool.policy is not None or tool.traits.idempotent or state.circuit_breakers or context.requires_approval
    )
    started = time.perf_counter()
    try:
        if has_policies:  # a caller may change the arguments while the call waits for an approval or a retry
            checked = check_arguments(tool, copy_arguments(arguments))
        elif checked is None or checked.tool is not tool or checked.given is not arguments:
            checked = check_arguments(tool, arguments)
    except Exception as error:  # noqa: BLE001 - a validator may run the code of a tool's author
        result = result_from_error(error, tool.name, context.language)
    else:
        if has_policies:
            result = await _run_with_policies(tool, checked, context, timeout, policy_context)
        else:
            run = invoke(tool, checked.checked, context, timeout, tool.failure_when)
            result = await _record_in_circuit(tool, run, policy_context)
    seconds = time.perf_counter() - started
    result.outcome_unknown |= result.failure == "timeout"
    result.outcome_unknown &= result.attempts > 0 and not tool.traits.idempotent
    if result.outcome_unknown:
        result.content = failure_messages.unknown_outcome_message(result.content, context.language)
    state.calls += 1
    state.total_seconds += seconds
    if result.failure is not None:
        state.failures[result.failure] = state.failures.get(result.failure, 0) + 1
        state.last_failure = result.content[:MAX_FAILURE_CHARACTERS]
    return result, seconds


async def _run_with_policies(
    tool: RegisteredTool,
    arguments: CheckedArguments,
    context: CallContext,
    timeout_seconds: float,
    policy_context: PolicyContext,
) -> InvocationResult:
    """Run a tool under its policy: approval, then cache, then rate limits and retries.

    `timeout_seconds` limits all attempts together, not the time that a person takes to approve. Only a cancellation
    of the caller is raised.
    """
    policy = tool.policy or DEFAULT_POLICY
    if policy.needs_approval or context.requires_approval:
        refusal = _check_circuit(tool, context, policy_context) or await _request_approval(
            tool, arguments.given, context, policy_context.approve
        )
        if refusal is not None:
            return refusal
    cache_key = None
    if policy.cache_seconds and tool.traits.idempotent:
        variant = policy.cache_variant
        if tool.takes_context:  # its result may differ by owner, conversation or language
            variant = repr((variant, context.owner, context.agent_id, context.conversation_id, context.language))
        cache_key = (tool.entry.serial, tool.tool_id, variant, canonicalize_arguments(arguments.given))
        cached = policy_context.cache.get(cache_key)
        if cached is not None:
            return InvocationResult(cached[0], None, cached[1], cached=True)
    if not context.idempotency_key:
        context = replace(context, idempotency_key=uuid4().hex)
    result = await _run_with_retries(tool, arguments, context, timeout_seconds, policy_context)
    if (
        cache_key is not None and result.failure is None and not find_media(result.data)
    ):  # the cache has text and JSON only
        policy_context.cache.put(cache_key, result.content, result.data, policy.cache_seconds)
    return result


async def _run_with_retries(
    tool: RegisteredTool,
    arguments: CheckedArguments,
    context: CallContext,
    timeout_seconds: float,
    policy_context: PolicyContext,
) -> InvocationResult:
    """Run a tool within its limits; retry an idempotent one that does not answer."""
    max_attempts = policy_context.retries.max_attempts if tool.traits.idempotent else 1
    # The tool may change the arguments that it gets, so each retry validates a copy again.
    original_arguments = copy_arguments(arguments.given) if max_attempts > 1 else arguments.given
    reports: list[str] = []
    if context.report is not None and max_attempts > 1:
        context = replace(context, report=_record_reports(context.report, reports))

    async def attempt(number: int, seconds: float) -> InvocationResult:
        refusal = await _check_rate_limits(tool, context, policy_context.rate_limiter)
        if refusal is not None:
            return refusal
        checked = arguments.checked if number == 1 else tool.check(copy_arguments(original_arguments))
        return await invoke(tool, checked, context, seconds, tool.failure_when, limit_seconds=timeout_seconds)

    refusal = _check_circuit(tool, context, policy_context)
    if refusal is not None:
        return refusal
    # A call that has reported deltas is not repeated: its reader would see them twice.
    run = retry(attempt, policy_context.retries, max_attempts, timeout_seconds, may_repeat=lambda: not reports)
    return await _record_in_circuit(tool, run, policy_context)


async def _record_in_circuit(
    tool: RegisteredTool, run: Awaitable[InvocationResult], policy_context: PolicyContext
) -> InvocationResult:
    """Await a call and record whether the tool answered in its circuit breakers, created when it first does not.

    All attempts of a call count once. A time-out counts for the action alone, a lost connection for all actions. A call
    that is the trial of a half-open circuit decides it in any case.
    """
    breakers = tool.circuit_breakers
    trials = {key: breaker.record_start() for key, breaker in breakers.items()}
    answered, failed_key = None, None  # a call with invalid arguments does not show whether the tool answers
    try:
        result = await run
        if result.failure in NO_ANSWER_FAILURES:
            answered, failed_key = False, tool.action if result.failure == "timeout" else ""
        elif result.attempts and result.failure not in ("invalid_arguments", "refused"):
            answered = True
    finally:
        for key, breaker in breakers.items():
            is_counted = answered or key == failed_key or trials[key]
            breaker.record_end(answered if is_counted else None, is_trial=trials[key])
    if failed_key is None or failed_key in breakers:
        return result
    options = None if getattr(tool.tool, "calls_any_host", False) else policy_context.circuit_breaker
    if options is not None:
        new_breaker = CircuitBreaker(options, policy_context.clock)
        tool.entry.state.circuit_breakers.setdefault(failed_key, new_breaker).record_end(answered=False)
    return result


def _check_circuit(
    tool: RegisteredTool, context: CallContext, policy_context: PolicyContext
) -> InvocationResult | None:
    """Return the refusal of a call while the tool is out of service."""
    wait_seconds = max((breaker.get_wait_seconds() for breaker in tool.circuit_breakers.values()), default=0.0)
    if wait_seconds <= 0:
        return None
    alternatives = policy_context.find_alternative_names(tool)
    message = failure_messages.out_of_service_message(tool.name, wait_seconds, alternatives, context.language)
    return InvocationResult(message, "unavailable", attempts=0)


async def _check_rate_limits(
    tool: RegisteredTool, context: CallContext, rate_limiter: RateLimiter
) -> InvocationResult | None:
    """Count a call and return its refusal if it exceeds a rate limit."""
    for key, limit in (tool.policy or DEFAULT_POLICY).rate_limits:
        try:
            decision = await rate_limiter.hit(key, limit)
        except OpposableError as error:
            return InvocationResult(str(error), "unavailable", attempts=0)
        if not decision.allowed:
            message = failure_messages.rate_limit_message(
                tool.name, limit.calls, limit.seconds, decision.retry_after, context.language
            )
            return InvocationResult(message, "rate_limited", attempts=0)
    return None


async def _request_approval(
    tool: RegisteredTool, arguments: dict[str, Any], context: CallContext, approve: ApprovalHandler | None
) -> InvocationResult | None:
    """Ask for human approval of a call with exactly these arguments; return the refusal if it is not given."""
    name, language = tool.name, context.language
    handler = context.approve or approve
    if handler is None:
        return InvocationResult(failure_messages.approval_unavailable_message(name, language), "denied", attempts=0)
    try:
        request = ApprovalRequest(tool.entry.spec, tool.tool_id, name, copy_arguments(arguments), context)
        decision = await handler(request)
    except Exception as error:  # noqa: BLE001 - whatever prevents the approval also prevents the call
        log.warning("The approval handler failed, so %s does not run: %s: %s", name, type(error).__name__, error)
        return InvocationResult(failure_messages.approval_unavailable_message(name, language), "denied", attempts=0)
    if isinstance(decision, Approved):
        return None
    reason = decision.reason if isinstance(decision, Denied) else _INVALID_DECISION
    message = failure_messages.approval_denied_message(name, localize(reason, language), language)
    return InvocationResult(message, "denied", attempts=0)


def _record_reports(report: Callable[[str], None], reports: list[str]) -> Callable[[str], None]:
    """Wrap `report` so that its first text is also added to `reports`."""

    def record(text: str) -> None:
        if not reports:
            reports.append(text)
        report(text)

    return record
