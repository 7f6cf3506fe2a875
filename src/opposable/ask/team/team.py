"""Answers a question about data: the planner chooses turns, members execute them, events report them."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal
from uuid import uuid4

from opposable.ask.catalog.catalog import Catalog, open_catalog
from opposable.ask.team import evaluator, generator, messages, planner
from opposable.ask.team.answer_record import build_answer
from opposable.ask.team.examples import LoadExamples, select_examples
from opposable.ask.team.state import Candidate, CandidateOutcome, TeamState
from opposable.domain import events
from opposable.domain.answers import DataAnswer
from opposable.domain.json_text import dump_json
from opposable.domain.language import Language, detect_language
from opposable.domain.localized_text import localize
from opposable.domain.messages import Message, assistant_message
from opposable.domain.tools import ToolCall, ToolResult, new_call_id
from opposable.models.base import Model, ModelOptions, adapt_options, request_reply
from opposable.models.profile import get_profile
from opposable.sql.database import Database

EventStream = AsyncGenerator[events.Event, None]

MAX_TURNS = 16
"""The limit of turns per question."""
MAX_LOOKUP_SECONDS = 5.0
"""The time limit of all lookups that explain an empty result."""


@dataclass(frozen=True, slots=True)
class TeamOptions:
    """The parts of a team, all on by default; switch one off to measure its effect.

    Attributes:
        use_semantics: Whether the semantic model interprets the question first.
        check_values: Whether the values of an empty result are compared with those of the database.
        allow_corrections: Whether the model corrects SQL that failed or found no value.
        assisted: Whether rejected SQL is repaired by the rules for small models; None asks the model's profile.
        time_limit_seconds: The time limit of one question.
        private_columns: The columns whose values are not shown to the model: "email", "customers.email", "*" for all.
    """

    use_semantics: bool = True
    check_values: bool = True
    allow_corrections: bool = True
    assisted: bool | None = None
    time_limit_seconds: float = 300.0
    private_columns: tuple[str, ...] = ()


DEFAULT_TEAM_OPTIONS = TeamOptions()


class Team:
    """Answers questions about one database, also several at once.

    `synonyms` are other names of tables ("orders") and columns ("orders.amount"). `interpret` interprets the
    question of a state in the terms of a semantic model. `load_examples` returns the confirmed questions of the database.
    """

    def __init__(
        self,
        model: Model,
        database: Database,
        *,
        synonyms: Mapping[str, Sequence[str]] | None = None,
        interpret: Callable[[TeamState], None] | None = None,
        options: TeamOptions = DEFAULT_TEAM_OPTIONS,
        load_examples: LoadExamples | None = None,
    ) -> None:
        self.database = database
        self._model = model
        self._synonyms = synonyms
        self._catalog: Catalog | None = None
        self._interpret = interpret if options.use_semantics else None
        self._options = options
        self._load_examples = load_examples
        self._assisted = get_profile(model).assisted if options.assisted is None else options.assisted

    async def stream(self, question: str, run_id: str = "", earlier_questions: Sequence[str] = ()) -> EventStream:
        """Answer a question and yield events; `DataAnswered` and `RunFinished` are the last.

        Closing the iterator cancels the run.

        Args:
            question: The question.
            run_id: The id of the run; a new one by default.
            earlier_questions: The earlier questions of the conversation, oldest first.

        Raises:
            ModelError: The model did not answer.
        """
        yield events.RunStarted(run_id or uuid4().hex)
        deadline = time.monotonic() + self._options.time_limit_seconds
        state = TeamState(question, detect_language(question), deadline)
        if earlier_questions:
            async for event in self._complete_question(state, earlier_questions):
                yield event
        if self._catalog is None:
            self._catalog = await open_catalog(self.database, self._synonyms, self._options.private_columns)
        state.schema = (await self._catalog.select_schema(state.question)).to_ddl()
        if self._load_examples is not None:
            state.examples = select_examples(state.question, await self._load_examples())
        give_up_reason = ""
        for _ in range(MAX_TURNS):
            decision = self._decide_next_turn(state)
            yield replace(decision, reason=localize(decision.reason, state.language))
            if decision.action in ("finish", "give_up"):
                give_up_reason = decision.reason if decision.action == "give_up" else ""
                break
            async for event in self._execute_turn(state, decision):
                yield event
        answer = build_answer(state, self.database.dialect, give_up_reason, assisted=self._assisted)
        yield events.TextDelta(answer.text)
        yield events.DataAnswered(answer)
        reason: events.StopReason = "time" if state.remaining_seconds <= 0 else "answer"
        counts = state.model_turn_count, sum(1 for outcome in state.outcomes if outcome.candidate.sql)
        yield events.RunFinished(answer.text, reason, state.usage, *counts, (assistant_message(answer.text),))

    async def answer(
        self, question: str, earlier_questions: Sequence[str] = ()
    ) -> tuple[DataAnswer, events.RunFinished]:
        """Return the answer and the end of the run; raise as `stream` does."""
        async for event in self.stream(question, earlier_questions=earlier_questions):
            if type(event) is events.DataAnswered:
                answer = event.answer
            elif type(event) is events.RunFinished:
                run_finished = event
        return answer, run_finished

    async def _complete_question(self, state: TeamState, earlier_questions: Sequence[str]) -> EventStream:
        """Let the model complete a follow-up question, and state it as an assumption."""
        prompt_messages = generator.build_rewrite_messages(state.question, earlier_questions)
        reply = await self._request_reply(state, prompt_messages, generator.REWRITE_OPTIONS)
        if reply is None:
            return
        yield events.ModelReplied(state.model_turn_count, reply.message, reply.finish, reply.usage)
        complete_question = generator.parse_rewrite(reply, state.question)
        if complete_question != state.question:
            state.follow_up, state.question = "" if self._assisted else state.question, complete_question
            state.assumptions.append(messages.QUESTION_COMPLETED.format(question=complete_question))

    def _decide_next_turn(self, state: TeamState) -> events.DecisionMade:
        last_action = "finish" if state.best_outcome else "give_up"
        if state.remaining_seconds <= 0:
            return events.DecisionMade(last_action, messages.TIME_LIMIT_REACHED)
        if state.reply_text:
            return events.DecisionMade(last_action, messages.NO_SQL_IN_REPLY)
        if not self._options.allow_corrections and state.last_outcome is not None and not state.pending_candidates:
            return events.DecisionMade(last_action, state.last_outcome.problem or messages.CORRECTIONS_DISABLED)
        return planner.decide_turn(state, self._interpret is not None)

    async def _execute_turn(self, state: TeamState, decision: events.DecisionMade) -> EventStream:
        if decision.action == "semantic_parser" and self._interpret is not None:
            state.has_parsed = True
            self._interpret(state)
            return
        is_evaluation = decision.action == "result_evaluator" and bool(state.pending_candidates)
        async for event in self._run_candidate(state) if is_evaluation else self._generate_candidate(state, decision):
            yield event

    async def _generate_candidate(self, state: TeamState, decision: events.DecisionMade) -> EventStream:
        """Request SQL: a correction of the last candidate, or new SQL, after a failure at a higher temperature."""
        is_correction = decision.action == "result_evaluator"
        options, dialect = generator.FIRST_DRAFT_OPTIONS, self.database.dialect
        if is_correction:
            state.correction_count += 1
            prompt_messages = generator.build_correction_messages(dialect, state, assisted=self._assisted)
        else:
            state.draft_count += 1
            state.correction_count = 0
            prompt_messages = generator.build_draft_messages(dialect, state, planner.list_failed_attempts(state))
            if state.outcomes:
                options = replace(generator.LATER_DRAFT_OPTIONS, seed=state.draft_count)
        reply = await self._request_reply(state, prompt_messages, options)
        if reply is not None:
            yield events.ModelReplied(state.model_turn_count, reply.message, reply.finish, reply.usage)
        source: Literal["correction", "generator"] = "correction" if is_correction else "generator"
        candidate = generator.parse_candidate(reply, dialect, source, in_prose=self._assisted) if reply else None
        tried_sql = {outcome.sql or outcome.candidate.sql for outcome in state.outcomes}
        problem = ""
        if candidate is None or (is_correction and candidate.sql in tried_sql):
            problem = messages.SAME_SQL_AGAIN if candidate else messages.NO_SQL_IN_REPLY
            state.outcomes.append(CandidateOutcome(Candidate(""), "", problem=problem, problem_kind=problem))
            is_final = not self._assisted or (state.draft_count == planner.MAX_DRAFTS and not state.best_outcome)
            if is_final and candidate is None and reply is not None and reply.finish == "stop":
                state.reply_text = reply.message.content.strip()
        else:
            state.pending_candidates.append(candidate)
        state.record_turn("sql_generator", decision.reason, candidate.sql if candidate and not problem else "", problem)

    async def _run_candidate(self, state: TeamState) -> EventStream:
        """Run the next candidate and record its outcome."""
        candidate = state.pending_candidates.pop(0)
        call = ToolCall(new_call_id(), "sql_execute", {"sql": candidate.sql})
        yield events.ToolStarted(call)
        started_at = time.perf_counter()
        outcome = CandidateOutcome(candidate, "", problem=messages.TIME_LIMIT_REACHED, problem_kind="QueryTimedOut")
        with suppress(TimeoutError):
            async with asyncio.timeout(state.remaining_seconds):
                outcome = await evaluator.run_candidate(self.database, candidate, assisted=self._assisted)
        if self._options.check_values:
            with suppress(TimeoutError):
                async with asyncio.timeout(min(MAX_LOOKUP_SECONDS, state.remaining_seconds)):
                    outcome = await evaluator.explain_empty_result(
                        self.database, outcome, self._options.private_columns
                    )
        outcome = await evaluator.warn_of_ties(self.database, outcome)
        outcome = await evaluator.warn_of_row_explosion(self.database, outcome)
        state.outcomes.append(outcome)
        row_count = messages.ROW_COUNT.format(count=len(outcome.rows)) if outcome.has_run else ""
        state.record_turn("result_evaluator", candidate.sql, row_count, outcome.problem or outcome.suspicion)
        seconds = time.perf_counter() - started_at
        yield events.ToolFinished(call, _build_tool_result(call, outcome, seconds, state.language))

    async def _request_reply(
        self, state: TeamState, prompt_messages: Sequence[Message], options: ModelOptions
    ) -> events.Reply | None:
        """Request a reply, of limited length from a small model; return None at the time limit."""
        if not self._assisted:
            options = replace(options, max_tokens=None)
        try:
            async with asyncio.timeout(max(1.0, state.remaining_seconds)):
                reply = await request_reply(self._model, prompt_messages, (), adapt_options(self._model, options))
        except TimeoutError:
            return None
        state.usage += reply.usage
        state.model_turn_count += 1
        return reply


def _build_tool_result(call: ToolCall, outcome: CandidateOutcome, seconds: float, language: Language) -> ToolResult:
    if not outcome.has_run:
        return ToolResult(call.id, call.name, localize(outcome.problem, language), "failed", seconds=seconds)
    data = {"columns": outcome.columns, "rows": outcome.rows[:20], "row_count": len(outcome.rows), "sql": outcome.sql}
    text = dump_json(data, default=str).decode()
    repairs = tuple(localize(correction, language) for correction in outcome.corrections)
    return ToolResult(call.id, call.name, text, data=data, seconds=seconds, repairs=repairs)
