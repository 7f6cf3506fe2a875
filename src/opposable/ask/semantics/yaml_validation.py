"""Data of a YAML document as pydantic values, with what does not fit told by file and line."""

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from opposable.ask.semantics.yaml_reader import Document, YamlPath
from opposable.domain.errors import BadInput
from opposable.sql.name_similarity import suggestions

M = TypeVar("M", bound=BaseModel)

_TOLD = 5


def checked(kind: type[M], data: Any, document: Document, path: YamlPath) -> M:
    """`data`, which stands at `path`, as a `kind`.

    Raises:
        BadInput: up to five things that are wrong, each on a line with file, line and what would be right.
    """
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        lines = [_sentence(problem, kind, document, path) for problem in error.errors(include_url=False)]
        more = [f"… and {len(lines) - _TOLD} more"] if len(lines) > _TOLD else []
        raise BadInput("\n".join([*dict.fromkeys(lines[:_TOLD]), *more])) from None


def _sentence(problem: Any, kind: type[BaseModel], document: Document, path: YamlPath) -> str:
    loc: YamlPath = tuple(
        part for part in problem["loc"] if not (isinstance(part, str) and part.startswith("function"))
    )
    whole = (*path, *loc)
    match problem["type"]:
        case "extra_forbidden":
            known = [field.alias or name for name, field in kind.model_fields.items()]
            near = suggestions(str(loc[-1]), known, 1) if len(loc) == 1 else ()
            hint = f"did you mean {near[0]}?" if near else f"the fields are {', '.join(known)}."
            told = f"there is no such field; {hint}" if len(loc) == 1 else "there is no such field here."
        case "missing":
            told = "is missing: write it here."
        case "string_type":
            told = f"must be text, not {_kind(problem['input'])}."
        case "tuple_type" | "list_type":
            told = f"must be a list, such as [a, b], not {_kind(problem['input'])}."
        case "model_type" | "dict_type" | "model_attributes_type":
            told = f"must be a mapping (name: value), not {_kind(problem['input'])}."
        case "string_pattern_mismatch":
            told = f"{problem['input']!r} is no usable id: use letters of any script, digits, spaces, _ . or -, at most 100."
        case "string_too_short":
            told = "is empty: write it out."
        case "value_error":
            told = str(problem["msg"]).removeprefix("Value error, ")
        case _:
            told = f"{problem['msg']}."
    return str(document.error(whole, told))


def _kind(value: Any) -> str:
    names = {"dict": "a mapping", "list": "a list", "str": "text", "bool": "true or false", "NoneType": "nothing"}
    return names.get(type(value).__name__, "a number" if isinstance(value, int | float) else type(value).__name__)
