"""Names of tools: the owner's, the one providers take, and what a model makes of it."""

import hashlib
import re
from collections.abc import Iterable

from opposable.domain.text_normalization import find_close_names

SAFE_NAME_PATTERN = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")


def to_safe_name(tool_id: str) -> str:
    """A name every provider takes (`^[a-zA-Z0-9_-]{1,64}$`), the same each time for the same id.

    A dot becomes an underscore; whatever else does not fit is left out and eight characters of the id's hash are put
    behind, so that two ids that look alike after that keep different names.
    """
    plain = tool_id.replace(".", "_")
    if SAFE_NAME_PATTERN.match(plain):
        return plain
    return to_hashed_name(tool_id)


def to_hashed_name(tool_id: str) -> str:
    """A safe name that no other id has: what of the id fits, and eight characters of its hash."""
    mark = hashlib.sha256(tool_id.encode()).hexdigest()[:8]
    return f"{re.sub(r'[^a-zA-Z0-9_-]+', '_', tool_id).strip('_')[:55] or 'tool'}_{mark}"


def normalize_name(name: str) -> str:
    """A name as models confuse it: case, dots, dashes and underscores make no difference, nor does a prefix."""
    bare = re.sub(r"^(functions|function|tools|tool)[.:/]", "", name.strip().lower())
    return re.sub(r"[^0-9a-z\u0080-\U0010ffff]+", "", bare)


def find_nearest_names(name: str, candidates: Iterable[str], limit: int = 3) -> list[str]:
    """Return the candidates most similar to `name`, best first."""
    return find_close_names(name, candidates, normalize_name, limit)
