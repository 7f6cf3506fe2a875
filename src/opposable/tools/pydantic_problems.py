"""Converts the errors of pydantic to the problems of a function's arguments, by field."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from opposable.domain.argument_problems import is_required, must_be, unknown_parameter
from opposable.domain.errors import FieldProblem
from opposable.domain.json_text import preview_json
from opposable.domain.localized_text import LocalizedText
from opposable.tools.schema_phrases import (
    choose_branch,
    describe_schema,
    get_alternatives,
    get_choices,
    join_options,
    join_path,
    must_be_type,
    must_respect,
    resolve_references,
    unknown_field,
)

_JSON_TYPES = {
    "int": "integer",
    "float": "number",
    "decimal": "number",
    "string": "string",
    "bool": "boolean",
    "list": "array",
    "dict": "object",
    "model": "object",
    "dataclass": "object",
}
"""The JSON type that a value should have, by the beginning of pydantic's error type."""

_COMPARISONS = {
    "greater_than_equal": "minimum",
    "greater_than": "exclusiveMinimum",
    "less_than_equal": "maximum",
    "less_than": "exclusiveMaximum",
}
_LIMITS = {
    "string_too_short": ("minLength", "min_length"),
    "string_too_long": ("maxLength", "max_length"),
    "too_short": ("minItems", "min_length"),
    "too_long": ("maxItems", "max_length"),
    "string_pattern_mismatch": ("pattern", "pattern"),
    "multiple_of": ("multipleOf", "multiple_of"),
}
_UNKNOWN_FIELD_ERRORS = frozenset({"extra_forbidden", "unexpected_keyword_argument"})
_CHOICE_ERRORS = frozenset({"literal_error", "enum"})
_TYPE_ERROR_ENDINGS = ("_type", "_parsing")


@dataclass(frozen=True, slots=True)
class _LocatedError:
    """An error with the steps of its path that are still to be followed in the schema."""

    steps: tuple[Any, ...]
    error: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """What the error says of the value at its path; see `choose_branch`."""
        is_type_error = self.error["type"].endswith(_TYPE_ERROR_ENDINGS)
        return "choice" if self.error["type"] in _CHOICE_ERRORS else "type" if is_type_error else ""


def problems_from_error(error: Any, schema: Mapping[str, Any]) -> tuple[FieldProblem, ...]:
    """Convert a pydantic `ValidationError` to one problem per field.

    Of a union, the problems of one branch are reported (see `choose_branch`). Where the value has the type of no branch,
    all of them are named. `schema` is the JSON Schema of all arguments.
    """
    located = [_LocatedError(item["loc"], item) for item in error.errors(include_url=False)]
    problems: dict[str, FieldProblem] = {}
    for problem in _follow(located, schema, schema, ()):
        problems.setdefault(problem.field, problem)
    return tuple(problems.values())


def _follow(
    errors: list[_LocatedError],
    node: Mapping[str, Any],
    root: Mapping[str, Any],
    path: tuple[Any, ...],
    *,
    is_branch: bool = False,
) -> Iterator[FieldProblem]:
    """Follow the paths of errors in the schema, and yield the problems of the chosen branches.

    `is_branch` says that the step of the branch is already taken, if the schema is a union.
    """
    node = resolve_references(node, root)
    alternatives = get_alternatives(node, root)
    if len(alternatives) == 1 and "type" not in node:  # the other alternative is null
        yield from _follow(errors, alternatives[0], root, path)
        return
    yield from (_create_problem(path, node, located.error, root) for located in errors if not located.steps)
    groups: dict[Any, list[_LocatedError]] = {}
    for located in errors:
        if located.steps:
            groups.setdefault(located.steps[0], []).append(_LocatedError(located.steps[1:], located.error))
    if groups and len(alternatives) > 1 and not is_branch:
        yield from _follow_branch(groups, node, alternatives, root, path)
        return
    for step, group in groups.items():
        child = _get_child(node, step, root)
        is_field = child is not None or any(one.error["type"] in _UNKNOWN_FIELD_ERRORS for one in group)
        yield from _follow(group, child or {} if is_field else node, root, (*path, step) if is_field else path)


