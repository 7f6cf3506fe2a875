"""A call with what its spec asks for around it: approval, cache, circuit, allowance, retries."""

import asyncio
import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from opposable.domain.backoff import get_backoff_seconds
from opposable.domain.call_context import ApprovalHandler, ApprovalRequest, Approved, CallContext
from opposable.domain.errors import InvalidArguments, OpposableError
from opposable.domain.rate_limits import RateLimiter
from opposable.tools import failure_messages as sentences
from opposable.tools.circuit_breaker import CircuitBreaker, CircuitBreakerOptions
from opposable.tools.invocation import InvocationResult, invoke
from opposable.tools.registry import CallPolicy, RegisteredTool
from opposable.tools.result_cache import ResultCache, canonicalize_arguments

NO_ANSWER_FAILURES = ("unavailable", "timeout")
"""The failures that say that a tool did not answer: they open its circuit, and are worth another try."""

DEFAULT_POLICY = CallPolicy()


@dataclass(frozen=True, slots=True)
class ToolRetryOptions:
    """How often an idempotent tool that does not answer is tried, and how long is waited between the tries.

    The first wait is of about `first` seconds, each further one twice as long, none longer than `most`; a random part
    is left out, so that many callers do not come back at once.
    """

    max_attempts: int = 3
    first_wait_seconds: float = 0.5
    max_wait_seconds: float = 8.0

    def get_wait_seconds(self, attempt: int) -> float:
        """Seconds to wait after the `attempt`-th try, counted from 1."""
        return get_backoff_seconds(attempt, self.first_wait_seconds, self.max_wait_seconds)


@dataclass(frozen=True, slots=True)
class PolicyContext:
    """What governed calls share. `alternatives` gives the names of tools that may do instead of one."""

    rate_limiter: RateLimiter
    cache: ResultCache
    retries: ToolRetryOptions
    circuit_breaker: CircuitBreakerOptions | None
    clock: Callable[[], float]
    approve: ApprovalHandler | None
    find_alternative_names: Callable[[RegisteredTool], list[str]]


async def run_with_policies(
    tool: RegisteredTool,
    arguments: dict[str, Any],
    context: CallContext,
    timeout_seconds: float,
    policy_context: PolicyContext,
) -> InvocationResult:
    """Run a tool as its policy says, for at most `limit` seconds with all tries. Raises nothing but cancellation."""
    policy = tool.policy or DEFAULT_POLICY
    try:
        exact = copy.deepcopy(arguments)  # what others do to the arguments meanwhile changes nothing
        tool.check(exact)
    except InvalidArguments as error:
        told = sentences.invalid_arguments_message(tool.definition.name, error.problems, context.language)
        return InvocationResult(told, "invalid_arguments")
    if policy.needs_approval:
        refusal = _check_circuit(tool, context, policy_context) or await _request_approval(
            tool, exact, context, policy_context.approve
        )
        if refusal is not None:
            return refusal
    key = (tool.tool_id, policy.cache_variant, canonicalize_arguments(exact)) if policy.cache_seconds else None
    kept = None if key is None else policy_context.cache.get(key)
    if kept is not None:
        return InvocationResult(kept[0], None, kept[1], cached=True)
    if not context.idempotency_key:
        context = replace(context, idempotency_key=uuid4().hex)
    outcome = await _run_with_retries(tool, exact, context, timeout_seconds, policy_context)
    if key is not None and outcome.failure is None:
        policy_context.cache.put(key, outcome.content, outcome.data, policy.cache_seconds)
    return outcome


async def _run_with_retries(
    tool: RegisteredTool,
    arguments: dict[str, Any],
    context: CallContext,
    timeout_seconds: float,
    policy_context: PolicyContext,
) -> InvocationResult:
    """Try once, or again and again while an idempotent tool does not answer and there is time."""
    clock = asyncio.get_running_loop().time
    end = clock() + timeout_seconds
    tries = policy_context.retries.max_attempts if (tool.policy or DEFAULT_POLICY).idempotent else 1
    outcome: InvocationResult | None = None
    said: list[str] = []
    if context.report is not None and tries > 1:
        context = replace(context, report=_record_reports(context.report, said))
    for attempt in range(1, tries + 1):
        refusal = _check_circuit(tool, context, policy_context) or await _check_rate_limits(
            tool, context, policy_context.rate_limiter
        )
        if refusal is not None:
            return outcome or refusal
        outcome = await run_once(
            tool, arguments, context, timeout_seconds if attempt == 1 else end - clock(), policy_context
        )
        outcome.attempts = attempt
        wait = policy_context.retries.get_wait_seconds(attempt)
        if outcome.failure not in NO_ANSWER_FAILURES or attempt == tries or said or clock() + wait >= end:
            break
        await asyncio.sleep(wait)
    assert outcome is not None
    return outcome


