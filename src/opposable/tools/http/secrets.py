"""Redacts the secrets of an endpoint in its answers."""

import re
from collections.abc import Iterable
from typing import Any

from opposable.safety.redaction import MIN_SUBSTRING_CHARACTERS, get_encoded_forms, to_secret_pattern

REDACTED = "***"


class Redactor:
    """Redacts known secrets in text and data, also in their encoded forms.

    Secrets shorter than four characters are not redacted: they occur in ordinary text. Other short ones are redacted
    as whole words.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        searched = (secret for secret in secrets if len(secret) >= MIN_SUBSTRING_CHARACTERS)
        ordered = sorted(set().union(*map(get_encoded_forms, searched)), key=len, reverse=True)
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
