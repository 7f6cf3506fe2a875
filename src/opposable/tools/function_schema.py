"""A JSON Schema and a validator from a function's signature and docstring, made once a function."""

import contextlib
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin, get_type_hints
from weakref import WeakKeyDictionary

from opposable.domain.call_context import CallContext
from opposable.domain.errors import FieldProblem, InvalidArguments, ToolRegistrationError

NULL_SCHEMA = {"type": "null"}


@dataclass(frozen=True, slots=True)
class FunctionSignature:
    """What is known of a function as a tool.

    `parameters` is the JSON Schema a model is told; `validate` turns given arguments into keyword arguments and
    raises `InvalidArguments`; `context_name` is the parameter that takes the `CallContext`, if any.
    """

    description: str
    parameters: dict[str, Any]
    validate: Callable[[dict[str, Any]], dict[str, Any]]
    context_name: str | None


_signature_cache: WeakKeyDictionary[Callable[..., Any], FunctionSignature] = WeakKeyDictionary()


def get_signature(function: Callable[..., Any]) -> FunctionSignature:
    """The signature of a function or bound method. Raises: `ToolRegistrationError`, saying what is missing.

    Reads type annotations (pydantic's `Field` inside `Annotated` too) and a docstring in Google, NumPy or reST style.
    """
    plain = getattr(function, "__func__", function)
    try:
        return _signature_cache[plain]
    except (KeyError, TypeError):
        pass
    made = _read_signature(plain, is_bound=plain is not function)
    with contextlib.suppress(TypeError):  # a callable object that cannot be weakly referred to is read each time
        _signature_cache[plain] = made
    return made


def _read_signature(function: Callable[..., Any], *, is_bound: bool) -> FunctionSignature:
    import docstring_parser
    from pydantic import ConfigDict, Field, PydanticUserError, create_model
    from pydantic.errors import PydanticSchemaGenerationError

    name = getattr(function, "__name__", type(function).__name__)
    hints = _get_type_hints(function, name)
    told = docstring_parser.parse(inspect.getdoc(function) or "")
    about = {param.arg_name: " ".join((param.description or "").split()) for param in told.params}
    fields: dict[str, Any] = {}
    context_name = None
    parameters = list(inspect.signature(function).parameters.values())
    for parameter in parameters[1:] if is_bound else parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise ToolRegistrationError(
                f"{name}: parameter {parameter.name!r} cannot be told to a model; give named parameters only."
            )
        hint = hints.get(parameter.name, Any)
        if hint is CallContext:
            context_name = parameter.name
            continue
        required = parameter.default is parameter.empty
        if about.get(parameter.name) and not _has_description(hint):
            hint = Annotated[hint, Field(description=about[parameter.name])]
        fields[_to_field_name(parameter.name)] = (
            hint,
            Field(... if required else parameter.default, alias=parameter.name),
        )
    try:
        model = create_model(name, __config__=ConfigDict(extra="forbid", protected_namespaces=()), **fields)
        schema = model.model_json_schema()
    except (PydanticUserError, PydanticSchemaGenerationError, TypeError, NameError) as error:
        first = str(error).splitlines()[0]
        raise ToolRegistrationError(f"{name}: its parameters cannot be described as JSON Schema: {first}") from error
    description = " ".join(part for part in (told.short_description, told.long_description) if part)
    check = _create_validator(model, tuple(parameter for parameter in fields))
    return FunctionSignature(
        " ".join(description.split()) or _name_to_words(name), simplify_schema(schema), check, context_name
    )


def _get_type_hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    try:
        target = function if inspect.isroutine(function) else type(function).__call__
        return get_type_hints(target, include_extras=True)
    except (NameError, TypeError) as error:
        raise ToolRegistrationError(f"{name}: its annotations cannot be read: {error}") from error


def _has_description(hint: Any) -> bool:
    return get_origin(hint) is Annotated and any(getattr(extra, "description", None) for extra in get_args(hint)[1:])


def _to_field_name(name: str) -> str:
    """A field name pydantic takes for any parameter name (it keeps a leading underscore and some words for itself)."""
    return f"p_{name}"


