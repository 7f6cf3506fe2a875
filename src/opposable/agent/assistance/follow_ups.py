"""Follow-ups: requests to continue when a model would stop too early."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opposable.agent.assistance import prompts
from opposable.agent.assistance.argument_suggestions import find_substituted_value, parse_listed_values
from opposable.agent.assistance.call_records import is_pending, is_transient
from opposable.agent.assistance.grounding import is_in_any_text, is_name, is_ungrounded, is_user_value, shares_word
from opposable.agent.assistance.pagination import (
    count_requested_items,
    find_next_value,
    get_next_page_arguments,
    is_about_whole_list,
)
from opposable.agent.assistance.tool_facts import ToolFacts
from opposable.agent.failure_fingerprints import find_wrong_fields, format_arguments
from opposable.domain.language import Language
from opposable.domain.tools import FailureKind, ToolCall, ToolResult
from opposable.models.base import ForcedTool, ToolChoice

MAX_FAILURE_FOLLOW_UPS = 3
"""Follow-ups after failed calls in one run."""

MAX_GUESS_FOLLOW_UPS = 1
"""Follow-ups after failed calls without a known correction."""

MAX_POLLING_FOLLOW_UPS = 12
"""Follow-ups that ask to poll again."""

MAX_CONTINUATION_FOLLOW_UPS = 24
"""Follow-ups that ask for the next page or the next call of a chain."""


MAX_CONFIRMATION_FOLLOW_UPS = 3
"""Follow-ups about a call that the model was not sure of."""

_EMPTY_RESULTS = ("", "[]", "{}", "null", '""')
"""Results without content."""


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A text for the model and the tool choice that should follow."""

    text: str
    tool_choice: ToolChoice


@dataclass(frozen=True, slots=True)
class _FailedCall:
    """A failed call of the last turn, with what is known about its correction."""

    call: ForcedTool
    error_text: str
    suggested_arguments: Mapping[str, Any]
    is_transient: bool
    is_refused: bool
    is_repeated: bool


