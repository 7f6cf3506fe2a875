"""One run watched: each call folded into what is known of it, and what follows for the calls to come."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from opposable import parsers as dialects
from opposable.agent.assistance import prompts
from opposable.agent.assistance.argument_suggestions import suggest_arguments
from opposable.agent.assistance.call_records import (
    TRANSIENT_FAILURES,
    CallKey,
    CallRecord,
    get_call_key,
    is_transient,
    normalize_arguments,
    record_attempt,
    should_block,
    should_warn,
)
from opposable.agent.assistance.execution_context import ExecutionContext, format_status_note
from opposable.agent.assistance.follow_ups import FollowUps
from opposable.agent.assistance.grounding import is_number_grounded, is_tool_named, split_identifier
from opposable.agent.assistance.guard_options import GuardOptions
from opposable.agent.assistance.recovery_policy import FailureState, RecoveryDecision, choose_next_action
from opposable.agent.assistance.tool_facts import ToolFacts
from opposable.agent.failure_fingerprints import find_correction, format_arguments, format_correction
from opposable.agent.failure_memory import NO_PATTERNS, FailurePatterns, ScopedMemory
from opposable.agent.failure_warnings import format_hints
from opposable.agent.policy import Step
from opposable.agent.tool_execution import ResolvedCall
from opposable.domain.language import Language, split_words
from opposable.domain.messages import Message
from opposable.domain.records import ExecutionStats, Failure
from opposable.domain.tools import ToolCall, ToolDefinition, ToolResult
from opposable.models.base import ForcedTool
from opposable.tools import failure_messages as sentences
from opposable.tools.library import ToolLibrary

ADJUSTABLE_METADATA_KEY = "adjustable"
"""In a spec's metadata: arguments that are doubled after a time-out, each with its largest value."""

MAX_REQUEST_CHARACTERS_MATCHED = 2_000
"""Characters of a request in which it is looked for what failed before."""

_MAX_OPEN_FAILURES = 20
"""Failed calls of a tool that wait for being put right, the last ones."""


@dataclass(frozen=True, slots=True)
class _OpenFailure:
    """A failed call that nothing has put right yet."""

    arguments: dict[str, Any]
    error_text: str
    failure_id: str
    is_timeout: bool