def _create_validator(model: Any, fields: tuple[str, ...]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    from pydantic import ValidationError

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
    """A pydantic error told by field, in plain words."""
    found: dict[str, FieldProblem] = {}
    for item in error.errors(include_url=False):
        path = ".".join(str(step) for step in item["loc"] if not _is_union_branch(step))
        kind = item["type"]
        if kind == "missing":
            found.setdefault(path, FieldProblem(path, "is required"))
        elif kind == "extra_forbidden":
            known = (
                f"there is no such parameter; the parameters are {', '.join(names)}"
                if names
                else "it takes no parameters"
            )
            found.setdefault(path, FieldProblem(path, known, _preview_value(item["input"])))
        else:
            found.setdefault(path, FieldProblem(path, _simplify_message(item["msg"]), _preview_value(item["input"])))
    return tuple(found.values())


def _is_union_branch(step: Any) -> bool:
    """Whether a step of pydantic's path names a branch of a union and no field."""
    return isinstance(step, str) and (step in {"str", "int", "float", "bool", "none"} or "[" in step)


def _simplify_message(message: str) -> str:
    message = message.removeprefix("Value error, ").removeprefix("Input ").removeprefix("should ")
    message = re.sub(r"^(be )?a valid (\w+)(, unable to parse string as an? \w+)?$", r"be a valid \2", message)
    return f"must {message}" if message.startswith(("be ", "have ", "match ")) else message


def _preview_value(value: Any) -> str:
    import orjson

    text = orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    return text if len(text) <= 200 else text[:200] + "…"


def _name_to_words(name: str) -> str:
    return name.replace("_", " ").strip()


def simplify_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema with what a model does not need left out.

    Titles go, references that do not recur are put in place, and "X or null" with a default becomes X: each word
    here is paid for in every request.
    """
    definitions = schema.get("$defs", {})
    tidied: dict[str, Any] = _simplify_node(schema, definitions, ())
    left = {
        name: _simplify_node(inner, definitions, (name,))
        for name, inner in definitions.items()
        if _is_recursive(name, definitions)
    }
    tidied.pop("$defs", None)
    if left:
        tidied["$defs"] = left
    tidied.setdefault("type", "object")
    tidied.setdefault("properties", {})
    tidied.pop("additionalProperties", None)
    tidied.pop("description", None)
    return tidied


def _simplify_node(node: Any, definitions: dict[str, Any], path: tuple[str, ...]) -> Any:
    if isinstance(node, list):
        return [_simplify_node(item, definitions, path) for item in node]
    if not isinstance(node, dict):
        return node
    reference = node.get("$ref", "")
    name = reference.rpartition("/")[2]
    if name in definitions and not _is_recursive(name, definitions) and name not in path:
        return _simplify_node(
            {**definitions[name], **{k: v for k, v in node.items() if k != "$ref"}}, definitions, (*path, name)
        )
    options = node.get("anyOf")
    if options and NULL_SCHEMA in options and "default" in node and len(options) == 2:
        one = next(option for option in options if option != NULL_SCHEMA)
        rest = {k: v for k, v in node.items() if k not in ("anyOf", "title") and not (k == "default" and v is None)}
        return _simplify_node({**one, **rest}, definitions, path)
    out = {}
    for key, value in node.items():
        if key == "title" and isinstance(value, str):
            continue
        if key == "properties":
            out[key] = {name: _simplify_node(inner, definitions, path) for name, inner in value.items()}
        elif key != "$defs":
            out[key] = (
                value if key in ("enum", "const", "default", "examples") else _simplify_node(value, definitions, path)
            )
    return out


def _is_recursive(name: str, definitions: dict[str, Any]) -> bool:
    """Whether a definition refers to itself, however far around."""
    seen: set[str] = set()
    todo = [definitions[name]]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            target = str(node.get("$ref", "")).rpartition("/")[2]
            if target == name:
                return True
            if target in definitions and target not in seen:
                seen.add(target)
                todo.append(definitions[target])
            todo.extend(node.values())
        elif isinstance(node, list):
            todo.extend(node)
    return False
