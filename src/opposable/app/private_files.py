"""Files of the state folder that only this user may read."""

import os
from pathlib import Path


def write_private_file(path: Path, content: bytes) -> None:
    """Replace a file as a whole, and create its folder if necessary. Raises: `OSError`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(f".{os.getpid()}.new")
    try:
        draft.touch(mode=0o600)
        draft.write_bytes(content)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
