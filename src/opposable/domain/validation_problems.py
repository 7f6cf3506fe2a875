"""Problems of invalid data in plain words, from the errors of pydantic."""

import difflib
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

_PROBLEMS = {
    "missing": "is required",
    "string_type": "must be text",
    "string_unicode": "must be valid Unicode text",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a whole number of fewer digits",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "set_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "mapping_type": "must be an object",
    "path_type": "must be the path of a file or folder",
    "json_invalid": "is not valid JSON",
    "datetime_type": "must be a date and time, such as 2026-01-31T12:00:00Z",
    "datetime_parsing": "must be a date and time, such as 2026-01-31T12:00:00Z",
    "datetime_from_date_parsing": "must be a date and time, such as 2026-01-31T12:00:00Z",
}
_TEMPLATES = {
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "must match the pattern {pattern}",
    "too_short": "must have at least {min_length} items",
    "too_long": "must have at most {max_length} items",
    "union_tag_invalid": "must have the field {discriminator} with one of {expected_tags}",
    "union_tag_not_found": "must have the field {discriminator}",
}
_TAG_FIELDS = {"'tool_type'": "'tool_type' or 'type'"}
"""The fields that may hold a tag, by the field of that name."""


def describe_problems(error: ValidationError, model: Any = None, limit: int = 5) -> str:
    """Return the problems of an error in one line: `limits.turns: must be greater than 0; name: is required`.

    Values are left out: they may be secret. With `model`, the type that was validated, similar fields are named.
    """
    problems = list_problems(error.errors(include_url=False, include_input=False), model)
    return "; ".join(f"{path or 'the data'}: {problem}" for path, problem in problems[:limit])


def describe_yaml_error(error: Exception) -> str:
    """Return an error of the YAML parser in one line: `line 2: expected ',' or ']', but got ':'`."""
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    if isinstance(error, UnicodeDecodeError) or getattr(error, "encoding", None):
        return "it is not UTF-8 text"
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    return f"line {mark.line + 1}: {problem}" if mark else problem


def list_problems(errors: Sequence[Mapping[str, Any]], model: Any = None) -> list[tuple[str, str]]:
    """Return the dotted path and the problem of each error, as `describe_problems` does."""
    return [(".".join(map(str, _drop_tags(model, error["loc"]))), _describe_problem(error, model)) for error in errors]


def _describe_problem(error: Mapping[str, Any], model: Any) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind == "string_too_short" and context.get("min_length") == 1:
        return "must not be empty"
    if kind == "extra_forbidden":
        path = error["loc"]
        return describe_unknown_field(str(path[-1]), list(dict.fromkeys(_iterate_field_names(model, path[:-1]))))
    problem = _PROBLEMS.get(kind)
    if problem is None and kind in _TEMPLATES:
        limits = {name: int(value) if _is_whole(value) else value for name, value in context.items()}
        tag_field = str(context.get("discriminator", ""))
        limits["discriminator"] = _TAG_FIELDS.get(tag_field, tag_field)
        problem = _TEMPLATES[kind].format_map(limits)
        if kind == "union_tag_not_found" and (tags := _list_tags(model, error["loc"], tag_field.strip("'"))):
            problem += f" with one of {', '.join(tags)}"
    if problem is None:
        problem = str(error["msg"]).removeprefix("Value error, ").removeprefix("Input ").replace("should ", "must ", 1)
    return problem


def describe_unknown_field(name: str, known_names: Sequence[str]) -> str:
    """Return the problem of an unknown field, with the nearest known field or all of them."""
    if similar := difflib.get_close_matches(name, known_names, n=1):
        return f"is not a known field (did you mean {similar[0]}?)"
    return "is not a known field" + (f" (the fields are {', '.join(known_names)})" if known_names else "")


def _is_whole(value: Any) -> bool:
    return isinstance(value, float) and value.is_integer()


def _drop_tags(annotation: Any, path: Sequence[Any]) -> tuple[Any, ...]:
    """Return the path of an error without the tags of unions, which the data does not contain."""
    for size in range(len(path), -1, -1):
        for _, plain_path in _resolve(annotation, path[:size]):
            return (*plain_path, *path[size:])
    return tuple(path)


def _iterate_field_names(annotation: Any, path: Sequence[Any]) -> Iterator[str]:
    """Yield the names of the fields at a path of an error, in every model of a union."""
    for found, _ in _resolve(annotation, path):
        yield from (field.alias or name for name, field in getattr(found, "model_fields", {}).items())


def _list_tags(annotation: Any, path: Sequence[Any], discriminator: str) -> list[str]:
    """Return the tags of the union at a path of an error."""
    models = [getattr(found, "model_fields", {}) for found, _ in _resolve(annotation, path)]
    return [repr(fields[discriminator].default) for fields in models if discriminator in fields]


def _resolve(annotation: Any, path: Sequence[Any]) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Yield each type at a path of an error, in every model of a union, with the path without the tags of unions."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    inner: list[Any] = []
    if origin is Annotated:
        yield from _resolve(arguments[0], path)
    elif origin in (Union, types.UnionType):
        chosen = [option for option in arguments if path and _has_tag(option, path[0])]
        for option in chosen or arguments:
            yield from _resolve(option, path[1:] if chosen else path)
    elif not path:
        yield annotation, ()
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        fields = annotation.model_fields.items()
        inner = [field.annotation for name, field in fields if path[0] in (name, field.alias)]
    else:  # a list, a tuple or a mapping; its last argument is the type of the items
        inner = [argument for argument in arguments if argument is not ...][-1:]
    for item in inner:
        for found, plain_path in _resolve(item, path[1:]):
            yield found, (path[0], *plain_path)


def _has_tag(model: Any, tag: Any) -> bool:
    """Return whether a tag of a discriminated union, or the name of a class, chooses this model."""
    fields = getattr(model, "model_fields", {})
    return bool(tag == getattr(model, "__name__", "")) or any(field.default == tag for field in fields.values())
