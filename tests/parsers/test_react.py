"""ReAct actions are parsed however their labels are written, and quoted ones are shown as they are."""

import pytest
from tests.parsers.linear_time import assert_linear
from tests.parsers.splits import parse_in_every_split

from opposable.parsers import StreamParser, parse

NUMBERS = {"a": {"type": "integer"}, "b": {"type": "integer"}}
TOOLS = [
    {"name": "add", "parameters": {"type": "object", "properties": NUMBERS, "required": ["a", "b"]}},
    {"name": "list_files", "parameters": {"type": "object", "properties": {"folder": {"type": "string"}}}},
    {"name": "run", "parameters": {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}},
]
ARGUMENTS = '{"a": 2, "b": 3}'
ADD = ("add", {"a": 2, "b": 3})

ACTIONS = {
    "bold": (f"**Action:** add\n**Action Input:** {ARGUMENTS}", ADD),
    "one word": (f"Action: add\nActionInput: {ARGUMENTS}", ADD),
    "backticks": (f"Action: `add`\nAction Input: {ARGUMENTS}", ADD),
    "bold and backticks": (f"**Action:** `add`\n**Action Input:** `{ARGUMENTS}`", ADD),
    "input on the next line": (f"Action: add\nAction Input:\n{ARGUMENTS}", ADD),
    "fence on the next line": (f"Action: add\nAction Input:\n```json\n{ARGUMENTS}\n```", ADD),
    "code on the next line": ("Action: run\nAction Input:\n```python\nx = 1\n```", ("run", {"code": "x = 1"})),
    "stop after blank lines": ("Action: run\nAction Input: x = 1\n\n  Observation: 1", ("run", {"code": "x = 1"})),
    "no input": ("Action: list_files", ("list_files", {})),
    "no input after a thought": ("Thought: I need it.\nAction: list_files\n", ("list_files", {})),
    "no input before a result": ("Action: list_files\nObservation: a.txt", ("list_files", {})),
    "Chinese": (f"行动：add\n行动输入：{ARGUMENTS}", ADD),
    "Chinese, other words": (f"思考：需要相加。\n动作: add\n动作输入: {ARGUMENTS}\n观察：5\n最终答案：5", ADD),
    "Qwen-Agent": (f"✿FUNCTION✿: add\n✿ARGS✿: {ARGUMENTS}\n✿RESULT✿", ADD),
    "empty input before a result": ("Action: list_files\nAction Input:\nObservation: a.txt", ("list_files", {})),
}


@pytest.mark.parametrize(("text", "expected"), ACTIONS.values(), ids=ACTIONS)
def test_an_action_is_parsed(text, expected):
    result = parse_in_every_split(text, TOOLS)
    assert [(call.name, call.arguments) for call in result.calls] == [expected]
    assert not any(word in result.text for word in ("Action", "动", "✿", "5"))


@pytest.mark.parametrize(
    "text",
    [
        "行动：联系客户\n输入：电话",
        "我有以下工具：\n\n动作：run\n输入：代码\n输出：列表",
        "动作：list_files\n参数：folder（文本）",
        "动作：list_files",
        "The marker ✿FUNCTION✿ is '✿FUNCTION✿: run'.",
        "计划\n行动：立即检查\n参数：无",
        "思考：是 5。\n最终答案：5",
    ],
)
def test_chinese_labels_of_other_texts_are_no_action(text):
    result = parse_in_every_split(text, TOOLS)
    assert (result.calls, result.rejected) == ((), ())
    assert result.text == ("5" if "最终" in text else text)


QUOTED_AGENT = (
    "For example:\n\nThought: I need it.\nAction: add\nAction Input: {}\nObservation: 5\nThought: Again.\nAction: add\n"
    "Action Input: {}\nObservation: 7\nFinal Answer: 7\n\nThe loop ends there."
)
TEXTS = {
    "quoted example": QUOTED_AGENT.format(ARGUMENTS, ARGUMENTS),
    "code in place of a name": "Action: `ls -la` shows the files.",
    "braces in place of a name": "Action: {name}\nAction Input: {input}",
    "code fence": "Action:\n```bash\nls\n```\nThat is all.",
    "no input where one is required": "Action: add",
    "no input after other text": "The plan has one step.\nAction: list_files",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_text_without_an_action_is_shown_unchanged(text):
    result = parse_in_every_split(text, TOOLS)
    assert (result.text, result.calls) == (text, ())


FINAL_ANSWERS = {
    "alone": ("Final Answer: It is 5.", "", "It is 5."),
    "in bold": ("**Final Answer:** It is 5.", "", "It is 5."),
    "after a thought": ("Thought: I know\nthe answer.\nFinal Answer: **5**", "Thought: I know\nthe answer.", "**5**"),
    "with the JSON of a call": (f'Final Answer: {{"add": {ARGUMENTS}}}', "", f'{{"add": {ARGUMENTS}}}'),
    "in a text": ("So far so good.\nFinal Answer: 5", "", "So far so good.\nFinal Answer: 5"),
}


@pytest.mark.parametrize(("text", "thinking", "answer"), FINAL_ANSWERS.values(), ids=FINAL_ANSWERS)
def test_a_final_answer_is_shown_without_its_label_and_thoughts(text, thinking, answer):
    result = parse_in_every_split(text, TOOLS)
    assert (result.thinking, result.text, result.calls) == (thinking, answer, ())


@pytest.mark.parametrize(
    "label", ["Action:", "Action: list_files", "Action: run\nAction Input:", "Action: run\nAction Input: {}", "run\n"]
)
@pytest.mark.parametrize("space", ["\n", " ", "\t "])
def test_endless_space_after_a_label_takes_linear_time(label, space):
    def work(size):
        parser = StreamParser(TOOLS)
        for delta in (label, *(space * 4 for _ in range(size))):
            parser.feed(delta)
        parser.close()

    assert_linear(work, 1_000)


@pytest.mark.parametrize(
    "text",
    [
        "Action:{}list_files",
        "Action: list_files{}Observation: a.txt",
        "Action: list_files\nAction Input: {{}}{}Observation: a",
    ],
)
def test_much_space_after_a_label_gives_the_same_result_in_every_split(text):
    for size in (119, 120, 121, 122):
        parse_in_every_split(text.format("\n" * size), TOOLS)


@pytest.mark.parametrize("pattern", ["\n", "\r\n", "\n   ", "\n  a line"])
def test_an_input_of_many_lines_takes_linear_time(pattern):
    assert_linear(lambda size: parse("Action: run\nAction Input: x" + pattern * size, TOOLS), 2_000)
