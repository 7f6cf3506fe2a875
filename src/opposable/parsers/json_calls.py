"""Classification of JSON values: the shapes in which models write calls."""

import re
from dataclasses import dataclass, field, replace
from typing import Any

from opposable.domain.json_text import dump_json
from opposable.parsers.arguments import ParsedArguments, parse_written_arguments
from opposable.parsers.markers import MISSING_END
from opposable.parsers.schema_coercion import SchemaNode
from opposable.parsers.tool_names import ToolIndex

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
FINAL_ACTIONS = frozenset({"finish", "final", "final_answer", "answer", "respond", "done"})
META_KEYS = frozenset(
    {*ID_KEYS, *THOUGHT_KEYS, *ANSWER_KEYS, "type", "index", "role", "explanation", "status", "action"}
)
FIRST_KEYS = frozenset({*NAME_KEYS, *ARGUMENT_KEYS, *LIST_KEYS, *ENVELOPE_KEYS, *META_KEYS})
MAX_ENVELOPES = 4


@dataclass(frozen=True, slots=True)
class RawCall:
    """A call as written: the tool name is not resolved, the arguments are not typed.

    `is_unfinished` means that the value around the call lacked closing brackets, and `has_closed_arguments` that the
    arguments had theirs, and the end of the call followed. `is_flat` means that the arguments stand next to the name.
    """

    name: str
    raw_arguments: Any
    id: str = ""
    repairs: tuple[str, ...] = ()
    is_unfinished: bool = False
    has_closed_arguments: bool = False
    is_flat: bool = False

    def parse_arguments(self, schema: SchemaNode, truncated: bool) -> ParsedArguments:
        """Parse the arguments and coerce them to the tool's schema; reject an unfinished call that lacks some."""
        result = parse_written_arguments(self.raw_arguments, schema, truncated, self.repairs)
        if result.value is None or not self.is_unfinished:
            return result
        if not truncated and not schema.lacks_property(result.value):
            return result
        if truncated or not self.has_closed_arguments or any(n not in result.value for n in schema.required_names()):
            return ParsedArguments(None, "the call ends in the middle", result.repairs, is_cut_off=True)
        return replace(result, repairs=(*result.repairs, MISSING_END))


@dataclass(slots=True)
class CallShape:
    """The content of a JSON value: calls, or a final answer."""

    calls: list[RawCall] = field(default_factory=list)
    answer: str | None = None
    thinking: str = ""
    parser: str = ""


def classify_value(value: Any, tools: ToolIndex, is_marked: bool, depth: int = 0) -> CallShape | None:
    """Return the calls in a JSON value, or None if it is not a call.

    `is_marked` means that the value follows a call marker, where a looser shape is accepted.
    """
    if depth > MAX_ENVELOPES:
        return None
    if isinstance(value, list):
        return _classify_list(value, tools, is_marked, depth)
    if not isinstance(value, dict) or not value:
        return None
    return (
        _classify_envelope(value, tools, is_marked, depth)
        or _classify_named_call(value, tools, is_marked)
        or _classify_keyed_calls(value, tools, is_marked)
    )


def _classify_list(values: list[Any], tools: ToolIndex, is_marked: bool, depth: int) -> CallShape | None:
    list_shape = CallShape(parser="json_list")
    for value in values:
        item_shape = classify_value(value, tools, is_marked, depth + 1)
        if item_shape is None or item_shape.answer is not None:
            return None
        list_shape.calls.extend(item_shape.calls)
    return list_shape if list_shape.calls else None


