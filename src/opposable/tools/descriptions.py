"""Tools in words: for a model that reads of them in a prompt, and for people."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import orjson

from opposable.domain.language import Language
from opposable.tools.registry import Entry, Slot

if TYPE_CHECKING:  # see tools/base.py
    from opposable.domain.specs import AnyToolSpec, Example

Detail = Literal["short", "full"]

_WORDS: dict[Language, dict[str, str]] = {
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


def described(entries: Iterable[Entry], detail: Detail, language: Language) -> str:
    """The tools of the entries: one line a tool where short, all parameters and an example where full."""
    if detail == "short":
        return "\n".join(line for entry in entries for line in _short(entry))
    return "\n\n".join(_full(entry, language) for entry in entries)


def examples_of(spec: "AnyToolSpec", action: str = "") -> "tuple[Example, ...]":
    """The examples of an action, or of all."""
    return tuple(example for one in spec.capabilities if one.name == action or not action for example in one.examples)


def _short(entry: Entry) -> list[str]:
    return [f"- {slot.definition.name}: {_first_sentence(slot.definition.description)}" for slot in entry.slots]


def _first_sentence(text: str) -> str:
    for at, character in enumerate(text):
        if character in "。！？" or (character in ".!?" and text[at + 1 : at + 2] in ("", " ", "\n")):
            return text[: at + 1]
    return text


def _full(entry: Entry, language: Language) -> str:
    spec, words = entry.spec, _WORDS[language]
    colon, comma = words[":"], words[","]
    name = spec.display_name or spec.name or spec.tool_id
    lines = [f"{words['tool']}{colon}{name} (ID: {spec.tool_id})", f"{words['type']}{colon}{spec.tool_type}"]
    if spec.description:
        lines.append(f"{words['description']}{colon}{spec.description}")
    if spec.tags:
        lines.append(f"{words['tags']}{colon}{comma.join(spec.tags)}")
    lines.append(f"{words['actions']}{colon}".rstrip())
    for slot in entry.slots:
        lines.append(f"  - {slot.definition.name}{colon}{slot.definition.description}")
        lines += [f"    {words['parameters']}{colon}{_parameters(slot.definition.parameters, language)}"]
        shown = examples_of(spec, slot.action or (spec.tool_id if len(entry.slots) > 1 else ""))
        if shown:
            lines.append(f"    {words['example']}{colon}{_json(shown[0].arguments)}")
    return "\n".join(lines)


def _parameters(schema: dict[str, Any], language: Language) -> str:
    words = _WORDS[language]
    required = schema.get("required", ())
    told = [
        _parameter(
            name, about if isinstance(about, dict) else {}, words["required" if name in required else "optional"]
        )
        for name, about in schema.get("properties", {}).items()
    ]
    return ("；" if language == "zh" else "; ").join(told) or words["none"]


def _parameter(name: str, about: dict[str, Any], needed: str) -> str:
    kind = about.get("type", "any")
    kind = "|".join(map(str, kind)) if isinstance(kind, Sequence) and not isinstance(kind, str) else kind
    choice = f" {_json(about['enum'])}" if "enum" in about else ""
    text = about.get("description", "")
    return f"{name} ({kind}{choice}, {needed})" + (f" {text}" if text else "")


def _json(value: Any) -> str:
    return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()


def line_of(slot: Slot) -> str:
    """A tool in one line with its parameters' names: what a model needs to choose it."""
    schema = slot.definition.parameters
    required = schema.get("required", ())
    names = ", ".join(name if name in required else f"{name}?" for name in schema.get("properties", {}))
    return f"- {slot.definition.name}({names}): {_first_sentence(slot.definition.description)}"
