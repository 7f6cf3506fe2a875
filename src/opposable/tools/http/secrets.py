"""Secrets of an endpoint: read from the environment at each call, and redacted in the answer."""

import base64
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

import orjson

from opposable.domain.errors import ToolUnavailable
from opposable.safety.redaction import to_secret_pattern

_REFERENCE_PATTERN = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*")
_MIN_SECRET_CHARACTERS = 4
COOKIE_SAFE_CHARACTERS = "!#$%&'()*+-./:<=>?@[]^_`{|}~"
REDACTED = "***"


def is_reference(value: str) -> bool:
    """Return whether a value refers to an environment variable."""
    return _REFERENCE_PATTERN.fullmatch(value) is not None


def find_reference(header: str) -> str:
    """Return the reference that is the last word of a header's value, as in `Token env:NAME`; "" for none."""
    last_word = header.rpartition(" ")[2]
    return last_word if is_reference(last_word) else ""


def is_set(reference: str, environ: Mapping[str, str]) -> bool:
    """Return whether the environment variable of a reference is set."""
    return bool(environ.get(reference.removeprefix("env:"), "").strip())


def resolve_reference(reference: str, environ: Mapping[str, str]) -> str:
    """Return the value of a reference.

    Raises:
        ToolUnavailable: The environment variable is not set, or contains a control character.
    """
    variable = reference.removeprefix("env:")
    secret = environ.get(variable, "").strip()
    if not secret:
        raise ToolUnavailable(f"The environment variable {variable}, which this tool needs, is not set.")
    if any(ord(character) < 32 or ord(character) == 127 for character in secret):
        raise ToolUnavailable(f"The environment variable {variable} holds a line break or another control character.")
    return secret


class Redactor:
    """Redacts known secrets in text and data, also in their encoded forms.

    Secrets shorter than four characters are not redacted: they occur in ordinary text. Other short ones are redacted
    as whole words.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {
            form for secret in secrets if len(secret) >= _MIN_SECRET_CHARACTERS for form in _get_encoded_forms(secret)
        }
        ordered = sorted(forms, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(to_secret_pattern, ordered))) if ordered else None

    def redact_text(self, text: str) -> str:
        """Replace each secret in a text by ***."""
        return self._pattern.sub(REDACTED, text) if self._pattern else text

    def redact_data(self, value: Any) -> Any:
        """Replace each secret in the keys and strings of JSON data by ***."""
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
    base64_form = base64.b64encode(secret.encode()).decode()
    escaped = orjson.dumps(secret).decode()[1:-1]
    encoded = {quote(secret, safe=safe) for safe in ("", "/", COOKIE_SAFE_CHARACTERS)} | {quote_plus(secret)}
    encoded |= {re.sub("%..", lambda octet: octet[0].lower(), form) for form in encoded}
    return {secret, base64_form, base64_form.rstrip("="), escaped, escaped.replace("/", "\\/")} | encoded
