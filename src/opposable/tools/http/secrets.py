"""Redacts the secrets of an endpoint in its answers."""

import base64
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, quote_plus

import orjson

from opposable.safety.redaction import to_secret_pattern

_MIN_SECRET_CHARACTERS = 4
COOKIE_SAFE_CHARACTERS = "!#$%&'()*+-./:<=>?@[]^_`{|}~"
REDACTED = "***"


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
