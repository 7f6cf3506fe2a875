"""Arguments checked against a JSON Schema that came as data."""

import copy
from collections.abc import Callable
from typing import Any

import jsonschema_rs
import orjson

from opposable.domain.errors import FieldProblem, InvalidArguments, ToolRegistrationError

_MOST_PROBLEMS = 20


class ArgumentCheck:
    """A schema, compiled once. A parameter it does not name is a problem unless it allows more by `additionalProperties`.

    Raises: `ToolRegistrationError` when the schema is no schema, or refers to something outside itself.
    """

    def __init__(self, tool_id: str, schema: dict[str, Any]) -> None:
        properties = schema.get("properties", {})
        if schema.get("type", "object") != "object" or not isinstance(properties, dict):
            raise ToolRegistrationError(f"{tool_id}: its parameters must be a JSON Schema of type object.")
        self.names = tuple(properties)
        self._open = schema.get("additionalProperties", False) is not False
        strict = {"type": "object", **schema, **({} if self._open else {"additionalProperties": False})}
        try:
            self._validator = jsonschema_rs.Draft202012Validator(strict, retriever=_refuse)
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError, TypeError) as error:
            first = str(error).splitlines()[0]
            raise ToolRegistrationError(f"{tool_id}: its parameters are no valid JSON Schema: {first}") from error
        self._defaults = {
            name: inner["default"]
            for name, inner in properties.items()
            if isinstance(inner, dict) and "default" in inner
        }

    def filled(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments with the schema's defaults for those that are absent."""
        absent = {name: copy.deepcopy(value) for name, value in self._defaults.items() if name not in arguments}
        return {**arguments, **absent}

    def check(self, arguments: dict[str, Any]) -> None:
        """Raises: `InvalidArguments`, each problem told by field."""
        problems: dict[str, FieldProblem] = {}
        for error in self._validator.iter_errors(arguments):
            for problem in self._told(error):
                problems.setdefault(problem.field, problem)
            if len(problems) >= _MOST_PROBLEMS:
                break
        if problems:
            raise InvalidArguments(tuple(problems.values()))

    def _told(self, error: jsonschema_rs.ValidationError) -> list[FieldProblem]:
        kind: Any = error.kind
        at = ".".join(str(step) for step in error.instance_path)
        inside = f"{at}." if at else ""
        if kind.name == "required":
            return [FieldProblem(f"{inside}{kind.property}", "is required")]
        if kind.name == "additionalProperties":
            known = "there is no such field" if at else _no_such(self.names)
            holder: Any = error.instance
            return [FieldProblem(f"{inside}{name}", known, shown(holder.get(name))) for name in kind.unexpected]
        return [FieldProblem(at, _words(kind, error.message), shown(error.instance))]


def _no_such(names: tuple[str, ...]) -> str:
    return f"there is no such parameter; the parameters are {', '.join(names)}" if names else "it takes no parameters"


_TYPES = {"object": "dictionary", "array": "list"}
_WORDS: dict[str, Callable[[Any], str]] = {
    "type": lambda kind: f"must be a valid {_types(kind.types)}",
    "enum": lambda kind: f"must be one of {', '.join(shown(one) for one in kind.options)}",
    "const": lambda kind: f"must be {shown(kind.expected_value)}",
    "minimum": lambda kind: f"must be at least {kind.limit}",
    "maximum": lambda kind: f"must be at most {kind.limit}",
    "exclusiveMinimum": lambda kind: f"must be greater than {kind.limit}",
    "exclusiveMaximum": lambda kind: f"must be less than {kind.limit}",
    "minLength": lambda kind: f"must have at least {kind.limit} characters",
    "maxLength": lambda kind: f"must have at most {kind.limit} characters",
    "minItems": lambda kind: f"must have at least {kind.limit} items",
    "maxItems": lambda kind: f"must have at most {kind.limit} items",
    "pattern": lambda kind: f"must match {kind.pattern}",
}


def _types(types: list[str]) -> str:
    """Types in the words pydantic has for them; that null would do as well is not worth a word."""
    named = sorted(_TYPES.get(one, one) for one in types if one != "null")
    return " or ".join(named) or "null"


def _words(kind: Any, message: str) -> str:
    told = _WORDS.get(kind.name)
    return told(kind) if told else message if len(message) <= 300 else message[:300] + "…"


def shown(value: Any) -> str:
    """A value as JSON, at most 200 characters of it."""
    text = orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    return text if len(text) <= 200 else text[:200] + "…"


def _refuse(uri: str) -> Any:
    raise ValueError(f"a schema may not refer to {uri}: nothing is fetched")
