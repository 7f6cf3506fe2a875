"""The texts of the text protocol, in English and Chinese."""

from collections.abc import Sequence
from typing import Any

from opposable.domain.json_text import dump_json
from opposable.domain.language import Language
from opposable.domain.messages import Message
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.models.base import ForcedTool, ToolChoice

PLACEHOLDERS = ("…", "...", "用中文写的回答")
"""The placeholders of the answer in the instructions, as models repeat them; a model that does gave no answer."""

ASK_FOR_ANSWER: dict[Language, str] = {
    "en": "Answer the user's request in words, from these results.",
    "zh": "请根据以上结果，用中文回答用户的请求。",
}
"""The request for an answer after a reply without one."""

_ENGLISH_TEMPLATE = """# Tools

You can call these tools:

{tools}

## How to call a tool

To call one or more tools, reply with this JSON and nothing else:

{{"action": "tool_call", "tool_calls": [{{"name": "tool_name", "arguments": {{"parameter": "value"}}}}]}}

When you do not need a tool, reply with this JSON and nothing else:

{{"action": "finish", "content": "…"}}

Results of the tools are told to you afterwards. Never make a result up.{must}"""

_CHINESE_TEMPLATE = """# 工具调用协议

你可以调用以下工具来完成任务：

{tools}

## 如何调用工具

需要调用一个或多个工具时，只返回如下 JSON，不要包含其他文本：

{{"action": "tool_call", "tool_calls": [{{"name": "tool_name", "arguments": {{"param": "value"}}}}]}}

不需要调用工具时，只返回如下 JSON，不要包含其他文本：

{{"action": "finish", "content": "用中文写的回答"}}

工具的结果随后会告诉你，不要编造结果。{must}"""


def render_instructions(tools: Sequence[ToolDefinition], choice: ToolChoice, language: Language) -> str:
    """Return the instructions with the descriptions of the tools."""
    template = _CHINESE_TEMPLATE if language == "zh" else _ENGLISH_TEMPLATE
    return template.format(
        tools="\n\n".join(describe_tool(tool, language) for tool in tools), must=_render_requirement(choice, language)
    )


def describe_tool(tool: ToolDefinition, language: Language) -> str:
    """Describe a tool: a heading, its description, and a line for each parameter."""
    is_chinese = language == "zh"
    lines = [f"### {tool.name}", tool.description]
    properties: dict[str, Any] = tool.parameters.get("properties", {})
    if properties:
        lines.append("参数：" if is_chinese else "Parameters:")
    required = tool.parameters.get("required", ())
    for name, about in properties.items():
        needed = ("必需" if is_chinese else "required") if name in required else ("可选" if is_chinese else "optional")
        description = about.get("description", "") if isinstance(about, dict) else ""
        lines.append(f"  - {name} ({describe_type(about)}, {needed}): {description}".rstrip(": "))
    return "\n".join(lines)


def describe_type(schema: dict[str, Any] | bool) -> str:
    """Describe the type of a parameter, such as `array of integer`."""
    if isinstance(schema, bool):
        return "any"
    if "enum" in schema:
        return "one of " + ", ".join(dump_json(value).decode() for value in schema["enum"])
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(describe_type(option) for option in options)
    kind = schema.get("type", "any")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array" and isinstance(schema.get("items"), dict):
        return f"array of {describe_type(schema['items'])}"
    if kind == "object" and schema.get("properties"):
        inner = ", ".join(
            f"{name}: {describe_type(property_schema)}" for name, property_schema in schema["properties"].items()
        )
        return f"object {{{inner}}}"
    return str(kind)


def render_calls(calls: Sequence[ToolCall]) -> str:
    """Render the calls of an earlier reply in the form of the protocol."""
    call_texts = ", ".join(
        f'{{"name": {dump_json(call.name).decode()}, "arguments": {call.arguments_json}}}' for call in calls
    )
    return f'{{"action": "tool_call", "tool_calls": [{call_texts}]}}'


def render_results(results: Sequence[Message], language: Language) -> str:
    """Render the results of one reply as one text."""
    heading = "工具 {} 的结果：" if language == "zh" else "Result of {}:"
    return "\n\n".join(f"{heading.format(result.name)}\n{result.content}" for result in results)


def _render_requirement(choice: ToolChoice, language: Language) -> str:
    if isinstance(choice, ForcedTool):
        return (
            f"\n\n你现在必须调用工具 {choice.name}。" if language == "zh" else f"\n\nYou must call {choice.name} now."
        )
    if choice == "required":
        return "\n\n你现在必须调用一个工具。" if language == "zh" else "\n\nYou must call a tool now."
    return ""
