"""YAML as plain data with the line of everything in it, read safely: no aliases, no tags, bounded size and depth."""

from dataclasses import dataclass
from typing import Any

from opposable.domain.errors import BadInput

MAX_YAML_CHARACTERS = 1_000_000
MAX_YAML_DEPTH = 24

YamlPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """What a YAML file holds. `lines` has the line (from 1) of every value by its path; `file` is for sentences."""

    data: Any
    lines: dict[YamlPath, int]
    file: str

    def get_line(self, path: YamlPath) -> int:
        """The line of the value at `path`, or of the nearest thing around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def build_error(self, path: YamlPath, message: str) -> BadInput:
        """`sentence` with the file, the line and the path it is about."""
        where = ".".join(str(part) for part in path)
        return BadInput(f"{self.file}, line {self.get_line(path)}: {f'{where}: ' if where else ''}{message}")


def parse_yaml(text: str, file: str) -> YamlDocument:
    """`text` as data; keys are always text, and dates stay as they are written.

    Raises:
        BadInput: it is no YAML, is too large or deep, or holds an alias, a tag or a key twice; with file and line.
    """
    import yaml

    if len(text) > MAX_YAML_CHARACTERS:
        raise BadInput(f"{file} has {len(text):,} characters: at most {MAX_YAML_CHARACTERS:,} are read.")
    try:
        _reject_unsafe_yaml(text, file)
        loader = yaml.SafeLoader(text)
        try:
            root = loader.get_single_node()
            lines: dict[YamlPath, int] = {}
            data = _construct_value(loader, root, (), lines, file) if root is not None else None
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise BadInput(f"{file}, line {mark.line + 1 if mark else 1}: this is no YAML: {error.problem}.") from error
    except yaml.YAMLError as error:
        raise BadInput(f"{file} is no YAML: {' '.join(str(error).split())}.") from error
    return YamlDocument(data, lines, file)


def _reject_unsafe_yaml(text: str, file: str) -> None:
    """Looks at the events alone, so that nothing large is built from something small."""
    import yaml

    depth = documents = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        line = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise BadInput(f"{file}, line {line}: anchors and aliases (& and *) are not read: write the value out.")
        if getattr(event, "tag", None) not in (None, "!"):
            raise BadInput(f"{file}, line {line}: tags (!) are not read: write plain values.")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        documents += isinstance(event, yaml.DocumentStartEvent)
        if depth > MAX_YAML_DEPTH:
            raise BadInput(f"{file}, line {line}: nested deeper than {MAX_YAML_DEPTH} levels.")
        if documents > 1:
            raise BadInput(f"{file}, line {line}: a second document (---) begins: write one document a file.")


def _construct_value(loader: Any, node: Any, path: YamlPath, lines: dict[YamlPath, int], file: str) -> Any:
    import yaml

    lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        found: dict[str, Any] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise BadInput(f"{file}, line {line}: a key must be a word.")
            if key.value in found:
                raise BadInput(f"{file}, line {line}: {key.value} stands twice: keep one of them.")
            lines[(*path, key.value)] = line
            found[key.value] = _construct_value(loader, value, (*path, key.value), lines, file)
        return found
    if isinstance(node, yaml.SequenceNode):
        return [_construct_value(loader, item, (*path, index), lines, file) for index, item in enumerate(node.value)]
    return node.value if node.tag == "tag:yaml.org,2002:timestamp" else loader.construct_object(node)
