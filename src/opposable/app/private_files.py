"""Files of the state folder that only this user may read."""

from pathlib import Path

from opposable.safety.filesystem.drafts import PRIVATE_MODE, open_draft


def write_private_file(path: Path, content: bytes) -> None:
    """Replace a file as a whole, and create its folder if necessary. Raises: `OSError`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open_draft(path, replace=True, mode=PRIVATE_MODE) as draft:
        draft.write(content)
