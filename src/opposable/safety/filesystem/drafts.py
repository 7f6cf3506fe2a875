"""Files that are written as a whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

PRIVATE_MODE = 0o600
"""The permissions of a file that only this user may read."""


@contextmanager
def open_draft(path: Path, *, replace: bool = False, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Yield a draft that becomes the file as a whole at the end; an error leaves no draft and changes no file.

    Args:
        path: The file.
        replace: Whether the file may exist.
        mode: The permissions of the file, less those of the process's mask.

    Raises:
        FileExistsError: The file exists, and `replace` is not set.
        OSError: The file cannot be written.
    """
    draft = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with open(draft, "wb", opener=partial(os.open, mode=mode)) as file:
            yield file
        if not replace:
            path.open("xb").close()
        draft.replace(path)
    finally:
        with suppress(OSError):  # it may be none, or in a folder that is none
            draft.unlink()
