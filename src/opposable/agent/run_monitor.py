"""One run watched: each call folded into what is known of it, and what follows for the calls to come."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import orjson

from opposable import parsers as dialects
from opposable.agent import prompts
from opposable.agent.argument_suggestions import nearest_named
from opposable.agent.execution_context import ExecutionContext, Step, block
from opposable.agent.failure_fingerprints import correction, in_words, named
from opposable.agent.failure_memory import NOTHING_KNOWN, Learning, Patterns
from opposable.agent.failure_warnings import hints_of
from opposable.agent.follow_ups import Unfinished
from opposable.agent.grounding import is_heard, is_named, parts
from opposable.agent.guard_options import Guarding
from opposable.agent.loop_detection import (
    PASSING,
    Key,
    Seen,
    essential,
    is_refused,
    is_told,
    key_of,
    may_pass,
    once_more,
)
from opposable.agent.recovery_policy import Decision, Trouble, decided
from opposable.agent.tool_execution import ReadCall
from opposable.agent.tool_facts import Ways
from opposable.domain.language import Language, words
from opposable.domain.messages import Message
from opposable.domain.records import Failure, Tally
from opposable.domain.tools import ToolCall, ToolDefinition, ToolResult
from opposable.models.base import Named
from opposable.tools import failure_messages as sentences
from opposable.tools.library import ToolLibrary

ADJUSTABLE = "adjustable"
"""In a spec's metadata: arguments that are doubled after a time-out, each with its largest value."""

HINTED = 2_000
"""Characters of a request in which it is looked for what failed before."""

_OPEN = 20
"""Failed calls of a tool that wait for being put right, the last ones."""


@dataclass(frozen=True, slots=True)
class _Open:
    """A failed call that nothing has put right yet."""

    arguments: dict[str, Any]
    said: str
    failure_id: str
    timed_out: bool


