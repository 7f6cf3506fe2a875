"""What a run would leave undone if its model's answer were taken: calls that failed, that wait, that were not ready."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from opposable.agent import prompts
from opposable.agent.argument_suggestions import listed, swapped
from opposable.agent.failure_fingerprints import named, wrong_fields
from opposable.agent.grounding import is_akin, is_made_up, is_name, is_spoken, is_wanted
from opposable.agent.loop_detection import may_pass, waits
from opposable.agent.pagination import next_named, next_page, wanted, wants_all
from opposable.agent.pinyin import spells
from opposable.agent.tool_facts import Ways
from opposable.domain.language import Language
from opposable.domain.tools import FailureKind, ToolCall, ToolResult
from opposable.models.base import Named, ToolChoice

FAILURES = 3
"""How often a run is asked on after a failed call."""

GUESSES = 1
"""How often of these where no call is known that would put it right."""

LOOKS = 12
"""How often a run is asked to look once more whether what a failed call needs is ready."""

STEPS = 24
"""How often a run is asked for the next page, or for the next of what goes on."""


DOUBTS = 3
"""How often a run is asked on for a call of which its model was not sure: a look, a question, the call."""

_EMPTY = ("", "[]", "{}", "null", '""')
"""Results that bring nothing."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What the model is asked in place of taking its answer, and the call that would follow it, where one is known."""

    text: str
    expected: ToolChoice


@dataclass(frozen=True, slots=True)
class _Wrong:
    """A call of the last turn that failed.

    `meant` are arguments it may have meant, `again` that it may work as it is, `refused` that it could not be done
    rather than that it was put wrongly, `repeated` that it was not made since it had failed before.
    """

    call: Named
    said: str
    meant: Mapping[str, Any]
    again: bool
    refused: bool
    repeated: bool


