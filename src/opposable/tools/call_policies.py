"""A call with what its spec asks for around it: approval, cache, circuit, allowance, retries."""

import asyncio
import copy
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from opposable.domain.call_context import ApprovalRequest, Approve, Approved, CallContext
from opposable.domain.errors import InvalidArguments, OpposableError
from opposable.tools import failure_messages as sentences
from opposable.tools.circuit_breaker import Breaker, Breaking
from opposable.tools.invocation import Outcome, outcome_of
from opposable.tools.rate_limiter import Limiter
from opposable.tools.registry import Policy, Slot
from opposable.tools.result_cache import Cache, canonical

UNANSWERED = ("unavailable", "timeout")
"""The failures that say that a tool did not answer: they open its circuit, and are worth another try."""

PLAIN = Policy()


@dataclass(frozen=True, slots=True)
class Retrying:
    """How often an idempotent tool that does not answer is tried, and how long is waited between the tries.

    The first wait is of about `first` seconds, each further one twice as long, none longer than `most`; a random part
    is left out, so that many callers do not come back at once.
    """

    tries: int = 3
    first: float = 0.5
    most: float = 8.0

    def wait(self, attempt: int) -> float:
        """Seconds to wait after the `attempt`-th try, counted from 1."""
        longest: float = min(self.most, self.first * 2.0 ** (attempt - 1))
        return random.uniform(0.5, 1.0) * longest  # noqa: S311 - no secret


@dataclass(frozen=True, slots=True)
class Governance:
    """What governed calls share. `alternatives` gives the names of tools that may do instead of one."""

    limiter: Limiter
    cache: Cache
    retrying: Retrying
    breaking: Breaking | None
    clock: Callable[[], float]
    approve: Approve | None
    alternatives: Callable[[Slot], list[str]]


async def governed(
    slot: Slot, arguments: dict[str, Any], context: CallContext, limit: float, shared: Governance
) -> Outcome:
    """Run a tool as its policy says, for at most `limit` seconds with all tries. Raises nothing but cancellation."""
    policy = slot.policy or PLAIN
    try:
        exact = copy.deepcopy(arguments)  # what others do to the arguments meanwhile changes nothing
        slot.check(exact)
    except InvalidArguments as error:
        told = sentences.invalid_arguments(slot.definition.name, error.problems, context.language)
        return Outcome(told, "invalid_arguments")
    if policy.approval:
        refusal = _out_of_service(slot, context, shared) or await _asked(slot, exact, context, shared.approve)
        if refusal is not None:
            return refusal
    key = (slot.tool_id, policy.variant, canonical(exact)) if policy.cache_seconds else None
    kept = None if key is None else shared.cache.get(key)
    if kept is not None:
        return Outcome(kept[0], None, kept[1], cached=True)
    if not context.idempotency_key:
        context = replace(context, idempotency_key=uuid4().hex)
    outcome = await _tried(slot, exact, context, limit, shared)
    if key is not None and outcome.failure is None:
        shared.cache.put(key, outcome.content, outcome.data, policy.cache_seconds)
    return outcome


async def _tried(
    slot: Slot, arguments: dict[str, Any], context: CallContext, limit: float, shared: Governance
) -> Outcome:
    """Try once, or again and again while an idempotent tool does not answer and there is time."""
    clock = asyncio.get_running_loop().time
    end = clock() + limit
    tries = shared.retrying.tries if (slot.policy or PLAIN).idempotent else 1
    outcome: Outcome | None = None
    said: list[str] = []
    if context.report is not None and tries > 1:
        context = replace(context, report=_noting(context.report, said))
    for attempt in range(1, tries + 1):
        refusal = _out_of_service(slot, context, shared) or await _over_limit(slot, context, shared.limiter)
        if refusal is not None:
            return outcome or refusal
        outcome = await once(slot, arguments, context, limit if attempt == 1 else end - clock(), shared)
        outcome.attempts = attempt
        wait = shared.retrying.wait(attempt)
        if outcome.failure not in UNANSWERED or attempt == tries or said or clock() + wait >= end:
            break
        await asyncio.sleep(wait)
    assert outcome is not None
    return outcome


async def once(
    slot: Slot, arguments: dict[str, Any], context: CallContext, limit: float, shared: Governance
) -> Outcome:
    """One try, noted in the tool's circuit: which there is none of until the tool first does not answer."""
    service = slot.entry.service
    if service.breaker is None:
        outcome = await outcome_of(slot, arguments, context, limit)
        if outcome.failure in UNANSWERED and shared.breaking is not None:
            service.breaker = service.breaker or Breaker(shared.breaking, shared.clock)
            service.breaker.ended(answered=False)
        return outcome
    breaker, answered = service.breaker, None
    breaker.begin()
    try:
        outcome = await outcome_of(slot, arguments, context, limit)
        answered = _answered(outcome)
    finally:
        breaker.ended(answered)
    return outcome


def _answered(outcome: Outcome) -> bool | None:
    """Whether the tool answered; None where the outcome says nothing of it."""
    if outcome.failure in UNANSWERED:
        return False
    return None if outcome.failure in ("invalid_arguments", "refused") else True


def _out_of_service(slot: Slot, context: CallContext, shared: Governance) -> Outcome | None:
    breaker = slot.entry.service.breaker
    wait = 0.0 if breaker is None else breaker.wait()
    if wait <= 0:
        return None
    others = shared.alternatives(slot)
    told = sentences.out_of_service(slot.definition.name, wait, others, context.language)
    return Outcome(told, "unavailable", attempts=0)


async def _over_limit(slot: Slot, context: CallContext, limiter: Limiter) -> Outcome | None:
    for key, limit in (slot.policy or PLAIN).limits:
        try:
            room = await limiter.hit(key, limit)
        except OpposableError as error:
            return Outcome(str(error), "unavailable", attempts=0)
        if not room.allowed:
            told = sentences.rate_limited(
                slot.definition.name, limit.calls, limit.seconds, room.retry_after, context.language
            )
            return Outcome(told, "rate_limited", attempts=0)
    return None


async def _asked(
    slot: Slot, arguments: dict[str, Any], context: CallContext, approve: Approve | None
) -> Outcome | None:
    """None where a person approves of the call with exactly these arguments."""
    name, language = slot.definition.name, context.language
    ask = context.approve or approve
    if ask is None:
        return Outcome(sentences.nobody_to_ask(name, language), "denied", attempts=0)
    try:
        shown = copy.deepcopy(arguments)
        verdict = await ask(ApprovalRequest(slot.entry.spec, slot.tool_id, name, shown, context))
    except Exception:  # noqa: BLE001 - whatever keeps a person from being asked, the call is not made
        return Outcome(sentences.nobody_to_ask(name, language), "denied", attempts=0)
    if isinstance(verdict, Approved):
        return None
    return Outcome(sentences.denied(name, verdict.reason, language), "denied", attempts=0)


def _noting(report: Callable[[str], None], said: list[str]) -> Callable[[str], None]:
    """`report`, with a note that something was told: a call that was heard of is not made again."""

    def noted(text: str) -> None:
        if not said:
            said.append(text)
        report(text)

    return noted
