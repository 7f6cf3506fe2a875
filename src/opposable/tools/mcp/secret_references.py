"""Secrets by reference: `env:NAME` in the environment and headers of a server."""

import os
import re
from collections.abc import Mapping

from opposable.domain.errors import BadInput
from opposable.safety.redaction import is_secret_key, is_secret_setting

_REFERENCE_PATTERN = re.compile(r"(^|\s)env:([A-Za-z_][A-Za-z0-9_]*)$")
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def resolve_references(values: Mapping[str, str], server_id: str) -> tuple[dict[str, str], set[str]]:
    """Replace references such as `env:NAME` and `Bearer env:NAME` in variables or headers.

    Returns:
        The values with references replaced, and the secrets among them. Ordinary settings are not secrets, because
        their values also occur in results: HOME, REGION.

    Raises:
        BadInput: A variable is not set, or a value contains a line break.
    """
    resolved: dict[str, str] = {}
    secrets: set[str] = set()
    for name, value in values.items():
        reference = _REFERENCE_PATTERN.search(value)
        if reference:
            variable, variable_value = reference[2], os.environ.get(reference[2], "").strip()
            if not variable_value:
                raise BadInput(
                    f"{server_id}: {name} refers to the environment variable {variable}, which is not set. Set it first."
                )
            prefix = value[: reference.start()]  # a scheme, as in "Bearer env:NAME"
            resolved[name] = prefix + reference[1] + variable_value
            if prefix or is_secret_setting(name, variable, variable_value):
                secrets.add(variable_value)
        else:
            resolved[name] = value
            # AUTH_MODE=none is a setting: the last word must name the secret, or the value have the form of one
            if value and is_secret_key(name) and is_secret_setting(re.split(r"[_\-.]", name)[-1], "", value):
                secrets.add(value.rpartition(" ")[2])
        if _CONTROL_CHARACTERS.search(resolved[name]):
            raise BadInput(f"{server_id}: the value of {name} contains a line break or control character. Remove it.")
    return resolved, secrets
