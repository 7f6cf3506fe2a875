"""The JSON Schema and the argument validator of a function, from its signature and docstring."""

import contextlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin, get_type_hints
from weakref import WeakKeyDictionary

from opposable.domain.argument_problems import (
    Comparison,
    JsonType,
    is_required,
    must_be,
    must_be_type,
    must_compare,
    unknown_parameter,
)
from opposable.domain.call_context import CallContext
from opposable.domain.errors import FieldProblem, InvalidArguments, ToolRegistrationError
from opposable.domain.json_text import preview_json
from opposable.domain.localized_text import LocalizedText

NULL_SCHEMA = {"type": "null"}

_JSON_TYPES: dict[str, JsonType] = {
    "int_type": "integer",
    "int_parsing": "integer",
    "float_type": "number",
    "float_parsing": "number",
    "string_type": "string",
    "bool_type": "boolean",
    "list_type": "array",
    "dict_type": "object",
}
"""The JSON type that a value should have, by pydantic's error type."""

_COMPARISONS: dict[str, Comparison] = {
    "greater_than_equal": "minimum",
    "greater_than": "exclusive minimum",
    "less_than_equal": "maximum",
    "less_than": "exclusive maximum",
}


@dataclass(frozen=True, slots=True)
class FunctionSignature:
    """The parts of a function that make it a tool.

    Attributes:
        description: The docstring's text without its sections.
        parameters: The JSON Schema sent to the model.
        validate: Converts the model's arguments to keyword arguments; raises `InvalidArguments`.
        context_name: The parameter that takes the `CallContext`, if any.
    """

    description: str
    parameters: dict[str, Any]
    validate: Callable[[dict[str, Any]], dict[str, Any]]
    context_name: str | None


_signature_cache: WeakKeyDictionary[Callable[..., Any], FunctionSignature] = WeakKeyDictionary()


def get_signature(function: Callable[..., Any]) -> FunctionSignature:
    """Return the signature of a function or bound method, reading it once.

    Types come from the annotations, with pydantic's `Field` inside `Annotated`. Descriptions come from a docstring in
    Google, NumPy or reST style.

    Raises:
        ToolRegistrationError: The signature cannot be described to a model; the message says why.
    """
    plain_function = getattr(function, "__func__", function)
    try:
        return _signature_cache[plain_function]
    except (KeyError, TypeError):
        pass
    signature = _read_signature(plain_function, is_bound=plain_function is not function)
    with contextlib.suppress(TypeError):  # an object without weak references is read each time
        _signature_cache[plain_function] = signature
    return signature


def _read_signature(function: Callable[..., Any], *, is_bound: bool) -> FunctionSignature:
    import docstring_parser  # lazy: loaded with the first function tool

    name = getattr(function, "__name__", type(function).__name__)
    docstring = docstring_parser.parse(inspect.getdoc(function) or "")
    descriptions = {param.arg_name: " ".join((param.description or "").split()) for param in docstring.params}
    fields, context_name = _read_fields(function, name, descriptions, is_bound=is_bound)
    model, schema = _create_model(name, fields)
    description = " ".join(part for part in (docstring.short_description, docstring.long_description) if part)
    return FunctionSignature(
        " ".join(description.split()) or name.replace("_", " ").strip(),
        simplify_schema(schema),
        _create_validator(model, tuple(fields)),
        context_name,
    )


def _read_fields(
    function: Callable[..., Any], name: str, descriptions: dict[str, str], *, is_bound: bool
) -> tuple[dict[str, Any], str | None]:
    """Return pydantic fields for the parameters, and the name of the one that takes the `CallContext`."""
    from pydantic import Field  # lazy: pydantic is loaded with the first function tool

    hints = _get_type_hints(function, name)
    fields: dict[str, Any] = {}
    context_name = None
    parameters = list(inspect.signature(function).parameters.values())
    for parameter in parameters[1:] if is_bound else parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise ToolRegistrationError(
                f"{name}: a model cannot pass the parameter {parameter.name!r}. Use named parameters only."
            )
        hint = hints.get(parameter.name, Any)
        if hint is CallContext:
            context_name = parameter.name
            continue
        default = ... if parameter.default is parameter.empty else parameter.default
        if descriptions.get(parameter.name) and not _has_description(hint):
            hint = Annotated[hint, Field(description=descriptions[parameter.name])]
        fields[_to_field_name(parameter.name)] = (hint, Field(default, alias=parameter.name))
    return fields, context_name