class RunMonitor:
    """What a run has been through. `patterns` are what was known when it began.

    `best` is the last result that was good, by its tool's name; `advice` is what the model is told to do next;
    `is_silent` that it is told no more of what was tried;
    `unfinished` are the run's open ends.
    """

    def __init__(
        self,
        library: ToolLibrary,
        task: str,
        language: Language,
        guards: GuardOptions,
        failure_memory: ScopedMemory | None,
        patterns: FailurePatterns = NO_PATTERNS,
    ) -> None:
        self._library = library
        self._language: Language = language
        self._guards = guards
        self._failure_memory = failure_memory if guards.failure_memory else None
        self._patterns = patterns
        self._call_records: dict[CallKey, CallRecord] = {}
        self._context = ExecutionContext(task)
        self._turn_calls: dict[str, tuple[CallKey, dict[str, Any]]] = {}  # the turn's calls by id
        self._blocked_ids: set[str] = set()
        self._deferred_ids: set[str] = set()  # of these, those that say nothing of what would put them right
        self._failures_by_tool: dict[str, int] = {}  # failures by name, since the tool last worked
        self._open_failures: dict[str, list[_OpenFailure]] = {}
        self._timed_out_arguments: dict[str, dict[str, Any]] = {}  # arguments that were too small, by name
        self._recorded_failures: set[tuple[CallKey, str]] = set()
        self._annotated_definitions: tuple[Sequence[ToolDefinition], tuple[ToolDefinition, ...]] = ((), ())
        self._turn = 0
        self._expects_plan = True  # what the model says with its next calls is its plan
        self._change_count = self._stale_turns = self._failed_turns = self._blocked_turns = 0
        self._has_new_result = self._has_failed = self._last_turn_failed = False
        self.advice = ""
        self.is_silent = False
        self.last_success: tuple[str, str] | None = None
        self._tool_facts = ToolFacts(library, self._context)
        self._held_back_fields: dict[str, set[str]] = {}  # fields for which calls were held back, by name
        self._request_words = frozenset(split_words(task[:MAX_REQUEST_CHARACTERS_MATCHED]))
        self._quoted_tools: dict[
            str, tuple[int, bool]
        ] = {}  # steps looked at, and whether one names the tool, by its name
        self._hints = self._collect_hints(task) if guards.status_notes and self._failure_memory is not None else {}
        self.follow_ups = FollowUps(self._tool_facts, task)

    # Before the calls

    def annotate_definitions(self, definitions: tuple[ToolDefinition, ...]) -> tuple[ToolDefinition, ...]:
        """What the model is told of tools, with warnings where something is known of them."""
        if self._failure_memory is None or not self._patterns.warnings:
            return definitions
        if self._annotated_definitions[0] is not definitions:
            told = self._failure_memory.memory.add_warnings(definitions, self._patterns, self._library, self._language)
            pairs = zip(definitions, told, strict=True)
            if self._hints:  # it is told once: a small model writes again whatever failing value it sees
                told = tuple(plain if plain.name in self._hints else warned for plain, warned in pairs)
            self._annotated_definitions = (definitions, told)
        return self._annotated_definitions[1]

    def with_status_note(self, messages: list[Message], is_trimmed: bool) -> list[Message]:
        """The messages to send with the block on what was tried in the last of them; the history has none of it."""
        told = self.format_status_note(is_trimmed) if self._turn else "\n".join(self._hints.values())
        if not told:
            return messages
        last = messages[-1]
        return [*messages[:-1], replace(last, content=f"{last.content}\n\n{told}")]

    def _collect_hints(self, task: str) -> dict[str, str]:
        """What is told beside the request of what put the same right before, by the names of tools."""
        found: dict[str, str] = {}
        spoken = split_words(task[:MAX_REQUEST_CHARACTERS_MATCHED]) if self._patterns.failures else []
        for tool_id, known in self._patterns.failures.items():
            tool = self._library.find_tool(tool_id)
            if tool is not None and tool.tool_id == tool_id:
                name = tool.definition.name
                found[name] = format_hints(known, name, spoken, self._language)
        return {name: hints for name, hints in found.items() if hints}

    def format_status_note(self, is_trimmed: bool) -> str:
        """The block on what was tried, "" where there is nothing to say."""
        if self.is_silent or not (self._guards.status_notes or self.advice):
            return ""
        if not (self.advice or self._last_turn_failed or (is_trimmed and self._context.steps)):
            return ""
        if not self._guards.status_notes:
            return self.advice
        return format_status_note(
            self._context, self._language, self._guards.status_note_tokens, advice=self.advice, include_all=is_trimmed
        )

    @property
    def reserved_tokens(self) -> int:
        """Tokens to be left free for the block."""
        return self._guards.status_note_tokens if self.advice or self._context.steps else 0

    def begin_turn(
        self, reply_text: str, resolved_calls: Sequence[ResolvedCall], deferred_calls: Sequence[ToolCall] = ()
    ) -> tuple[Sequence[ResolvedCall], ...]:
        """Take note of a reply with calls; the calls, in the parts in which they are to be made.

        `later` are calls that the model wrote too and that wait for what these bring.

        The same call twice in one reply is made once first: where that fails, the others need not.
        """
        self._turn += 1
        self._turn_calls.clear()
        self._blocked_ids.clear()
        self._deferred_ids.clear()
        self._has_new_result = False
        self.follow_ups.begin_turn()
        for call in deferred_calls:
            self.follow_ups.defer(ForcedTool(call.name, call.arguments))
        if self._expects_plan and reply_text.strip():
            self._context.plan, self._expects_plan = reply_text.strip(), False
        if len(resolved_calls) == 1 or not self._guards.block_repeats:
            return (resolved_calls,)
        first: dict[CallKey, ResolvedCall] = {}
        rest = [read for read in resolved_calls if first.setdefault(self._get_call_key(read)[0], read) is not read]
        return (tuple(first.values()), rest) if rest else (resolved_calls,)

    def screen_calls(self, resolved_calls: Iterable[ResolvedCall]) -> tuple[ResolvedCall, ...]:
        """The calls of a part of a reply, those marked that are not to be made, and adjusted what may be."""
        return tuple(self._screen_call(read) for read in resolved_calls)

    def _screen_call(self, resolved_call: ResolvedCall) -> ResolvedCall:
        if (
            resolved_call.failure is None
            and self._failure_memory is not None
            and (self._timed_out_arguments or self._patterns.failures)
        ):
            resolved_call = self._enlarge_arguments(resolved_call)
        call = resolved_call.call
        key, arguments = self._turn_calls[call.id] = self._get_call_key(resolved_call)
        told = self._find_block_reason(resolved_call, key, arguments)
        if not told:
            return resolved_call
        self._blocked_ids.add(call.id)
        return replace(resolved_call, failure=ToolResult(call.id, call.name, told, "refused"))

    def _get_call_key(self, resolved_call: ResolvedCall) -> tuple[CallKey, dict[str, Any]]:
        """What makes a call the same as another, and its arguments without what makes no difference."""
        call = resolved_call.call
        if resolved_call.failure is not None:  # where there is no such tool, whatever is asked of it comes to the same
            told = "" if resolved_call.failure.failure == "unknown_tool" else call.arguments_json
            return (call.name, told.encode()), {}
        arguments = normalize_arguments(resolved_call.arguments, self._tool_facts.get_parameters(call.name))
        return get_call_key(call.name, arguments), arguments

    def _find_block_reason(self, resolved_call: ResolvedCall, key: CallKey, arguments: dict[str, Any]) -> str:
        name = resolved_call.call.name
        if self._guards.block_repeats:
            seen = self._call_records.get(key)
            if should_block(seen, self._change_count, self._stale_turns, self._guards) and seen is not None:
                if seen.failure is not None:
                    return prompts.explain_blocked_failure(name, seen.repeat_count, seen.content, self._language)
                if not self._tool_facts.is_polling(name):
                    return prompts.explain_blocked_repeat(name, seen.repeat_count, seen.content, self._language)
        if resolved_call.failure is not None:
            return ""
        if self._guards.block_repeats and self._is_only_quoted(name):
            self._deferred_ids.add(resolved_call.call.id)
            return prompts.explain_quoted_call(name, self._language)
        other = self.follow_ups.find_substituted_value(
            name, resolved_call.arguments, chain((self._context.task,), self._context.iter_tool_outputs())
        )
        if other:
            self._deferred_ids.add(resolved_call.call.id)
            return prompts.explain_substituted_value(name, other, self._language)
        held = self._find_missing_prerequisite(name, resolved_call.arguments) if self._guards.follow_ups else ""
        if held:
            self._deferred_ids.add(resolved_call.call.id)
            return held
        if self._failure_memory is None or not self._patterns.failures:
            return ""
        known = self._patterns.find_exact(self._tool_facts.get_tool_id(name), arguments)
        if known is None or not self._failure_memory.is_known_to_fail(known):
            return ""
        right = format_correction(known.correction)[1]
        said = dialects.escape_special_tokens(known.message.partition("\n")[2])
        return prompts.explain_known_failure(name, known.count, right, said, self._language)

    def _is_only_quoted(self, name: str) -> bool:
        """Whether a tool that changes something is named by what another one read, and not by the user.

        Texts that tools read are nobody's orders; what a user wants is seen from the words of the request.
        """
        if self._tool_facts.is_read_only(name) or set(split_identifier(name)) <= self._request_words:
            return False
        seen, is_so = self._quoted_tools.get(name, (0, False))
        steps = self._context.steps
        if not is_so and seen < len(steps):
            is_so = any(
                step.result.failure is None
                and step.call.name != name
                and self._tool_facts.is_read_only(step.call.name)
                and is_tool_named(name, step.result.content)
                for step in steps[seen:]
            )
            self._quoted_tools[name] = len(steps), is_so
        return is_so

    def _find_missing_prerequisite(self, name: str, arguments: dict[str, Any]) -> str:
        """Why a call that changes something is not made yet: what it needs to know is there to be read first."""
        more = self.follow_ups.take_unread_page(name)
        if more is not None:
            told = format_arguments(more.arguments.items())
            return prompts.explain_unread_pages(name, more.name, told, self._language)
        return self._find_ungrounded_number(name, arguments)

    def _find_ungrounded_number(self, name: str, arguments: dict[str, Any]) -> str:
        """Why a call is held back that has a number which nobody said and a tool could tell.

        It is held back once for each such argument: the number may be worked out.
        """
        for field in self._tool_facts.list_provided_fields(name):
            number = arguments.get(field)
            if (
                not isinstance(number, int | float)
                or isinstance(number, bool)
                or field in self._held_back_fields.get(name, ())
            ):
                continue
            if is_number_grounded(number, (self._context.task,)):
                continue
            sources = self._tool_facts.find_provider_calls(ForcedTool(name, arguments), field)
            if not sources or is_number_grounded(number, self._context.iter_tool_outputs()):
                continue
            self._held_back_fields.setdefault(name, set()).add(field)
            known = {one: value for one, value in arguments.items() if one != field}
            self.follow_ups.defer(ForcedTool(name, known), sources[0])
            names = [source.name for source in sources]
            return prompts.explain_ungrounded_argument(name, format_arguments([(field, number)]), names, self._language)
        return ""

    def _enlarge_arguments(self, resolved_call: ResolvedCall) -> ResolvedCall:
        """The call with arguments enlarged that were too small before, where its spec says how far they may be."""
        name = resolved_call.call.name
        small = self._timed_out_arguments.get(name)
        large: dict[str, Any] = {}
        if small is None:
            known = [
                one
                for one in self._patterns.failures.get(self._tool_facts.get_tool_id(name), ())
                if one.kind == "timeout"
            ]
            large = next((one.correction["right"] for one in known if one.correction), {})
            if not large:
                return resolved_call
        spec = self._tool_facts.get_spec(name)
        most = spec.metadata.get(ADJUSTABLE_METADATA_KEY) if spec is not None else None
        if not isinstance(most, dict):
            return resolved_call
        properties = self._tool_facts.get_parameters(name).get("properties", {})
        better, told = dict(resolved_call.arguments), []
        for field, largest in most.items():
            own = about.get("default") if isinstance(about := properties.get(field), dict) else None
            given = better.get(field, own)
            value = _enlarge_number(given, None if small is None else small.get(field, own), large.get(field), largest)
            if value is not None:
                better[field] = value
                told.append(f"{field} {given} → {value}: it took longer before")
        if not told:
            return resolved_call
        call = replace(resolved_call.call, arguments=better, raw=None, repairs=(*resolved_call.call.repairs, *told))
        return ResolvedCall(call, better)

    # As they end

    def record_result(self, call: ToolCall, result: ToolResult) -> ToolResult:
        """Take note of a call's end; the result, with a sentence beside it where the model should know more."""
        key, arguments = self._turn_calls[call.id]
        self._context.add_step(Step(self._turn, call, result))
        if _is_run_limited(result, self._language):
            return result
        if call.id in self._deferred_ids:
            return result
        meant = self._suggest_arguments(call.name, arguments, result) if result.failure is not None else {}
        before = self._call_records.get(key)
        again = before.failure if before is not None and call.id in self._blocked_ids else None
        wanted = ForcedTool(call.name, arguments)
        self.follow_ups.record_result(
            result, wanted, meant, is_polling=self._tool_facts.is_polling(call.name), previous_failure=again
        )
        if call.id in self._blocked_ids:
            return result
        seen = self._call_records[key] = record_attempt(
            before, result.failure, result.content, self._change_count, self._turn
        )
        if result.failure is None:
            return self._record_success(call, arguments, result, seen, before)
        return self._record_failure(call, arguments, result, seen, meant)

    def _record_success(
        self,
        call: ToolCall,
        arguments: dict[str, Any],
        result: ToolResult,
        record: CallRecord,
        previous: CallRecord | None,
    ) -> ToolResult:
        self.last_success = (call.name, result.content)
        if previous is None or previous.content != result.content or previous.failure is not None:
            self._has_new_result = True
            if not self._has_failed or not self._tool_facts.is_read_only(call.name):
                self._change_count += 1
        if self._failures_by_tool:
            self._failures_by_tool.pop(call.name, None)
        if self._failure_memory is not None and (self._open_failures or self._patterns.failures):
            self._store_corrections(self._failure_memory, call.name, arguments)
        if (
            self._guards.block_repeats
            and should_warn(record, self._stale_turns, self._guards)
            and not self._tool_facts.is_polling(call.name)
        ):
            return _append_note(result, prompts.note_repeated_result(call.name, record.repeat_count, self._language))
        return result

    def _record_failure(
        self,
        call: ToolCall,
        arguments: dict[str, Any],
        result: ToolResult,
        record: CallRecord,
        suggested_arguments: dict[str, Any],
    ) -> ToolResult:
        name = call.name
        self._has_failed = True
        self._failures_by_tool[name] = self._failures_by_tool.get(name, 0) + 1
        self._has_new_result = self._has_new_result or record.repeat_count == 1
        if result.failure == "timeout":
            self._timed_out_arguments[name] = arguments
        warned = self._patterns.warnings.get(self._tool_facts.get_tool_id(name))
        if warned is not None and self._failure_memory is not None:
            self._context.known_warnings[name] = warned[self._language == "zh"]
        beside = [self._format_known_correction(name, arguments)]
        if self._guards.status_notes and not beside[0]:
            beside.append(self._format_suggestion(result, record, suggested_arguments))
        if self._failure_memory is not None:
            self._store_failure(self._failure_memory, name, arguments, result)
        if (
            self._guards.block_repeats
            and should_warn(record, self._stale_turns, self._guards)
            and not self._is_retryable(result, record)
        ):
            beside.append(prompts.note_repeated_failure(name, record.repeat_count, self._language))
        missing = self._tool_facts.list_missing_dependencies(name)
        if missing:
            beside.append(prompts.note_missing_dependencies(name, missing, self._language))
        told = " ".join(filter(None, beside))
        return _append_note(result, told) if told else result

    def _suggest_arguments(self, name: str, arguments: dict[str, Any], result: ToolResult) -> dict[str, Any]:
        """The arguments that may have been meant: what worked before, or what the failure names that is like them."""
        known = self._find_known_failure(name, arguments)
        if known is not None and known.correction and format_correction(known.correction)[1]:
            return dict(known.correction["right"])
        return suggest_arguments(arguments, result.content)

    def _format_suggestion(self, result: ToolResult, record: CallRecord, suggested_arguments: dict[str, Any]) -> str:
        """What is asked for beside a failure: the call with what may have been meant, or the same once more."""
        if suggested_arguments:
            return prompts.suggest_correction(format_arguments(suggested_arguments.items()), self._language)
        return prompts.suggest_retry(self._language) if self._is_retryable(result, record) else ""

    def _is_retryable(self, result: ToolResult, record: CallRecord) -> bool:
        """Whether a failed call is to be made again as it is."""
        return is_transient(result.failure, result.content) and record.repeat_count < self._guards.max_attempts

    def _format_known_correction(self, name: str, arguments: dict[str, Any]) -> str:
        """What put a failure like this one right before."""
        known = self._find_known_failure(name, arguments)
        given, right = format_correction(known.correction) if known is not None else ("", "")
        return prompts.suggest_known_correction(given, right, self._language) if right else ""

    def _find_known_failure(self, name: str, arguments: dict[str, Any]) -> Failure | None:
        """The failure of before that is this one, or most like it, with what put it right."""
        if self._failure_memory is None or not self._patterns.failures:
            return None
        tool_id = self._tool_facts.get_tool_id(name)
        known = self._patterns.find_exact(tool_id, arguments)
        return known if known is not None and known.correction else self._patterns.find_similar(tool_id, arguments)

    def _store_failure(
        self, failure_memory: ScopedMemory, name: str, arguments: dict[str, Any], result: ToolResult
    ) -> None:
        tool = self._library.find_tool(name)
        if tool is None or result.failure is None:
            return
        once = (get_call_key(name, arguments), result.failure)
        if once in self._recorded_failures:
            return
        self._recorded_failures.add(once)
        owner, action = self._tool_facts.get_owner(tool.tool_id)
        failure_id = failure_memory.record_failure(owner, action, result.failure, arguments, result.content)
        if failure_id:
            waiting = self._open_failures.setdefault(name, [])
            waiting.append(_OpenFailure(arguments, result.content, failure_id, result.failure == "timeout"))
            del waiting[:-_MAX_OPEN_FAILURES]

    def _store_corrections(self, failure_memory: ScopedMemory, name: str, arguments: dict[str, Any]) -> None:
        """What a call that worked says of those that failed."""
        for one in self._open_failures.pop(name, ()):
            right = find_correction(one.arguments, arguments, one.error_text, allow_larger_numbers=one.is_timeout)
            if right is not None:
                failure_memory.memory.correct(one.failure_id, right)
        if self._patterns.failures:
            known = self._patterns.find_exact(self._tool_facts.get_tool_id(name), arguments)
            if known is not None:
                failure_memory.memory.forget(known.failure_id)

    # When all have

    async def finish_turn(self) -> RecoveryDecision | None:
        """What is to be done now; None where all goes on as it did."""
        last = [step for step in self._context.steps[-len(self._turn_calls) :] if step.turn == self._turn]
        failed = [step for step in last if step.result.failure is not None]
        self._stale_turns = 0 if self._has_new_result else self._stale_turns + 1
        self._last_turn_failed = bool(failed)
        whole = len(failed) == len(last)
        if not whole:
            self.advice = ""
        if not failed:
            self._failed_turns = self._blocked_turns = 0
            return None
        self._failed_turns = self._failed_turns + 1 if whole else 0
        refused = whole and all(step.call.id in self._blocked_ids for step in failed)
        self._blocked_turns = self._blocked_turns + 1 if refused else 0
        if not self._guards.replanning:
            return None
        step = failed[-1]
        decision = choose_next_action(await self._get_failure_state(step), self._guards, self._language)
        if decision.action == "execute":
            return None
        self.advice = decision.advice
        self._expects_plan = self._expects_plan or decision.action == "replan"
        return decision

    async def _get_failure_state(self, step: Step) -> FailureState:
        name = step.call.name
        failures = self._failures_by_tool.get(name, 0)
        others = await self._find_alternative_tools(name) if failures > 1 else ()
        away = step.result.failure in TRANSIENT_FAILURES
        return FailureState(self._blocked_turns, self._failed_turns, name, failures, away, others)

    async def _find_alternative_tools(self, name: str) -> tuple[str, ...]:
        """Tools that may do instead of one, ranked by how well they fit and how well they have done."""
        tool = self._library.find_tool(name)
        if tool is None:
            return ()
        owner, _ = self._tool_facts.get_owner(tool.tool_id)
        failed = {
            self._tool_facts.get_owner(other.tool_id)[0]
            for one in self._failures_by_tool
            if (other := self._library.find_tool(one))
        }
        need = f"{tool.definition.description} {self._context.task[:500]}"
        found = self._library.find_alternatives(owner, need, failed, limit=8)
        ids = {one.name: f"{one.tool_id}.{one.action}" if one.action else one.tool_id for one in found}
        kept: Mapping[str, ExecutionStats] = {}
        if found and self._failure_memory is not None:
            kept = await self._failure_memory.memory.get_call_statistics(tuple(ids.values()))
        ranked = sorted(
            found, key=lambda one: -one.score * self._estimate_success_rate(one.tool_id, kept.get(ids[one.name]))
        )
        return tuple(one.name for one in ranked[:3])

    def _estimate_success_rate(self, tool_id: str, stored_stats: ExecutionStats | None) -> float:
        """The part of a tool's calls that worked, in this process or in the store, whichever knows of more of them.

        Nobody has a clean record before the first one.
        """
        health = self._library.get_health(tool_id)
        failures = sum(health.failures.values())
        calls = max(health.calls, failures)
        if stored_stats is not None and stored_stats.calls > calls:
            calls, failures = stored_stats.calls, stored_stats.failures
        return (calls - failures + 1) / (calls + 2)


def _enlarge_number(value: Any, too_small: Any, known_sufficient: Any, maximum: Any) -> float | int | None:
    """A number that is larger than what was too small, and no larger than it may be; None where it stays."""
    if not isinstance(value, int | float) or not isinstance(maximum, int | float) or isinstance(value, bool):
        return None
    wanted = value
    if isinstance(too_small, int | float) and value <= too_small:
        wanted = too_small * 2
    elif isinstance(known_sufficient, int | float) and value < known_sufficient:
        wanted = known_sufficient
    wanted = min(wanted, maximum)
    return wanted if wanted > value else None


def _is_run_limited(result: ToolResult, language: Language) -> bool:
    """Whether a call was not made for the run's own reasons, which say nothing of the tool."""
    return result.failure == "cancelled" or result.content == sentences.call_limit_message(language)


def _append_note(result: ToolResult, note: str) -> ToolResult:
    return replace(result, content=f"{result.content}\n\n{note}")
