"""Local references of JSON documents: `#/…` as in JSON Schema's `$ref`."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote


def resolve_pointer(document: Any, reference: str) -> Any:
    """Return the part of `document` that a local reference names, such as `#/$defs/Address`.

    Raises:
        LookupError: The reference is not local, or the document has no such part.
    """
    if not reference.startswith("#"):
        raise LookupError(f"{reference!r} is not a local reference")
    value = document
    for step in reference[1:].split("/")[1:]:
        key = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping):
            value = value[key]
        elif isinstance(value, list) and key.isdecimal():
            value = value[int(key)]
        else:
            raise LookupError(f"{reference!r} is not in the document")
    return value
