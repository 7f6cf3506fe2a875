"""Secrets by reference: `env:NAME` in what a server is given."""

import os
import re
from collections.abc import Mapping

from opposable.domain.errors import BadInput
from opposable.safety.redaction import is_secret_key

_REFERENCE = re.compile(r"(^|\s)env:([A-Za-z_][A-Za-z0-9_]*)$")
_BREAKS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def resolved(values: Mapping[str, str], whose: str) -> tuple[dict[str, str], set[str]]:
    """The values with references replaced (`env:NAME`, `Bearer env:NAME`), and those among them to be kept secret.

    Raises: `BadInput` naming the variable that is missing, or the value with a line break in it.
    """
    given: dict[str, str] = {}
    secrets: set[str] = set()
    for name, value in values.items():
        found = _REFERENCE.search(value)
        if found:
            secret = _variable(found[2], name, whose)
            secrets.add(secret)
            given[name] = value[: found.start()] + found[1] + secret
        else:
            given[name] = value
            if value and is_secret_key(name):
                secrets.add(value.rpartition(" ")[2])
        if _BREAKS.search(given[name]):
            raise BadInput(f"{whose}: the value of {name} holds a line break or control character; leave it out.")
    return given, secrets


def _variable(variable: str, name: str, whose: str) -> str:
    value = os.environ.get(variable, "")
    if not value:
        raise BadInput(
            f"{whose}: {name} refers to the environment variable {variable}, which is not set. Set it first."
        )
    return value