async def run_once(
    tool: RegisteredTool,
    arguments: dict[str, Any],
    context: CallContext,
    timeout_seconds: float,
    policy_context: PolicyContext,
) -> InvocationResult:
    """One try, noted in the tool's circuit: which there is none of until the tool first does not answer."""
    service = tool.entry.state
    if service.circuit_breaker is None:
        outcome = await invoke(tool, arguments, context, timeout_seconds)
        if outcome.failure in NO_ANSWER_FAILURES and policy_context.circuit_breaker is not None:
            service.circuit_breaker = service.circuit_breaker or CircuitBreaker(
                policy_context.circuit_breaker, policy_context.clock
            )
            service.circuit_breaker.record_end(answered=False)
        return outcome
    breaker, answered = service.circuit_breaker, None
    breaker.try_begin()
    try:
        outcome = await invoke(tool, arguments, context, timeout_seconds)
        answered = _did_answer(outcome)
    finally:
        breaker.record_end(answered)
    return outcome


def _did_answer(result: InvocationResult) -> bool | None:
    """Whether the tool answered; None where the outcome says nothing of it."""
    if result.failure in NO_ANSWER_FAILURES:
        return False
    return None if result.failure in ("invalid_arguments", "refused") else True


def _check_circuit(
    tool: RegisteredTool, context: CallContext, policy_context: PolicyContext
) -> InvocationResult | None:
    breaker = tool.entry.state.circuit_breaker
    wait = 0.0 if breaker is None else breaker.get_wait_seconds()
    if wait <= 0:
        return None
    others = policy_context.find_alternative_names(tool)
    told = sentences.out_of_service_message(tool.definition.name, wait, others, context.language)
    return InvocationResult(told, "unavailable", attempts=0)


async def _check_rate_limits(
    tool: RegisteredTool, context: CallContext, rate_limiter: RateLimiter
) -> InvocationResult | None:
    for key, limit in (tool.policy or DEFAULT_POLICY).rate_limits:
        try:
            room = await rate_limiter.hit(key, limit)
        except OpposableError as error:
            return InvocationResult(str(error), "unavailable", attempts=0)
        if not room.allowed:
            told = sentences.rate_limit_message(
                tool.definition.name, limit.calls, limit.seconds, room.retry_after, context.language
            )
            return InvocationResult(told, "rate_limited", attempts=0)
    return None


async def _request_approval(
    tool: RegisteredTool, arguments: dict[str, Any], context: CallContext, approve: ApprovalHandler | None
) -> InvocationResult | None:
    """None where a person approves of the call with exactly these arguments."""
    name, language = tool.definition.name, context.language
    ask = context.approve or approve
    if ask is None:
        return InvocationResult(sentences.approval_unavailable_message(name, language), "denied", attempts=0)
    try:
        shown = copy.deepcopy(arguments)
        verdict = await ask(ApprovalRequest(tool.entry.spec, tool.tool_id, name, shown, context))
    except Exception:  # noqa: BLE001 - whatever keeps a person from being asked, the call is not made
        return InvocationResult(sentences.approval_unavailable_message(name, language), "denied", attempts=0)
    if isinstance(verdict, Approved):
        return None
    return InvocationResult(sentences.approval_denied_message(name, verdict.reason, language), "denied", attempts=0)


def _record_reports(report: Callable[[str], None], reported: list[str]) -> Callable[[str], None]:
    """`report`, with a note that something was told: a call that was heard of is not made again."""

    def noted(text: str) -> None:
        if not reported:
            reported.append(text)
        report(text)

    return noted
