"""Python files whose functions the owner allows as tools: their paths and hashes, in the state folder."""

from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import orjson

from opposable.app.private_files import write_private_file
from opposable.domain.errors import BadInput, OpposableError
from opposable.tools.python_file import execute_file, hash_source

FILE_NAME = "allowed_files.json"


@dataclass(frozen=True, slots=True)
class AllowedFiles:
    """The permission to run Python files, by absolute path and SHA-256 of the content.

    It is the owner's decision on this machine. A stored spec only names a file: without an entry here, nothing is
    loaded. `path` is the JSON file with the entries.
    """

    path: Path

    def read(self) -> dict[str, str]:
        """Return the hash of each allowed file by its path; empty without entries.

        Raises:
            BadInput: The entries cannot be read.
        """
        try:
            entries = orjson.loads(self.path.read_bytes())
        except (FileNotFoundError, NotADirectoryError):  # no folder can be there where a file is in the way
            return {}
        except (OSError, orjson.JSONDecodeError) as error:
            raise BadInput(f"{self.path} cannot be read: {error}. Delete it, and add the files again.") from error
        return {str(file): str(digest) for file, digest in entries.items()} if isinstance(entries, dict) else {}

    def is_allowed(self, file: Path, source: bytes) -> bool:
        """Return whether this content of the file may run."""
        return self.read().get(str(file)) == hash_source(source)

    def allow(self, file: Path, source: bytes) -> None:
        """Allow this content of a file. It replaces the content that was allowed before."""
        self._write(self.read() | {str(file): hash_source(source)})

    def revoke(self, file: Path) -> None:
        """Withdraw the permission of a file."""
        entries = self.read()
        if entries.pop(str(file), None) is not None:
            self._write(entries)

    def load_module(self, file: Path) -> ModuleType:
        """Execute an allowed file and return its module. The bytes that are checked are those that run.

        Raises:
            BadInput: The file is not allowed, changed since then, is missing, or cannot be loaded.
        """
        digest = self.read().get(str(file))
        if digest is None:
            raise BadInput(f"The file {file} is not allowed here. Review it, then run: opposable tools add {file}")
        try:
            source = file.read_bytes()
        except OSError as error:
            raise BadInput(f"The file {file} cannot be read: {error.strerror}.") from error
        if digest != hash_source(source):
            raise BadInput(
                f"The file {file} has changed since it was allowed. Review it, then run: opposable tools add {file}"
            )
        return execute_file(file, source)

    def _write(self, entries: dict[str, str]) -> None:
        try:
            write_private_file(self.path, orjson.dumps(entries, option=orjson.OPT_INDENT_2))
        except OSError as error:
            raise OpposableError(f"Cannot write {self.path}: {error.strerror}.") from error
