"""Descriptions of tools as text, for prompts and for people."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from opposable.domain.json_text import dump_json
from opposable.domain.language import Language
from opposable.tools.registry import RegisteredTool, RegistryEntry

if TYPE_CHECKING:  # pydantic is loaded only where specs are used
    from opposable.domain.specs import AnyToolSpec, Example

Detail = Literal["short", "full"]

_LABELS: dict[str, tuple[str, str]] = {
    "tool": ("Tool", "工具"),
    "type": ("Type", "类型"),
    "description": ("Description", "描述"),
    "tags": ("Tags", "标签"),
    "actions": ("Actions", "可用功能"),
    "parameters": ("Parameters", "参数"),
    "example": ("Example", "示例"),
    "required": ("required", "必需"),
    "optional": ("optional", "可选"),
    "none": ("none", "无"),
    ":": (": ", "："),
    ",": (", ", "、"),
    ";": ("; ", "；"),
}
"""The English and the Chinese text of each label and separator."""


def describe_entries(entries: Iterable[RegistryEntry], detail: Detail, language: Language) -> str:
    """Describe entries: "short" with one line per tool, "full" with all parameters and an example."""
    if detail == "short":
        tools = [tool for entry in entries for tool in entry.tools]
        return "\n".join(f"- {tool.name}: {_get_first_sentence(tool.outline.description)}" for tool in tools)
    return "\n\n".join(_describe_in_full(entry, language) for entry in entries)


def get_examples(spec: "AnyToolSpec", action: str = "") -> "tuple[Example, ...]":
    """Return the examples of an action, or of all."""
    return tuple(
        example
        for capability in spec.capabilities
        if capability.name == action or not action
        for example in capability.examples
    )


def _get_first_sentence(text: str) -> str:
    sentence = re.match(r".*?(?:[。！？]|[.!?](?=[ \n]|\Z))", text, re.DOTALL)
    return sentence[0] if sentence else text


def _describe_in_full(entry: RegistryEntry, language: Language) -> str:
    labels = {label: chinese if language == "zh" else english for label, (english, chinese) in _LABELS.items()}
    spec, colon = entry.spec, labels[":"]
    name = spec.display_name or spec.name or spec.tool_id
    lines = [f"{labels['tool']}{colon}{name} (ID: {spec.tool_id})", f"{labels['type']}{colon}{spec.tool_type}"]
    if spec.description:
        lines.append(f"{labels['description']}{colon}{spec.description}")
    if spec.tags:
        lines.append(f"{labels['tags']}{colon}{labels[','].join(spec.tags)}")
    lines.append(f"{labels['actions']}{colon}".rstrip())
    for tool in entry.tools:
        definition = tool.definition
        lines.append(f"  - {definition.name}{colon}{definition.description}")
        lines.append(f"    {labels['parameters']}{colon}{_describe_parameters(definition.parameters, labels)}")
        examples = get_examples(spec, tool.action or (spec.tool_id if len(entry.tools) > 1 else ""))
        if examples:
            lines.append(f"    {labels['example']}{colon}{_to_json(examples[0].arguments)}")
    return "\n".join(lines)


def _describe_parameters(schema: dict[str, Any], labels: Mapping[str, str]) -> str:
    descriptions = []
    for name, declared in schema.get("properties", {}).items():
        parameter = declared if isinstance(declared, dict) else {}
        json_type = parameter.get("type", "any")
        if isinstance(json_type, Sequence) and not isinstance(json_type, str):
            json_type = "|".join(map(str, json_type))
        choices = f" {_to_json(parameter['enum'])}" if "enum" in parameter else ""
        requirement = labels["required" if name in schema.get("required", ()) else "optional"]
        description = f" {parameter['description']}" if parameter.get("description") else ""
        descriptions.append(f"{name} ({json_type}{choices}, {requirement}){description}")
    return labels[";"].join(descriptions) or labels["none"]


def _to_json(value: Any) -> str:
    return dump_json(value, default=str).decode()


def describe_in_one_line(tool: RegisteredTool) -> str:
    """Describe a tool in one line with its parameters' names: what a model needs to choose it."""
    schema = tool.definition.parameters
    required = schema.get("required", ())
    names = ", ".join(name if name in required else f"{name}?" for name in schema.get("properties", {}))
    return f"- {tool.name}({names}): {_get_first_sentence(tool.outline.description)}"
