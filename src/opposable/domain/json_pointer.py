"""JSON pointers, and local references of JSON documents: `#/…` as in JSON Schema's `$ref`."""

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote


def unescape_step(step: str) -> str:
    """Return the key that a step of a JSON pointer names."""
    return step.replace("~1", "/").replace("~0", "~")


def get_part(document: Any, steps: Iterable[str]) -> Any:
    """Return the part of a document at the steps of a JSON pointer. Raises: `LookupError` if it is missing."""
    value = document
    for key in map(unescape_step, steps):
        if isinstance(value, Mapping):
            value = value[key]
        elif isinstance(value, list | tuple) and key.isdecimal():
            value = value[int(key)]
        else:
            raise LookupError(key)
    return value


def resolve_pointer(document: Any, reference: str) -> Any:
    """Return the part of `document` that a local reference names, such as `#/$defs/Address`.

    Raises:
        LookupError: The reference is not local, or the document has no such part.
    """
    if not reference.startswith("#"):
        raise LookupError(f"{reference!r} is not a local reference")
    return get_part(document, map(unquote, reference[1:].split("/")[1:]))
