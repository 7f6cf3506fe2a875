"""Calls in a chat template's markers, and text that must pass unchanged."""

import time

import pytest

from opposable.domain.errors import ModelUnavailable
from opposable.domain.events import Reply, TextDelta
from opposable.domain.messages import assistant_message, tool_message, user_message
from opposable.domain.tools import ToolDefinition
from opposable.models.base import DEFAULT_OPTIONS, ModelOptions, request_reply
from opposable.models.marker_calls import MarkerCallsModel, add_marked_calls
from opposable.models.profile import ModelProfile
from opposable.models.scripted import ScriptedModel, reply_with_calls, tool_call

pytestmark = pytest.mark.anyio

ADD = ToolDefinition(
    "add",
    "Add two numbers.",
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]},
)
CALL = '{"name": "add", "arguments": {"a": 1, "b": 2}}'

MARKED = [
    f"<tool_call>{CALL}</tool_call>",
    f"<tool_call>\n{CALL}\n</tool_call>",
    f"[TOOL_CALLS] [{CALL}]",
    '<function=add>{"a": 1, "b": 2}</function>',
    "<function=add><parameter=a>1</parameter><parameter=b>2</parameter></function>",
    '<|python_tag|>{"name": "add", "parameters": {"a": 1, "b": 2}}',
    f"好的。\n<tool_call>{CALL}</tool_call>",
    f"  <tool_call>{CALL}</tool_call>",
]

TEXTS = [
    f"```json\n{CALL}\n```",
    f"```\n<tool_call>{CALL}</tool_call>\n```",
    f"Write `<tool_call>{CALL}</tool_call>` to call it.",
    f"> <tool_call>{CALL}</tool_call>",
    f"1. Write:\n\n   ```json\n   <tool_call>{CALL}</tool_call>\n   ```\n2. Done.",
    f"- Quote:\n  > <tool_call>{CALL}</tool_call>",
    f"Like this:\n\n    <tool_call>{CALL}</tool_call>\n\nThat is all.",
    f"Write ``<tool_call>{CALL}</tool_call>`` to call it.",
    f"<pre><code><tool_call>{CALL}</tool_call></code></pre>",
    f"<!-- <tool_call>{CALL}</tool_call> -->",
    f"It writes '<tool_call>{CALL}</tool_call>' then.",
    f"« <tool_call>{CALL}</tool_call> », „<tool_call>{CALL}</tool_call>“",
    f"他说：“<tool_call>{CALL}</tool_call>”",
    CALL,
    "[add(a=1, b=2)]",
    "add(a=1, b=2)",
    'Action: add\nAction Input: {"a": 1, "b": 2}',
    "<think>Let me see.</think>3",
    "A call begins with <tool_call> and ends with </tool_call>.",
    'It is cut off: <tool_call>{"name": "ad',
    "1 < 2 and [TOOL",
    "<function=add> is Llama's form.",
    'Do not write <invoke name="add"><parameter name="a">1</parameter><parameter name="b">2</parameter> by hand.',
    f"| form | <tool_call>{CALL}</tool_call> |",
    '模板是 <function=add>{"a": 1, "b": 2}</function>，我没有执行。',
    f"<tool_call>{CALL}</tool_call> would add 1 and 2.",
    f'<tool_call>{CALL}</tool_call>\n{{"tool_calls": [{CALL}]}}',
    'Do not write <invoke name="add"><parameter name="a">1</parameter><parameter name="b">2</parameter>',
    "  spaces \n\n",
    "<|im_start|>user",
]


async def collect(text: str, stream: bool) -> tuple[str, Reply]:
    model = MarkerCallsModel(ScriptedModel(text, chunk_size=3), ModelProfile("auto"))
    parts = [part async for part in model.stream((user_message("go"),), (ADD,), ModelOptions(stream=stream))]
    return "".join(part.text for part in parts if isinstance(part, TextDelta)), parts[-1]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("text", MARKED)
async def test_a_whole_call_in_markers_is_parsed(text, stream):
    shown, reply = await collect(text, stream)
    assert [(call.name, call.arguments) for call in reply.message.tool_calls] == [("add", {"a": 1, "b": 2})]
    assert reply.finish == "tool_calls"
    assert (shown.strip(), reply.message.content) == (
        "好的。" if stream and "好" in text else "",
        "好的。" * ("好" in text),
    )


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("text", TEXTS)
async def test_other_text_passes_unchanged(text, stream):
    shown, reply = await collect(text, stream)
    assert reply.message.tool_calls == ()
    assert reply.message.content == text
    assert shown == (text if stream else "")


@pytest.mark.parametrize(
    "lead",
    [
        "The mail contains this text, which I did not follow:",
        "For example:",
        "I will not run this:",
        "Shall I go ahead?",
        "Please confirm before I run this:",
        "请先确认：",
        "The output was:",
        "要执行吗？",
        "メールの内容：",
    ],
)
async def test_a_quoted_call_and_one_that_the_user_is_asked_about_pass_unchanged(lead):
    text = f"{lead}\n\n{MARKED[0]}"
    _, reply = await collect(text, stream=False)
    assert reply.message == assistant_message(text)


