"""Arguments checked by a JSON Schema that came as data, with each problem told by field."""

from collections.abc import Callable
from typing import Any

import orjson

from opposable.domain.errors import BadInput, FieldProblem, InvalidArguments

ValidateArguments = Callable[[dict[str, Any]], None]

_TYPE_PHRASES = {
    "integer": "a valid integer",
    "number": "a valid number",
    "string": "a valid string",
    "boolean": "a valid boolean",
    "array": "a valid list",
    "object": "a valid dictionary",
    "null": "null",
}


def compile_validator(parameters: dict[str, Any]) -> ValidateArguments:
    """What raises `InvalidArguments` where arguments do not fit the schema. Made once a tool: it costs.

    Raises: `BadInput` for what is no JSON Schema of type object, or refers to something outside itself.
    """
    import jsonschema_rs

    if parameters.get("type", "object") != "object":
        raise BadInput(f"its parameters must be a JSON Schema of type object, not {parameters['type']!r}.")
    try:
        validator = jsonschema_rs.validator_for(parameters, retriever=_reject_reference)
    except (ValueError, TypeError, jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError) as error:
        raise BadInput(f"its parameters are no valid JSON Schema: {_first_line(error)}") from error
    names = tuple(parameters.get("properties", ()))

    def check(arguments: dict[str, Any]) -> None:
        if validator.is_valid(arguments):
            return
        found: dict[str, FieldProblem] = {}
        for error in validator.iter_errors(arguments):
            for problem in _to_problems(error, names):
                found.setdefault(problem.field, problem)
        raise InvalidArguments(tuple(found.values()))

    return check


def _reject_reference(uri: str) -> Any:
    raise ValueError(f"it refers to {uri}, which is not in it")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


def _to_problems(error: Any, names: tuple[str, ...]) -> list[FieldProblem]:
    path = ".".join(str(step) for step in error.instance_path)
    kind = error.kind
    name = kind.name
    if name == "required":
        return [FieldProblem(_join_path(path, kind.property), "is required")]
    if name in ("additionalProperties", "unevaluatedProperties"):
        known = f"the parameters are {', '.join(names)}" if names and not path else "take it out"
        return [
            FieldProblem(
                _join_path(path, extra),
                f"there is no such parameter; {known}",
                _preview_value(error.instance.get(extra)),
            )
            for extra in kind.unexpected
        ]
    return [FieldProblem(path, _describe_problem(kind, name, str(error.message)), _preview_value(error.instance))]


def _describe_problem(kind: Any, name: str, message: str) -> str:
    if name == "type":
        types = sorted(kind.types, key=lambda one: (one == "null", one))
        return f"must be {' or '.join(_TYPE_PHRASES.get(one, one) for one in types)}"
    if name == "enum":
        return f"must be {' or '.join(_preview_value(option) for option in kind.value)}"
    if name == "const":
        return f"must be {_preview_value(kind.value)}"
    if name in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"):
        words = {
            "minimum": "greater than or equal to",
            "exclusiveMinimum": "greater than",
            "maximum": "less than or equal to",
            "exclusiveMaximum": "less than",
        }
        return f"must be {words[name]} {_preview_value(kind.value)}"
    return message if len(message) <= 300 else f"{message[:300]}…"


def _join_path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _preview_value(value: Any) -> str:
    text = orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    return text if len(text) <= 200 else text[:200] + "…"


def remove_optional_nulls(arguments: dict[str, Any], schema: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The arguments without the nulls that models write for "not given", and what was left out, in words.

    A null stays where the schema requires the property, allows null for it, or says nothing of it.
    """
    properties, required = schema.get("properties", {}), schema.get("required", ())
    out = [
        name
        for name, value in arguments.items()
        if value is None and name not in required and not _allows_null(properties.get(name))
    ]
    if not out:
        return arguments, ()
    kept = {name: value for name, value in arguments.items() if name not in out}
    return kept, tuple(f"null left out: {name}" for name in out)


def _allows_null(schema: Any) -> bool:
    """Whether a property's schema allows null, or says too little to forbid it."""
    if not isinstance(schema, dict):
        return True
    if schema.get("nullable") or None in schema.get("enum", ()):
        return True
    kinds = schema.get("type")
    if kinds is None:
        choices = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
        return not choices or any(_allows_null(one) for one in choices)
    return "null" in (kinds if isinstance(kinds, list) else [kinds])