class Unfinished:
    """The open ends of a run, and how often it is still asked on for them: a small model takes an error for the end."""

    def __init__(self, ways: Ways, request: str) -> None:
        self._ways = ways
        self._request = request
        self._wrong: _Wrong | None = None
        self._guess: _Wrong | None = None
        self._early: dict[str, Named] = {}
        self._pending: Named | None = None
        self._waiting: dict[str, Named] = {}
        self._first: Named | None = None
        self._last: tuple[Named, ToolResult] | None = None
        self._held: Named | None = None
        self._doubted = ""  # the call of which the model was not sure, once it was led to know more
        self._doubts = DOUBTS
        self._waited = False
        self._unread: Named | None = None  # the next page of the last list, where the request is about all of it
        self._named: set[str] = set()  # what was asked for as the next of a chain
        self._failures = FAILURES
        self._guesses = GUESSES
        self._looks = LOOKS
        self._steps = STEPS

    def turn_begins(self) -> None:
        """New calls are made: what the last ones left is theirs to mend."""
        self._wrong = self._last = self._first = None

    def wait(self, call: Named, first: Named | None = None) -> None:
        """A call waits for what others bring, as `first` may, with the arguments that are known."""
        self._waiting[call.name] = call
        self._first = first

    def hold(self, calls: Sequence[ToolCall]) -> None:
        """Calls that the model wrote and that were not taken for meant: it may not know enough for them yet."""
        self._held = Named(calls[0].name, orjson.loads(calls[0].arguments)) if calls else None

    def ended(
        self,
        result: ToolResult,
        call: Named,
        meant: Mapping[str, Any],
        *,
        polls: bool,
        before: FailureKind | None = None,
    ) -> None:
        """Take note of a call's end.

        `meant` are arguments it may have meant, `polls` says that its tool is one that waits; `before` is how it failed
        before where that is why it was not made.
        """
        self._waiting.pop(call.name, None)
        if result.failure is None:
            self._early.pop(call.name, None)
            self._last = (call, result)
            if self._ways.may_be_asked(call.name):
                self._unread = self._next_page(call, result)
            if polls:
                self._pending = call if waits(result.content) else None
            return
        if result.failure == "denied":
            return
        again = may_pass(result.failure, result.content)
        if waits(result.content) and not again:
            self._early[call.name] = call
        if self._wrong is None or meant or not self._wrong.meant:
            refused = (before or result.failure) == "refused"
            self._wrong = _Wrong(call, result.content, meant, again, refused, before is not None)

    def swaps(self, name: str, arguments: dict[str, Any], heard: Iterable[str]) -> str:
        """What a call that was asked for takes in place of what the user wanted, "" for nothing.

        That is another one of those that the failure lists, or another name, unless it is akin to what was wanted and
        stands in one of the texts `heard`: who asks for Chen does not mean somebody else.
        """
        guess = self._guess
        if guess is None or guess.call.name != name:
            return ""
        texts = tuple(heard)
        for field, value in guess.call.arguments.items():
            new = arguments.get(field)
            other = swapped({field: value}, arguments, guess.said)
            if other and not self._may_be(value, other):
                return other
            if is_name(value) and is_name(new) and new != value and is_wanted(value, self._request):
                akin = is_akin(str(new), f"{self._request} {value}") and is_spoken(str(new), texts)
                if not akin and not spells(str(new), str(value)):
                    return str(new)
        return ""

    def _may_be(self, value: Any, other: str) -> bool:
        """Whether a value that the model wrote may be given up for another one: it was none of the user's own words."""
        return not is_wanted(value, self._request) and is_akin(other, f"{self._request} {value}")

    def goes_on(self, language: Language) -> Wish | None:
        """What the model is asked as a turn ends, before it goes on by itself; None where it may.

        The calls it wrote itself are gone on with, once what they wait for is there, and has no more pages.
        """
        if self._first is not None:
            first, self._first = self._first, None
            return Wish(prompts.find_out(first.name, language), first)
        if self._wrong is not None:
            return self._once_more(self._wrong, language)
        if self._last is None and self._unread is None:
            return None
        if self._waiting:
            return self._read_on(language) or self._now(language)
        return self._go_on(language) if self._named else None

    def asks(self, language: Language) -> Wish | None:
        """What the model is asked in place of taking its answer; None where the answer is to be taken."""
        wrong, self._wrong = self._wrong, None
        if self._early and self._looks:
            look = self._pending
            if look is None and wrong is not None and wrong.call.name in self._early:
                look = self._ways.look(wrong.call.arguments)
            if look is not None:
                self._looks -= 1
                return Wish(prompts.look_again(look.name, language), look)
        if wrong is not None:
            return self._put_right(wrong, language)
        if self._early and self._failures:
            self._failures -= 1
            name, call = self._early.popitem()
            return Wish(prompts.put_it_right(name, "", language), call)
        return self.goes_on(language) or self._read_on(language) or self._go_on(language) or self._look_first(language)

    def _once_more(self, wrong: _Wrong, language: Language) -> Wish | None:
        """A wish at once where a call was written again as it had failed, and what was meant is known.

        Left alone, a small model goes on with the wrong one.
        """
        if not (wrong.repeated and wrong.meant):
            return None
        self._wrong = None
        return self._put_right(wrong, language)

    def _put_right(self, wrong: _Wrong, language: Language) -> Wish | None:
        if not self._failures:
            return None
        name = wrong.call.name
        expected: ToolChoice | None = None
        if wrong.meant:
            self._guess = None
            taken = self._ways.parameters(name).get("properties") or wrong.call.arguments
            kept = {field: value for field, value in wrong.call.arguments.items() if field in taken}
            expected = Named(name, {**kept, **wrong.meant})
        elif wrong.again:
            expected = wrong.call
        elif other := self._ways.other(wrong.call):
            self._failures -= 1
            return Wish(prompts.try_other(name, other.name, language), other)
        elif self._guesses:
            self._guesses -= 1
            fields = () if wrong.refused else wrong_fields(dict(wrong.call.arguments), wrong.said)
            found = self._found_out(wrong.call, fields, language)
            if found is not None:
                own = [field for field in fields if is_wanted(wrong.call.arguments.get(field), self._request)]
                self._guess = wrong if own else None
                return found
            self._guess = wrong
            expected = self._otherwise(wrong, fields)
        if expected is None:
            return None
        self._failures -= 1
        return Wish(prompts.put_it_right(name, named(wrong.meant.items()), language), expected)

    def _found_out(self, call: Named, fields: tuple[str, ...], language: Language) -> Wish | None:
        """A wish for the call that may bring a value, where one was made up or a name stands for it; the call waits."""
        for field in fields:
            sources = self._ways.sources(call, field, asking=True)
            value = call.arguments.get(field)
            if sources and (is_name(value) or is_made_up(value, field, self._request)):
                known = {name: value for name, value in call.arguments.items() if name not in fields}
                self._waiting = {call.name: Named(call.name, known), **self._waiting}
                return Wish(prompts.find_out(sources[0].name, language), sources[0])
        return None

    def _otherwise(self, wrong: _Wrong, fields: tuple[str, ...]) -> ToolChoice:
        """The call with another value than the one that is wrong, as far as that is known and no id.

        Where the value was none of the user's, it is one of those that the failure lists and that are akin to it.
        """
        call = wrong.call
        given = list(call.arguments)
        for field in fields[:1]:
            value = call.arguments.get(field)
            if isinstance(value, str) and not any(character.isdigit() for character in value):
                kept = {name: call.arguments[name] for name in given[: given.index(field)]}
                among = tuple(other for other in listed(wrong.said) if self._may_be(value, other))
                return Named(call.name, kept, {field: value}, among)
        return "required"

    def _now(self, language: Language) -> Wish | None:
        """A wish for a call whose time has come; none where what was to bring its value is empty."""
        if self._last is not None and self._last[1].content.strip() in _EMPTY:
            self._waiting.clear()
        if not self._waiting:
            return None
        name = next(iter(self._waiting))
        call = self._waiting.pop(name)
        return Wish(prompts.now_make(name, named(call.arguments.items()), language), call)

    def unread(self, name: str) -> Named | None:
        """The next page that is to be read before a call which changes something, that of the tool named; asked once.

        Which one is the last, or the cheapest, only the whole list tells.
        """
        if self._unread is None or self._waited or self._ways.only_reads(name):
            return None
        self._waited = True
        self._waiting[name] = Named(name)
        return self._unread

    def _next_page(self, call: Named, result: ToolResult) -> Named | None:
        if not isinstance(result.data, dict) or not wants_all(self._request):
            return None
        more = next_page(call.arguments, self._ways.parameters(call.name), result.data)
        return None if more is None else Named(call.name, more)

    def _read_on(self, language: Language) -> Wish | None:
        """A wish for the next page of a list, where the request is about the whole of it."""
        more, self._unread = self._unread, None
        if more is None or not self._steps:
            return None
        self._steps -= 1
        return Wish(prompts.read_on(more.name, named(more.arguments.items()), language), more)

    def _go_on(self, language: Language) -> Wish | None:
        """A wish for the next of a chain, as the last result names it, where the request wants more of them."""
        if self._last is None or not self._steps:
            return None
        call, result = self._last
        found = next_named(call.arguments, result.content)
        most = STEPS if wants_all(self._request) else wanted(self._request)
        if not found or not self._named.isdisjoint(found.values()) or self._ways.worked(call.name) >= most:
            return None
        self._steps -= 1
        self._named.update(found.values())
        return Wish(prompts.goes_on(call.name, named(found.items()), language), "required")

    def _look_first(self, language: Language) -> Wish | None:
        """What follows where the model wrote a call without being sure of it.

        First a look at what the request is about, then the question whether the call does what was asked for; where the
        model writes it once more, it is meant.
        """
        held = self._held
        name = self._doubted or (held.name if held else "")
        if not name or not self._doubts or self._ways.called(name):
            return None
        look = None
        if self._doubts == DOUBTS and held is not None:
            if found := self._known_first(held, language):
                self._doubts -= 1
                return found
            look = self._ways.view(self._request)
        if look is None and not self._doubted:
            return None
        self._doubts -= 1
        self._doubted = name
        if look is not None:
            return Wish(prompts.find_out(look.name, language), look)
        if self._doubts:
            return Wish(prompts.if_it_does(name, language), "auto")
        return Wish(prompts.now_make(name, "", language), Named(name)) if held and held.name == name else None

    def _known_first(self, held: Named, language: Language) -> Wish | None:
        """A wish for what a call that was not made needs to know, where values of it are made up; for it, where it reads."""
        unknown = tuple(field for field, value in held.arguments.items() if is_made_up(value, field, self._request))
        if unknown:
            return self._found_out(held, unknown, language)
        return Wish(prompts.find_out(held.name, language), held) if self._ways.may_be_asked(held.name) else None
