"""Secrets by reference: `env:NAME` in what a server is given."""

import os
import re
from collections.abc import Mapping

from opposable.domain.errors import BadInput
from opposable.safety.redaction import is_secret_key

_REFERENCE_PATTERN = re.compile(r"(^|\s)env:([A-Za-z_][A-Za-z0-9_]*)$")
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def resolve_references(values: Mapping[str, str], server_id: str) -> tuple[dict[str, str], set[str]]:
    """The values with references replaced (`env:NAME`, `Bearer env:NAME`), and those among them to be kept secret.

    Raises: `BadInput` naming the variable that is missing, or the value with a line break in it.
    """
    given: dict[str, str] = {}
    secrets: set[str] = set()
    for name, value in values.items():
        found = _REFERENCE_PATTERN.search(value)
        if found:
            secret = _read_variable(found[2], name, server_id)
            secrets.add(secret)
            given[name] = value[: found.start()] + found[1] + secret
        else:
            given[name] = value
            if value and is_secret_key(name):
                secrets.add(value.rpartition(" ")[2])
        if _CONTROL_CHARACTERS.search(given[name]):
            raise BadInput(f"{server_id}: the value of {name} holds a line break or control character; leave it out.")
    return given, secrets


def _read_variable(variable: str, name: str, server_id: str) -> str:
    value = os.environ.get(variable, "")
    if not value:
        raise BadInput(
            f"{server_id}: {name} refers to the environment variable {variable}, which is not set. Set it first."
        )
    return value
