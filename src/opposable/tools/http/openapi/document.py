"""An OpenAPI document: reads it from a file, a URL or text, and resolves its local references."""

import asyncio
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opposable.domain.errors import BadInput, ToolError
from opposable.domain.json_pointer import resolve_pointer
from opposable.domain.json_text import parse_json, to_portable_json
from opposable.domain.validation_problems import describe_yaml_error
from opposable.domain.yaml_checks import check_yaml_events
from opposable.safety.network.guarded_client import GuardedClient, HttpRequest
from opposable.safety.network.response_body import decode_body, read_body

SCHEMAS_REFERENCE = "#/components/schemas/"
MAX_DOCUMENT_BYTES = 20_000_000
MAX_DOCUMENT_DEPTH = 500
"""Levels of nesting that are read; below them is text."""
_MAX_REFERENCE_DEPTH = 50
_MAX_MERGED_PAIRS = 100_000
"""Keys and values that the merge keys (`<<`) of a YAML document may add."""


@dataclass(slots=True)
class OpenApiDocument:
    """A document.

    `skipped_parts` collects what cannot be used, as pairs of a location and a reason; `unextended_references` the
    schemas with a discriminator whose extensions are too large to choose from.
    """

    root: Mapping[str, Any]
    source_url: str = ""
    skipped_parts: list[tuple[str, str]] = field(default_factory=list)
    unextended_references: set[str] = field(default_factory=set)
    _extensions: dict[int, list[str]] | None = field(default=None, init=False, repr=False)

    @property
    def is_openapi_30(self) -> bool:
        """Whether schemas follow OpenAPI 3.0, which differs from JSON Schema."""
        return str(self.root.get("openapi", "")).startswith("3.0")

    def get_components(self, kind: str) -> Mapping[str, Any]:
        """Return the components of one kind, such as `schemas`, by name."""
        return get_map(get_map(self.root, "components"), kind)

    def resolve_reference(self, reference: str) -> Any:
        """Return what a local reference (`#/…`) refers to.

        Raises:
            LookupError: The reference is remote, or the document has no such part.
        """
        if not reference.startswith("#"):
            raise LookupError(f"refers to {reference[:200]}, outside of the document; nothing is fetched for it")
        try:
            return resolve_pointer(self.root, reference)
        except LookupError as error:
            raise LookupError(f"refers to {reference[:200]}, which is not in the document") from error

    def resolve_node(self, node: Any) -> Mapping[str, Any]:
        """Return a node, or what it refers to. Raises: `LookupError`."""
        for _ in range(_MAX_REFERENCE_DEPTH):
            if isinstance(node, dict) and not isinstance(node.get("$ref"), str):
                return node
            if not isinstance(node, dict):
                break
            node = self.resolve_reference(node["$ref"])
        raise LookupError("is not a valid OpenAPI object, or its references form a circle")

    def collect_parts(self, node: Any) -> list[dict[str, Any]]:
        """Return a schema with all those that apply to the same value by `$ref` and `allOf`, each once."""
        parts: dict[int, dict[str, Any]] = {}
        pending = [node]
        while pending:
            part = pending.pop()
            if not isinstance(part, dict) or id(part) in parts:
                continue
            parts[id(part)] = part
            pending += part["allOf"] if isinstance(part.get("allOf"), list) else []
            if isinstance(part.get("$ref"), str):
                with suppress(LookupError):  # reported where the reference is converted
                    pending.append(self.resolve_reference(part["$ref"]))
        return list(parts.values())

    def get_extensions(self, node: Mapping[str, Any]) -> list[str]:
        """Return references to the component schemas that extend a schema by `allOf`, directly or not."""
        if self._extensions is None:
            self._extensions = {}
            for name, schema in self.get_components("schemas").items():
                for part in self.collect_parts(schema) if isinstance(schema, dict) and "allOf" in schema else ():
                    if part is not schema:
                        self._extensions.setdefault(id(part), []).append(to_schema_reference(str(name)))
        return self._extensions.get(id(node), [])


def to_schema_reference(name: str) -> str:
    """Return the reference to a component schema."""
    return f"{SCHEMAS_REFERENCE}{name.replace('~', '~0').replace('/', '~1')}"


