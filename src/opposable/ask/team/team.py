"""A question about data, answered: the members' turns in the order the planner says, each told as it happens."""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol
from uuid import uuid4

import orjson

from opposable.ask.single_prompt import request_reply
from opposable.ask.sql_repair.literals import QueryValueFinder, ValueFinder
from opposable.ask.team import answer_text as telling
from opposable.ask.team import evaluator, generator, planner
from opposable.ask.team.generator import Brief
from opposable.ask.team.planner import TurnDecision
from opposable.ask.team.state import Candidate, CandidateOutcome, TeamState
from opposable.ask.team.translations import translate_message
from opposable.domain.answers import DataAnswer
from opposable.domain.events import (
    DataAnswered,
    DecisionMade,
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
from opposable.domain.language import Language, detect_language
from opposable.domain.messages import Message, assistant_message
from opposable.domain.tools import ToolCall, ToolResult, new_call_id
from opposable.domain.usage import NO_USAGE, Usage
from opposable.models.base import Model, ModelOptions
from opposable.parsers import escape_special_tokens
from opposable.sql.database import Database

MAX_TURNS = 16
"""Turns of the members in all: rules end sooner, this holds whatever a model says."""


@dataclass(frozen=True, slots=True)
class SemanticInterpretation:
    """A question in the terms of a semantic model.

    `sql` is there where it could be compiled, with the `confidence` (0 to 1) that it is what was asked. `definitions`
    are told to the one who writes SQL where it could not.
    """

    sql: str = ""
    confidence: float = 0.0
    definitions: str = ""
    assumptions: tuple[str, ...] = ()
    usage: Usage = NO_USAGE


class SemanticInterpreter(Protocol):
    """Reads questions in the terms of a semantic model."""

    async def interpret(self, question: str, language: Language) -> SemanticInterpretation:
        """What the question asks for. Raises: `ModelError` where a model was asked and did not answer."""
        ...


class BriefProvider(Protocol):
    """Says what of a database a question needs to know."""

    async def get_brief(self, question: str) -> Brief:
        """The schema as text, and notes on the question's words."""
        ...


class WholeSchemaBriefProvider:
    """Tells the whole schema, with a few values of each column, as it stands: the same for every question."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._schema_text = ""

    async def get_brief(self, question: str) -> Brief:
        """As `Briefing.brief`."""
        if not self._schema_text:
            schema = await self._database.get_schema()
            samples = {
                table.full_name: await self._database.sample_values(table.full_name) for table in schema.tables[:30]
            }
            self._schema_text = escape_special_tokens(schema.to_ddl(samples=samples))
        return Brief(self._schema_text)


@dataclass(frozen=True, slots=True)
class TeamOptions:
    """Which parts of the team work: all by default; each can be switched off to measure what it brings.

    `opinions` is how many more candidates are asked for where the writer was not sure, `shape` whether SQL and result
    are held against the question's words.
    """

    use_semantics: bool = True
    check_values: bool = True
    check_result_shape: bool = True
    allow_corrections: bool = True
    extra_candidates: int = 2
    model_decides_when_stuck: bool = True
    time_limit_seconds: float = 300.0


class Team:
    """Answers questions about one database. One team serves many questions, also at once."""

    def __init__(
        self,
        model: Model,
        database: Database,
        *,
        brief_provider: BriefProvider | None = None,
        interpreter: SemanticInterpreter | None = None,
        value_finder: ValueFinder | None = None,
        options: TeamOptions = TeamOptions(),
    ) -> None:
        self._model = model
        self._database = database
        self._brief_provider = brief_provider or WholeSchemaBriefProvider(database)
        self._interpreter = interpreter if options.use_semantics else None
        self._value_finder = value_finder or QueryValueFinder(database)
        self._options = options

    async def stream(self, question: str, run_id: str = "") -> AsyncGenerator[Event, None]:
        """Answer, and tell everything as it happens; `DataAnswered` and `RunFinished` come last.

        Leaving early stops it. Raises: `ModelError` when the model does not answer.
        """
        yield RunStarted(run_id or uuid4().hex)
        work = _QuestionRun(
            TeamState(question, detect_language(question)),
            await self._brief_provider.get_brief(question),
            time.monotonic(),
        )
        gave_up = ""
        for _ in range(MAX_TURNS):
            decision = await self._decide_next_turn(work)
            yield DecisionMade(decision.action, translate_message(decision.reason, work.state.language))
            if decision.action in ("finish", "give_up"):
                gave_up = decision.reason if decision.action == "give_up" else ""
                break
            async for event in self._execute_turn(work, decision):
                yield event
        answer = _build_answer(work.state, gave_up)
        yield TextDelta(answer.text)
        yield DataAnswered(answer)
        reason: StopReason = "time" if work.is_timed_out(self._options.time_limit_seconds) else "answer"
        said = (assistant_message(answer.text),)
        yield RunFinished(answer.text, reason, work.state.usage, work.model_turn_count, work.tool_call_count, said)

    async def answer(self, question: str) -> tuple[DataAnswer, RunFinished]:
        """The answer and the end of the run, without what happened between. Raises: as `stream`."""
        async for event in self.stream(question):
            if type(event) is DataAnswered:
                answer = event.answer
            elif type(event) is RunFinished:
                end = event
        return answer, end

    async def _decide_next_turn(self, work: "_QuestionRun") -> TurnDecision:
        state = work.state
        rules = planner.decide_turn(state, self._interpreter is not None, self._options.extra_candidates)
        if work.is_timed_out(self._options.time_limit_seconds):
            return TurnDecision("finish" if state.get_run_outcomes() else "give_up", "the time is up")
        if not self._options.allow_corrections and state.last_outcome is not None and not state.pending_candidates:
            return TurnDecision(
                "finish" if state.get_run_outcomes() else "give_up", state.last_outcome.problem or "corrections are off"
            )
        if (
            not self._options.model_decides_when_stuck
            or not planner.is_stuck(state)
            or rules.action == "result_evaluator"
        ):
            return rules
        reply = await self._request_reply(work, planner.build_stuck_messages(state), planner.TURN_DECISION_OPTIONS)
        return (
            rules
            if reply is None
            else planner.parse_decision(reply.message.content, rules, self._interpreter is not None)
        )

    async def _execute_turn(self, work: "_QuestionRun", decision: TurnDecision) -> AsyncGenerator[Event, None]:
        match decision.action:
            case "semantic_parser":
                await self._interpret_question(work)
            case "sql_generator":
                async for event in self._draft_candidates(work, decision.reason):
                    yield event
            case "result_evaluator" if work.state.pending_candidates:
                async for event in self._run_candidate(work, work.state.pending_candidates.pop(0)):
                    yield event
            case _:
                async for event in self._correct_candidate(work):
                    yield event

    async def _interpret_question(self, work: "_QuestionRun") -> None:
        state = work.state
        state.has_parsed = True
        if self._interpreter is None:
            return
        reading = await self._interpreter.interpret(state.question, state.language)
        state.usage += reading.usage
        state.assumptions += reading.assumptions
        if reading.definitions:
            work.brief = replace(work.brief, notes=(*work.brief.notes, reading.definitions))
        if reading.sql:
            why = "compiled from the semantic model"
            state.pending_candidates.append(Candidate(reading.sql, why, reading.confidence, "semantics"))
        state.record_turn("semantic_parser", state.question, reading.sql or "it is not covered by the semantic model")

    async def _draft_candidates(self, work: "_QuestionRun", reason: str) -> AsyncGenerator[Event, None]:
        """Candidates from the generator: the first as it comes, another opinion or a fresh start with more freedom."""
        state = work.state
        another = state.last_outcome is not None and state.last_outcome.is_plausible
        if another:
            state.extra_candidate_count += 1
        else:
            state.draft_count += 1
        state.correction_count = 0
        failed = () if another else planner.list_failed_attempts(state)
        asked = generator.build_draft_messages(self._database.dialect, work.brief, state.question, failed)
        first = not state.outcomes
        seed = state.extra_candidate_count + state.draft_count
        options = generator.FIRST_DRAFT_OPTIONS if first else replace(generator.LATER_DRAFT_OPTIONS, seed=seed)
        async for event in self._generate_candidates(work, asked, options, reason):
            yield event

    async def _correct_candidate(self, work: "_QuestionRun") -> AsyncGenerator[Event, None]:
        state = work.state
        assert state.last_outcome is not None
        state.correction_count += 1
        asked = generator.build_correction_messages(
            self._database.dialect, work.brief, state.question, state.last_outcome
        )
        async for event in self._generate_candidates(
            work, asked, generator.FIRST_DRAFT_OPTIONS, state.last_outcome.problem or state.last_outcome.suspicion
        ):
            yield event

    async def _generate_candidates(
        self, work: "_QuestionRun", prompt_messages: Sequence[Message], options: ModelOptions, reason: str
    ) -> AsyncGenerator[Event, None]:
        state = work.state
        reply = await self._request_reply(work, prompt_messages, options)
        if reply is not None:
            yield ModelReplied(work.model_turn_count, reply.message, reply.finish, reply.usage)
        mending = state.correction_count > 0
        found = (
            [] if reply is None else generator.parse_candidates(reply, reason, "correction" if mending else "generator")
        )
        tried = {outcome.sql or outcome.candidate.sql for outcome in state.outcomes}
        fresh = [candidate for candidate in found if candidate.sql not in tried or not mending]
        if not fresh:
            problem = "no SQL came" if not found else "the same SQL came again"
            state.outcomes.append(CandidateOutcome(Candidate("", reason), "", problem=problem, problem_kind=problem))
        state.pending_candidates += fresh
        error = "" if fresh else state.outcomes[-1].problem
        state.record_turn("sql_generator", reason, "; ".join(candidate.sql for candidate in fresh), error)

    async def _run_candidate(self, work: "_QuestionRun", candidate: Candidate) -> AsyncGenerator[Event, None]:
        """Run a candidate, and put its values right where that is certain."""
        state = work.state
        call = ToolCall(new_call_id(), "sql_execute", {"sql": candidate.sql})
        yield ToolStarted(call)
        started = time.perf_counter()
        shaped = self._options.check_result_shape and candidate.source != "semantics"
        sql: str = candidate.sql
        told: tuple[str, ...] = ()
        if shaped:
            sql, told = await evaluator.repair_sql(self._database, candidate.sql, state.question)
        outcome = await evaluator.run_candidate(self._database, replace(candidate, sql=sql), told)
        if self._options.check_values:
            outcome = await evaluator.retry_with_real_values(self._database, outcome, self._value_finder)
            outcome = evaluator.flag_row_explosion(outcome, await self._get_max_table_rows())
        if shaped:
            outcome = await evaluator.retry_with_outer_join(self._database, outcome)
            outcome = evaluator.flag_shape_mismatch(
                outcome, state.question, work.brief.value_matches, await self._database.get_schema()
            )
        work.tool_call_count += 1
        state.outcomes.append(outcome)
        came = f"{len(outcome.rows)} rows" if outcome.has_run else ""
        state.record_turn("result_evaluator", candidate.sql, came, outcome.problem or outcome.suspicion)
        yield ToolFinished(call, _build_tool_result(call, outcome, time.perf_counter() - started, state.language))

    async def _get_max_table_rows(self) -> int | None:
        """The rows of the largest table, where all are known."""
        tables = (await self._database.get_schema()).tables
        counts = [table.row_count for table in tables if table.kind == "table"]
        return max((count for count in counts if count is not None), default=None) if None not in counts else None

    async def _request_reply(
        self, work: "_QuestionRun", messages: Sequence[Message], options: ModelOptions
    ) -> Reply | None:
        """The model's reply; None when the time is up."""
        try:
            async with asyncio.timeout(max(1.0, work.get_remaining_seconds(self._options.time_limit_seconds))):
                reply = await request_reply(self._model, messages, options)
        except TimeoutError:
            return None
        work.state.usage += reply.usage
        work.model_turn_count += 1
        return reply


@dataclass(slots=True)
class _QuestionRun:
    """One question being worked on."""

    state: TeamState
    brief: Brief
    started_at: float
    model_turn_count: int = 0
    tool_call_count: int = 0

    def get_remaining_seconds(self, limit_seconds: float) -> float:
        return limit_seconds - (time.monotonic() - self.started_at)

    def is_timed_out(self, limit_seconds: float) -> bool:
        return self.get_remaining_seconds(limit_seconds) <= 0


def _build_answer(state: TeamState, give_up_reason: str) -> DataAnswer:
    if not state.get_run_outcomes():
        reason = give_up_reason or (state.last_outcome.problem if state.last_outcome else "")
        return DataAnswer(telling.format_failure_sentence(reason, state.language), assumptions=tuple(state.assumptions))
    best, share = evaluator.select_majority_outcome(state.outcomes)
    doubts = (translate_message(best.suspicion, state.language),) if best.suspicion else ()
    confidence = best.candidate.weight * (0.5 if best.suspicion else 1.0) * (0.5 + share / 2)
    return DataAnswer(
        telling.format_answer_sentence(best.columns, best.rows, best.truncated, state.language),
        best.sql,
        best.columns,
        best.rows,
        best.truncated,
        telling.build_chart(best.columns, best.rows),
        (*state.assumptions, *doubts),
        tuple(translate_message(one, state.language) for one in best.corrections),
        round(min(1.0, confidence), 3),
    )


def _build_tool_result(call: ToolCall, outcome: CandidateOutcome, seconds: float, language: Language) -> ToolResult:
    if not outcome.has_run:
        return ToolResult(call.id, call.name, translate_message(outcome.problem, language), "failed", seconds=seconds)
    told = {"columns": outcome.columns, "rows": outcome.rows[:20], "row_count": len(outcome.rows), "sql": outcome.sql}
    text = orjson.dumps(told, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    repairs = tuple(translate_message(one, language) for one in outcome.corrections)
    return ToolResult(call.id, call.name, text, data=told, seconds=seconds, repairs=repairs)
