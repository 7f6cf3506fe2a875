"""Validation of arguments against a JSON Schema that came as data."""

import functools
import operator
from collections.abc import Callable
from typing import Any, get_args
from urllib.parse import quote

from opposable.domain.argument_problems import (
    Comparison,
    JsonType,
    is_required,
    must_be,
    must_be_type,
    must_compare,
    unknown_parameter,
)
from opposable.domain.errors import BadInput, FieldProblem, InvalidArguments
from opposable.domain.json_pointer import resolve_pointer
from opposable.domain.json_text import dump_json, preview_json
from opposable.domain.localized_text import LocalizedText
from opposable.tools.schema_phrases import (
    LIMIT_KEYWORDS,
    describe_schema,
    describe_types,
    join_options,
    must_fit,
    must_have_one,
    must_respect,
    unknown_field,
)

ValidateArguments = Callable[[dict[str, Any]], dict[str, Any]]
"""Returns valid arguments as they are. Raises: `InvalidArguments`."""

MAX_MALFORMED_KEYWORDS = 50
"""Malformed keywords of one schema that are deleted; each takes one compilation."""

_JSON_TYPES: dict[str, JsonType] = {name: name for name in get_args(JsonType)}
_IN_PLACE_KEYWORDS = frozenset({"allOf", "anyOf", "oneOf", "$ref"})
"""Keywords whose schemas apply to the same value."""
_EXCLUDING_KEYWORDS = frozenset(
    {"not", "anyOf", "oneOf", "if", "const", "enum", "minProperties", "maxProperties", "propertyNames"}
    | {"dependentRequired", "dependentSchemas", "unevaluatedProperties"}
)
"""Keywords, next to `required` and `additionalProperties`, by which a schema excludes objects."""
_COMPARISONS: dict[str, Comparison] = {
    "minimum": "minimum",
    "exclusiveMinimum": "exclusive minimum",
    "maximum": "maximum",
    "exclusiveMaximum": "exclusive maximum",
}


def compile_validator(parameters: dict[str, Any]) -> ValidateArguments:
    """Compile a JSON Schema into a validator. Compile once per tool, since it is slow.

    The declared default of a value is always valid: many schemas have `"type": "string", "default": null`. So is
    null where a schema has `"nullable": true` or lists the type "null", and a list of choices where the `enum` of its
    items is that of the list. Where no choice of an `enum` has the declared type, the same text in that type is valid. A
    value may fit several schemas of a `oneOf`, except an object where each of them requires or excludes properties: then
    `oneOf` says which properties exclude each other. A `format` describes a text and rejects none, in every draft.

    Raises:
        BadInput: `parameters` is not a JSON Schema of type object, or refers to another document.
    """
    import jsonschema_rs  # lazy: loaded with the first tool that is described as data

    types = parameters.get("type", "object")
    if "object" not in (types if isinstance(types, list) else [types]):
        raise BadInput(f"its parameters must be a JSON Schema of type object, not {parameters['type']!r}.")
    compile_schema = functools.partial(jsonschema_rs.validator_for, retriever=_reject_reference, validate_formats=False)
    errors = (ValueError, TypeError, RecursionError, jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError)
    try:
        try:
            validator = compile_schema(parameters)
        except errors:
            validator = compile_schema(_standardize(parameters))
    except errors as error:
        raise BadInput(f"its parameters are not a valid JSON Schema: {_get_first_line(error)}") from error
    overlap = jsonschema_rs.ValidationErrorKind.OneOfMultipleValid

    def is_accepted(error: Any) -> bool:
        return (
            (isinstance(error.kind, overlap) and _may_overlap(error, parameters))
            or _is_declared(error, parameters)
            or _is_list_of_choices(error)
            or _is_choice_as_text(error, parameters)
        )

    def validate(arguments: dict[str, Any]) -> dict[str, Any]:
        if validator.is_valid(arguments):
            return arguments
        problems: dict[str, FieldProblem] = {}
        for error in validator.iter_errors(arguments):
            if is_accepted(error):
                continue
            for chosen in [one for one in _choose_errors(error) if not is_accepted(one)] or [error]:
                for problem in _to_problems(chosen, parameters):
                    problems.setdefault(problem.field, problem)
        if problems:
            raise InvalidArguments(tuple(problems.values()))
        return arguments

    return validate


