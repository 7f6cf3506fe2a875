"""Tools in words: for a model that reads of them in a prompt, and for people."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import orjson

from opposable.domain.language import Language
from opposable.tools.registry import RegisteredTool, RegistryEntry

if TYPE_CHECKING:  # see tools/base.py
    from opposable.domain.specs import AnyToolSpec, Example

Detail = Literal["short", "full"]

_LABELS: dict[Language, dict[str, str]] = {
    "en": {
        "tool": "Tool",
        "type": "Type",
        "description": "Description",
        "tags": "Tags",
        "actions": "Actions",
        "parameters": "Parameters",
        "example": "Example",
        "required": "required",
        "optional": "optional",
        "none": "none",
        ":": ": ",
        ",": ", ",
    },
    "zh": {
        "tool": "工具",
        "type": "类型",
        "description": "描述",
        "tags": "标签",
        "actions": "可用功能",
        "parameters": "参数",
        "example": "示例",
        "required": "必需",
        "optional": "可选",
        "none": "无",
        ":": "：",
        ",": "、",
    },
}


def describe_entries(entries: Iterable[RegistryEntry], detail: Detail, language: Language) -> str:
    """The tools of the entries: one line a tool where short, all parameters and an example where full."""
    if detail == "short":
        return "\n".join(line for entry in entries for line in _describe_briefly(entry))
    return "\n\n".join(_describe_in_full(entry, language) for entry in entries)


def get_examples(spec: "AnyToolSpec", action: str = "") -> "tuple[Example, ...]":
    """The examples of an action, or of all."""
    return tuple(example for one in spec.capabilities if one.name == action or not action for example in one.examples)


def _describe_briefly(entry: RegistryEntry) -> list[str]:
    return [f"- {slot.definition.name}: {_get_first_sentence(slot.definition.description)}" for slot in entry.tools]


def _get_first_sentence(text: str) -> str:
    for at, character in enumerate(text):
        if character in "。！？" or (character in ".!?" and text[at + 1 : at + 2] in ("", " ", "\n")):
            return text[: at + 1]
    return text


def _describe_in_full(entry: RegistryEntry, language: Language) -> str:
    spec, words = entry.spec, _LABELS[language]
    colon, comma = words[":"], words[","]
    name = spec.display_name or spec.name or spec.tool_id
    lines = [f"{words['tool']}{colon}{name} (ID: {spec.tool_id})", f"{words['type']}{colon}{spec.tool_type}"]
    if spec.description:
        lines.append(f"{words['description']}{colon}{spec.description}")
    if spec.tags:
        lines.append(f"{words['tags']}{colon}{comma.join(spec.tags)}")
    lines.append(f"{words['actions']}{colon}".rstrip())
    for slot in entry.tools:
        lines.append(f"  - {slot.definition.name}{colon}{slot.definition.description}")
        lines += [f"    {words['parameters']}{colon}{_describe_parameters(slot.definition.parameters, language)}"]
        shown = get_examples(spec, slot.action or (spec.tool_id if len(entry.tools) > 1 else ""))
        if shown:
            lines.append(f"    {words['example']}{colon}{_to_json(shown[0].arguments)}")
    return "\n".join(lines)


def _describe_parameters(schema: dict[str, Any], language: Language) -> str:
    words = _LABELS[language]
    required = schema.get("required", ())
    told = [
        _describe_parameter(
            name, about if isinstance(about, dict) else {}, words["required" if name in required else "optional"]
        )
        for name, about in schema.get("properties", {}).items()
    ]
    return ("；" if language == "zh" else "; ").join(told) or words["none"]


def _describe_parameter(name: str, schema: dict[str, Any], requirement: str) -> str:
    kind = schema.get("type", "any")
    kind = "|".join(map(str, kind)) if isinstance(kind, Sequence) and not isinstance(kind, str) else kind
    choice = f" {_to_json(schema['enum'])}" if "enum" in schema else ""
    text = schema.get("description", "")
    return f"{name} ({kind}{choice}, {requirement})" + (f" {text}" if text else "")


def _to_json(value: Any) -> str:
    return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()


def describe_in_one_line(tool: RegisteredTool) -> str:
    """A tool in one line with its parameters' names: what a model needs to choose it."""
    schema = tool.definition.parameters
    required = schema.get("required", ())
    names = ", ".join(name if name in required else f"{name}?" for name in schema.get("properties", {}))
    return f"- {tool.definition.name}({names}): {_get_first_sentence(tool.definition.description)}"