def _classify_envelope(value: dict[str, Any], tools: ToolIndex, is_marked: bool, depth: int) -> CallShape | None:
    thinking = next((value[key] for key in THOUGHT_KEYS if isinstance(value.get(key), str)), "")
    answer = next((value[key] for key in ANSWER_KEYS if isinstance(value.get(key), str)), None)
    for key in LIST_KEYS:
        items = [value[key]] if isinstance(value.get(key), dict) and not is_marked else value.get(key)
        if not isinstance(items, list) or not _has_only_keys(value, key):
            continue
        if not items and value.get("action") == "tool_call" and not is_marked:
            return CallShape([], answer or "", thinking, "seed")
        inner = _classify_list(items, tools, is_marked=True, depth=depth)
        if inner and all(isinstance(item, dict) for item in items):
            parser = _get_list_parser(value, key) if items is value[key] else "json"
            return CallShape(inner.calls, answer or None, thinking, parser)
    for key in ENVELOPE_KEYS:
        if isinstance(value.get(key), dict) and _has_only_keys(value, key):
            inner = classify_value(value[key], tools, is_marked, depth + 1)
            if inner:
                calls = [call if call.id else replace(call, id=_get_id(value)) for call in inner.calls]
                return CallShape(calls, answer or None, thinking, "openai")
    if (
        _is_final_answer(value)
        and (answer_text := answer if answer is not None else _get_final_text(value)) is not None
    ):
        return CallShape([], answer_text, thinking, "seed")
    return None


def _is_final_answer(value: dict[str, Any]) -> bool:
    """Return whether this is the final answer of a JSON agent."""
    action = _get_text(value.get("action"))
    if action is None or action.strip().casefold().replace(" ", "_") not in FINAL_ACTIONS:
        return False
    return set(value) <= META_KEYS | {"tool_calls", "action_input", "sql"}


def _get_final_text(value: dict[str, Any]) -> str | None:
    """Return the text of a final answer without a text field: its SQL, or a number or object as JSON."""
    text = _get_text(value.get("action_input")) or _get_text(value.get("sql"))
    content = value.get("content")
    return text if text is not None or content is None else dump_json(content).decode()


def _get_text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _get_list_parser(value: dict[str, Any], key: str) -> str:
    if value.get("action") == "tool_call":
        return "seed"
    return "openai" if key == "tool_calls" else "json_list"


def _has_only_keys(value: dict[str, Any], *keys: str) -> bool:
    """Return whether `value` has only `keys` and keys that commonly accompany a call."""
    return all(key in META_KEYS or key in keys for key in value)


def _get_id(value: dict[str, Any]) -> str:
    call_id = next((value[key] for key in ID_KEYS if isinstance(value.get(key), str | int)), "")
    return str(call_id)


def _classify_named_call(value: dict[str, Any], tools: ToolIndex, is_marked: bool) -> CallShape | None:
    """Classify `{"name": …, "arguments": …}`, under any keys that models use."""
    name_key = next((key for key in NAME_KEYS if isinstance(value.get(key), str)), None)
    if name_key is None:
        return None
    name = value[name_key]
    tool, _ = tools.find(name)
    argument_key = next((key for key in ARGUMENT_KEYS if key in value and key != name_key), None)
    if argument_key is None:
        return _classify_flat_call(value, name_key, tools, is_marked)
    raw_arguments = value[argument_key]
    if _is_definition(value, raw_arguments):
        return None
    repairs: tuple[str, ...] = () if argument_key == "arguments" else (f"key {argument_key!r} for 'arguments'",)
    if tool is not None and argument_key in ("action_input", "tool_input") and _is_plain_text(raw_arguments):
        names = list(tool.schema.properties())
        if len(names) == 1:
            raw_arguments, repairs = {names[0]: raw_arguments}, (*repairs, "the one argument given without its name")
    if is_marked:
        return CallShape([RawCall(name, raw_arguments, _get_id(value), repairs)], parser="json")
    if tool is not None and _is_listed_object(raw_arguments, tool.schema):
        raw_arguments, repairs = raw_arguments[0], (*repairs, "list around the arguments dropped")
    if not _has_only_keys(value, name_key, argument_key) or not _may_be_arguments(raw_arguments):
        return None
    has_usual_keys = name_key in ("name", "tool_name", "function_name") or argument_key == "action_input"
    if tool is None and not (has_usual_keys and isinstance(raw_arguments, dict)):
        return None
    return CallShape(
        [RawCall(name, raw_arguments, _get_id(value), repairs)], parser="react_json" if name_key == "action" else "json"
    )


def _is_plain_text(raw_arguments: Any) -> bool:
    return isinstance(raw_arguments, str) and raw_arguments.strip()[:1] not in ("{", "[", "")


