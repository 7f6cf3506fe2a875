"""The agent loop: ask the model, execute its calls, return the results, until there is an answer."""

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from secrets import token_hex

from opposable.agent import messages as texts
from opposable.agent.history import detect_conversation_language, match_results_to_calls
from opposable.agent.limits import DEFAULT_LIMITS, Deadline, DeadlineExceeded, Limits, find_stop_reason
from opposable.agent.loop_detection import LoopDetection
from opposable.agent.policy import RunPolicy
from opposable.agent.run_state import RunState
from opposable.agent.tool_execution import execute_calls
from opposable.agent.tool_selection import ToolSelection
from opposable.domain.call_context import NO_CONTEXT, CallContext
from opposable.domain.errors import ContextFull, ModelError
from opposable.domain.events import Event, Reply, RunFinished, RunStarted, ToolFinished
from opposable.domain.localized_text import localize
from opposable.domain.messages import Message
from opposable.models.base import DEFAULT_OPTIONS, Model, ModelOptions, find_whole_reply_method
from opposable.models.profile import adapt_media, get_profile
from opposable.tools.library import ToolLibrary

log = logging.getLogger("opposable.agent")


async def run(
    model: Model,
    library: ToolLibrary,
    messages: Sequence[Message],
    *,
    limits: Limits = DEFAULT_LIMITS,
    options: ModelOptions = DEFAULT_OPTIONS,
    context: CallContext = NO_CONTEXT,
    policies: Sequence[RunPolicy] = (),
) -> AsyncGenerator[Event, None]:
    """Work on the last message of `messages` and yield every event; the last one is `RunFinished`.

    A limit ends the run with an answer too. Closing the iterator cancels the model request and the tools. The policies
    act in their order, by default loop detection alone. Raises: `ModelError` when the model does not answer before a
    limit is reached, and `BadInput` for images that the model does not take.
    """
    history = match_results_to_calls(adapt_media(model, messages))
    language = detect_conversation_language(history)
    deadline = Deadline(limits.seconds)
    approve = context.approve or library.approval_handler
    approve = approve and deadline.pause_during(approve)
    context = replace(context, run_id=context.run_id or token_hex(16), language=language, approve=approve)
    policies = policies or (LoopDetection(limits),)
    tools = ToolSelection(library, history, options, language)
    fetch_reply = None if options.stream else find_whole_reply_method(model)
    state = RunState(limits, context, policies, tools, history, get_profile(model).images, limits.context)
    start = len(history)
    yield RunStarted(context.run_id)
    with deadline:
        try:
            if tools.is_partial:
                await deadline.wait(tools.add_matching_tools)
            while not state.is_finished:
                if decision := state.begin_turn():
                    yield decision
                reply: Reply | None = None
                while reply is None:
                    try:
                        request = state.build_request()
                        if fetch_reply is not None:
                            reply = await deadline.wait(fetch_reply, *request)
                            break
                        async with aclosing(model.stream(*request)) as parts:
                            while (part := await deadline.wait(anext, parts, None)) is not None:
                                if type(part) is Reply:
                                    reply = part
                                else:
                                    yield part
                        if reply is None:
                            raise ModelError(f"The stream of model {model.name!r} ended without a reply.")
                    except ContextFull:
                        if not state.shrink_context():
                            raise
                yield state.take_reply(reply)
                directive = None
                if not state.calls or state.is_last_turn:
                    directive = state.take_answer(history[-1])
                if state.is_last_turn:  # calls made all the same are not executed
                    for end in state.cancel_unfinished_calls():
                        yield end
                elif state.calls:
                    for started in state.start_calls():
                        yield started
                    async with aclosing(execute_calls(state.calls, library, context, state.turn_count)) as events:
                        while len(state.results) < len(state.calls):
                            event = await deadline.wait_for_tools(anext, events)
                            if type(event) is ToolFinished:
                                state.results[event.call.id] = event.result
                            yield event
                    directive = await deadline.wait(state.end_turn)
                if directive is not None:
                    yield state.follow(directive)
        except DeadlineExceeded:
            state.reason = "time"
            for end in state.cancel_unfinished_calls():
                yield end
        except ModelError as error:
            if not state.is_last_turn:
                raise
            log.warning("Run %s ends without a final answer from the model: %s", context.run_id, error)
    reason = state.reason or find_stop_reason(state.finish, state.is_reply_bounded, limits, state.usage)
    reason = "no_answer" if not state.text and reason in ("answer", "repeats") else reason
    text = state.text or localize(texts.format_missing_answer(reason, state.steps), language)
    cost = None if limits.price is None else limits.price.compute_cost(state.usage)
    messages = state.list_new_messages(start, text)
    yield RunFinished(text, reason, state.usage, state.turn_count, len(state.steps), messages, cost)
