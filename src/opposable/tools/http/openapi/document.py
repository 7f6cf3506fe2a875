"""An OpenAPI document: read from a file, a URL or text, and looked up by its local references."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import orjson

from opposable.domain.errors import BadInput, ToolError
from opposable.safety.network.guarded_client import GuardedClient, HttpRequest
from opposable.safety.network.response_body import decode_body, read_body

MAX_DOCUMENT_BYTES = 20_000_000
_MAX_REFERENCE_DEPTH = 50


@dataclass(slots=True)
class OpenApiDocument:
    """A document and where it came from. `left_out` gathers what cannot be used, as (where, why)."""

    root: Mapping[str, Any]
    source_url: str = ""
    skipped_parts: list[tuple[str, str]] = field(default_factory=list)

    @property
    def is_openapi_30(self) -> bool:
        """Whether schemas are in OpenAPI 3.0's own dialect rather than JSON Schema."""
        return str(self.root.get("openapi", "")).startswith("3.0")

    def resolve_reference(self, reference: str) -> Any:
        """What a local reference (`#/…`) leads to. Raises: `LookupError` for a remote one, or one that leads nowhere."""
        if not reference.startswith("#"):
            raise LookupError(f"refers to {reference[:200]}, outside of the document; nothing is fetched for it")
        found: Any = self.root
        for step in reference[1:].split("/")[1:]:
            name = unquote(step).replace("~1", "/").replace("~0", "~")
            try:
                found = found[int(name)] if isinstance(found, list) else found[name]
            except (LookupError, ValueError, TypeError) as error:
                raise LookupError(f"refers to {reference[:200]}, which is not in the document") from error
        return found

    def resolve_node(self, node: Any) -> Mapping[str, Any]:
        """A part of the document, its own reference followed. Raises: `LookupError`."""
        for _ in range(_MAX_REFERENCE_DEPTH):
            if isinstance(node, dict) and not isinstance(node.get("$ref"), str):
                return node
            if not isinstance(node, dict):
                break
            node = self.resolve_reference(node["$ref"])
        raise LookupError("is not what OpenAPI has there, or a circle of references")


def to_short_text(value: Any) -> str:
    """A word of a document for a sentence: text and numbers as they are, at most 100 characters; else what it is."""
    if isinstance(value, str | int | float) or value is None:
        return str(value)[:100]
    return "an object" if isinstance(value, dict) else "a list"


def is_small(value: Any, limit: int) -> bool:
    """Whether data has at most `most` nodes: the aliases of YAML can make a few lines a billion."""
    left, todo = limit, [value]
    while todo:
        left -= 1
        if left < 0:
            return False
        node = todo.pop()
        inner = list(node.values()) if isinstance(node, dict) else node if isinstance(node, list) else ()
        if len(inner) > left:
            return False
        todo += inner
    return True


async def read_document(source: Mapping[str, Any] | Path | str, client: GuardedClient) -> OpenApiDocument:
    """A document from a mapping, a file, or a URL (fetched through the guard); JSON or YAML.

    Raises: `BadInput`, saying what it is instead of an OpenAPI 3 document.
    """
    if isinstance(source, Mapping):
        return _validate_document(source, "")
    if isinstance(source, str) and re.match(r"https?://", source, re.IGNORECASE):
        return _validate_document(parse_document(await _fetch_document(source, client), source), source)
    path = Path(source)
    return _validate_document(parse_document(await asyncio.to_thread(_read_file, path), str(path)), "")


def parse_document(raw: bytes, source_name: str) -> Any:
    """JSON or YAML as data. Dates and words like `yes` stay text. Raises: `BadInput`."""
    text = decode_body(raw)
    if text is None:
        raise BadInput(f"{source_name} is no text; an OpenAPI document is JSON or YAML.")
    if text.lstrip("\ufeff \t\r\n").startswith("{"):
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            pass  # YAML has braces too
    try:
        import yaml
    except ModuleNotFoundError as error:
        raise BadInput('Reading YAML needs the extra "http": pip install "opposable[http]".') from error
    try:
        return yaml.load(text, Loader=_create_yaml_loader())  # noqa: S506 - a safe loader with fewer types
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        first = str(error).splitlines()[0]
        raise BadInput(f"{source_name} is neither JSON nor YAML: {first}") from error


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
                raise BadInput(f"{url} answered HTTP {response.status}; give the URL of the document itself.")
            raw, more = await read_body(response, MAX_DOCUMENT_BYTES)
    except ToolError as error:
        raise BadInput(f"The document cannot be fetched: {error}") from error
    if more:
        raise BadInput(f"{url} is larger than {MAX_DOCUMENT_BYTES:,} bytes.")
    return raw


def _validate_document(root: Any, url: str) -> OpenApiDocument:
    if not isinstance(root, Mapping):
        raise BadInput("This is no OpenAPI document: it must be an object with openapi, info and paths.")
    if "swagger" in root:
        raise BadInput("This is a Swagger 2.0 document; convert it to OpenAPI 3 first.")
    if not re.match(r"3\.[012]\.", f"{root.get('openapi', '')}."):
        raise BadInput("This is no OpenAPI 3 document: its field `openapi` must be 3.0.x or 3.1.x.")
    if not isinstance(root.get("paths"), Mapping):
        raise BadInput("This OpenAPI document has no paths, so there is nothing to make tools of.")
    return OpenApiDocument(root, url)


def _create_yaml_loader() -> Any:
    """A safe YAML loader with the words of YAML 1.2: dates, `yes`, `on` and numbers in base 60 are text."""
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """Only what JSON has too."""

    kept = {
        mark: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] in ("null", "merge")]
        for mark, resolvers in Loader.yaml_implicit_resolvers.items()
    }
    Loader.yaml_implicit_resolvers = kept
    prefix = "tag:yaml.org,2002:"
    Loader.add_implicit_resolver(f"{prefix}bool", re.compile(r"^(true|True|TRUE|false|False|FALSE)$"), list("tTfF"))
    Loader.add_implicit_resolver(f"{prefix}int", re.compile(r"^[-+]?(0|[1-9][0-9]*)$"), list("-+0123456789"))
    number = r"^[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?$"
    Loader.add_implicit_resolver(f"{prefix}float", re.compile(number), list("-+.0123456789"))
    return Loader