def _standardize(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema in the default draft, with the names in its references encoded as URIs require."""

    def encode(node: Any) -> Any:
        if isinstance(node, list):
            return [encode(item) for item in node]
        if not isinstance(node, dict):
            return node
        return {
            key: quote(value, safe="#/:?&=%~") if key == "$ref" and isinstance(value, str) else encode(value)
            for key, value in node.items()
        }

    return {key: encode(value) for key, value in schema.items() if key != "$schema"}


def compile_repaired(parameters: dict[str, Any]) -> ValidateArguments:
    """Compile a JSON Schema from which malformed keywords, such as `"type": "any"`, are deleted in place.

    So are patterns that cannot be compiled. A value that is no schema becomes one that allows anything.

    Raises:
        BadInput: As `compile_validator`, or more than `MAX_MALFORMED_KEYWORDS` are malformed.
    """
    for _ in range(MAX_MALFORMED_KEYWORDS):
        try:
            return compile_validator(parameters)
        except BadInput as error:
            cause: Any = error.__cause__
            path = getattr(cause, "instance_path", ())
            if not path:
                raise
            *parents, key = path
            node = functools.reduce(operator.getitem, parents, parameters)
            if set(getattr(cause.kind, "types", ())) == {"boolean", "object"}:
                node[key] = {}
            else:
                del node[key]
    return compile_validator(parameters)


def _is_declared(error: Any, schema: dict[str, Any]) -> bool:
    """Return whether a schema that applies to the wrong value allows it: by its `default`, or null by `nullable`."""
    node: Any = schema
    is_declared = False
    for step in error.evaluation_path[:-1]:
        try:
            node = node[step]
            if step == "$ref" and isinstance(node, str):
                node = resolve_pointer(schema, node)
        except (LookupError, TypeError):
            return False
        is_here = isinstance(step, int) or step in _IN_PLACE_KEYWORDS
        is_declared = (isinstance(node, dict) and _declares(node, error.instance)) or (is_declared and is_here)
    return is_declared


def _declares(node: dict[str, Any], value: Any) -> bool:
    """Return whether a schema allows null by `nullable` or a list of types, or has the value as its default."""
    types = node.get("type")
    if value is None and (node.get("nullable") is True or (isinstance(types, list) and "null" in types)):
        return True
    default = node.get("default", ...)
    return (type(default), default) == (type(value), value)


def _may_overlap(error: Any, schema: dict[str, Any]) -> bool:
    """Return whether a value may fit several schemas of a `oneOf`."""
    if not isinstance(error.instance, dict):
        return True
    try:
        return any(_is_open(one, schema) for one in functools.reduce(operator.getitem, error.schema_path, schema))
    except (LookupError, TypeError):
        return False


def _is_open(node: Any, schema: dict[str, Any], depth: int = 0) -> bool:
    """Return whether a schema fits objects by the types of their properties alone. Raises: `LookupError`."""
    if not isinstance(node, dict) or depth > 8 or node.get("additionalProperties") is False or node.get("required"):
        return False
    references = [resolve_pointer(schema, node["$ref"])] if "$ref" in node else []
    parts = (*node.get("allOf", ()), *references)
    return not _EXCLUDING_KEYWORDS.intersection(node) and all(_is_open(part, schema, depth + 1) for part in parts)


def _is_list_of_choices(error: Any) -> bool:
    """Return whether the wrong value is a list of choices, where the choices of a list are written for its items."""
    if error.kind.name != "enum" or not isinstance(error.instance, list):
        return False
    return all(item in error.kind.value for item in error.instance)


def _is_choice_as_text(error: Any, schema: dict[str, Any]) -> bool:
    """Return whether a value is written as a choice of an `enum` whose choices all have another type than declared."""
    import jsonschema_rs  # lazy: loaded with the first tool that is described as data

    if error.kind.name != "enum" or isinstance(error.instance, list):
        return False
    try:
        node = functools.reduce(operator.getitem, error.schema_path[:-1], schema)
        types = {"type": node["type"]}
    except (LookupError, TypeError):
        return False
    if any(jsonschema_rs.is_valid(types, choice) for choice in error.kind.value):
        return False
    value, *choices = (
        one if isinstance(one, str) else dump_json(one).decode() for one in (error.instance, *error.kind.value)
    )
    return value in choices


def _reject_reference(uri: str) -> Any:
    raise ValueError(f"it refers to {uri}, which is not in it")


def _get_first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


def _choose_errors(error: Any) -> list[Any]:
    """Return the errors of the alternative that an error of `anyOf` or `oneOf` is about; other errors as they are.

    That is the alternative whose constants the value has, else the one with the fewest errors. The error itself is
    returned where the value has the type of no alternative, or each alternative requires one other property.
    """
    branches = [
        [inner for outer in branch for inner in _choose_errors(outer)] for branch in getattr(error.kind, "context", ())
    ]
    if not branches or not all(branches) or _get_alternative_names(error):  # one that fits several has empty ones
        return [error]
    at = len(error.instance_path)
    if all(_is_about_type(inner, at) for branch in branches for inner in branch):
        return [error] if len(branches) > 1 else branches[0]
    return min(branches, key=lambda branch: _rank_branch(branch, at))


def _get_alternative_names(error: Any) -> list[str]:
    """Return the properties one of which is required, if that is all that the alternatives say."""
    branches = getattr(error.kind, "context", ())
    errors = [branch[0] for branch in branches if len(branch) == 1 and branch[0].kind.name == "required"]
    is_all = len(errors) == len(branches) and all(one.instance_path == error.instance_path for one in errors)
    return [one.kind.property for one in errors] if is_all else []


def _is_about_type(error: Any, depth: int) -> bool:
    """Return whether the value at a depth has another type, or is none of the choices."""
    return len(error.instance_path) == depth and error.kind.name in ("type", "enum", "const", "anyOf", "oneOf")


def _rank_branch(errors: list[Any], depth: int) -> tuple[bool, int, int]:
    """Return the rank of an alternative, lowest first: another type, then other constants, then the number of errors."""
    wrong_choices = [one for one in errors if _is_about_type(one, depth + 1) and one.kind.name in ("enum", "const")]
    return any(_is_about_type(one, depth) for one in errors), len(wrong_choices), len(errors)


def _to_problems(error: Any, parameters: dict[str, Any]) -> list[FieldProblem]:
    path = ".".join(str(step) for step in error.instance_path)
    kind = error.kind
    if kind.name == "required":
        return [FieldProblem(_join_path(path, kind.property), is_required())]
    if kind.name in ("additionalProperties", "unevaluatedProperties"):
        names = tuple(parameters.get("properties") or ())
        message = unknown_parameter(names) if names and not path else unknown_field()
        return [
            FieldProblem(_join_path(path, name), message, preview_json(error.instance.get(name)))
            for name in kind.unexpected
        ]
    return [FieldProblem(path, _describe_problem(error, parameters), preview_json(error.instance))]


def _describe_problem(error: Any, parameters: dict[str, Any]) -> str:
    kind, message = error.kind, str(error.message)
    if names := _get_alternative_names(error):
        return must_have_one(names)
    has_alternatives = kind.name in ("anyOf", "oneOf") and all(kind.context)
    if has_alternatives or (kind.name == "type" and kind.types in (["array"], ["object"])):
        phrase = _describe_schema_of(error, parameters)
        if phrase is not None:
            return must_fit(phrase)
    if kind.name == "type":
        return _describe_type_problem(sorted(kind.types, key=lambda name: (name == "null", name)))
    if kind.name == "enum":
        return must_fit(join_options(map(preview_json, kind.value)))
    if kind.name == "const":
        return must_be(preview_json(kind.value))
    if kind.name in _COMPARISONS:
        return must_compare(_COMPARISONS[kind.name], preview_json(kind.value))
    if kind.name in LIMIT_KEYWORDS:
        return must_respect(kind.name, kind.value)
    return message if len(message) <= 300 else f"{message[:300]}…"


def _describe_schema_of(error: Any, parameters: dict[str, Any]) -> LocalizedText | None:
    """Return a phrase for the values of the schema that an error is about."""
    try:
        node = functools.reduce(operator.getitem, error.schema_path[:-1], parameters)
    except (LookupError, TypeError):
        return None
    return describe_schema(node, parameters)


def _describe_type_problem(types: list[str]) -> str:
    if len(types) == 1 and types[0] in _JSON_TYPES:
        return must_be_type(_JSON_TYPES[types[0]])
    return must_fit(describe_types(types))


def _join_path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
