"""Which JSON values are calls: every shape in which a model writes a call as an object or a list."""

import re
from dataclasses import dataclass, field
from typing import Any

from opposable.parsers.arguments import Arguments, arguments_of
from opposable.parsers.schema_coercion import Schema
from opposable.parsers.tool_names import Tools

NAME_KEYS = (
    "name", "tool_name", "function_name", "tool", "function", "recipient_name", "action", "api_name", "func",
)  # fmt: skip
ARGUMENT_KEYS = (
    "arguments", "parameters", "args", "params", "input", "inputs", "kwargs", "tool_input", "action_input",
    "tool_args", "tool_arguments", "function_args", "tool_parameters",
)  # fmt: skip
LIST_KEYS = ("tool_calls", "function_calls", "tool_uses", "calls", "actions")
ENVELOPE_KEYS = ("function", "function_call", "tool_call", "tool_use")
ID_KEYS = ("id", "tool_call_id", "call_id")
THOUGHT_KEYS = ("reasoning", "thought", "thoughts", "thinking", "analysis")
ANSWER_KEYS = ("content", "answer", "final_answer", "response")
FINISHES = frozenset({"finish", "final", "final_answer", "answer", "respond", "done"})
META_KEYS = frozenset(
    {*ID_KEYS, *THOUGHT_KEYS, *ANSWER_KEYS, "type", "index", "role", "explanation", "status", "action"}
)
FIRST_KEYS = frozenset({*NAME_KEYS, *ARGUMENT_KEYS, *LIST_KEYS, *ENVELOPE_KEYS, *META_KEYS})
MAX_ENVELOPES = 4


@dataclass(frozen=True, slots=True)
class RawCall:
    """A call as written: the name unresolved, the arguments untyped."""

    name: str
    written: Any
    id: str = ""
    repairs: tuple[str, ...] = ()

    def arguments(self, schema: Schema, truncated: bool) -> Arguments:
        """The arguments, typed by the tool's schema."""
        return arguments_of(self.written, schema, truncated, self.repairs)


@dataclass(slots=True)
class Shape:
    """What a JSON value was found to be: calls, or the seed protocol's final answer."""

    calls: list[RawCall] = field(default_factory=list)
    answer: str | None = None
    thinking: str = ""
    dialect: str = ""


def shape_of(value: Any, tools: Tools, marked: bool, depth: int = 0) -> Shape | None:
    """The calls that a JSON value is; None where it is no call shape.

    `marked` says that the value stands behind a call marker, where a looser shape is enough.
    """
    if depth > MAX_ENVELOPES:
        return None
    if isinstance(value, list):
        return _listed(value, tools, marked, depth)
    if not isinstance(value, dict) or not value:
        return None
    return _enveloped(value, tools, marked, depth) or _single(value, tools, marked) or _keyed(value, tools, marked)


def _listed(values: list[Any], tools: Tools, marked: bool, depth: int) -> Shape | None:
    result = Shape(dialect="json_list")
    for value in values:
        shape = shape_of(value, tools, marked, depth + 1)
        if shape is None or shape.answer is not None:
            return None
        result.calls.extend(shape.calls)
    return result if result.calls else None


def _enveloped(value: dict[str, Any], tools: Tools, marked: bool, depth: int) -> Shape | None:
    thinking = next((value[key] for key in THOUGHT_KEYS if isinstance(value.get(key), str)), "")
    answer = next((value[key] for key in ANSWER_KEYS if isinstance(value.get(key), str)), None)
    for key in LIST_KEYS:
        if isinstance(value.get(key), list) and value[key] and _only(value, key):
            found = _listed(value[key], tools, marked=True, depth=depth)
            if found and all(isinstance(item, dict) for item in value[key]):
                return Shape(found.calls, answer or None, thinking, _list_dialect(value, key))
    for key in ENVELOPE_KEYS:
        if isinstance(value.get(key), dict) and _only(value, key):
            found = shape_of(value[key], tools, marked, depth + 1)
            if found:
                ids = [call if call.id else _with_id(call, _id(value)) for call in found.calls]
                return Shape(ids, answer or None, thinking, "openai")
    if _finishes(value) and (said := answer if answer is not None else _text(value.get("action_input"))) is not None:
        return Shape([], said, thinking, "seed")
    return None


def _finishes(value: dict[str, Any]) -> bool:
    """Whether this is a final answer: the seed protocol's, or a JSON agent's."""
    action = _text(value.get("action"))
    if action is None or action.strip().casefold().replace(" ", "_") not in FINISHES:
        return False
    return set(value) <= META_KEYS | {"tool_calls", "action_input"}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _list_dialect(value: dict[str, Any], key: str) -> str:
    if value.get("action") == "tool_call":
        return "seed"
    return "openai" if key == "tool_calls" else "json_list"