class FollowUps:
    """The open ends of a run, and how many follow-ups are left for them."""

    def __init__(self, tool_facts: ToolFacts, request: str) -> None:
        self._tool_facts = tool_facts
        self._request = request
        self._failed_call: _FailedCall | None = None
        self._guessed_call: _FailedCall | None = None
        self._not_ready_calls: dict[str, ForcedTool] = {}
        self._polling_call: ForcedTool | None = None
        self._deferred_calls: dict[str, ForcedTool] = {}
        self._prerequisite_call: ForcedTool | None = None
        self._last_success: tuple[ForcedTool, ToolResult] | None = None
        self._withheld_call: ForcedTool | None = None
        self._uncertain_tool = ""  # the call of which the model was not sure, once it was led to know more
        self._confirmations_left = MAX_CONFIRMATION_FOLLOW_UPS
        self._has_blocked_for_page = False
        self._next_page_call: ForcedTool | None = (
            None  # the next page of the last list, where the request is about all of it
        )
        self._requested_values: set[str] = set()  # what was asked for as the next of a chain
        self._failures_left = MAX_FAILURE_FOLLOW_UPS
        self._guesses_left = MAX_GUESS_FOLLOW_UPS
        self._pollings_left = MAX_POLLING_FOLLOW_UPS
        self._continuations_left = MAX_CONTINUATION_FOLLOW_UPS

    def begin_turn(self) -> None:
        """Forget the open ends of the last turn."""
        self._failed_call = self._last_success = self._prerequisite_call = None

    def defer(self, call: ForcedTool, prerequisite: ForcedTool | None = None) -> None:
        """Defer a call until others have returned what it needs."""
        self._deferred_calls[call.name] = call
        self._prerequisite_call = prerequisite

    def note_withheld_calls(self, calls: Sequence[ToolCall]) -> None:
        """Note calls that the model wrote and that were withheld as too uncertain."""
        self._withheld_call = ForcedTool(calls[0].name, calls[0].arguments) if calls else None

    def record_result(
        self,
        result: ToolResult,
        call: ForcedTool,
        suggested_arguments: Mapping[str, Any],
        *,
        is_polling: bool,
        previous_failure: FailureKind | None = None,
    ) -> None:
        """Record a result.

        Args:
            result: The result.
            call: The call.
            suggested_arguments: Arguments that may be right.
            is_polling: Whether the tool is polled on purpose.
            previous_failure: The failure for which the call was blocked, if it was.
        """
        self._deferred_calls.pop(call.name, None)
        if result.failure is None:
            self._not_ready_calls.pop(call.name, None)
            self._last_success = (call, result)
            if self._tool_facts.can_call_unprompted(call.name):
                self._next_page_call = self._get_next_page_call(call, result)
            if is_polling:
                self._polling_call = call if is_pending(result.content) else None
            return
        if result.failure == "denied":
            return
        again = is_transient(result.failure, result.content)
        if result.failure == "timeout" and not self._tool_facts.is_read_only(call.name):
            again = False  # the call may have taken effect
        if is_pending(result.content) and not again:
            self._not_ready_calls[call.name] = call
        if self._failed_call is None or suggested_arguments or not self._failed_call.suggested_arguments:
            refused = (previous_failure or result.failure) == "refused"
            self._failed_call = _FailedCall(
                call, result.content, suggested_arguments, again, refused, previous_failure is not None
            )

    def find_substituted_value(self, name: str, arguments: dict[str, Any], known_texts: Iterable[str]) -> str:
        """Return the value that a call uses instead of the one the user named.

        "" if it does not. A similar value from `known_texts` does not count.
        """
        guess = self._guessed_call
        if guess is None or guess.call.name != name:
            return ""
        texts = tuple(known_texts)
        for field, value in guess.call.arguments.items():
            new = arguments.get(field)
            other = find_substituted_value({field: value}, arguments, guess.error_text)
            if other and not self._is_plausible_replacement(value, other):
                return other
            if is_name(value) and is_name(new) and new != value and is_user_value(value, self._request):
                is_related = shares_word(str(new), f"{self._request} {value}") and is_in_any_text(str(new), texts)
                if not is_related:
                    return str(new)
        return ""

    def _is_plausible_replacement(self, value: Any, replacement: str) -> bool:
        """Return whether a value of the model may be replaced by another one."""
        return not is_user_value(value, self._request) and shares_word(replacement, f"{self._request} {value}")

    def after_turn(self, language: Language) -> FollowUp | None:
        """Return the follow-up at the end of a turn, if any."""
        if self._prerequisite_call is not None:
            first, self._prerequisite_call = self._prerequisite_call, None
            return FollowUp(prompts.ask_to_look_up(first.name, language), first)
        if self._failed_call is not None:
            return self._correct_repeated_call(self._failed_call, language)
        if self._last_success is None and self._next_page_call is None:
            return None
        if self._deferred_calls:
            return self._read_next_page(language) or self._make_deferred_call(language)
        return self._continue_chain(language) if self._requested_values else None

    def before_answer(self, language: Language) -> FollowUp | None:
        """Return the follow-up to send instead of accepting the answer, if any."""
        wrong, self._failed_call = self._failed_call, None
        if self._not_ready_calls and self._pollings_left:
            look = self._polling_call
            if look is None and wrong is not None and wrong.call.name in self._not_ready_calls:
                look = self._tool_facts.get_polling_call(wrong.call.arguments)
            if look is not None:
                self._pollings_left -= 1
                return FollowUp(prompts.ask_to_poll_again(look.name, language), look)
        if wrong is not None:
            return self._correct_failed_call(wrong, language)
        if self._not_ready_calls and self._failures_left:
            self._failures_left -= 1
            name, call = self._not_ready_calls.popitem()
            return FollowUp(prompts.ask_to_correct_call(name, "", language), call)
        return (
            self.after_turn(language)
            or self._read_next_page(language)
            or self._continue_chain(language)
            or self._confirm_uncertain_call(language)
        )

    def _correct_repeated_call(self, failed_call: _FailedCall, language: Language) -> FollowUp | None:
        """Return a follow-up if a failed call was repeated and its correction is known."""
        if not (failed_call.is_repeated and failed_call.suggested_arguments):
            return None
        self._failed_call = None
        return self._correct_failed_call(failed_call, language)

    def _correct_failed_call(self, failed_call: _FailedCall, language: Language) -> FollowUp | None:
        if not self._failures_left:
            return None
        name = failed_call.call.name
        expected: ToolChoice | None = None
        if failed_call.suggested_arguments:
            self._guessed_call = None
            taken = self._tool_facts.get_parameters(name).get("properties") or failed_call.call.arguments
            remaining_arguments = {
                field: value for field, value in failed_call.call.arguments.items() if field in taken
            }
            expected = ForcedTool(name, {**remaining_arguments, **failed_call.suggested_arguments})
        elif failed_call.is_transient:
            expected = failed_call.call
        elif other := self._tool_facts.find_equivalent_call(failed_call.call):
            self._failures_left -= 1
            return FollowUp(prompts.ask_to_try_other_tool(name, other.name, language), other)
        elif self._guesses_left:
            self._guesses_left -= 1
            fields = (
                ()
                if failed_call.is_refused
                else find_wrong_fields(dict(failed_call.call.arguments), failed_call.error_text)
            )
            found = self._look_up_fields(failed_call.call, fields, language)
            if found is not None:
                own = [field for field in fields if is_user_value(failed_call.call.arguments.get(field), self._request)]
                self._guessed_call = failed_call if own else None
                return found
            self._guessed_call = failed_call
            expected = self._retry_with_other_value(failed_call, fields)
        if expected is None:
            return None
        self._failures_left -= 1
        return FollowUp(
            prompts.ask_to_correct_call(name, format_arguments(failed_call.suggested_arguments.items()), language),
            expected,
        )

    def _look_up_fields(self, call: ForcedTool, fields: tuple[str, ...], language: Language) -> FollowUp | None:
        """Return a follow-up for a call that may return missing values."""
        for field in fields:
            sources = self._tool_facts.find_provider_calls(call, field, allow_missing_arguments=True)
            value = call.arguments.get(field)
            if sources and (is_name(value) or is_ungrounded(value, field, self._request)):
                known = {name: value for name, value in call.arguments.items() if name not in fields}
                self._deferred_calls = {call.name: ForcedTool(call.name, known), **self._deferred_calls}
                return FollowUp(prompts.ask_to_look_up(sources[0].name, language), sources[0])
        return None

    def _retry_with_other_value(self, failed_call: _FailedCall, fields: tuple[str, ...]) -> ToolChoice:
        """Return the tool choice that repeats a call with another value."""
        call = failed_call.call
        given = list(call.arguments)
        for field in fields[:1]:
            value = call.arguments.get(field)
            if isinstance(value, str) and not any(character.isdigit() for character in value):
                earlier_arguments = {name: call.arguments[name] for name in given[: given.index(field)]}
                allowed_values = tuple(
                    other
                    for other in parse_listed_values(failed_call.error_text)
                    if self._is_plausible_replacement(value, other)
                )
                return ForcedTool(call.name, earlier_arguments, {field: value}, allowed_values)
        return "required"

    def _make_deferred_call(self, language: Language) -> FollowUp | None:
        """Return a follow-up for a deferred call whose prerequisites are there."""
        if self._last_success is not None and self._last_success[1].content.strip() in _EMPTY_RESULTS:
            self._deferred_calls.clear()
        if not self._deferred_calls:
            return None
        name = next(iter(self._deferred_calls))
        call = self._deferred_calls.pop(name)
        return FollowUp(prompts.ask_for_deferred_call(name, format_arguments(call.arguments.items()), language), call)

    def take_unread_page(self, name: str) -> ForcedTool | None:
        """Return the next page to read before a call that changes something, once."""
        if self._next_page_call is None or self._has_blocked_for_page or self._tool_facts.is_read_only(name):
            return None
        self._has_blocked_for_page = True
        self._deferred_calls[name] = ForcedTool(name)
        return self._next_page_call

    def _get_next_page_call(self, call: ForcedTool, result: ToolResult) -> ForcedTool | None:
        if not isinstance(result.data, dict) or not is_about_whole_list(self._request):
            return None
        more = get_next_page_arguments(call.arguments, self._tool_facts.get_parameters(call.name), result.data)
        return None if more is None else ForcedTool(call.name, more)

    def _read_next_page(self, language: Language) -> FollowUp | None:
        """Return a follow-up for the next page if the request covers the whole list."""
        more, self._next_page_call = self._next_page_call, None
        if more is None or not self._continuations_left:
            return None
        self._continuations_left -= 1
        return FollowUp(prompts.ask_for_next_page(more.name, format_arguments(more.arguments.items()), language), more)

    def _continue_chain(self, language: Language) -> FollowUp | None:
        """Return a follow-up for the next call of a chain that the last result names."""
        if self._last_success is None or not self._continuations_left:
            return None
        call, result = self._last_success
        found = find_next_value(call.arguments, result.content)
        most = (
            MAX_CONTINUATION_FOLLOW_UPS if is_about_whole_list(self._request) else count_requested_items(self._request)
        )
        if (
            not found
            or not self._requested_values.isdisjoint(found.values())
            or self._tool_facts.count_successes(call.name) >= most
        ):
            return None
        self._continuations_left -= 1
        self._requested_values.update(found.values())
        return FollowUp(prompts.ask_for_next_call(call.name, format_arguments(found.items()), language), "required")

    def _confirm_uncertain_call(self, language: Language) -> FollowUp | None:
        """Return a follow-up about a call that the model was not sure of."""
        held = self._withheld_call
        name = self._uncertain_tool or (held.name if held else "")
        if not name or not self._confirmations_left or self._tool_facts.was_called(name):
            return None
        look = None
        if self._confirmations_left == MAX_CONFIRMATION_FOLLOW_UPS and held is not None:
            if found := self._ground_withheld_call(held, language):
                self._confirmations_left -= 1
                return found
            look = self._tool_facts.find_overview_call(self._request)
        if look is None and not self._uncertain_tool:
            return None
        self._confirmations_left -= 1
        self._uncertain_tool = name
        if look is not None:
            return FollowUp(prompts.ask_to_look_up(look.name, language), look)
        if self._confirmations_left:
            return FollowUp(prompts.ask_to_confirm_call(name, language), "auto")
        return (
            FollowUp(prompts.ask_for_deferred_call(name, "", language), ForcedTool(name))
            if held and held.name == name
            else None
        )

    def _ground_withheld_call(self, withheld_call: ForcedTool, language: Language) -> FollowUp | None:
        """Return a follow-up that looks up the ungrounded values of a withheld call."""
        unknown = tuple(
            field for field, value in withheld_call.arguments.items() if is_ungrounded(value, field, self._request)
        )
        if unknown:
            return self._look_up_fields(withheld_call, unknown, language)
        return (
            FollowUp(prompts.ask_to_look_up(withheld_call.name, language), withheld_call)
            if self._tool_facts.can_call_unprompted(withheld_call.name)
            else None
        )
