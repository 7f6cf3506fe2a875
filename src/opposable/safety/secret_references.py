"""References of specs to environment variables: `env:NAME`, alone or as the last word of a value (`Bearer env:NAME`)."""

import itertools
import re
from collections.abc import Iterator, Mapping

from opposable.domain.specs import AnyToolSpec, HttpToolSpec, McpServerSpec
from opposable.safety.redaction import is_secret_setting

_REFERENCE = re.compile(r"(?:^|\s)(env:([A-Za-z_][A-Za-z0-9_]*))\s*$")
_CONTROL_CHARACTER = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def find_variable(value: str) -> str:
    """Return the environment variable that a value refers to, "" for none."""
    reference = _REFERENCE.search(value)
    return reference[2] if reference else ""


def get_referenced_variables(*specs: AnyToolSpec) -> list[str]:
    """Return the environment variables that specs refer to."""
    values = itertools.chain.from_iterable(map(_iterate_values, specs))
    return sorted(set(map(find_variable, values)) - {""})


def read_variable(variable: str, environ: Mapping[str, str]) -> str:
    """Return the value of a variable without the line break that files of secrets end with, "" if it is not set."""
    return environ.get(variable, "").strip()


def replace_reference(value: str, secrets: Mapping[str, str]) -> str:
    """Return a value with its reference, if it has one, replaced by the value of the variable."""
    reference = _REFERENCE.search(value)
    return value[: reference.start(1)] + secrets[reference[2]] if reference else value


def is_secret_reference(name: str, value: str, secret: str) -> bool:
    """Whether what a header, variable or field refers to is a secret.

    It is one if it follows another word, as in `Bearer env:NAME`, or if `is_secret_setting` says so. Ordinary settings
    are not secrets, because their values also occur in results: HOME, REGION.
    """
    variable = find_variable(value)
    return value.strip() != f"env:{variable}" or is_secret_setting(name, variable, secret)


def has_control_character(value: str) -> bool:
    """Whether a value has a line break or another control character, but for tabs."""
    return _CONTROL_CHARACTER.search(value) is not None


def _iterate_values(spec: AnyToolSpec) -> Iterator[str]:
    match spec:
        case HttpToolSpec(endpoint=endpoint):
            yield from endpoint.headers.values()
            yield from (endpoint.auth.token, endpoint.auth.username, endpoint.auth.password)
        case McpServerSpec():
            yield from spec.headers.values()
            yield from spec.env.values()
