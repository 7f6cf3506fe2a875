"""The JSON Schema and the argument validator of a function, from its signature and docstring."""

import contextlib
import functools
import inspect
import json
import re
import sys
from collections.abc import Callable, Hashable, Iterable
from enum import Enum
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)
from weakref import WeakKeyDictionary

from opposable.domain.call_context import CallContext
from opposable.domain.content import FilePart, ImagePart
from opposable.domain.errors import InvalidArguments, ToolRegistrationError
from opposable.domain.json_text import NON_FINITE_TEXTS, dump_json
from opposable.domain.text_normalization import unwrap_lines
from opposable.tools.pydantic_problems import problems_from_error
from opposable.tools.result_text import encode_value

NULL_SCHEMA = {"type": "null"}

_PLAIN_TYPES = frozenset({str, int, float, bool, None, type(None), list, dict, Any, ...})
_PLAIN_GENERICS = frozenset({list, dict, Union, UnionType})
_OTHER_STYLES = re.compile(r"^\s*(?:[:@]|\.\. |[-=]{3,}\s*$)", re.MULTILINE)
"""What docstrings in another style than Google's have: fields such as `:param name:`, or underlined sections."""

_CHINESE_HEADING = re.compile(r"^([ \t]*)(参数|返回值?|异常)[:：][ \t]*$", re.MULTILINE)
_CHINESE_ITEM = re.compile(r"^([ \t]+\w+(?:[ \t]*\([^)]*\))?)：[ \t]*", re.MULTILINE)
_GOOGLE_HEADINGS = {"参数": "Args", "返回": "Returns", "返回值": "Returns", "异常": "Raises"}

_REFERENCE = re.compile(r'"\$ref":"[^"]*/([^"/]+)"')


class FunctionSignature:
    """The parts of a function that make it a tool. Schema and validator are made when they are first needed.

    Attributes:
        name: The name of the function, or of the type of a callable object.
        description: The docstring's text, with the section of examples and without the others.
        docstring: The docstring, also one that a method inherits; "" without one.
        descriptions: The descriptions of the parameters that a model passes, by name; "" if not described.
        context_name: The parameter that takes the `CallContext`, if any.
    """

    def __init__(self, function: Callable[..., Any], *, is_bound: bool, docstring: str | None = None) -> None:
        """Read a function, and its docstring if it is not given.

        Raises:
            ToolRegistrationError: The signature cannot be described to a model.
        """
        named_function = unwrap_partial(function)
        self.name = getattr(named_function, "__name__", type(named_function).__name__)
        self.docstring = _get_docstring(named_function) if docstring is None else docstring
        parsed = _parse_docstring(self.docstring)
        texts = [unwrap_lines(parsed.description or "")]
        examples = [part for one in parsed.examples for part in (one.snippet, one.description) if part]
        texts += ["\n".join(["Examples:", *examples])] if examples else []
        self.description = "\n\n".join(filter(None, texts)) or self.name.replace("_", " ").strip()
        self._parameters, self.context_name = _read_parameters(function, self.name, is_bound=is_bound)
        described = {param.arg_name: unwrap_lines(param.description or "") for param in parsed.params}
        self.descriptions = {
            name: _get_own_description(hint) or described.get(name, "")
            for name, (hint, _default) in self._parameters.items()
        }
        if not all(_is_plain(hint) for hint, _default in self._parameters.values()):
            _ = self._model_and_schema  # a type that pydantic may reject is refused at once

    @functools.cached_property
    def parameters(self) -> dict[str, Any]:
        """The JSON Schema sent to the model: without null for parameters that may be left out instead."""
        properties = self.complete_parameters["properties"]
        short = {name: _remove_null_option(property_schema) for name, property_schema in properties.items()}
        return {**self.complete_parameters, "properties": short}

    @functools.cached_property
    def complete_parameters(self) -> dict[str, Any]:
        """The JSON Schema of all arguments that are accepted."""
        return simplify_schema(self._model_and_schema[1])

    @functools.cached_property
    def validate(self) -> Callable[[dict[str, Any]], dict[str, Any]]:
        """Converts the model's arguments to keyword arguments; raises `InvalidArguments`."""
        return _create_validator(self._model_and_schema[0], tuple(self._parameters), lambda: self.complete_parameters)

    @functools.cached_property
    def _model_and_schema(self) -> tuple[Any, dict[str, Any]]:
        from pydantic import Field  # lazy: pydantic is loaded with the first schema

        fields: dict[str, Any] = {}
        for name, (hint, default) in self._parameters.items():
            if self.descriptions[name] and not _get_own_description(hint):
                hint = Annotated[hint, Field(description=self.descriptions[name])]
            has_default = default is not ...
            fields[_to_field_name(name)] = (hint, Field(default, alias=name) if has_default else Field(alias=name))
        return _create_model(self.name, fields)


