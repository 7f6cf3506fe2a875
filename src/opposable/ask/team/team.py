"""Answers a question about data: the planner chooses turns, members execute them, events report them."""

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal
from uuid import uuid4

import orjson

from opposable.ask.catalog import Catalog, open_catalog
from opposable.ask.team import evaluator, follow_up, generator, messages, planner
from opposable.ask.team.answer_record import build_answer
from opposable.ask.team.examples import LoadExamples, select_examples
from opposable.ask.team.generator import Brief
from opposable.ask.team.interfaces import DEFAULT_TEAM_OPTIONS, TeamOptions
from opposable.ask.team.planner import TurnDecision
from opposable.ask.team.semantic_interpreter import SemanticModelInterpreter
from opposable.ask.team.state import Candidate, CandidateOutcome, TeamAction, TeamState
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
from opposable.domain.localized_text import localize
from opposable.domain.messages import Message, assistant_message
from opposable.domain.tools import ToolCall, ToolResult, new_call_id
from opposable.models.base import Model, ModelOptions, request_reply
from opposable.models.profile import adapt_options, get_profile
from opposable.sql.database import Database

MAX_TURNS = 16
"""The limit of turns per question."""


class Team:
    """Answers questions about one database, also several at once.

    Args:
        model: The model that writes SQL.
        database: The database to query.
        synonyms: Other names of tables ("orders") and columns ("orders.amount").
        interpreter: Interprets questions in the terms of a semantic model.
        options: Which parts of the team to use.
        load_examples: Returns the confirmed questions of the database.
    """

    def __init__(
        self,
        model: Model,
        database: Database,
        *,
        synonyms: Mapping[str, Sequence[str]] | None = None,
        interpreter: SemanticModelInterpreter | None = None,
        options: TeamOptions = DEFAULT_TEAM_OPTIONS,
        load_examples: LoadExamples | None = None,
    ) -> None:
        self._model = model
        self._database = database
        self._synonyms = synonyms
        self._catalog: Catalog | None = None
        self._interpreter = interpreter if options.use_semantics else None
        self._options = options
        self._load_examples = load_examples
        self._assisted = get_profile(model).assisted if options.assisted is None else options.assisted

    @property
    def database(self) -> Database:
        """The database that the team queries."""
        return self._database

    async def stream(
        self, question: str, run_id: str = "", earlier_questions: Sequence[str] = ()
    ) -> AsyncGenerator[Event, None]:
        """Answer a question and yield events; `DataAnswered` and `RunFinished` are the last.

        Closing the iterator cancels the run.

        Args:
            question: The question.
            run_id: The id of the run; a new one by default.
            earlier_questions: The earlier questions of the conversation, oldest first.

        Raises:
            ModelError: The model did not answer.
        """
        yield RunStarted(run_id or uuid4().hex)
        work = _QuestionRun(TeamState(question, detect_language(question)), Brief(""), time.monotonic())
        if earlier_questions:
            async for event in self._complete_question(work, earlier_questions):
                yield event
        work.brief = await self._get_brief(work.state.question)
        if self._load_examples is not None:
            examples = select_examples(work.state.question, await self._load_examples())
            work.brief = replace(work.brief, examples=examples)
        give_up_reason = ""
        for _ in range(MAX_TURNS):
            decision = self._decide_next_turn(work)
            yield DecisionMade(decision.action, localize(decision.reason, work.state.language))
            if decision.action in ("finish", "give_up"):
                give_up_reason = decision.reason if decision.action == "give_up" else ""
                break
            async for event in self._execute_turn(work, decision):
                yield event
        answer = build_answer(work.state, self._database.dialect, give_up_reason, assisted=self._assisted)
        yield TextDelta(answer.text)
        yield DataAnswered(answer)
        reason: StopReason = "time" if work.is_timed_out(self._options.time_limit_seconds) else "answer"
        yield RunFinished(
            answer.text,
            reason,
            work.state.usage,
            work.model_turn_count,
            work.tool_call_count,
            (assistant_message(answer.text),),
        )

    async def answer(self, question: str, earlier_questions: Sequence[str] = ()) -> tuple[DataAnswer, RunFinished]:
        """Return the answer and the end of the run; raise as `stream` does."""
        async for event in self.stream(question, earlier_questions=earlier_questions):
            if type(event) is DataAnswered:
                answer = event.answer
            elif type(event) is RunFinished:
                run_finished = event
        return answer, run_finished

    async def _get_brief(self, question: str) -> Brief:
        """Return the schema, or the part of a large schema that the question needs."""
        if self._catalog is None:
            self._catalog = await open_catalog(self._database, self._synonyms, self._options.private_columns)
        return Brief((await self._catalog.select_schema(question)).to_ddl())

    async def _complete_question(
        self, work: "_QuestionRun", earlier_questions: Sequence[str]
    ) -> AsyncGenerator[Event, None]:
        """Let the model complete a follow-up question, and state it as an assumption."""
        state = work.state
        prompt_messages = follow_up.build_rewrite_messages(state.question, earlier_questions)
        reply = await self._request_reply(work, prompt_messages, follow_up.REWRITE_OPTIONS)
        if reply is None:
            return
        yield ModelReplied(work.model_turn_count, reply.message, reply.finish, reply.usage)
        complete_question = follow_up.parse_rewrite(reply.message.content, state.question)
        if complete_question != state.question:
            state.question = complete_question
            state.assumptions.append(messages.question_completed(complete_question))

    def _decide_next_turn(self, work: "_QuestionRun") -> TurnDecision:
        state = work.state
        rules = planner.decide_turn(state, self._interpreter is not None)
        last_action: TeamAction = "finish" if state.get_run_outcomes() else "give_up"
        if work.is_timed_out(self._options.time_limit_seconds):
            return TurnDecision(last_action, messages.TIME_LIMIT_REACHED)
        if not self._options.allow_corrections and state.last_outcome is not None and not state.pending_candidates:
            return TurnDecision(last_action, state.last_outcome.problem or messages.CORRECTIONS_DISABLED)
        return rules

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
        interpretation = await self._interpreter.interpret(state.question, state.language)
        state.assumptions += interpretation.assumptions
        if interpretation.definitions:
            work.brief = replace(work.brief, notes=(*work.brief.notes, interpretation.definitions))
        state.intent = interpretation.intent
        if interpretation.sql:
            candidate = Candidate(interpretation.sql, "", interpretation.confidence, "semantics")
            state.pending_candidates.append(candidate)
        state.record_turn(
            "semantic_parser",
            state.question,
            orjson.dumps(interpretation.intent).decode() if interpretation.intent else "",
            "; ".join(interpretation.problems),
        )

    async def _draft_candidates(self, work: "_QuestionRun", reason: str) -> AsyncGenerator[Event, None]:
        """Request new SQL: the first at temperature 0, later ones at a higher temperature."""
        state = work.state
        state.draft_count += 1
        state.correction_count = 0
        prompt_messages = generator.build_draft_messages(
            self._database.dialect, work.brief, state.question, planner.list_failed_attempts(state)
        )
        later_options = replace(generator.LATER_DRAFT_OPTIONS, seed=state.draft_count)
        options = later_options if state.outcomes else generator.FIRST_DRAFT_OPTIONS
        async for event in self._generate_candidates(work, prompt_messages, options, reason):
            yield event

    async def _correct_candidate(self, work: "_QuestionRun") -> AsyncGenerator[Event, None]:
        state = work.state
        assert state.last_outcome is not None
        state.correction_count += 1
        prompt_messages = generator.build_correction_messages(
            self._database.dialect, work.brief, state.question, state.last_outcome
        )
        async for event in self._generate_candidates(
            work,
            prompt_messages,
            generator.FIRST_DRAFT_OPTIONS,
            state.last_outcome.problem or state.last_outcome.suspicion,
        ):
            yield event

    async def _generate_candidates(
        self, work: "_QuestionRun", prompt_messages: Sequence[Message], options: ModelOptions, reason: str
    ) -> AsyncGenerator[Event, None]:
        state = work.state
        reply = await self._request_reply(work, prompt_messages, options)
        if reply is not None:
            yield ModelReplied(work.model_turn_count, reply.message, reply.finish, reply.usage)
        is_correction = state.correction_count > 0
        source: Literal["correction", "generator"] = "correction" if is_correction else "generator"
        candidates = [] if reply is None else generator.parse_candidates(reply, source)
        tried_sql = {outcome.sql or outcome.candidate.sql for outcome in state.outcomes}
        new_candidates = [candidate for candidate in candidates if candidate.sql not in tried_sql or not is_correction]
        if not new_candidates:
            problem = messages.SAME_SQL_AGAIN if candidates else messages.NO_SQL_IN_REPLY
            state.outcomes.append(CandidateOutcome(Candidate(""), "", problem=problem, problem_kind=problem))
        state.pending_candidates += new_candidates
        error = "" if new_candidates else state.outcomes[-1].problem
        state.record_turn("sql_generator", reason, "; ".join(candidate.sql for candidate in new_candidates), error)

    async def _run_candidate(self, work: "_QuestionRun", candidate: Candidate) -> AsyncGenerator[Event, None]:
        """Run a candidate and record its outcome."""
        state = work.state
        call = ToolCall(new_call_id(), "sql_execute", {"sql": candidate.sql})
        yield ToolStarted(call)
        started_at = time.perf_counter()
        outcome = await evaluator.run_candidate(self._database, candidate, assisted=self._assisted)
        if self._options.check_values:
            outcome = await evaluator.explain_empty_result(self._database, outcome, self._options.private_columns)
        outcome = evaluator.warn_of_row_explosion(outcome, await self._get_max_table_rows())
        work.tool_call_count += 1
        state.outcomes.append(outcome)
        row_count = f"{len(outcome.rows)} rows" if outcome.has_run else ""
        state.record_turn("result_evaluator", candidate.sql, row_count, outcome.problem or outcome.suspicion)
        yield ToolFinished(call, _build_tool_result(call, outcome, time.perf_counter() - started_at, state.language))

    async def _get_max_table_rows(self) -> int | None:
        """Return the row count of the largest table, or None if a count is unknown or estimated."""
        tables = [table for table in (await self._database.get_schema()).tables if table.kind == "table"]
        counts = [table.row_count for table in tables if table.row_count is not None and table.is_row_count_exact]
        return max(counts, default=None) if len(counts) == len(tables) else None

    async def _request_reply(
        self, work: "_QuestionRun", prompt_messages: Sequence[Message], options: ModelOptions
    ) -> Reply | None:
        """Request a reply; return None at the time limit."""
        try:
            async with asyncio.timeout(max(1.0, work.get_remaining_seconds(self._options.time_limit_seconds))):
                reply = await request_reply(self._model, prompt_messages, (), adapt_options(self._model, options))
        except TimeoutError:
            return None
        work.state.usage += reply.usage
        work.model_turn_count += 1
        return reply


@dataclass(slots=True)
class _QuestionRun:
    """The run of one question."""

    state: TeamState
    brief: Brief
    started_at: float
    model_turn_count: int = 0
    tool_call_count: int = 0

    def get_remaining_seconds(self, limit_seconds: float) -> float:
        return limit_seconds - (time.monotonic() - self.started_at)

    def is_timed_out(self, limit_seconds: float) -> bool:
        return self.get_remaining_seconds(limit_seconds) <= 0


def _build_tool_result(call: ToolCall, outcome: CandidateOutcome, seconds: float, language: Language) -> ToolResult:
    if not outcome.has_run:
        return ToolResult(call.id, call.name, localize(outcome.problem, language), "failed", seconds=seconds)
    data = {"columns": outcome.columns, "rows": outcome.rows[:20], "row_count": len(outcome.rows), "sql": outcome.sql}
    text = orjson.dumps(data, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    repairs = tuple(localize(correction, language) for correction in outcome.corrections)
    return ToolResult(call.id, call.name, text, data=data, seconds=seconds, repairs=repairs)
