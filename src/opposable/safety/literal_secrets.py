"""Detection of secrets that are written into the headers of a spec instead of being referenced."""

import re
from collections.abc import Mapping

from opposable.domain.errors import BadInput
from opposable.safety.redaction import is_secret_key, redact

_REFERENCE = re.compile(r"(?:[A-Za-z]+\s+)?env:[A-Za-z_][A-Za-z0-9_]*")


def check_headers(headers: Mapping[str, object], tool_id: str) -> None:
    """Reject headers that hold a literal secret; the message names the header and never its value.

    A value counts as a secret if its header names one (`Authorization`, `X-API-Key`, `Cookie`), or if it has the form
    of a known kind of key. `env:NAME` and `Bearer env:NAME` are references.

    Raises:
        BadInput: A header holds a literal secret.
    """
    for name, value in headers.items():
        if not isinstance(value, str) or not value.strip() or _REFERENCE.fullmatch(value.strip()):
            continue
        if is_secret_key(name) or redact(value) != value:
            raise BadInput(
                f"{tool_id}: the header {name!r} holds a secret, and secrets are not stored. Put the value into an "
                "environment variable and write env:NAME instead."
            )