_signature_caches: dict[bool, WeakKeyDictionary[Callable[..., Any], FunctionSignature]] = {
    is_bound: WeakKeyDictionary() for is_bound in (False, True)
}


def get_signature(function: Callable[..., Any]) -> FunctionSignature:
    """Return the signature of a function or bound method, reading it once.

    Types come from the annotations, with pydantic's `Field` inside `Annotated`. Descriptions come from a docstring in
    Google, NumPy or reST style.

    Raises:
        ToolRegistrationError: The signature cannot be described to a model; the message says why.
    """
    is_bound = inspect.ismethod(function)
    plain_function = getattr(function, "__func__", function)
    cache, docstring = _signature_caches[is_bound], None
    with contextlib.suppress(TypeError):  # an object without weak references is read each time
        if plain_function in cache:
            return cache[plain_function]
        if plain_function in _signature_caches[False]:  # with `tool`: to search its class again would not end
            docstring = _signature_caches[False][plain_function].docstring
    signature = FunctionSignature(plain_function, is_bound=is_bound, docstring=docstring)
    with contextlib.suppress(TypeError):
        cache[plain_function] = signature
    return signature


def unwrap_partial(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of a `functools.partial`, which has its name, docstring and types; others as they are."""
    return function.func if isinstance(function, functools.partial) else function


def _get_docstring(function: Callable[..., Any]) -> str:
    """Return the docstring of a function, also one that a method inherits; of a class its own; "" without one.

    A callable object without one has that of its method `__call__`.
    """
    if inspect.isclass(function):
        return inspect.cleandoc(function.__doc__ or "")
    docstring, call_method = inspect.getdoc(function) or "", type(function).__call__
    return inspect.getdoc(call_method) or "" if not docstring and inspect.isfunction(call_method) else docstring


def _parse_docstring(text: str) -> Any:
    """Parse a docstring: as Google's style where it can be no other, since trying every style takes three times as long.

    The headings of Google's style may be Chinese.
    """
    import docstring_parser  # lazy: loaded with the first function tool

    if _CHINESE_HEADING.search(text):
        text = _CHINESE_HEADING.sub(lambda match: f"{match[1]}{_GOOGLE_HEADINGS[match[2]]}:", text)
        text = _CHINESE_ITEM.sub(r"\1: ", text)
    if not _OTHER_STYLES.search(text):
        with contextlib.suppress(docstring_parser.ParseError):
            return docstring_parser.parse(text, docstring_parser.DocstringStyle.GOOGLE)
    return docstring_parser.parse(text)


def _read_parameters(
    function: Callable[..., Any], name: str, *, is_bound: bool
) -> tuple[dict[str, tuple[Any, Any]], str | None]:
    """Return type and default of the parameters that a model passes, and the name of the one for the `CallContext`.

    A parameter without a default has `...`. A default that is a pydantic `Field` becomes part of the type. Parameters
    that a `functools.partial` fills in are left out.
    """
    if fields := _get_pydantic_fields(function):  # the signature lacks what a `Field` says
        return {field: (Annotated[info.annotation, info], ...) for field, info in fields.items()}, None
    hints = _get_type_hints(function, name)
    passed: dict[str, tuple[Any, Any]] = {}
    context_name = None
    filled_in = function.keywords if isinstance(function, functools.partial) else ()
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError as error:  # of some functions written in C
        raise ToolRegistrationError(f"{name}: its parameters are unknown: {error}. Wrap it in a function.") from error
    for parameter in parameters[1:] if is_bound else parameters:
        if parameter.name in filled_in:
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise ToolRegistrationError(
                f"{name}: a model cannot pass the parameter {parameter.name!r}. Use named parameters only."
            )
        hint = hints.get(parameter.name, Any)
        if CallContext in (hint, *get_args(hint)):
            context_name = parameter.name
        elif _is_field(parameter.default):
            passed[parameter.name] = (Annotated[hint, parameter.default], ...)
        else:
            passed[parameter.name] = (hint, ... if parameter.default is parameter.empty else parameter.default)
    return passed, context_name


def _get_pydantic_fields(function: Any) -> dict[str, Any]:
    """Return the fields that the constructor of a class of pydantic takes, by the names that it accepts; {} of others."""
    if not inspect.isclass(function) or getattr(function, "__pydantic_custom_init__", False):
        return {}
    fields = getattr(function, "__pydantic_fields__", {})
    names = {name: info.validation_alias for name, info in fields.items() if info.init is not False}
    return {alias if isinstance(alias, str) else name: fields[name] for name, alias in names.items()}


def _is_field(default: Any) -> bool:
    """Return whether a default is a `Field` of pydantic, which is then loaded already."""
    fields = sys.modules.get("pydantic.fields")
    return fields is not None and isinstance(default, fields.FieldInfo)


def _is_plain(hint: Any) -> bool:
    """Return whether a type consists of JSON's types, which pydantic never rejects."""
    if get_origin(hint) is Literal:
        return True
    if get_origin(hint) in _PLAIN_GENERICS:
        return all(map(_is_plain, get_args(hint)))
    return get_origin(hint) is None and isinstance(hint, Hashable) and hint in _PLAIN_TYPES


def _create_model(name: str, fields: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Create the pydantic model of a function's parameters, and its JSON Schema."""
    from pydantic import ConfigDict, PydanticUserError, create_model  # lazy: see `_model_and_schema`
    from pydantic.errors import PydanticSchemaGenerationError
    from pydantic_core import SchemaError

    try:
        model = create_model(name, __config__=ConfigDict(extra="forbid", protected_namespaces=()), **fields)
        return model, model.model_json_schema()
    except (PydanticUserError, PydanticSchemaGenerationError, SchemaError, TypeError, NameError) as error:
        lines = str(error).strip().splitlines()
        cause = lines[-1].strip() if isinstance(error, SchemaError) else lines[0]
        raise ToolRegistrationError(f"{name}: its parameters cannot be described as JSON Schema: {cause}") from error


def _get_type_hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    function = unwrap_partial(function)
    try:
        if inspect.isclass(function):  # its fields, and what its constructor takes
            hints = get_type_hints(function, include_extras=True) | _resolve_type_hints(function.__init__)
        else:
            hints = _resolve_type_hints(function if inspect.isroutine(function) else type(function).__call__)
        return {parameter: _convert_type(hint) for parameter, hint in hints.items()}
    except (NameError, TypeError, RecursionError) as error:
        raise ToolRegistrationError(f"{name}: its annotations cannot be resolved: {error}") from error


def _resolve_type_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the types of a function's parameters and of its result.

    Modules may import the type of the result, and `CallContext`, for type checkers only. Such a result is left out.

    Raises:
        NameError: The type of a parameter is not defined.
    """
    try:
        return get_type_hints(function, include_extras=True)
    except NameError:

        def parameters() -> None: ...

        parameters.__annotations__ = {name: hint for name, hint in function.__annotations__.items() if name != "return"}
        namespace = {"CallContext": CallContext, **getattr(inspect.unwrap(function), "__globals__", {})}
        return get_type_hints(parameters, namespace, include_extras=True)


def _convert_type(hint: Any) -> Any:
    """Replace types that pydantic validates in another form, also inside of a type.

    An `Iterable` becomes a list, since pydantic would validate the items one by one while the function runs. A
    `typing.TypedDict` becomes that of typing_extensions, which pydantic needs before Python 3.12. A `Literal` of enum
    members takes their values.
    """
    if sys.version_info < (3, 12) and is_typeddict(hint) and type(hint).__module__ == "typing":
        import typing_extensions  # lazy: comes with pydantic

        create: Any = typing_extensions.TypedDict
        fields = {}
        for name, field in get_type_hints(hint, include_extras=True).items():
            is_optional = name in hint.__optional_keys__ and get_origin(field) not in (NotRequired, Required)
            fields[name] = NotRequired[_convert_type(field)] if is_optional else _convert_type(field)
        converted = create(hint.__name__, fields)
        converted.__doc__ = hint.__doc__
        return converted
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return Annotated[(_convert_type(arguments[0]), *arguments[1:])]
    if origin is Literal and any(isinstance(one, Enum) for one in arguments):
        return _convert_enum_members(hint, arguments)
    inner = tuple(map(_convert_type, arguments))
    if hint is Iterable or origin is Iterable:
        return list[inner[0]] if inner else list  # type: ignore[valid-type]
    if inner == arguments:
        return hint
    generic: Any = Union if origin is UnionType else origin
    return generic[inner if len(inner) > 1 else inner[0]]


def _convert_enum_members(hint: Any, members: tuple[Any, ...]) -> Any:
    """Return a `Literal` of the values of enum members, of which the validated one becomes its member again.

    Pydantic accepts only the members themselves, unless the enum is one of texts or integers.
    """
    from pydantic import AfterValidator, BeforeValidator  # lazy: see `_model_and_schema`

    by_value = {one.value if isinstance(one, Enum) else one: one for one in members}
    if not all(isinstance(value, str | int | None) for value in by_value):
        return hint
    to_value = BeforeValidator(lambda given: given.value if isinstance(given, Enum) else given)
    return Annotated[Literal[tuple(by_value)], to_value, AfterValidator(by_value.__getitem__)]


def get_output_form(function: Callable[..., Any]) -> tuple[dict[str, Any], Callable[[Any], Any]] | None:
    """Return JSON Schema and serializer of what a function returns, None if it is not annotated as such an object.

    The objects have known fields: dataclasses, pydantic models and typed dictionaries. Images and files are not
    returned as JSON. In the schema, a float may be NaN or an infinity, which have a text in the result.
    """
    from pydantic import PydanticUserError, TypeAdapter  # lazy: see `_model_and_schema`
    from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError
    from pydantic.json_schema import GenerateJsonSchema
    from pydantic_core import PydanticSerializationError

    class OutputSchema(GenerateJsonSchema):
        def float_schema(self, schema: Any) -> dict[str, Any]:
            return {"anyOf": [super().float_schema(schema), {"enum": [*NON_FINITE_TEXTS]}]}

    try:
        hint = _get_type_hints(function, "").get("return", Any)
        if hint in (ImagePart, FilePart):
            return None
        adapter = TypeAdapter(hint)
        schema = adapter.json_schema(mode="serialization", schema_generator=OutputSchema)
    except (ToolRegistrationError, PydanticUserError, PydanticSchemaGenerationError, PydanticInvalidForJsonSchema):
        return None

    def serialize(value: Any) -> Any:
        if hasattr(value, "model_dump"):  # also has the fields of a subclass
            return value.model_dump(mode="json", by_alias=True)
        try:
            return adapter.dump_python(value, mode="json", by_alias=True, warnings=False)
        except PydanticSerializationError:
            return encode_value(value)

    return (schema, serialize) if schema.get("type") == "object" and "properties" in schema else None


def _get_own_description(hint: Any) -> str:
    """Return the description that a type has in `Annotated`, "" if it has none."""
    extras = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return next((extra.description for extra in extras if getattr(extra, "description", None)), "")


def _to_field_name(name: str) -> str:
    """Return a field name that pydantic accepts: it rejects a leading underscore and some reserved words."""
    return f"p_{name}"


def _create_validator(
    model: Any, parameters: tuple[str, ...], get_schema: Callable[[], dict[str, Any]]
) -> Callable[[dict[str, Any]], dict[str, Any]]:
    from pydantic import ValidationError  # lazy: see `_model_and_schema`

    validator = model.__pydantic_validator__
    names = tuple((_to_field_name(name), name) for name in parameters)

    def check(arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            values = validator.validate_python(arguments).__dict__
        except ValidationError as error:
            # The schema of an enum shows members that are tuples as lists.
            enum_inputs = [item["input"] for item in error.errors() if item["type"] == "enum"]
            if list_ids := {id(value) for value in enum_inputs if isinstance(value, list)}:
                return check(_to_tuples(arguments, list_ids))
            problems = problems_from_error(error, get_schema())
            try:  # strict types accept the text of a date, or the list of a set, in JSON only
                values = validator.validate_json(json.dumps(arguments)).__dict__
            except ValidationError as json_error:
                fields = {problem.field for problem in problems_from_error(json_error, get_schema())}
                problems = tuple(problem for problem in problems if problem.field in fields) or problems
                raise InvalidArguments(problems) from error
            except (TypeError, ValueError, RecursionError):  # values of a caller that are not JSON
                raise InvalidArguments(problems) from error
        return {name: values[field] for field, name in names}

    return check


def _to_tuples(value: Any, list_ids: set[int] | None) -> Any:
    """Replace the lists with these ids by tuples, and all lists inside them. None replaces all lists."""
    if isinstance(value, dict):
        return {key: _to_tuples(item, list_ids) for key, item in value.items()}
    if not isinstance(value, list):
        return value
    if list_ids is None or id(value) in list_ids:
        return tuple(_to_tuples(item, None) for item in value)
    return [_to_tuples(item, list_ids) for item in value]


def simplify_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Remove what a model does not need, since every request pays for each word of a schema.

    Titles are removed, and references that are not recursive are inlined.
    """
    definitions = schema.get("$defs", {})
    recursive = _find_recursive(definitions)
    inlined = {name: definition for name, definition in definitions.items() if name not in recursive}
    simplified: dict[str, Any] = _simplify_node(schema, inlined)
    if recursive:
        simplified["$defs"] = {
            name: _simplify_node(definitions[name], inlined) for name in definitions if name in recursive
        }
    simplified.setdefault("type", "object")
    simplified.setdefault("properties", {})
    simplified.pop("additionalProperties", None)
    simplified.pop("description", None)
    return simplified


def _simplify_node(node: Any, inlined: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_simplify_node(item, inlined) for item in node]
    if not isinstance(node, dict):
        return node
    name = node.get("$ref", "").rpartition("/")[2]
    if name in inlined:
        siblings = {key: value for key, value in node.items() if key != "$ref"}
        return _simplify_node({**inlined[name], **siblings}, inlined)
    simplified = {}
    for key, value in node.items():
        if key == "title" and isinstance(value, str):
            continue
        if key == "properties":
            simplified[key] = {name: _simplify_node(inner, inlined) for name, inner in value.items()}
        elif key in ("enum", "const", "default", "examples"):
            simplified[key] = value
        elif key not in ("$defs", "discriminator"):  # whose mapping names definitions that are inlined
            simplified[key] = _simplify_node(value, inlined)
    return simplified


def _remove_null_option(node: dict[str, Any]) -> dict[str, Any]:
    """Replace "X or null" with the default null by X."""
    options = node.get("anyOf", ())
    if NULL_SCHEMA not in options or len(options) != 2 or node.get("default", ...) is not None:
        return node
    option = next(option for option in options if option != NULL_SCHEMA)
    return {**option, **{key: value for key, value in node.items() if key not in ("anyOf", "default")}}


def _find_recursive(definitions: dict[str, Any]) -> set[str]:
    """Return the names of the definitions that refer to themselves, directly or through others."""
    reached = {name: {*_REFERENCE.findall(dump_json(one, default=str).decode())} for name, one in definitions.items()}
    for _ in reached:  # a pass follows at least one more step of each chain
        for names in reached.values():
            names.update(*(reached[name] for name in names if name in reached))
    return {name for name, names in reached.items() if name in names}