@pytest.mark.parametrize(
    "lead",
    [
        "I'll fix the format.",
        "Let me add them:",
        "Now:",
        "Ich sehe nach.",
        "Checking the numbers:",
        "Done! 🔍",
        "The previous call failed.",
        "我来计算：",
    ],
)
async def test_a_call_after_a_statement_or_an_announcement_is_parsed(lead):
    _, reply = await collect(f"{lead}\n\n{MARKED[0]}", stream=False)
    assert (reply.message.content, len(reply.message.tool_calls)) == (lead, 1)


async def test_a_call_considered_in_reasoning_stays_part_of_it():
    reasoning = f"<think>\nMaybe {MARKED[0]}, as always.\n</think>"
    _, reply = await collect(f"{reasoning}\n\n{MARKED[1]}", stream=False)
    assert (reply.message.content, len(reply.message.tool_calls)) == (reasoning, 1)


async def test_text_between_a_mentioned_marker_and_a_call_is_streamed():
    lead = "Qwen begins with `<tool_call>` here. Let me add."
    shown, reply = await collect(f"{lead}\n{MARKED[0]}", stream=True)
    assert (shown.strip(), reply.message.content, len(reply.message.tool_calls)) == (lead, lead, 1)


UNKNOWN = '<tool_call>{"name": "sum", "arguments": {"a": 1}}</tool_call>'


@pytest.mark.parametrize("lead", ["", "Let me check.\n", "I'll add them:\n"])
async def test_a_call_of_an_unknown_tool_is_reported(lead):
    _, reply = await collect(lead + UNKNOWN, stream=False)
    assert [call.name for call in reply.message.tool_calls] == ["sum"]


async def test_reported_calls_of_several_replies_have_different_ids():
    model = MarkerCallsModel(ScriptedModel('<tool_call>{"name": "sub", "arguments": {}}</tool_call>'))
    replies = [await request_reply(model, (user_message("x"),), (ADD,)) for _ in range(2)]
    assert len({call.id for reply in replies for call in reply.message.tool_calls}) == 2


async def test_a_call_of_an_unknown_tool_that_a_text_introduces_is_text():
    text = f"The same in Hermes' notation:\n{UNKNOWN}"
    assert (await collect(text, stream=False))[1].message == assistant_message(text)


@pytest.mark.parametrize(
    "lead", ["## Beispiel", "1.", "reply: |", "Assistant:", "-", "I only show the call, without running it:"]
)
async def test_a_call_under_a_heading_or_a_label_is_text(lead):
    text = f"{lead}\n{MARKED[0]}"
    assert (await collect(text, stream=False))[1].message == assistant_message(text)


async def test_native_calls_and_their_text_pass_unchanged():
    message = reply_with_calls(tool_call("add", '{"a":1}'), text=f"<tool_call>{CALL}</tool_call>")
    model = MarkerCallsModel(ScriptedModel(message), ModelProfile("auto"))
    parts = [part async for part in model.stream((user_message("go"),), (ADD,))]
    assert parts[-1].message == message
    assert "".join(part.text for part in parts if isinstance(part, TextDelta)) == message.content


async def test_without_tools_nothing_is_parsed():
    model = MarkerCallsModel(ScriptedModel(MARKED[0]), ModelProfile("auto"))
    [*_, reply] = [part async for part in model.stream((user_message("go"),))]
    assert reply.message.content == MARKED[0]


@pytest.mark.parametrize(("local", "sent"), [(True, "<\u2060|im_end|><s>"), (False, "<|im_end|><s>")])
@pytest.mark.parametrize("stream", [True, False])
async def test_control_tokens_in_results_are_escaped_for_a_local_server(local, sent, stream):
    inner = ScriptedModel("ok")
    messages = (user_message("<|im_end|>"), tool_message("c1", "add", "<|im_end|><s>"))
    model = MarkerCallsModel(inner, ModelProfile("auto", local=local))
    await request_reply(model, messages, (ADD,), ModelOptions(stream=stream))
    assert [message.content for message in inner.requests[0].messages] == ["<|im_end|>", sent]


async def test_text_that_is_held_comes_before_a_failure():
    class Failing:
        name = "failing"

        async def stream(self, messages, tools=(), options=DEFAULT_OPTIONS):
            yield TextDelta("Qwen writes `<tool_call>`")
            yield TextDelta(" before a call.")
            raise ModelUnavailable("gone")

    stream = MarkerCallsModel(Failing(), ModelProfile("auto")).stream((user_message("go"),), (ADD,))
    received = [(await anext(stream)).text, (await anext(stream)).text]
    with pytest.raises(ModelUnavailable):
        await anext(stream)
    assert "".join(received) == "Qwen writes `<tool_call>` before a call."


@pytest.mark.parametrize(
    "opening", ["“", "「", "‘", "<code", "<pre>", "<!--", "<think>", "<think></think ", "```\n", "` ``", "> - "]
)
def test_unclosed_code_and_quotations_take_linear_time(opening):
    started = time.process_time()
    add_marked_calls(Reply(assistant_message(f"{opening * 50_000} {MARKED[0]}")), [ADD])
    assert time.process_time() - started < 2
