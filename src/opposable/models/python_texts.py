"""The texts of the Python protocol: functions told as signatures, worked examples, calls and results as text.

Measured on the embedded model: as Python it reads fewer tokens and writes half of those that JSON takes, gets more
calls right, and writes several calls where several things are asked for. Saying first what is wanted and what the
functions do makes its verdict, whether that fits, tell apart what they can do from what they cannot.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from opposable.domain.messages import Message
from opposable.domain.tools import ToolCall, ToolDefinition

FENCE = "```"
BEGINNING = "```python\n# wanted:"
"""What every reply begins with: written for the model, which goes on from there."""

VERDICT = "# fits:"
"""Behind this the model writes "yes" or "no"."""

INSTRUCTIONS = (
    "You turn the user's request into calls of Python functions. Answer with one Python code block. Its first line says "
    "in a few words what the user wants, the second what the functions do, the third whether that fits: "
    f'"{VERDICT} yes" or "{VERDICT} no". After a yes write the calls, one per line, with keyword arguments and literal '
    "values, one call for each thing asked for. Take the values from the request; leave out optional parameters that the "
    "request says nothing about. After a no write nothing: a function for something else is never called."
)

_TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "object": "dict", "array": "list"}
_MOST_CHOICES = 40


@dataclass(frozen=True, slots=True)
class Example:
    """A worked example: the functions, a request, what is wanted, what the functions do, and the calls if they fit."""

    functions: str
    request: str
    wanted: str
    do: str
    calls: str = ""


_GARDEN = (
    'def water_garden(zone: str, minutes: int = None):\n    """Turn on the sprinklers in one part of the garden."""'
)
_COOKBOOK = (
    'def search_cookbook(ingredient: str, max_minutes: int = None, cuisine: Literal["french", "thai"] = None):\n'
    '    """Find recipes in the family cookbook."""'
)
_WINTER = (
    'def wax_skis(skis: str, degrees: float = 0.0):\n    """Wax a pair of skis for a snow temperature."""\n\n'
    'def rent_cabin(cabin: str, day: str):\n    """Rent a mountain cabin for a day."""'
)
_POSTER = 'def print_poster(text: str, width_cm: int, height_cm: int, glossy: bool = False):\n    """Print a poster."""'
_PARCEL = 'def parcel_status(parcel_number: str):\n    """Where a parcel is now."""'
_DIVE = (
    "def dive_time(depth_m: float, tank_litres: float):\n"
    '    """How long a diver can stay at a depth with a tank of air."""'
)

EXAMPLES = (
    Example(
        _GARDEN,
        "The roses look thirsty, give them ten minutes. The lawn too",
        "watering the roses and the lawn",
        "turns on the sprinklers",
        'water_garden(zone="roses", minutes=10)\nwater_garden(zone="lawn", minutes=10)',
    ),
    Example(
        _GARDEN, "When did the tomatoes last get water?", "the time of the last watering", "turns on the sprinklers"
    ),
    Example(
        _COOKBOOK,
        "smth with lentils pls",
        "a recipe with lentils",
        "finds recipes",
        'search_cookbook(ingredient="lentils")',
    ),
    Example(_COOKBOOK, "Who was the first to eat with a fork?", "the history of the fork", "finds recipes"),
    Example(
        _WINTER,
        "I need the Blue Cabin on May 3rd",
        "renting a cabin for a day",
        "rent_cabin rents a cabin",
        'rent_cabin(cabin="Blue Cabin", day="May 3rd")',
    ),
    Example(_WINTER, "Sell two of our old skis to my neighbour", "selling skis", "waxes skis, rents cabins"),
    Example(
        _POSTER,
        "poster saying Closed Today, 40 by 60, shiny paper",
        "printing a poster",
        "prints a poster",
        'print_poster(text="Closed Today", width_cm=40, height_cm=60, glossy=True)',
    ),
    Example(_POSTER, "Which colour goes well with purple on a poster?", "advice on colours", "prints a poster"),
    Example(
        _PARCEL,
        "Where are AX-17 and AX-18?",
        "the place of two parcels",
        "tells where a parcel is",
        'parcel_status(parcel_number="AX-17")\nparcel_status(parcel_number="AX-18")',
    ),
    Example(
        _PARCEL,
        "Has my parcel arrived yet",
        "the place of a parcel, whose number is not given",
        "tells where a parcel is, by its number",
    ),
    Example(_DIVE, "How deep is the sea between Malta and Sicily?", "the depth of a sea", "gives the length of a dive"),
    Example(
        _DIVE,
        "12 litre tank, 18 m down. How long have I got?",
        "the length of a dive",
        "gives the length of a dive",
        "dive_time(depth_m=18, tank_litres=12)",
    ),
)


@functools.cache
def preamble() -> str:
    """The instructions and the examples: the same for every request, so that a server keeps them worked out."""
    told = [f"{INSTRUCTIONS}\n"]
    for n, example in enumerate(EXAMPLES, start=1):
        fits = f"yes\n{example.calls}" if example.calls else "no"
        told.append(
            f"# Example {n}\n{FENCE}python\n{example.functions}\n{FENCE}\nRequest: {example.request}\n"
            f"{BEGINNING} {example.wanted}\n# functions: {example.do}\n{VERDICT} {fits}\n{FENCE}\n"
        )
    return "\n".join(told)


def functions(tools: Sequence[ToolDefinition]) -> str:
    """The tools offered, as signatures."""
    return f"# Functions\n{FENCE}python\n" + "\n\n".join(signature(tool) for tool in tools) + f"\n{FENCE}"


def signature(tool: ToolDefinition) -> str:
    """A tool as a Python signature whose docstring describes it and its parameters; required ones stand first."""
    required = tool.parameters.get("required") or ()
    properties: dict[str, Any] = tool.parameters.get("properties") or {}
    told = ", ".join(
        f"{name}: {type_of(about)}" + ("" if name in required else f" = {_literal(about.get('default'))}")
        for name, about in sorted(properties.items(), key=lambda item: item[0] not in required)
    )
    lines = [f"def {tool.name}({told}):", f'    """{tool.description.strip()}']
    if properties:
        lines.append("")
    for name, about in properties.items():
        lines.append(f"    {name}: {(about.get('description') or '').strip()}")
        lines += _inner(about, "      ")
    if not properties:
        return "\n".join(lines) + '"""'
    return "\n".join([*lines, '    """'])


