"""Validation of YAML data by pydantic models, with errors by file and line."""

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from opposable.ask.semantics.yaml_reader import YamlDocument, YamlPath
from opposable.domain.errors import BadInput
from opposable.sql.name_similarity import suggest_names

M = TypeVar("M", bound=BaseModel)

_MAX_REPORTED_ERRORS = 5


def validate_yaml(model_type: type[M], data: Any, document: YamlDocument, path: YamlPath) -> M:
    """Validate the data at `path` of a document.

    Raises:
        BadInput: The data is invalid. The message has up to five lines, each with file, line, problem and remedy.
    """
    try:
        return model_type.model_validate(data)
    except ValidationError as error:
        lines = [_format_error(problem, model_type, document, path) for problem in error.errors(include_url=False)]
        more = [f"… and {len(lines) - _MAX_REPORTED_ERRORS} more"] if len(lines) > _MAX_REPORTED_ERRORS else []
        raise BadInput("\n".join([*dict.fromkeys(lines[:_MAX_REPORTED_ERRORS]), *more])) from None


def _format_error(error: Any, model_type: type[BaseModel], document: YamlDocument, path: YamlPath) -> str:
    loc: YamlPath = tuple(part for part in error["loc"] if not (isinstance(part, str) and part.startswith("function")))
    return str(document.build_error((*path, *loc), _describe_error(error, model_type, loc)))


def _describe_error(error: Any, model_type: type[BaseModel], loc: YamlPath) -> str:
    match error["type"]:
        case "extra_forbidden" if len(loc) == 1:
            fields = [field.alias or name for name, field in model_type.model_fields.items()]
            similar = suggest_names(str(loc[0]), fields, 1)
            hint = f"did you mean {similar[0]}?" if similar else f"the fields are {', '.join(fields)}."
            return f"there is no such field; {hint}"
        case "extra_forbidden":
            return "there is no such field here."
        case "missing":
            return "is missing: add it."
        case "string_type":
            return f"must be text, not {_describe_type(error['input'])}."
        case "tuple_type" | "list_type":
            return f"must be a list, such as [a, b], not {_describe_type(error['input'])}."
        case "model_type" | "dict_type" | "model_attributes_type":
            return f"must be a mapping (name: value), not {_describe_type(error['input'])}."
        case "string_pattern_mismatch":
            allowed = "letters of any script, digits, spaces, _ . or -, at most 100"
            return f"{error['input']!r} is not a valid id: use {allowed}."
        case "string_too_short":
            return "is empty: add a value."
        case "value_error":
            return str(error["msg"]).removeprefix("Value error, ")
        case _:
            return f"{error['msg']}."


def _describe_type(value: Any) -> str:
    names = {"dict": "a mapping", "list": "a list", "str": "text", "bool": "true or false", "NoneType": "nothing"}
    return names.get(type(value).__name__, "a number" if isinstance(value, int | float) else type(value).__name__)
