"""Safe YAML parser that records lines, with bounded size and depth, and validation with errors by line."""

from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from opposable.domain.errors import BadInput
from opposable.domain.validation_problems import list_problems

M = TypeVar("M", bound=BaseModel)

MAX_YAML_CHARACTERS = 1_000_000
MAX_YAML_DEPTH = 24
_MAX_REPORTED_ERRORS = 5
_PLAIN_TAGS = frozenset({"map", "seq", "str", "int", "float", "bool", "null", "timestamp"})

YamlPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """The data of a YAML file, with the line of every value by its path."""

    data: Any
    lines: dict[YamlPath, int]
    file: str

    def get_line(self, path: YamlPath) -> int:
        """Return the line of the value at `path`, or of the nearest value around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def describe_location(self, path: YamlPath) -> str:
        """Describe the location of a value: "model.yaml, line 7: metrics.revenue"."""
        return ": ".join([f"{self.file}, line {self.get_line(path)}", *([".".join(map(str, path))] if path else [])])

    def build_error(self, path: YamlPath, message: str) -> BadInput:
        """Build an error with the file, the line and the path of a value."""
        return BadInput(f"{self.describe_location(path)}: {message}")


def parse_yaml(text: str, file: str) -> YamlDocument:
    """Parse YAML; keys are always text, and dates stay text.

    Raises:
        BadInput: The text is invalid YAML, too large or too deep, or contains an alias, a tag or a duplicate key. The
            message has the file and the line.
    """
    import yaml

    if len(text) > MAX_YAML_CHARACTERS:
        raise BadInput(f"{file} has {len(text):,} characters: at most {MAX_YAML_CHARACTERS:,} are allowed.")
    document = YamlDocument(None, {}, file)
    try:
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        return replace(document, data=_construct_value(loader, root, (), document, set()) if root else None)
    except RecursionError as error:
        raise BadInput(f"{file} is nested deeper than {MAX_YAML_DEPTH} levels.") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise BadInput(f"{file}, line {mark.line + 1 if mark else 1}: invalid YAML: {error.problem}.") from error
    except (yaml.YAMLError, ValueError) as error:  # a whole number of 5,000 digits is a ValueError
        raise BadInput(f"{file} is not valid YAML: {' '.join(str(error).split())}.") from error


def validate_yaml(model_type: type[M], data: Any, document: YamlDocument, path: YamlPath) -> M:
    """Validate the data at `path` of a document.

    Raises:
        BadInput: The data is invalid. The message has up to five lines, each with file, line and problem.
    """
    try:
        return model_type.model_validate(data)
    except ValidationError as error:
        errors = error.errors(include_url=False)[:_MAX_REPORTED_ERRORS]
        problems = [problem for _, problem in list_problems(errors, model_type)]
        lines = [
            str(document.build_error((*path, *item["loc"]), f"{problem}."))
            for item, problem in zip(errors, problems, strict=True)
        ]
        raise BadInput("\n".join(dict.fromkeys(lines))) from None


def _construct_value(loader: Any, node: Any, path: YamlPath, document: YamlDocument, seen: set[int]) -> Any:
    """Construct the value of a node, and record its line in the document.

    `seen` holds the ids of the nodes before. An alias is a node that is seen again: a small text may expand to large
    data.
    """
    import yaml

    line = node.start_mark.line + 1
    document.lines.setdefault(path, line)
    if id(node) in seen:
        raise BadInput(f"{document.file}, line {line}: anchors and aliases (& and *) are not supported: repeat it.")
    if node.tag.removeprefix("tag:yaml.org,2002:") not in _PLAIN_TAGS:
        raise BadInput(f"{document.file}, line {line}: tags (!) are not supported: write plain values.")
    if len(path) >= MAX_YAML_DEPTH:
        raise BadInput(f"{document.file}, line {line}: nested deeper than {MAX_YAML_DEPTH} levels.")
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        data: dict[str, Any] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise BadInput(f"{document.file}, line {line}: a key must be text.")
            if key.value in data:
                raise BadInput(f"{document.file}, line {line}: {key.value} is defined twice: remove one of them.")
            document.lines[(*path, key.value)] = line
            data[key.value] = _construct_value(loader, value, (*path, key.value), document, seen)
        return data
    if isinstance(node, yaml.SequenceNode):
        return [_construct_value(loader, item, (*path, i), document, seen) for i, item in enumerate(node.value)]
    return node.value if node.tag == "tag:yaml.org,2002:timestamp" else loader.construct_object(node)
