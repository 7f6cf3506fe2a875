"""A question about data, answered: the members' turns in the order the planner says, each told as it happens."""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol
from uuid import uuid4

import orjson

from opposable.ask.single_prompt import reply_to
from opposable.ask.sql_repair.literals import NearValues, ValuesByQuery
from opposable.ask.team import answer_text as telling
from opposable.ask.team import evaluator, generator, planner
from opposable.ask.team.generator import Brief
from opposable.ask.team.planner import Decision
from opposable.ask.team.state import Candidate, Outcome, State
from opposable.ask.team.translations import in_language
from opposable.domain.answers import DataAnswer
from opposable.domain.events import (
    DataAnswered,
    Decided,
    Event,
    ModelReplied,
    Reply,
    RunFinished,
    RunStarted,
    StopReason,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from opposable.domain.language import Language, language_of
from opposable.domain.messages import Message, assistant
from opposable.domain.tools import ToolCall, ToolResult, new_call_id
from opposable.domain.usage import NO_USAGE, Usage
from opposable.models.base import Model, ModelOptions
from opposable.parsers import defuse
from opposable.sql.database import Database

MOST_TURNS = 16
"""Turns of the members in all: rules end sooner, this holds whatever a model says."""


@dataclass(frozen=True, slots=True)
class SemanticReading:
    """A question in the terms of a semantic model.

    `sql` is there where it could be compiled, with the `confidence` (0 to 1) that it is what was asked. `definitions`
    are told to the one who writes SQL where it could not.
    """

    sql: str = ""
    confidence: float = 0.0
    definitions: str = ""
    assumptions: tuple[str, ...] = ()
    usage: Usage = NO_USAGE


class Semantics(Protocol):
    """Reads questions in the terms of a semantic model."""

    async def read(self, question: str, language: Language) -> SemanticReading:
        """What the question asks for. Raises: `ModelError` where a model was asked and did not answer."""
        ...


class Briefing(Protocol):
    """Says what of a database a question needs to know."""

    async def brief(self, question: str) -> Brief:
        """The schema as text, and notes on the question's words."""
        ...


class WholeSchema:
    """Tells the whole schema, with a few values of each column, as it stands: the same for every question."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._text = ""

    async def brief(self, question: str) -> Brief:
        """As `Briefing.brief`."""
        if not self._text:
            schema = await self._database.schema()
            samples = {table.full_name: await self._database.samples(table.full_name) for table in schema.tables[:30]}
            self._text = defuse(schema.text(samples=samples))
        return Brief(self._text)


@dataclass(frozen=True, slots=True)
class Parts:
    """Which parts of the team work: all by default; each can be switched off to measure what it brings.

    `opinions` is how many more candidates are asked for where the writer was not sure, `shape` whether SQL and result
    are held against the question's words.
    """

    semantics: bool = True
    values: bool = True
    shape: bool = True
    corrections: bool = True
    opinions: int = 2
    captain: bool = True
    seconds: float = 300.0


class Team:
    """Answers questions about one database. One team serves many questions, also at once."""

    def __init__(
        self,
        model: Model,
        database: Database,
        *,
        briefing: Briefing | None = None,
        semantics: Semantics | None = None,
        values: NearValues | None = None,
        parts: Parts = Parts(),
    ) -> None:
        self._model = model
        self._database = database
        self._briefing = briefing or WholeSchema(database)
        self._semantics = semantics if parts.semantics else None
        self._values = values or ValuesByQuery(database)
        self._parts = parts

    async def stream(self, question: str, run_id: str = "") -> AsyncGenerator[Event, None]:
        """Answer, and tell everything as it happens; `DataAnswered` and `RunFinished` come last.

        Leaving early stops it. Raises: `ModelError` when the model does not answer.
        """
        yield RunStarted(run_id or uuid4().hex)
        work = _Work(State(question, language_of(question)), await self._briefing.brief(question), time.monotonic())
        gave_up = ""
        for _ in range(MOST_TURNS):
            decision = await self._decided(work)
            yield Decided(decision.action, in_language(decision.reason, work.state.language))
            if decision.action in ("finish", "give_up"):
                gave_up = decision.reason if decision.action == "give_up" else ""
                break
            async for event in self._turn(work, decision):
                yield event
        answer = _answer(work.state, gave_up)
        yield TextDelta(answer.text)
        yield DataAnswered(answer)
        reason: StopReason = "time" if work.late(self._parts.seconds) else "answer"
        said = (assistant(answer.text),)
        yield RunFinished(answer.text, reason, work.state.usage, work.turns, work.calls, said)

    async def answer(self, question: str) -> tuple[DataAnswer, RunFinished]:
        """The answer and the end of the run, without what happened between. Raises: as `stream`."""
        async for event in self.stream(question):
            if type(event) is DataAnswered:
                answer = event.answer
            elif type(event) is RunFinished:
                end = event
        return answer, end

    async def _decided(self, work: "_Work") -> Decision:
        state = work.state
        rules = planner.decide(state, self._semantics is not None, self._parts.opinions)
        if work.late(self._parts.seconds):
            return Decision("finish" if state.ran() else "give_up", "the time is up")
        if not self._parts.corrections and state.last is not None and not state.waiting:
            return Decision("finish" if state.ran() else "give_up", state.last.problem or "corrections are off")
        if not self._parts.captain or not planner.in_trouble(state) or rules.action == "result_evaluator":
            return rules
        reply = await self._reply(work, planner.trouble_messages(state), planner.TURN_OPTIONS)
        return (
            rules if reply is None else planner.read_decision(reply.message.content, rules, self._semantics is not None)
        )

    async def _turn(self, work: "_Work", decision: Decision) -> AsyncGenerator[Event, None]:
        match decision.action:
            case "semantic_parser":
                await self._parse(work)
            case "sql_generator":
                async for event in self._draft(work, decision.reason):
                    yield event
            case "result_evaluator" if work.state.waiting:
                async for event in self._run(work, work.state.waiting.pop(0)):
                    yield event
            case _:
                async for event in self._correct(work):
                    yield event

    async def _parse(self, work: "_Work") -> None:
        state = work.state
        state.parsed = True
        if self._semantics is None:
            return
        reading = await self._semantics.read(state.question, state.language)
        state.usage += reading.usage
        state.assumptions += reading.assumptions
        if reading.definitions:
            work.brief = replace(work.brief, notes=(*work.brief.notes, reading.definitions))
        if reading.sql:
            why = "compiled from the semantic model"
            state.waiting.append(Candidate(reading.sql, why, reading.confidence, "semantics"))
        state.note("semantic_parser", state.question, reading.sql or "it is not covered by the semantic model")

    async def _draft(self, work: "_Work", reason: str) -> AsyncGenerator[Event, None]:
        """Candidates from the generator: the first as it comes, another opinion or a fresh start with more freedom."""
        state = work.state
        another = state.last is not None and state.last.good
        if another:
            state.opinions += 1
        else:
            state.drafts += 1
        state.mending = 0
        failed = () if another else planner.failed_attempts(state)
        asked = generator.draft_messages(self._database.dialect, work.brief, state.question, failed)
        first = not state.outcomes
        seed = state.opinions + state.drafts
        options = generator.OPTIONS if first else replace(generator.UNLIKE, seed=seed)
        async for event in self._written(work, asked, options, reason):
            yield event

    async def _correct(self, work: "_Work") -> AsyncGenerator[Event, None]:
        state = work.state
        assert state.last is not None
        state.mending += 1
        asked = generator.correction_messages(self._database.dialect, work.brief, state.question, state.last)
        async for event in self._written(work, asked, generator.OPTIONS, state.last.problem or state.last.suspicion):
            yield event

    async def _written(
        self, work: "_Work", asked: Sequence[Message], options: ModelOptions, reason: str
    ) -> AsyncGenerator[Event, None]:
        state = work.state
        reply = await self._reply(work, asked, options)
        if reply is not None:
            yield ModelReplied(work.turns, reply.message, reply.finish, reply.usage)
        mending = state.mending > 0
        found = (
            [] if reply is None else generator.candidates_of(reply, reason, "correction" if mending else "generator")
        )
        tried = {outcome.sql or outcome.candidate.sql for outcome in state.outcomes}
        fresh = [candidate for candidate in found if candidate.sql not in tried or not mending]
        if not fresh:
            problem = "no SQL came" if not found else "the same SQL came again"
            state.outcomes.append(Outcome(Candidate("", reason), "", problem=problem, kind=problem))
        state.waiting += fresh
        error = "" if fresh else state.outcomes[-1].problem
        state.note("sql_generator", reason, "; ".join(candidate.sql for candidate in fresh), error)

    async def _run(self, work: "_Work", candidate: Candidate) -> AsyncGenerator[Event, None]:
        """Run a candidate, and put its values right where that is certain."""
        state = work.state
        call = ToolCall(new_call_id(), "sql_execute", orjson.dumps({"sql": candidate.sql}).decode())
        yield ToolStarted(call)
        started = time.perf_counter()
        shaped = self._parts.shape and candidate.source != "semantics"
        sql: str = candidate.sql
        told: tuple[str, ...] = ()
        if shaped:
            sql, told = await evaluator.prepared(self._database, candidate.sql, state.question)
        outcome = await evaluator.run(self._database, replace(candidate, sql=sql), told)
        if self._parts.values:
            outcome = await evaluator.with_real_values(self._database, outcome, self._values)
            outcome = evaluator.exploded(outcome, await self._largest())
        if shaped:
            outcome = await evaluator.with_missing(self._database, outcome)
            outcome = evaluator.out_of_shape(outcome, state.question, work.brief.matches, await self._database.schema())
        work.calls += 1
        state.outcomes.append(outcome)
        came = f"{len(outcome.rows)} rows" if outcome.ran else ""
        state.note("result_evaluator", candidate.sql, came, outcome.problem or outcome.suspicion)
        yield ToolFinished(call, _result(call, outcome, time.perf_counter() - started, state.language))

    async def _largest(self) -> int | None:
        """The rows of the largest table, where all are known."""
        tables = (await self._database.schema()).tables
        counts = [table.rows for table in tables if table.kind == "table"]
        return max((count for count in counts if count is not None), default=None) if None not in counts else None

    async def _reply(self, work: "_Work", messages: Sequence[Message], options: ModelOptions) -> Reply | None:
        """The model's reply; None when the time is up."""
        try:
            async with asyncio.timeout(max(1.0, work.left(self._parts.seconds))):
                reply = await reply_to(self._model, messages, options)
        except TimeoutError:
            return None
        work.state.usage += reply.usage
        work.turns += 1
        return reply


@dataclass(slots=True)
class _Work:
    """One question being worked on."""

    state: State
    brief: Brief
    started: float
    turns: int = 0
    calls: int = 0

    def left(self, seconds: float) -> float:
        return seconds - (time.monotonic() - self.started)

    def late(self, seconds: float) -> bool:
        return self.left(seconds) <= 0


def _answer(state: State, gave_up: str) -> DataAnswer:
    if not state.ran():
        reason = gave_up or (state.last.problem if state.last else "")
        return DataAnswer(telling.gave_up(reason, state.language), assumptions=tuple(state.assumptions))
    best, share = evaluator.agreed(state.outcomes)
    doubts = (in_language(best.suspicion, state.language),) if best.suspicion else ()
    confidence = best.candidate.weight * (0.5 if best.suspicion else 1.0) * (0.5 + share / 2)
    return DataAnswer(
        telling.sentence(best.columns, best.rows, best.truncated, state.language),
        best.sql,
        best.columns,
        best.rows,
        best.truncated,
        telling.chart(best.columns, best.rows),
        (*state.assumptions, *doubts),
        tuple(in_language(one, state.language) for one in best.corrections),
        round(min(1.0, confidence), 3),
    )


def _result(call: ToolCall, outcome: Outcome, seconds: float, language: Language) -> ToolResult:
    if not outcome.ran:
        return ToolResult(call.id, call.name, in_language(outcome.problem, language), "failed", seconds=seconds)
    told = {"columns": outcome.columns, "rows": outcome.rows[:20], "row_count": len(outcome.rows), "sql": outcome.sql}
    text = orjson.dumps(told, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    repairs = tuple(in_language(one, language) for one in outcome.corrections)
    return ToolResult(call.id, call.name, text, data=told, seconds=seconds, repairs=repairs)