class Watch:
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
        guarding: Guarding,
        learning: Learning | None,
        patterns: Patterns = NOTHING_KNOWN,
    ) -> None:
        self._library = library
        self._language: Language = language
        self._guarding = guarding
        self._learning = learning if guarding.learning else None
        self._patterns = patterns
        self._seen: dict[Key, Seen] = {}
        self._context = ExecutionContext(task)
        self._made: dict[str, tuple[Key, dict[str, Any]]] = {}  # the turn's calls by id
        self._refused: set[str] = set()
        self._waits: set[str] = set()  # of these, those that say nothing of what would put them right
        self._failing: dict[str, int] = {}  # failures by name, since the tool last worked
        self._open: dict[str, list[_Open]] = {}
        self._timed_out: dict[str, dict[str, Any]] = {}  # arguments that were too small, by name
        self._counted: set[tuple[Key, str]] = set()
        self._told: tuple[Sequence[ToolDefinition], tuple[ToolDefinition, ...]] = ((), ())
        self._turn = 0
        self._plans = True  # what the model says with its next calls is its plan
        self._changes = self._stale = self._failed_turns = self._refused_turns = 0
        self._new = self._ever_failed = self._failed_last = False
        self.advice = ""
        self.is_silent = False
        self.best: tuple[str, str] | None = None
        self._ways = Ways(library, self._context)
        self._held: dict[str, set[str]] = {}  # fields for which calls were held back, by name
        self._wanted = frozenset(words(task[:HINTED]))
        self._quoted: dict[str, tuple[int, bool]] = {}  # steps looked at, and whether one names the tool, by its name
        self._hints = self._hinted(task) if guarding.telling and self._learning is not None else {}
        self.unfinished = Unfinished(self._ways, task)

    # Before the calls

    def definitions(self, definitions: tuple[ToolDefinition, ...]) -> tuple[ToolDefinition, ...]:
        """What the model is told of tools, with warnings where something is known of them."""
        if self._learning is None or not self._patterns.warnings:
            return definitions
        if self._told[0] is not definitions:
            told = self._learning.memory.told(definitions, self._patterns, self._library, self._language)
            pairs = zip(definitions, told, strict=True)
            if self._hints:  # it is told once: a small model writes again whatever failing value it sees
                told = tuple(plain if plain.name in self._hints else warned for plain, warned in pairs)
            self._told = (definitions, told)
        return self._told[1]

    def beside(self, sent: list[Message], left_out: bool) -> list[Message]:
        """The messages to send with the block on what was tried in the last of them; the history has none of it."""
        told = self.block(left_out) if self._turn else "\n".join(self._hints.values())
        if not told:
            return sent
        last = sent[-1]
        return [*sent[:-1], replace(last, content=f"{last.content}\n\n{told}", memo={})]

    def _hinted(self, task: str) -> dict[str, str]:
        """What is told beside the request of what put the same right before, by the names of tools."""
        found: dict[str, str] = {}
        spoken = words(task[:HINTED]) if self._patterns.failures else []
        for tool_id, known in self._patterns.failures.items():
            tool = self._library.find(tool_id)
            if tool is not None and tool.tool_id == tool_id:
                name = tool.definition.name
                found[name] = hints_of(known, name, spoken, self._language)
        return {name: hints for name, hints in found.items() if hints}

    def block(self, left_out: bool) -> str:
        """The block on what was tried, "" where there is nothing to say."""
        if self.is_silent or not (self._guarding.telling or self.advice):
            return ""
        if not (self.advice or self._failed_last or (left_out and self._context.steps)):
            return ""
        if not self._guarding.telling:
            return self.advice
        return block(self._context, self._language, self._guarding.tokens, advice=self.advice, all_of_it=left_out)

    @property
    def room(self) -> int:
        """Tokens to be left free for the block."""
        return self._guarding.tokens if self.advice or self._context.steps else 0

    def replied(
        self, said: str, reads: Sequence[ReadCall], later: Sequence[ToolCall] = ()
    ) -> tuple[Sequence[ReadCall], ...]:
        """Take note of a reply with calls; the calls, in the parts in which they are to be made.

        `later` are calls that the model wrote too and that wait for what these bring.

        The same call twice in one reply is made once first: where that fails, the others need not.
        """
        self._turn += 1
        self._made.clear()
        self._refused.clear()
        self._waits.clear()
        self._new = False
        self.unfinished.turn_begins()
        for call in later:
            self.unfinished.wait(Named(call.name, orjson.loads(call.arguments)))
        if self._plans and said.strip():
            self._context.plan, self._plans = said.strip(), False
        if len(reads) == 1 or not self._guarding.refusing:
            return (reads,)
        first: dict[Key, ReadCall] = {}
        rest = [read for read in reads if first.setdefault(self._key(read)[0], read) is not read]
        return (tuple(first.values()), rest) if rest else (reads,)

    def checked(self, reads: Iterable[ReadCall]) -> tuple[ReadCall, ...]:
        """The calls of a part of a reply, those marked that are not to be made, and adjusted what may be."""
        return tuple(self._checked(read) for read in reads)

    def _checked(self, read: ReadCall) -> ReadCall:
        if read.failure is None and self._learning is not None and (self._timed_out or self._patterns.failures):
            read = self._adjusted(read)
        call = read.call
        key, arguments = self._made[call.id] = self._key(read)
        told = self._refusal(read, key, arguments)
        if not told:
            return read
        self._refused.add(call.id)
        return replace(read, failure=ToolResult(call.id, call.name, told, "refused"))

    def _key(self, read: ReadCall) -> tuple[Key, dict[str, Any]]:
        """What makes a call the same as another, and its arguments without what makes no difference."""
        call = read.call
        if read.failure is not None:  # where there is no such tool, whatever is asked of it comes to the same
            told = "" if read.failure.failure == "unknown_tool" else call.arguments
            return (call.name, told.encode()), {}
        arguments = essential(read.arguments, self._ways.parameters(call.name))
        return key_of(call.name, arguments), arguments

    def _refusal(self, read: ReadCall, key: Key, arguments: dict[str, Any]) -> str:
        name = read.call.name
        if self._guarding.refusing:
            seen = self._seen.get(key)
            if is_refused(seen, self._changes, self._stale, self._guarding) and seen is not None:
                if seen.failure is not None:
                    return prompts.refused_failure(name, seen.times, seen.content, self._language)
                if not self._ways.polls(name):
                    return prompts.refused_repeat(name, seen.times, seen.content, self._language)
        if read.failure is not None:
            return ""
        if self._guarding.refusing and self._is_quoted(name):
            self._waits.add(read.call.id)
            return prompts.only_named(name, self._language)
        other = self.unfinished.swaps(name, read.arguments, chain((self._context.task,), self._context.shown()))
        if other:
            self._waits.add(read.call.id)
            return prompts.not_asked_for(name, other, self._language)
        held = self._held_back(name, read.arguments) if self._guarding.insisting else ""
        if held:
            self._waits.add(read.call.id)
            return held
        if self._learning is None or not self._patterns.failures:
            return ""
        known = self._patterns.exactly(self._ways.tool_id(name), arguments)
        if known is None or not self._learning.is_hopeless(known):
            return ""
        right = in_words(known.correction)[1]
        said = dialects.defuse(known.message.partition("\n")[2])
        return prompts.known_to_fail(name, known.count, right, said, self._language)

    def _is_quoted(self, name: str) -> bool:
        """Whether a tool that changes something is named by what another one read, and not by the user.

        Texts that tools read are nobody's orders; what a user wants is seen from the words of the request.
        """
        if self._ways.only_reads(name) or set(parts(name)) <= self._wanted:
            return False
        seen, is_so = self._quoted.get(name, (0, False))
        steps = self._context.steps
        if not is_so and seen < len(steps):
            is_so = any(
                step.result.failure is None
                and step.call.name != name
                and self._ways.only_reads(step.call.name)
                and is_named(name, step.result.content)
                for step in steps[seen:]
            )
            self._quoted[name] = len(steps), is_so
        return is_so

    def _held_back(self, name: str, arguments: dict[str, Any]) -> str:
        """Why a call that changes something is not made yet: what it needs to know is there to be read first."""
        more = self.unfinished.unread(name)
        if more is not None:
            told = named(more.arguments.items())
            return prompts.unread(name, more.name, told, self._language)
        return self._unheard(name, arguments)

    def _unheard(self, name: str, arguments: dict[str, Any]) -> str:
        """Why a call is held back that has a number which nobody said and a tool could tell.

        It is held back once for each such argument: the number may be worked out.
        """
        for field in self._ways.told_elsewhere(name):
            number = arguments.get(field)
            if not isinstance(number, int | float) or isinstance(number, bool) or field in self._held.get(name, ()):
                continue
            if is_heard(number, (self._context.task,)):
                continue
            sources = self._ways.sources(Named(name, arguments), field)
            if not sources or is_heard(number, self._context.shown()):
                continue
            self._held.setdefault(name, set()).add(field)
            known = {one: value for one, value in arguments.items() if one != field}
            self.unfinished.wait(Named(name, known), sources[0])
            names = [source.name for source in sources]
            return prompts.unheard(name, named([(field, number)]), names, self._language)
        return ""

    def _adjusted(self, read: ReadCall) -> ReadCall:
        """The call with arguments enlarged that were too small before, where its spec says how far they may be."""
        name = read.call.name
        small = self._timed_out.get(name)
        large: dict[str, Any] = {}
        if small is None:
            known = [one for one in self._patterns.failures.get(self._ways.tool_id(name), ()) if one.kind == "timeout"]
            large = next((one.correction["right"] for one in known if one.correction), {})
            if not large:
                return read
        spec = self._ways.spec(name)
        most = spec.metadata.get(ADJUSTABLE) if spec is not None else None
        if not isinstance(most, dict):
            return read
        properties = self._ways.parameters(name).get("properties", {})
        better, told = dict(read.arguments), []
        for field, largest in most.items():
            own = about.get("default") if isinstance(about := properties.get(field), dict) else None
            given = better.get(field, own)
            value = _enlarged(given, None if small is None else small.get(field, own), large.get(field), largest)
            if value is not None:
                better[field] = value
                told.append(f"{field} {given} → {value}: it took longer before")
        if not told:
            return read
        call = replace(read.call, arguments=orjson.dumps(better).decode(), repairs=(*read.call.repairs, *told))
        return ReadCall(call, better)

    # As they end

    def ended(self, call: ToolCall, result: ToolResult) -> ToolResult:
        """Take note of a call's end; the result, with a sentence beside it where the model should know more."""
        key, arguments = self._made[call.id]
        self._context.add(Step(self._turn, call, result))
        if _of_the_run(result, self._language):
            return result
        if call.id in self._waits:
            return result
        meant = self._meant(call.name, arguments, result) if result.failure is not None else {}
        before = self._seen.get(key)
        again = before.failure if before is not None and call.id in self._refused else None
        wanted = Named(call.name, arguments)
        self.unfinished.ended(result, wanted, meant, polls=self._ways.polls(call.name), before=again)
        if call.id in self._refused:
            return result
        seen = self._seen[key] = once_more(before, result.failure, result.content, self._changes, self._turn)
        if result.failure is None:
            return self._worked(call, arguments, result, seen, before)
        return self._failed(call, arguments, result, seen, meant)

    def _worked(
        self, call: ToolCall, arguments: dict[str, Any], result: ToolResult, seen: Seen, before: Seen | None
    ) -> ToolResult:
        self.best = (call.name, result.content)
        if before is None or before.content != result.content or before.failure is not None:
            self._new = True
            if not self._ever_failed or not self._ways.only_reads(call.name):
                self._changes += 1
        if self._failing:
            self._failing.pop(call.name, None)
        if self._learning is not None and (self._open or self._patterns.failures):
            self._learnt(self._learning, call.name, arguments)
        if self._guarding.refusing and is_told(seen, self._stale, self._guarding) and not self._ways.polls(call.name):
            return _with(result, prompts.same_result(call.name, seen.times, self._language))
        return result

    def _failed(
        self, call: ToolCall, arguments: dict[str, Any], result: ToolResult, seen: Seen, meant: dict[str, Any]
    ) -> ToolResult:
        name = call.name
        self._ever_failed = True
        self._failing[name] = self._failing.get(name, 0) + 1
        self._new = self._new or seen.times == 1
        if result.failure == "timeout":
            self._timed_out[name] = arguments
        warned = self._patterns.warnings.get(self._ways.tool_id(name))
        if warned is not None and self._learning is not None:
            self._context.known[name] = warned[self._language == "zh"]
        beside = [self._offered(name, arguments)]
        if self._guarding.telling and not beside[0]:
            beside.append(self._asked_for(result, seen, meant))
        if self._learning is not None:
            self._remember(self._learning, name, arguments, result)
        if self._guarding.refusing and is_told(seen, self._stale, self._guarding) and not self._is_tried(result, seen):
            beside.append(prompts.same_failure(name, seen.times, self._language))
        missing = self._ways.missing(name)
        if missing:
            beside.append(prompts.missing_dependencies(name, missing, self._language))
        told = " ".join(filter(None, beside))
        return _with(result, told) if told else result

    def _meant(self, name: str, arguments: dict[str, Any], result: ToolResult) -> dict[str, Any]:
        """The arguments that may have been meant: what worked before, or what the failure names that is like them."""
        known = self._known(name, arguments)
        if known is not None and known.correction and in_words(known.correction)[1]:
            return dict(known.correction["right"])
        return nearest_named(arguments, result.content)

    def _asked_for(self, result: ToolResult, seen: Seen, meant: dict[str, Any]) -> str:
        """What is asked for beside a failure: the call with what may have been meant, or the same once more."""
        if meant:
            return prompts.may_be_meant(named(meant.items()), self._language)
        return prompts.may_pass(self._language) if self._is_tried(result, seen) else ""

    def _is_tried(self, result: ToolResult, seen: Seen) -> bool:
        """Whether a failed call is to be made again as it is."""
        return may_pass(result.failure, result.content) and seen.times < self._guarding.tries

    def _offered(self, name: str, arguments: dict[str, Any]) -> str:
        """What put a failure like this one right before."""
        known = self._known(name, arguments)
        given, right = in_words(known.correction) if known is not None else ("", "")
        return prompts.worked_before(given, right, self._language) if right else ""

    def _known(self, name: str, arguments: dict[str, Any]) -> Failure | None:
        """The failure of before that is this one, or most like it, with what put it right."""
        if self._learning is None or not self._patterns.failures:
            return None
        tool_id = self._ways.tool_id(name)
        known = self._patterns.exactly(tool_id, arguments)
        return known if known is not None and known.correction else self._patterns.like(tool_id, arguments)

    def _remember(self, learning: Learning, name: str, arguments: dict[str, Any], result: ToolResult) -> None:
        tool = self._library.find(name)
        if tool is None or result.failure is None:
            return
        once = (key_of(name, arguments), result.failure)
        if once in self._counted:
            return
        self._counted.add(once)
        owner, action = self._ways.owner(tool.tool_id)
        failure_id = learning.failed(owner, action, result.failure, arguments, result.content)
        if failure_id:
            waiting = self._open.setdefault(name, [])
            waiting.append(_Open(arguments, result.content, failure_id, result.failure == "timeout"))
            del waiting[:-_OPEN]

    def _learnt(self, learning: Learning, name: str, arguments: dict[str, Any]) -> None:
        """What a call that worked says of those that failed."""
        for one in self._open.pop(name, ()):
            right = correction(one.arguments, arguments, one.said, grown=one.timed_out)
            if right is not None:
                learning.memory.correct(one.failure_id, right)
        if self._patterns.failures:
            known = self._patterns.exactly(self._ways.tool_id(name), arguments)
            if known is not None:
                learning.memory.forget(known.failure_id)

    # When all have

    async def turn_over(self) -> Decision | None:
        """What is to be done now; None where all goes on as it did."""
        last = [step for step in self._context.steps[-len(self._made) :] if step.turn == self._turn]
        failed = [step for step in last if step.result.failure is not None]
        self._stale = 0 if self._new else self._stale + 1
        self._failed_last = bool(failed)
        whole = len(failed) == len(last)
        if not whole:
            self.advice = ""
        if not failed:
            self._failed_turns = self._refused_turns = 0
            return None
        self._failed_turns = self._failed_turns + 1 if whole else 0
        refused = whole and all(step.call.id in self._refused for step in failed)
        self._refused_turns = self._refused_turns + 1 if refused else 0
        if not self._guarding.deciding:
            return None
        step = failed[-1]
        decision = decided(await self._trouble(step), self._guarding, self._language)
        if decision.action == "execute":
            return None
        self.advice = decision.advice
        self._plans = self._plans or decision.action == "replan"
        return decision

    async def _trouble(self, step: Step) -> Trouble:
        name = step.call.name
        failures = self._failing.get(name, 0)
        others = await self._instead(name) if failures > 1 else ()
        away = step.result.failure in PASSING
        return Trouble(self._refused_turns, self._failed_turns, name, failures, away, others)

    async def _instead(self, name: str) -> tuple[str, ...]:
        """Tools that may do instead of one, ranked by how well they fit and how well they have done."""
        tool = self._library.find(name)
        if tool is None:
            return ()
        owner, _ = self._ways.owner(tool.tool_id)
        failed = {self._ways.owner(other.tool_id)[0] for one in self._failing if (other := self._library.find(one))}
        need = f"{tool.definition.description} {self._context.task[:500]}"
        found = self._library.alternatives(owner, need, failed, most=8)
        ids = {one.name: f"{one.tool_id}.{one.action}" if one.action else one.tool_id for one in found}
        kept: Mapping[str, Tally] = {}
        if found and self._learning is not None:
            kept = await self._learning.memory.records(tuple(ids.values()))
        ranked = sorted(found, key=lambda one: -one.score * self._record(one.tool_id, kept.get(ids[one.name])))
        return tuple(one.name for one in ranked[:3])

    def _record(self, tool_id: str, kept: Tally | None) -> float:
        """The part of a tool's calls that worked, in this process or in the store, whichever knows of more of them.

        Nobody has a clean record before the first one.
        """
        health = self._library.health(tool_id)
        failures = sum(health.failures.values())
        calls = max(health.calls, failures)
        if kept is not None and kept.calls > calls:
            calls, failures = kept.calls, kept.failures
        return (calls - failures + 1) / (calls + 2)


def _enlarged(given: Any, small: Any, large: Any, largest: Any) -> float | int | None:
    """A number that is larger than what was too small, and no larger than it may be; None where it stays."""
    if not isinstance(given, int | float) or not isinstance(largest, int | float) or isinstance(given, bool):
        return None
    wanted = given
    if isinstance(small, int | float) and given <= small:
        wanted = small * 2
    elif isinstance(large, int | float) and given < large:
        wanted = large
    wanted = min(wanted, largest)
    return wanted if wanted > given else None


def _of_the_run(result: ToolResult, language: Language) -> bool:
    """Whether a call was not made for the run's own reasons, which say nothing of the tool."""
    return result.failure == "cancelled" or result.content == sentences.call_limit(language)


def _with(result: ToolResult, beside: str) -> ToolResult:
    return replace(result, content=f"{result.content}\n\n{beside}")
