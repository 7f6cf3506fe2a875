"""Names of tools: the owner's, the one providers take, and what a model makes of it."""

import hashlib
import re
from collections.abc import Iterable

SAFE = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")


def safe_name(tool_id: str) -> str:
    """A name every provider takes (`^[a-zA-Z0-9_-]{1,64}$`), the same each time for the same id.

    A dot becomes an underscore; whatever else does not fit is left out and eight characters of the id's hash are put
    behind, so that two ids that look alike after that keep different names.
    """
    plain = tool_id.replace(".", "_")
    if SAFE.match(plain):
        return plain
    return marked_name(tool_id)


def marked_name(tool_id: str) -> str:
    """A safe name that no other id has: what of the id fits, and eight characters of its hash."""
    mark = hashlib.sha256(tool_id.encode()).hexdigest()[:8]
    return f"{re.sub(r'[^a-zA-Z0-9_-]+', '_', tool_id).strip('_')[:55] or 'tool'}_{mark}"


def folded(name: str) -> str:
    """A name as models confuse it: case, dots, dashes and underscores make no difference, nor does a prefix."""
    bare = re.sub(r"^(functions|function|tools|tool)[.:/]", "", name.strip().lower())
    return re.sub(r"[^0-9a-z\u0080-\U0010ffff]+", "", bare)


def nearest(name: str, known: Iterable[str], most: int = 3) -> list[str]:
    """The known names most like `name`, best first; none where nothing is like it."""
    import difflib

    by_folded = {folded(other): other for other in known}
    return [by_folded[like] for like in difflib.get_close_matches(folded(name), by_folded, n=most, cutoff=0.5)]
