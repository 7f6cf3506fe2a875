"""Resolves the references to secrets in the environment and headers of a server."""

import os
import re
from collections.abc import Mapping

from opposable.domain.errors import BadInput
from opposable.safety.redaction import is_secret_key, is_secret_setting
from opposable.safety.secret_references import (
    find_variable,
    has_control_character,
    is_secret_reference,
    read_variable,
    replace_reference,
)


def resolve_references(values: Mapping[str, str], server_id: str) -> tuple[dict[str, str], set[str]]:
    """Replace the references in variables or headers.

    Returns:
        The values with references replaced, and the secrets among them.

    Raises:
        BadInput: A variable is not set, or a value contains a line break.
    """
    resolved: dict[str, str] = {}
    secrets: set[str] = set()
    for name, value in values.items():
        variable = find_variable(value)
        secret = read_variable(variable, os.environ)
        if variable and not secret:
            raise BadInput(
                f"{server_id}: {name} refers to the environment variable {variable}, which is not set. Set it first."
            )
        resolved[name] = replace_reference(value, {variable: secret})
        if has_control_character(resolved[name]):
            raise BadInput(f"{server_id}: the value of {name} contains a line break or control character. Remove it.")
        if variable and is_secret_reference(name, value, secret):
            secrets.add(secret)
        # AUTH_MODE=none is a setting: the last word must name the secret, or the value have the form of one
        last_word = re.split(r"[_\-.]", name)[-1]
        if not variable and value and is_secret_key(name) and is_secret_setting(last_word, "", value):
            secrets.add(value.rpartition(" ")[2])
    return resolved, secrets
