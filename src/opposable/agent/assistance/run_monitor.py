"""The monitor of one run: it records calls and applies the guards."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

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
from opposable.agent.assistance.hints import format_hints
from opposable.agent.assistance.recovery_policy import FailureState, RecoveryDecision, choose_next_action
from opposable.agent.assistance.tool_facts import ToolFacts
from opposable.agent.failure_fingerprints import format_arguments, format_correction
from opposable.agent.failure_memory import NO_PATTERNS, FailurePatterns, ScopedMemory
from opposable.agent.failure_recorder import FailureRecorder
from opposable.agent.policy import Step
from opposable.agent.tool_execution import ResolvedCall
from opposable.domain.language import Language, split_words
from opposable.domain.messages import Message
from opposable.domain.records import ExecutionStats
from opposable.domain.tools import ToolCall, ToolDefinition, ToolResult
from opposable.models.base import ForcedTool
from opposable.parsers import escape_special_tokens
from opposable.tools import failure_messages as sentences
from opposable.tools.library import ToolLibrary

ADJUSTABLE_METADATA_KEY = "adjustable"
"""In the metadata of a spec: arguments to double after a time-out, with their maximum."""

MAX_REQUEST_CHARACTERS_MATCHED = 2_000
"""Characters of a request that are compared with earlier failures."""


class RunMonitor:
    """The record of a run and its guards.

    Args:
        patterns: The failures known when the run started.

    Attributes:
        advice: What the model should do next.
        is_silent: Whether the status note is switched off.
        follow_ups: The follow-ups of the run.
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
        self._recorder = (
            None if self._failure_memory is None else FailureRecorder(library, self._failure_memory, patterns)
        )
        self._timed_out_arguments: dict[str, dict[str, Any]] = {}  # arguments that were too small, by name
        self._annotated_definitions: tuple[Sequence[ToolDefinition], tuple[ToolDefinition, ...]] = ((), ())
        self._turn = 0
        self._expects_plan = True  # what the model says with its next calls is its plan
        self._change_count = self._stale_turns = self._failed_turns = self._blocked_turns = 0
        self._has_new_result = self._has_failed = self._last_turn_failed = False
        self.advice = ""
        self.is_silent = False
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
        """Return the definitions with warnings about earlier failures."""
        if self._failure_memory is None or not self._patterns.warnings:
            return definitions
        if self._annotated_definitions[0] is not definitions:
            annotated = self._failure_memory.memory.add_warnings(
                definitions, self._patterns, self._library, self._language
            )
            pairs = zip(definitions, annotated, strict=True)
            if self._hints:  # hints replace the warning: small models repeat failing values
                annotated = tuple(
                    original if original.name in self._hints else annotated_definition
                    for original, annotated_definition in pairs
                )
            self._annotated_definitions = (definitions, annotated)
        return self._annotated_definitions[1]

    def with_status_note(self, messages: list[Message], is_trimmed: bool) -> list[Message]:
        """Return the messages with the status note in the last one.

        The history stays without it.
        """
        note = self.format_status_note(is_trimmed) if self._turn else "\n".join(self._hints.values())
        if not note:
            return messages
        last = messages[-1]
        return [*messages[:-1], replace(last, content=f"{last.content}\n\n{note}")]

    def _collect_hints(self, task: str) -> dict[str, str]:
        """Return the hints about corrections that the request calls for, by tool name."""
        found: dict[str, str] = {}
        spoken = split_words(task[:MAX_REQUEST_CHARACTERS_MATCHED]) if self._patterns.failures else []
        for tool_id, known in self._patterns.failures.items():
            tool = self._library.find_tool(tool_id)
            if tool is not None and tool.tool_id == tool_id:
                name = tool.definition.name
                found[name] = format_hints(known, name, spoken, self._language)
        return {name: hints for name, hints in found.items() if hints}

    def format_status_note(self, is_trimmed: bool) -> str:
        """Return the status note; "" if there is nothing to say."""
        if self.is_silent or not (self._guards.status_notes or self.advice):
            return ""
        if not (self.advice or self._last_turn_failed or (is_trimmed and self._context.steps)):
            return ""
        if not self._guards.status_notes:
            return self.advice
        return format_status_note(
            self._context, self._language, self._guards.status_note_tokens, advice=self.advice, include_all=is_trimmed
        )

    def begin_turn(self, reply_text: str, deferred_calls: Sequence[ToolCall] = ()) -> None:
        """Record a reply with calls."""
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

    def screen_calls(self, resolved_calls: Iterable[ResolvedCall]) -> tuple[ResolvedCall, ...]:
        """Return the calls of a reply. Blocked ones have a failure, time-outs may be enlarged."""
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
        block_reason = self._find_block_reason(resolved_call, key, arguments)
        if not block_reason:
            return resolved_call
        self._blocked_ids.add(call.id)
        return replace(resolved_call, failure=ToolResult(call.id, call.name, block_reason, "refused"))

    def _get_call_key(self, resolved_call: ResolvedCall) -> tuple[CallKey, dict[str, Any]]:
        """Return the identity of a call and its normalized arguments. A call that was cut off never is a whole one."""
        call = resolved_call.call
        failure = resolved_call.failure
        if failure is not None and (failure.failure == "unknown_tool" or not resolved_call.arguments):
            arguments_text = "" if failure.failure == "unknown_tool" else call.arguments_json
            return (call.name, arguments_text.encode()), {}
        arguments = normalize_arguments(resolved_call.arguments, self._tool_facts.get_parameters(call.name))
        name, text = get_call_key(call.name, arguments)
        return (name, b"truncated " + text if call.truncated else text), arguments

    def _find_block_reason(self, resolved_call: ResolvedCall, key: CallKey, arguments: dict[str, Any]) -> str:
        name = resolved_call.call.name
        if self._guards.block_repeats:
            record = self._call_records.get(key)
            if should_block(record, self._change_count, self._stale_turns, self._guards) and record is not None:
                if record.failure is not None:
                    return prompts.explain_blocked_failure(name, record.repeat_count, record.content, self._language)
                if not self._tool_facts.is_polling(name):
                    return prompts.explain_blocked_repeat(name, record.repeat_count, record.content, self._language)
        if resolved_call.failure is not None:
            return ""
        if self._guards.block_repeats and self._is_only_quoted(name):
            self._deferred_ids.add(resolved_call.call.id)
            return prompts.explain_quoted_call(name, self._language)
        other_value = self.follow_ups.find_substituted_value(
            name, resolved_call.arguments, chain((self._context.task,), self._context.iter_tool_outputs())
        )
        if other_value:
            self._deferred_ids.add(resolved_call.call.id)
            return prompts.explain_substituted_value(name, other_value, self._language)
        block_reason = self._find_missing_prerequisite(name, resolved_call.arguments) if self._guards.follow_ups else ""
        if block_reason:
            self._deferred_ids.add(resolved_call.call.id)
            return block_reason
        if self._failure_memory is None or not self._patterns.failures:
            return ""
        failure = self._patterns.find_exact(self._tool_facts.get_tool_id(name), arguments)
        if failure is None or not self._failure_memory.is_known_to_fail(failure):
            return ""
        worked_arguments = format_correction(failure.correction)[1]
        message = escape_special_tokens(failure.message.partition("\n")[2])
        return prompts.explain_known_failure(name, failure.count, worked_arguments, message, self._language)

    def _is_only_quoted(self, name: str) -> bool:
        """Return whether only the output of a tool names this changing tool."""
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
        """Return why a call that changes something must wait for a read.

        "" if it need not.
        """
        next_page = self.follow_ups.take_unread_page(name)
        if next_page is not None:
            arguments_text = format_arguments(next_page.arguments.items())
            return prompts.explain_unread_pages(name, next_page.name, arguments_text, self._language)
        return self._find_ungrounded_number(name, arguments)

    def _find_ungrounded_number(self, name: str, arguments: dict[str, Any]) -> str:
        """Return why a call with an ungrounded number must wait; "" if it need not.

        A call waits once for each such argument, because the number can be computed.
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
        """Return the call with larger arguments after a time-out."""
        name = resolved_call.call.name
        too_small = self._timed_out_arguments.get(name)
        known_sufficient: dict[str, Any] = {}
        if too_small is None:
            known = [
                one
                for one in self._patterns.failures.get(self._tool_facts.get_tool_id(name), ())
                if one.kind == "timeout"
            ]
            known_sufficient = next((one.correction["right"] for one in known if one.correction), {})
            if not known_sufficient:
                return resolved_call
        spec = self._tool_facts.get_spec(name)
        maxima = spec.metadata.get(ADJUSTABLE_METADATA_KEY) if spec is not None else None
        if not isinstance(maxima, dict):
            return resolved_call
        properties = self._tool_facts.get_parameters(name).get("properties", {})
        enlarged, changes = dict(resolved_call.arguments), []
        for field, largest in maxima.items():
            own = about.get("default") if isinstance(about := properties.get(field), dict) else None
            current = enlarged.get(field, own)
            value = _enlarge_number(
                current, None if too_small is None else too_small.get(field, own), known_sufficient.get(field), largest
            )
            if value is not None:
                enlarged[field] = value
                changes.append(f"{field} {current} → {value}: it took longer before")
        if not changes:
            return resolved_call
        call = replace(
            resolved_call.call, arguments=enlarged, raw=None, repairs=(*resolved_call.call.repairs, *changes)
        )
        return ResolvedCall(call, enlarged)

    # As they end

    def record_result(self, call: ToolCall, result: ToolResult) -> ToolResult:
        """Record a result and return it, with a note for the model if needed."""
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
        if previous is None or previous.content != result.content or previous.failure is not None:
            self._has_new_result = True
            if not self._has_failed or not self._tool_facts.is_read_only(call.name):
                self._change_count += 1
        if self._failures_by_tool:
            self._failures_by_tool.pop(call.name, None)
        if self._recorder is not None:
            self._recorder.record_success(call.name, arguments)
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
        notes = [self._format_known_correction(name, arguments)]
        if self._guards.status_notes and not notes[0]:
            notes.append(self._format_suggestion(result, record, suggested_arguments))
        if self._recorder is not None:
            self._recorder.record_failure(call, arguments, result)
        if (
            self._guards.block_repeats
            and should_warn(record, self._stale_turns, self._guards)
            and not self._is_retryable(result, record)
        ):
            notes.append(prompts.note_repeated_failure(name, record.repeat_count, self._language))
        missing = self._tool_facts.list_missing_dependencies(name)
        if missing:
            notes.append(prompts.note_missing_dependencies(name, missing, self._language))
        note = " ".join(filter(None, notes))
        return _append_note(result, note) if note else result

    def _suggest_arguments(self, name: str, arguments: dict[str, Any], result: ToolResult) -> dict[str, Any]:
        """Return arguments that may be right."""
        known = None if self._recorder is None else self._recorder.find_known(name, arguments)
        if known is not None and known.correction and format_correction(known.correction)[1]:
            return dict(known.correction["right"])
        return suggest_arguments(arguments, result.content)

    def _format_suggestion(self, result: ToolResult, record: CallRecord, suggested_arguments: dict[str, Any]) -> str:
        """Return the note that suggests a corrected or repeated call."""
        if suggested_arguments:
            return prompts.suggest_correction(format_arguments(suggested_arguments.items()), self._language)
        return prompts.suggest_retry(self._language) if self._is_retryable(result, record) else ""

    def _is_retryable(self, result: ToolResult, record: CallRecord) -> bool:
        """Return whether to repeat a failed call as it is."""
        if result.failure == "timeout" and not self._tool_facts.is_read_only(result.name):
            return False  # the call may have taken effect
        return is_transient(result.failure, result.content) and record.repeat_count < self._guards.max_attempts

    def _format_known_correction(self, name: str, arguments: dict[str, Any]) -> str:
        """Return the note about the correction of a similar failure."""
        given, right = ("", "") if self._recorder is None else self._recorder.find_correction(name, arguments)
        return prompts.suggest_known_correction(given, right, self._language) if right else ""

    # When all have

    async def finish_turn(self) -> RecoveryDecision | None:
        """Return the decision at the end of a turn; None to continue."""
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
        """Return alternatives to a tool, ranked by relevance and success rate."""
        tool = self._library.find_tool(name)
        if tool is None:
            return ()
        owner, _ = self._tool_facts.get_owner(tool.tool_id)
        failed = {
            self._tool_facts.get_owner(other.tool_id)[0]
            for match in self._failures_by_tool
            if (other := self._library.find_tool(match))
        }
        need = f"{tool.definition.description} {self._context.task[:500]}"
        matches = self._library.find_alternatives(owner, need, failed, limit=8)
        ids = {match.name: f"{match.tool_id}.{match.action}" if match.action else match.tool_id for match in matches}
        stats_by_tool: Mapping[str, ExecutionStats] = {}
        if matches and self._failure_memory is not None:
            stats_by_tool = await self._failure_memory.memory.get_call_statistics(tuple(ids.values()))
        ranked = sorted(
            matches,
            key=lambda match: (
                -match.score * self._estimate_success_rate(match.tool_id, stats_by_tool.get(ids[match.name]))
            ),
        )
        return tuple(match.name for match in ranked[:3])

    def _estimate_success_rate(self, tool_id: str, stored_stats: ExecutionStats | None) -> float:
        """Return the success rate of a tool, smoothed so that a new tool has 0.5."""
        health = self._library.get_health(tool_id)
        failures = sum(health.failures.values())
        calls = max(health.calls, failures)
        if stored_stats is not None and stored_stats.calls > calls:
            calls, failures = stored_stats.calls, stored_stats.failures
        return (calls - failures + 1) / (calls + 2)


def _enlarge_number(value: Any, too_small: Any, known_sufficient: Any, maximum: Any) -> float | int | None:
    """Return a number larger than the failed one and at most `maximum`.

    None to keep it.
    """
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
    """Return whether the run, not the tool, prevented a call."""
    return result.failure == "cancelled" or result.content == sentences.call_limit_message(language)


def _append_note(result: ToolResult, note: str) -> ToolResult:
    return replace(result, content=f"{result.content}\n\n{note}")