def get_map(node: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return the mapping at a key of a document's node, an empty one for anything else."""
    value = node.get(key)
    return value if isinstance(value, Mapping) else {}


def to_short_text(value: Any) -> str:
    """Return a value of the document for a message: at most 100 characters of text or a number, else its type."""
    if isinstance(value, str | int | float) or value is None:
        return str(value)[:100]
    return "an object" if isinstance(value, dict) else "a list"


def is_small(value: Any, limit: int) -> bool:
    """Return whether data has at most `limit` nodes. With YAML aliases, a few lines can have a billion."""
    remaining, pending = limit, [value]
    while pending:
        remaining -= 1
        if remaining < 0:
            return False
        node = pending.pop()
        children = list(node.values()) if isinstance(node, dict) else node if isinstance(node, list) else ()
        if len(children) > remaining:
            return False
        pending += children
    return True


async def read_document(source: Mapping[str, Any] | Path | str, client: GuardedClient) -> OpenApiDocument:
    """Read a document from a mapping, a file, or a URL (fetched through the guard), as JSON or YAML.

    Raises:
        BadInput: The source cannot be read, or is not an OpenAPI 3 document.
    """
    if isinstance(source, Mapping):
        return _validate_document(source, "")
    if isinstance(source, str) and re.match(r"https?://", source, re.IGNORECASE):
        raw = await _fetch_document(source, client)
        return _validate_document(await asyncio.to_thread(parse_document, raw, source), source)
    path = Path(source)
    return _validate_document(await asyncio.to_thread(lambda: parse_document(_read_file(path), str(path))), "")


def parse_document(raw: bytes, source_name: str) -> Any:
    """Parse JSON or YAML. Dates and words such as `yes` remain text. Raises: `BadInput`."""
    text = decode_body(raw)
    if text is None:
        raise BadInput(f"{source_name} is not a text file. An OpenAPI document is JSON or YAML.")
    if text.lstrip("\ufeff \t\r\n").startswith("{"):
        for json_text in (text, to_portable_json(text, MAX_DOCUMENT_DEPTH)):
            with suppress(ValueError):  # YAML may begin with a brace too
                return parse_json(json_text)
    return parse_yaml(text, source_name)


def parse_yaml(source: str | bytes, source_name: str) -> Any:
    """Parse YAML, in UTF-8 or UTF-16 as bytes. Keys, dates and words such as `yes` are text. Raises: `BadInput`."""
    try:
        import yaml  # lazy: the extra "http"
    except ModuleNotFoundError as error:
        raise BadInput('Reading YAML needs the extra "http": pip install "opposable[http]".') from error
    try:
        check_yaml_events(yaml.parse(source, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
        return yaml.load(source, Loader=_create_yaml_loader())  # noqa: S506 - a safe loader with fewer types
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise BadInput(f"{source_name} is neither JSON nor YAML: {describe_yaml_error(error)}.") from error


def _read_file(path: Path) -> bytes:
    try:
        if path.stat().st_size > MAX_DOCUMENT_BYTES:
            raise BadInput(f"{path} is larger than {MAX_DOCUMENT_BYTES:,} bytes.")
        return path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}.") from error


async def _fetch_document(url: str, client: GuardedClient) -> bytes:
    try:
        async with client.send(HttpRequest("GET", url, max_redirects=3)) as response:
            if response.status != 200:
                raise BadInput(f"{url} answered HTTP {response.status}. Give the URL of the document itself.")
            raw, is_truncated = await read_body(response, MAX_DOCUMENT_BYTES)
    except ToolError as error:
        raise BadInput(f"The document cannot be fetched: {error}") from error
    if is_truncated:
        raise BadInput(f"{url} is larger than {MAX_DOCUMENT_BYTES:,} bytes.")
    return raw


def _validate_document(root: Any, url: str) -> OpenApiDocument:
    if not isinstance(root, Mapping):
        raise BadInput("This is not an OpenAPI document. It must be an object with openapi, info and paths.")
    if "swagger" in root:
        raise BadInput("This is a Swagger 2.0 document. Convert it to OpenAPI 3 first.")
    if not re.match(r"3\.[012]\.", f"{root.get('openapi', '')}."):
        raise BadInput("This is not an OpenAPI 3 document. Its field `openapi` must be 3.0.x, 3.1.x or 3.2.x.")
    if not isinstance(root.get("paths"), Mapping):
        raise BadInput("This OpenAPI document has no paths, so no tool can be created from it.")
    return OpenApiDocument(root, url)


def _create_yaml_loader() -> Any:
    """Create a safe loader for the scalars of YAML 1.2: dates, `yes`, `on` and base 60 numbers are text."""
    import yaml

    prefix = "tag:yaml.org,2002:"
    merge_tag = f"{prefix}merge"

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """Loads only the types of JSON, with texts as keys, and a limit on merge keys: nested ones multiply what they merge."""

        merged_pairs = 0

        def flatten_mapping(self, node: Any) -> None:
            for key, value in node.value:
                if key.tag == merge_tag:
                    self.count_merged_pairs(value.value if isinstance(value, yaml.SequenceNode) else [value])
                elif isinstance(key, yaml.ScalarNode):
                    key.tag = f"{prefix}str"
            super().flatten_mapping(node)

        def count_merged_pairs(self, sources: Iterable[Any]) -> None:
            for source in sources:  # before they are merged: a short list may name one long mapping many times
                if isinstance(source, yaml.MappingNode):
                    self.flatten_mapping(source)
                    self.merged_pairs += len(source.value)
                if self.merged_pairs > _MAX_MERGED_PAIRS:
                    raise yaml.constructor.ConstructorError(None, None, "too many merge keys", source.start_mark)

    resolvers_by_character = {
        character: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] in ("null", "merge")]
        for character, resolvers in Loader.yaml_implicit_resolvers.items()
    }
    Loader.yaml_implicit_resolvers = resolvers_by_character
    Loader.add_implicit_resolver(f"{prefix}bool", re.compile(r"^(true|True|TRUE|false|False|FALSE)$"), list("tTfF"))
    Loader.add_implicit_resolver(f"{prefix}int", re.compile(r"^[-+]?(0|[1-9][0-9]*)$"), list("-+0123456789"))
    number = r"^[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?$"
    Loader.add_implicit_resolver(f"{prefix}float", re.compile(number), list("-+.0123456789"))
    return Loader