def type_of(schema: dict[str, Any]) -> str:
    """The type of a parameter as a Python annotation."""
    choices = schema.get("enum")
    if choices and len(choices) <= _MOST_CHOICES:
        return f"Literal[{', '.join(orjson.dumps(value).decode() for value in choices)}]"
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return " | ".join(dict.fromkeys(type_of(option) for option in options if option.get("type") != "null"))
    kind = schema.get("type", "string")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "string")
    if kind == "array" and isinstance(schema.get("items"), dict) and schema["items"]:
        return f"list[{type_of(schema['items'])}]"
    return _TYPES.get(kind, "str")


def calls_as_text(calls: Sequence[ToolCall]) -> str:
    """Calls of an earlier reply, as a code block."""
    written = []
    for call in calls:
        arguments: dict[str, Any] = orjson.loads(call.arguments)
        written.append(f"{call.name}({', '.join(f'{name}={_literal(value)}' for name, value in arguments.items())})")
    return "\n".join([f"{FENCE}python", *written, FENCE])


def results_as_text(results: Sequence[Message]) -> str:
    """Results of the calls of one reply, as one text."""
    return "\n\n".join(f"Result of {result.name}:\n{result.content}" for result in results)


def _inner(schema: dict[str, Any], indent: str) -> list[str]:
    """The properties of an object, or of a list of objects, a line each."""
    inner = schema.get("items") if schema.get("type") == "array" else schema
    lines: list[str] = []
    if not isinstance(inner, dict):
        return lines
    for name, about in (inner.get("properties") or {}).items():
        optional = "" if name in (inner.get("required") or ()) else ", optional"
        lines.append(f"{indent}- {name} ({type_of(about)}{optional}): {about.get('description') or ''}")
        lines += _inner(about, indent + "  ")
    return lines


def _literal(value: Any) -> str:
    return repr(value)