def _create_model(name: str, fields: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Create the pydantic model of a function's parameters, and its JSON Schema."""
    from pydantic import ConfigDict, PydanticUserError, create_model  # lazy: see `_read_fields`
    from pydantic.errors import PydanticSchemaGenerationError

    try:
        model = create_model(name, __config__=ConfigDict(extra="forbid", protected_namespaces=()), **fields)
        return model, model.model_json_schema()
    except (PydanticUserError, PydanticSchemaGenerationError, TypeError, NameError) as error:
        first_line = str(error).splitlines()[0]
        raise ToolRegistrationError(
            f"{name}: its parameters cannot be described as JSON Schema: {first_line}"
        ) from error


def _get_type_hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    try:
        target = function if inspect.isroutine(function) else type(function).__call__
        return get_type_hints(target, include_extras=True)
    except (NameError, TypeError) as error:
        raise ToolRegistrationError(f"{name}: its annotations cannot be resolved: {error}") from error


def _has_description(hint: Any) -> bool:
    return get_origin(hint) is Annotated and any(getattr(extra, "description", None) for extra in get_args(hint)[1:])


def _to_field_name(name: str) -> str:
    """Return a field name that pydantic accepts: it rejects a leading underscore and some reserved words."""
    return f"p_{name}"


def _create_validator(model: Any, fields: tuple[str, ...]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    from pydantic import ValidationError  # lazy: see `_read_fields`

    validate = model.__pydantic_validator__.validate_python
    names = tuple((field, field[2:]) for field in fields)

    def check(arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            values = validate(arguments).__dict__
        except ValidationError as error:
            raise InvalidArguments(problems_from_error(error, tuple(name for _, name in names))) from error
        return {name: values[field] for field, name in names}

    return check


def problems_from_error(error: Any, names: tuple[str, ...]) -> tuple[FieldProblem, ...]:
    """Convert a pydantic `ValidationError` to one problem per field. `names` are the tool's parameters."""
    problems: dict[str, FieldProblem] = {}
    for item in error.errors(include_url=False):
        path = ".".join(str(step) for step in item["loc"] if not _is_union_branch(step))
        message = _describe_problem(item["type"], item["msg"], names)
        received = None if item["type"] == "missing" else preview_json(item["input"])
        problems.setdefault(path, FieldProblem(path, message, received))
    return tuple(problems.values())


def _is_union_branch(step: Any) -> bool:
    """Return whether a step of pydantic's path names the branch of a union, not a field."""
    return isinstance(step, str) and (step in {"str", "int", "float", "bool", "none"} or "[" in step)


def _describe_problem(error_type: str, message: str, names: tuple[str, ...]) -> str:
    if error_type == "missing":
        return is_required()
    if error_type == "extra_forbidden":
        return unknown_parameter(names)
    if error_type in _JSON_TYPES:
        return must_be_type(_JSON_TYPES[error_type])
    if error_type in _COMPARISONS:
        return must_compare(_COMPARISONS[error_type], message.rpartition(" ")[2])
    requirement = message.removeprefix("Value error, ").removeprefix("Input ").removeprefix("should ")
    if error_type == "model_type":
        return LocalizedText(f"must {requirement}", must_be_type("object").chinese)
    if requirement.startswith("be "):
        return must_be(requirement.removeprefix("be "))
    return f"must {requirement}" if requirement.startswith(("have ", "match ")) else requirement


def simplify_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Remove what a model does not need, since every request pays for each word of a schema.

    Titles are removed, references that are not recursive are inlined, and "X or null" with a default becomes X.
    """
    definitions = schema.get("$defs", {})
    simplified: dict[str, Any] = _simplify_node(schema, definitions, ())
    recursive_definitions = {
        name: _simplify_node(definition, definitions, (name,))
        for name, definition in definitions.items()
        if _is_recursive(name, definitions)
    }
    simplified.pop("$defs", None)
    if recursive_definitions:
        simplified["$defs"] = recursive_definitions
    simplified.setdefault("type", "object")
    simplified.setdefault("properties", {})
    simplified.pop("additionalProperties", None)
    simplified.pop("description", None)
    return simplified


def _simplify_node(node: Any, definitions: dict[str, Any], path: tuple[str, ...]) -> Any:
    if isinstance(node, list):
        return [_simplify_node(item, definitions, path) for item in node]
    if not isinstance(node, dict):
        return node
    name = node.get("$ref", "").rpartition("/")[2]
    if name in definitions and not _is_recursive(name, definitions) and name not in path:
        siblings = {key: value for key, value in node.items() if key != "$ref"}
        return _simplify_node({**definitions[name], **siblings}, definitions, (*path, name))
    options = node.get("anyOf")
    if options and NULL_SCHEMA in options and "default" in node and len(options) == 2:
        return _simplify_node(_remove_null_option(node), definitions, path)
    simplified = {}
    for key, value in node.items():
        if key == "title" and isinstance(value, str):
            continue
        if key == "properties":
            simplified[key] = {name: _simplify_node(inner, definitions, path) for name, inner in value.items()}
        elif key in ("enum", "const", "default", "examples"):
            simplified[key] = value
        elif key != "$defs":
            simplified[key] = _simplify_node(value, definitions, path)
    return simplified


def _remove_null_option(node: dict[str, Any]) -> dict[str, Any]:
    """Replace `anyOf` of a schema and null by the schema, and remove a default of null."""
    option = next(option for option in node["anyOf"] if option != NULL_SCHEMA)
    siblings = {
        key: value
        for key, value in node.items()
        if key not in ("anyOf", "title") and not (key == "default" and value is None)
    }
    return {**option, **siblings}


def _is_recursive(name: str, definitions: dict[str, Any]) -> bool:
    """Return whether a definition refers to itself, directly or through others."""
    visited: set[str] = set()
    pending = [definitions[name]]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            target = str(node.get("$ref", "")).rpartition("/")[2]
            if target == name:
                return True
            if target in definitions and target not in visited:
                visited.add(target)
                pending.append(definitions[target])
            pending.extend(node.values())
        elif isinstance(node, list):
            pending.extend(node)
    return False