def _follow_branch(
    branches: dict[Any, list[_LocatedError]],
    node: Mapping[str, Any],
    alternatives: list[Mapping[str, Any]],
    root: Mapping[str, Any],
    path: tuple[Any, ...],
) -> Iterator[FieldProblem]:
    """Choose a branch of a union, and follow its errors. `branches` has the errors by the name of the branch."""
    index = choose_branch([[(len(one.steps), one.kind) for one in errors] for errors in branches.values()])
    if index is None:
        error, phrase = next(iter(branches.values()))[0].error, describe_schema(node, root)
        problem = FieldProblem(join_path(*path), must_be(phrase or ""), preview_json(error["input"]))
        yield problem if phrase else _create_problem(path, node, error, root)
        return
    name = list(branches)[index]
    tag_field = node.get("discriminator", {}).get("propertyName", "")
    if len(branches) == len(alternatives):
        chosen = [alternatives[index]]
    else:
        chosen = [one for one in alternatives if name in get_choices(_get_child(one, tag_field, root) or {})]
    yield from _follow(branches[name], chosen[0] if chosen else node, root, path, is_branch=not chosen)


def _get_child(node: Mapping[str, Any], step: Any, root: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the schema of a field or item; {} if the schema does not describe it, None if it can have none."""
    if step == "[key]":
        return None
    properties, items = node.get("properties", {}), node.get("prefixItems", ())
    if step in properties:
        return resolve_references(properties[step], root)
    if isinstance(step, int) and node.get("type") == "array":
        return resolve_references(items[step] if step < len(items) else node.get("items"), root)
    if "prefixItems" in node and str(step).isidentifier():  # a NamedTuple that is given as an object
        return {}
    values = [node.get("additionalProperties"), *node.get("patternProperties", {}).values()]
    values = [value for value in values if isinstance(value, Mapping)]
    if values:
        return resolve_references(values[0], root)
    alternatives = get_alternatives(node, root)
    children = [child for one in alternatives if (child := _get_child(one, step, root)) is not None]
    if children:
        return children[0] if len(children) == 1 else {"anyOf": children}
    is_open = not alternatives and node.get("type", "object") == "object" and not properties
    return {} if is_open else None


def _create_problem(
    path: tuple[Any, ...], node: Mapping[str, Any], error: Mapping[str, Any], schema: Mapping[str, Any]
) -> FieldProblem:
    """Convert an error to a problem. `path` leads to the value in the arguments, whose schema is `node`."""
    received = error["input"]
    tag_field = str(error.get("ctx", {}).get("discriminator", "")).strip("'")
    if tag_field and (tag := _get_child(node, tag_field, schema)):
        is_missing = not isinstance(received, Mapping) or tag_field not in received
        problem = is_required() if is_missing else must_be(describe_schema(tag, schema) or "")
        return FieldProblem(
            join_path(*path, tag_field), problem, None if is_missing else preview_json(received[tag_field])
        )
    message: str
    if error["type"] in _UNKNOWN_FIELD_ERRORS:
        message = unknown_parameter(tuple(schema.get("properties", ()))) if len(path) == 1 else unknown_field()
    else:
        message = _describe_problem(node, error, schema)
    return FieldProblem(join_path(*path), message, None if error["type"] == "missing" else preview_json(received))


def _describe_problem(node: Mapping[str, Any], error: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    kind, message, context = error["type"], error["msg"], error.get("ctx", {})
    if kind == "missing":
        return is_required()
    if kind in _COMPARISONS and context:  # a validator may raise an error of the same name without a limit
        return must_respect(_COMPARISONS[kind], message.rpartition(" ")[2])
    keyword, limit_name = _LIMITS.get(kind, ("", ""))
    if limit_name in context:
        return must_respect(keyword, context[limit_name])
    requirement = message.removeprefix("Value error, ").removeprefix("Input ").removeprefix("should ")
    if kind in _CHOICE_ERRORS and get_choices(node):
        return LocalizedText(f"must {requirement}", must_be(join_options(map(preview_json, get_choices(node)))).chinese)
    if kind.endswith(_TYPE_ERROR_ENDINGS):
        json_type = _JSON_TYPES.get(kind.partition("_")[0])
        phrase = describe_schema(node, schema) if json_type in ("array", "object", None) else None
        if phrase:
            return must_be(phrase)
        if json_type:
            return must_be_type(json_type)
    if requirement.startswith("be "):
        return must_be(requirement.removeprefix("be "))
    return f"must {requirement}" if requirement.startswith(("have ", "match ")) else requirement
