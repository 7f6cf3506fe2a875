"""What a run would leave undone if its model's answer were taken: calls that failed, and what was not ready for them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from opposable.agent import prompts
from opposable.agent.fingerprints import named
from opposable.agent.guard import may_pass, waits
from opposable.agent.nearest import swapped
from opposable.domain.language import Language
from opposable.domain.tools import ToolResult
from opposable.models.base import Named, ToolChoice

FAILURES = 3
"""How often a run is asked on after a failed call."""

GUESSES = 1
"""How often of these where no call is known that would put it right."""

LOOKS = 12
"""How often a run is asked to look once more whether what a failed call needs is ready."""

Looking = Callable[[Mapping[str, Any]], Named | None]
"""The call that tells how things stand, by the arguments of a call that came too early; None where none is known."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What the model is asked in place of taking its answer, and the call that would follow it, where one is known."""

    text: str
    expected: ToolChoice


@dataclass(frozen=True, slots=True)
class _Wrong:
    """A call of the last turn that failed; `meant` are arguments it may have meant, `again` that it may work as it is."""

    call: Named
    said: str
    meant: Mapping[str, Any]
    again: bool


class Unfinished:
    """The open ends of a run, and how often it is still asked on for them: a small model takes an error for the end."""

    def __init__(self, looking: Looking) -> None:
        self._looking = looking
        self._wrong: _Wrong | None = None
        self._guess: _Wrong | None = None
        self._early: dict[str, Named] = {}
        self._pending: Named | None = None
        self._failures = FAILURES
        self._guesses = GUESSES
        self._looks = LOOKS

    def turn_begins(self) -> None:
        """New calls are made: what the last ones left is theirs to mend."""
        self._wrong = None

    def ended(self, result: ToolResult, call: Named, meant: Mapping[str, Any], *, polls: bool) -> None:
        """Take note of a call's end; `meant` are arguments it may have meant, `polls` that its tool is one that waits."""
        if result.failure is None:
            self._early.pop(call.name, None)
            if polls:
                self._pending = call if waits(result.content) else None
            return
        if result.failure == "denied":
            return
        again = may_pass(result.failure, result.content)
        if waits(result.content) and not again:
            self._early[call.name] = call
        if self._wrong is None or meant or not self._wrong.meant:
            self._wrong = _Wrong(call, result.content, meant, again)

    def swaps(self, name: str, arguments: dict[str, Any]) -> str:
        """What a call that was asked for takes in place of what was wanted, "" for nothing."""
        guess = self._guess
        if guess is None or guess.call.name != name:
            return ""
        return swapped(dict(guess.call.arguments), arguments, guess.said)

    def asks(self, language: Language) -> Wish | None:
        """What the model is asked in place of taking its answer; None where the answer is to be taken."""
        wrong, self._wrong = self._wrong, None
        if self._early and self._looks:
            look = self._pending
            if look is None and wrong is not None and wrong.call.name in self._early:
                look = self._looking(wrong.call.arguments)
            if look is not None:
                self._looks -= 1
                return Wish(prompts.look_again(look.name, language), look)
        if not self._failures:
            return None
        if wrong is not None:
            return self._put_right(wrong, language)
        if not self._early:
            return None
        self._failures -= 1
        name, call = self._early.popitem()
        return Wish(prompts.put_it_right(name, "", language), call)

    def _put_right(self, wrong: _Wrong, language: Language) -> Wish | None:
        name = wrong.call.name
        expected: ToolChoice = "required"
        if wrong.meant:
            expected = Named(name, wrong.meant)
        elif wrong.again:
            expected = wrong.call
        elif self._guesses:
            self._guesses -= 1
            self._guess = wrong
        else:
            return None
        self._failures -= 1
        return Wish(prompts.put_it_right(name, named(wrong.meant.items()), language), expected)