def _only(value: dict[str, Any], *keys: str) -> bool:
    """Whether `value` says nothing but `keys` and what usually stands around a call."""
    return all(key in META_KEYS or key in keys for key in value)


def _with_id(call: RawCall, call_id: str) -> RawCall:
    return RawCall(call.name, call.written, call_id, call.repairs)


def _id(value: dict[str, Any]) -> str:
    found = next((value[key] for key in ID_KEYS if isinstance(value.get(key), str | int)), "")
    return str(found)


def _single(value: dict[str, Any], tools: Tools, marked: bool) -> Shape | None:
    """`{"name": …, "arguments": …}` under any of the names models use for the two."""
    name_key = next((key for key in NAME_KEYS if isinstance(value.get(key), str)), None)
    if name_key is None:
        return None
    name = value[name_key]
    tool, _ = tools.find(name)
    argument_key = next((key for key in ARGUMENT_KEYS if key in value and key != name_key), None)
    if argument_key is None:
        return _flat(value, name_key, tools, marked)
    written = value[argument_key]
    if _is_definition(value, written):
        return None
    repairs: tuple[str, ...] = () if argument_key == "arguments" else (f"key {argument_key!r} for 'arguments'",)
    if tool is not None and argument_key in ("action_input", "tool_input") and _is_plain(written):
        names = list(tool.schema.properties())
        if len(names) == 1:
            written, repairs = {names[0]: written}, (*repairs, "the one argument given without its name")
    if marked:
        return Shape([RawCall(name, written, _id(value), repairs)], dialect="json")
    if not _only(value, name_key, argument_key) or not _holds_arguments(written):
        return None
    plainly = name_key in ("name", "tool_name", "function_name") or argument_key == "action_input"
    if tool is None and not (plainly and isinstance(written, dict)):
        return None
    return Shape(
        [RawCall(name, written, _id(value), repairs)], dialect="react_json" if name_key == "action" else "json"
    )


def _is_plain(written: Any) -> bool:
    return isinstance(written, str) and written.strip()[:1] not in ("{", "[", "")


def _holds_arguments(written: Any) -> bool:
    return (
        isinstance(written, dict) or written is None or (isinstance(written, str) and written.lstrip()[:1] in ("{", ""))
    )


def _is_definition(value: dict[str, Any], written: Any) -> bool:
    """Whether this is a tool's description repeated, with a schema where arguments would stand."""
    if not isinstance(written, dict):
        return False
    return isinstance(written.get("properties"), dict) and (written.get("type") == "object" or "description" in value)


def _flat(value: dict[str, Any], name_key: str, tools: Tools, marked: bool) -> Shape | None:
    """`{"name": "f", "x": 1}`: the arguments stand beside the name."""
    tool, _ = tools.find(value[name_key])
    if tool is None:
        return Shape([RawCall(value[name_key], {}, _id(value))], dialect="json") if marked and len(value) == 1 else None
    properties = tool.schema.properties()
    rest = {key: item for key, item in value.items() if key != name_key and (key in properties or key not in META_KEYS)}
    if name_key in properties or any(key not in properties for key in rest):
        return None
    if not rest and not marked:
        return None
    if any(key not in rest for key in tool.schema.required()):
        return None
    repairs = ("arguments beside the name",) if rest else ()
    return Shape([RawCall(value[name_key], rest, _id(value), repairs)], dialect="json")


def _keyed(value: dict[str, Any], tools: Tools, marked: bool) -> Shape | None:
    """`{"f": {"x": 1}}`: the tool's name is the key."""
    calls = []
    for name, written in value.items():
        tool, repair = tools.find(name)
        if not isinstance(written, dict) or (tool is None and not (marked and len(value) == 1)):
            return None
        if tool is None:
            calls.append(RawCall(name, written))
            continue
        properties = tool.schema.properties()
        strange = [key for key in written if key not in properties]
        missing = [key for key in tool.schema.required() if key not in written]
        if not marked and (strange or missing or not written or repair):
            return None
        calls.append(RawCall(name, written))
    return Shape(calls, dialect="name_as_key")


_NAMED = re.compile(r"""["'](?:name|tool_name|tool|action|function)["']\s*[:：]\s*["'](?P<name>[\w.\-:/]{1,128})["']""")
_ARGUED = re.compile(r"""["'](?:arguments|parameters|args|action_input|tool_calls|input|params)["']\s*[:：]""")


def broken_call(body: str, tools: Tools) -> RawCall | None:
    """A call that cannot be read, which the model can be told of: it names an offered tool and begins its arguments."""
    name = _NAMED.search(body, 0, 4000)
    if name is None or tools.find(name["name"])[0] is None or not _ARGUED.search(body, 0, 4000):
        return None
    begun = _ARGUED.search(body, name.end()) or _ARGUED.search(body)
    written = body[begun.end() :] if begun else body
    return RawCall(name["name"], written.strip())
