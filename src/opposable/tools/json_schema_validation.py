"""Validation of arguments against a JSON Schema that came as data."""

import functools
import json
import operator
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from opposable.domain.argument_problems import is_required, must_be, unknown_parameter
from opposable.domain.errors import BadInput, FieldProblem, InvalidArguments
from opposable.domain.json_pointer import resolve_pointer
from opposable.domain.json_text import dump_json, preview_json
from opposable.domain.text_normalization import shorten_text
from opposable.tools.schema_phrases import (
    LIMIT_KEYWORDS,
    choose_branch,
    describe_schema,
    describe_types,
    join_options,
    join_path,
    must_be_type,
    must_have_one,
    must_respect,
    unknown_field,
)

ValidateArguments = Callable[[dict[str, Any]], dict[str, Any]]
"""Returns valid arguments as they are. Raises: `InvalidArguments`."""

MAX_MALFORMED_KEYWORDS = 50
"""Malformed keywords of one schema that are deleted; each takes one compilation."""

_IN_PLACE_KEYWORDS = frozenset({"allOf", "anyOf", "oneOf", "$ref"})
"""Keywords whose schemas apply to the same value."""
_EXCLUDING_KEYWORDS = frozenset(
    {"not", "anyOf", "oneOf", "if", "const", "enum", "minProperties", "maxProperties", "propertyNames"}
    | {"dependentRequired", "dependentSchemas", "unevaluatedProperties"}
)
"""Keywords, next to `required` and `additionalProperties`, by which a schema excludes objects."""
_ERROR_KINDS = {"type": "type", "anyOf": "type", "oneOf": "type", "enum": "choice", "const": "choice"}
"""What an error says of the value, by its keyword; see `choose_branch`."""


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
        first_line = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
        raise BadInput(f"its parameters are not a valid JSON Schema: {first_line}") from error

    def is_accepted(error: Any) -> bool:
        return _may_overlap(error, parameters) or _is_declared(error, parameters) or _is_choice(error, parameters)

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

    def encode_reference(node: dict[str, Any]) -> dict[str, Any]:
        reference = node.get("$ref")
        return {**node, "$ref": quote(reference, safe="#/:?&=%~")} if isinstance(reference, str) else node

    own_draft = {key: value for key, value in schema.items() if key != "$schema"}
    standard: dict[str, Any] = json.loads(dump_json(own_draft), object_hook=encode_reference)
    return standard


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
    """Return whether an error says that a value fits several schemas of a `oneOf`, and it may."""
    import jsonschema_rs  # lazy: loaded with the first tool that is described as data

    if not isinstance(error.kind, jsonschema_rs.ValidationErrorKind.OneOfMultipleValid):
        return False
    if not isinstance(error.instance, dict):
        return True
    try:
        return any(_is_open(one, schema) for one in _get_schema_of(error, schema).get("oneOf", ()))
    except LookupError:
        return False


def _is_open(node: Any, schema: dict[str, Any], depth: int = 0) -> bool:
    """Return whether a schema fits objects by the types of their properties alone. Raises: `LookupError`."""
    if not isinstance(node, dict) or depth > 8 or node.get("additionalProperties") is False or node.get("required"):
        return False
    references = [resolve_pointer(schema, node["$ref"])] if "$ref" in node else []
    parts = (*node.get("allOf", ()), *references)
    return not _EXCLUDING_KEYWORDS.intersection(node) and all(_is_open(part, schema, depth + 1) for part in parts)


def _is_choice(error: Any, schema: dict[str, Any]) -> bool:
    """Return whether a value is a choice of an `enum` whose choices are written for another type.

    They are those of a list's items, or all have another type than declared.
    """
    import jsonschema_rs  # lazy: loaded with the first tool that is described as data

    if error.kind.name != "enum":
        return False
    choices = error.kind.value
    if isinstance(error.instance, list):
        return all(item in choices for item in error.instance)
    node = _get_schema_of(error, schema)
    if "type" not in node or any(jsonschema_rs.is_valid({"type": node["type"]}, choice) for choice in choices):
        return False
    value, *texts = (one if isinstance(one, str) else dump_json(one).decode() for one in (error.instance, *choices))
    return value in texts


def _get_schema_of(error: Any, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with the keyword that an error is about, {} if it is not found."""
    try:
        node = functools.reduce(operator.getitem, error.schema_path[:-1], schema)
    except (LookupError, TypeError):
        return {}
    return node if isinstance(node, dict) else {}


def _reject_reference(uri: str) -> Any:
    raise ValueError(f"it refers to {uri}, which is not in it")


def _choose_errors(error: Any) -> list[Any]:
    """Return the errors of the alternative that an error of `anyOf` or `oneOf` is about; other errors as they are.

    The error itself is returned where none is chosen (see `choose_branch`), or each requires one other property.
    """
    branches = [
        [inner for outer in branch for inner in _choose_errors(outer)] for branch in getattr(error.kind, "context", ())
    ]
    if not branches or not all(branches) or _get_alternative_names(error):  # one that fits several has empty ones
        return [error]
    depth = len(error.instance_path)
    kinds = [
        [(len(inner.instance_path) - depth, _ERROR_KINDS.get(inner.kind.name, "")) for inner in branch]
        for branch in branches
    ]
    index = choose_branch(kinds)
    return [error] if index is None else branches[index]


def _get_alternative_names(error: Any) -> list[str]:
    """Return the properties one of which is required, if that is all that the alternatives say."""
    branches = getattr(error.kind, "context", ())
    errors = [branch[0] for branch in branches if len(branch) == 1 and branch[0].kind.name == "required"]
    is_all = len(errors) == len(branches) and all(one.instance_path == error.instance_path for one in errors)
    return [one.kind.property for one in errors] if is_all else []


def _to_problems(error: Any, parameters: dict[str, Any]) -> list[FieldProblem]:
    path, kind = error.instance_path, error.kind
    if kind.name == "required":
        return [FieldProblem(join_path(*path, kind.property), is_required())]
    if kind.name in ("additionalProperties", "unevaluatedProperties"):
        names = tuple(parameters.get("properties") or ())
        message = unknown_parameter(names) if names and not path else unknown_field()
        return [
            FieldProblem(join_path(*path, name), message, preview_json(error.instance.get(name)))
            for name in kind.unexpected
        ]
    return [FieldProblem(join_path(*path), _describe_problem(error, parameters), preview_json(error.instance))]


def _describe_problem(error: Any, parameters: dict[str, Any]) -> str:
    kind, message = error.kind, str(error.message)
    if names := _get_alternative_names(error):
        return must_have_one(names)
    has_alternatives = kind.name in ("anyOf", "oneOf") and all(kind.context)
    if has_alternatives or (kind.name == "type" and kind.types in (["array"], ["object"])):
        phrase = describe_schema(_get_schema_of(error, parameters), parameters)
        if phrase is not None:
            return must_be(phrase)
    if kind.name == "type":
        types = sorted(kind.types, key=lambda name: (name == "null", name))
        return must_be_type(types[0]) if len(types) == 1 and types[0] != "null" else must_be(describe_types(types))
    if kind.name == "enum":
        return must_be(join_options(map(preview_json, kind.value)))
    if kind.name == "const":
        return must_be(preview_json(kind.value))
    if kind.name in LIMIT_KEYWORDS:
        return must_respect(kind.name, preview_json(kind.value) if isinstance(kind.value, float) else kind.value)
    return shorten_text(message, 300)
