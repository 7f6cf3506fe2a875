"""Data of a YAML document as pydantic values, with what does not fit told by file and line."""

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from opposable.ask.semantics.yaml_reader import YamlDocument, YamlPath
from opposable.domain.errors import BadInput
from opposable.sql.name_similarity import suggest_names

M = TypeVar("M", bound=BaseModel)

_MAX_REPORTED_ERRORS = 5


def validate_yaml(model_type: type[M], data: Any, document: YamlDocument, path: YamlPath) -> M:
    """`data`, which stands at `path`, as a `kind`.

    Raises:
        BadInput: up to five things that are wrong, each on a line with file, line and what would be right.
    """
    try:
        return model_type.model_validate(data)
    except ValidationError as error:
        lines = [_format_error(problem, model_type, document, path) for problem in error.errors(include_url=False)]
        more = [f"… and {len(lines) - _MAX_REPORTED_ERRORS} more"] if len(lines) > _MAX_REPORTED_ERRORS else []
        raise BadInput("\n".join([*dict.fromkeys(lines[:_MAX_REPORTED_ERRORS]), *more])) from None


def _format_error(error: Any, model_type: type[BaseModel], document: YamlDocument, path: YamlPath) -> str:
    loc: YamlPath = tuple(part for part in error["loc"] if not (isinstance(part, str) and part.startswith("function")))
    whole = (*path, *loc)
    match error["type"]:
        case "extra_forbidden":
            known = [field.alias or name for name, field in model_type.model_fields.items()]
            near = suggest_names(str(loc[-1]), known, 1) if len(loc) == 1 else ()
            hint = f"did you mean {near[0]}?" if near else f"the fields are {', '.join(known)}."
            told = f"there is no such field; {hint}" if len(loc) == 1 else "there is no such field here."
        case "missing":
            told = "is missing: write it here."
        case "string_type":
            told = f"must be text, not {_describe_type(error['input'])}."
        case "tuple_type" | "list_type":
            told = f"must be a list, such as [a, b], not {_describe_type(error['input'])}."
        case "model_type" | "dict_type" | "model_attributes_type":
            told = f"must be a mapping (name: value), not {_describe_type(error['input'])}."
        case "string_pattern_mismatch":
            told = (
                f"{error['input']!r} is no usable id: use letters of any script, digits, spaces, _ . or -, at most 100."
            )
        case "string_too_short":
            told = "is empty: write it out."
        case "value_error":
            told = str(error["msg"]).removeprefix("Value error, ")
        case _:
            told = f"{error['msg']}."
    return str(document.build_error(whole, told))


def _describe_type(value: Any) -> str:
    names = {"dict": "a mapping", "list": "a list", "str": "text", "bool": "true or false", "NoneType": "nothing"}
    return names.get(type(value).__name__, "a number" if isinstance(value, int | float) else type(value).__name__)