def _is_listed_object(raw_arguments: Any, schema: SchemaNode) -> bool:
    """Return whether this is a list of one object, which has properties of the tool only."""
    if not isinstance(raw_arguments, list) or len(raw_arguments) != 1 or not isinstance(raw_arguments[0], dict):
        return False
    return bool(raw_arguments[0]) and raw_arguments[0].keys() <= schema.properties().keys()


def _may_be_arguments(raw_arguments: Any) -> bool:
    return (
        isinstance(raw_arguments, dict)
        or raw_arguments is None
        or (isinstance(raw_arguments, str) and raw_arguments.lstrip()[:1] in ("{", ""))
    )


def _is_definition(value: dict[str, Any], raw_arguments: Any) -> bool:
    """Return whether this is a tool's definition, with a schema for arguments."""
    if not isinstance(raw_arguments, dict):
        return False
    return isinstance(raw_arguments.get("properties"), dict) and (
        raw_arguments.get("type") == "object" or "description" in value
    )


def _classify_flat_call(value: dict[str, Any], name_key: str, tools: ToolIndex, is_marked: bool) -> CallShape | None:
    """Classify `{"name": "f", "x": 1}`: the arguments are siblings of the name."""
    tool, _ = tools.find(value[name_key])
    if tool is None:
        return (
            CallShape([RawCall(value[name_key], {}, _get_id(value))], parser="json")
            if is_marked and len(value) == 1
            else None
        )
    properties = tool.schema.properties()
    arguments = {
        key: item for key, item in value.items() if key != name_key and (key in properties or key not in META_KEYS)
    }
    if name_key in properties or any(key not in properties for key in arguments):
        return None
    if not arguments and not is_marked:
        return None
    if any(key not in arguments for key in tool.schema.required_names()):
        return None
    repairs = ("arguments next to the name",) if arguments else ()
    return CallShape([RawCall(value[name_key], arguments, _get_id(value), repairs, is_flat=True)], parser="json")


def _classify_keyed_calls(value: dict[str, Any], tools: ToolIndex, is_marked: bool) -> CallShape | None:
    """Classify `{"f": {"x": 1}}`: the tool's name is the key."""
    calls = []
    for name, raw_arguments in value.items():
        tool, repair = tools.find(name)
        if not isinstance(raw_arguments, dict) or (tool is None and not (is_marked and len(value) == 1)):
            return None
        if tool is None:
            calls.append(RawCall(name, raw_arguments))
            continue
        properties = tool.schema.properties()
        unknown = [key for key in raw_arguments if key not in properties]
        missing = [key for key in tool.schema.required_names() if key not in raw_arguments]
        if not is_marked and (unknown or missing or not raw_arguments or repair):
            return None
        calls.append(RawCall(name, raw_arguments))
    return CallShape(calls, parser="name_as_key")


_NAME_FIELD = re.compile(
    r"""["'](?:name|tool_name|tool|action|function)["']\s*[:：]\s*["'](?P<name>[\w.\-:/]{1,128})["']"""
)
_ARGUMENTS_FIELD = re.compile(r"""["'](?:arguments|parameters|args|action_input|input|params)["']\s*[:：]""")


def find_broken_call(body: str, tools: ToolIndex) -> RawCall | None:
    """Return a call that cannot be parsed but can be reported to the model.

    It names an available tool, before the arguments of any other, and begins its arguments. If they end, and only
    brackets of envelopes are wrong, it can be made.
    """
    names = list(_NAME_FIELD.finditer(body, 0, 4000))
    arguments_start = _ARGUMENTS_FIELD.search(body, 0, 4000)
    if not names or arguments_start is None:
        return None
    envelope_names = [name for name in names if name.start() < arguments_start.start()] or names[:1]
    name = next((name for name in envelope_names if tools.find(name["name"])[0]), None)
    if name is None:
        return None
    repairs = () if name is names[0] else (MISSING_END,)
    raw_arguments = body[arguments_start.end() :].strip()
    return RawCall(name["name"], raw_arguments, repairs=repairs, is_unfinished=not raw_arguments)
