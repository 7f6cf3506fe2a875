"""Secrets of an endpoint: taken from the environment when used, and taken out of whatever comes back."""

import base64
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

import orjson

from opposable.domain.errors import ToolUnavailable

_REFERENCE_PATTERN = re.compile(r"env:([A-Za-z_][A-Za-z0-9_]*)")
_MIN_SECRET_CHARACTERS = 4
REDACTED = "***"


def get_variable_name(value: str) -> str | None:
    """The environment variable a value refers to, None for a plain value."""
    found = _REFERENCE_PATTERN.fullmatch(value)
    return found[1] if found else None


def resolve_value(value: str, environ: Mapping[str, str]) -> str:
    """A plain value as it is; a reference's value. Raises: `ToolUnavailable`, naming the variable that is not set."""
    variable = get_variable_name(value)
    if variable is None:
        return value
    found = environ.get(variable, "").strip()
    if not found:
        raise ToolUnavailable(f"The environment variable {variable}, which this tool needs, is not set.")
    if any(ord(mark) < 32 or ord(mark) == 127 for mark in found):
        raise ToolUnavailable(f"The environment variable {variable} holds a line break or another control character.")
    return found


class Redactor:
    """Takes known secrets out of text and data, in the forms they are sent and echoed in.

    Secrets shorter than four characters are left: their letters are everywhere.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {
            form for secret in secrets if len(secret) >= _MIN_SECRET_CHARACTERS for form in _get_encoded_forms(secret)
        }
        ordered = sorted(forms, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    def redact_text(self, text: str) -> str:
        """`text` with each secret as ***."""
        return self._pattern.sub(REDACTED, text) if self._pattern else text

    def redact_data(self, value: Any) -> Any:
        """JSON data with each secret in its keys and strings as ***."""
        if self._pattern is None:
            return value
        if isinstance(value, str):
            return self.redact_text(value)
        if isinstance(value, list):
            return [self.redact_data(item) for item in value]
        if isinstance(value, dict):
            return {self.redact_text(key): self.redact_data(inner) for key, inner in value.items()}
        return value


def _get_encoded_forms(secret: str) -> set[str]:
    plain = base64.b64encode(secret.encode()).decode()
    escaped = orjson.dumps(secret).decode()[1:-1]
    return {secret, plain, plain.rstrip("="), quote(secret, safe=""), quote_plus(secret), escaped}
