"""Names of tools: safe names for providers, and the comparison of misspelled names."""

import hashlib
import re
from collections.abc import Iterable

from opposable.domain.text_normalization import find_close_names

SAFE_NAME_PATTERN = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")


def to_safe_name(tool_id: str) -> str:
    """Return a name that every provider accepts (`^[a-zA-Z0-9_-]{1,64}$`), always the same for an id.

    A dot becomes an underscore. An id with other special characters gets a hashed name, so that different ids have
    different names.
    """
    name = tool_id.replace(".", "_")
    return name if SAFE_NAME_PATTERN.match(name) else to_hashed_name(tool_id)


def to_hashed_name(tool_id: str) -> str:
    """Return a safe name that is unique to the id: its safe characters, and eight characters of its hash."""
    readable_part = re.sub(r"[^a-zA-Z0-9_-]+", "_", tool_id).strip("_")[:55] or "tool"
    return f"{readable_part}_{hash_name(tool_id)}"


def hash_name(name: str) -> str:
    """Return eight characters of a name's hash."""
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def normalize_name(name: str) -> str:
    """Remove what models confuse in names: case, dots, dashes, underscores, and prefixes such as `functions.`."""
    name = re.sub(r"^(functions|function|tools|tool)[.:/]", "", name.strip().lower())
    return re.sub(r"[\x00-/:-`{-\x7f]+", "", name)


def find_nearest_names(name: str, candidates: Iterable[str]) -> list[str]:
    """Return at most three candidates that are similar to `name`, best first."""
    return find_close_names(name, candidates, normalize_name)
