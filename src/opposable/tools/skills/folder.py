"""The files of a skill: listed, read and copied without following links."""

import os
from dataclasses import dataclass
from pathlib import Path

from opposable.domain.errors import BadInput, ToolError, ToolFailed
from opposable.safety.filesystem.allowed_roots import AllowedRoots
from opposable.safety.filesystem.text_decoding import decode_text

MAX_FILE_BYTES = 10_000_000
MAX_FILES = 500
MAX_SKILL_BYTES = 50_000_000


@dataclass(frozen=True, slots=True)
class SkillFiles:
    """The regular files of a folder: their sizes by path, and the reasons for skipped ones."""

    sizes: dict[str, int]
    skipped: dict[str, str]


class SkillFolder:
    """A folder with a skill."""

    def __init__(self, path: Path) -> None:
        """Open the folder. Raises: `BadInput` for a link."""
        if path.is_symlink():
            raise BadInput("it is a link; links are not followed.")
        self.path = path
        self._roots = AllowedRoots([path])

    def list_files(self) -> SkillFiles:
        """Return the files. Raises: `BadInput` for more than `MAX_FILES` files or `MAX_SKILL_BYTES`."""
        sizes: dict[str, int] = {}
        left_out: dict[str, str] = {}
        [root] = self._roots.list_roots()
        for place in self._roots.walk(root):
            name = "/".join(place.parts)
            try:
                with self._roots.open_file(place) as file:
                    size = file.size
            except ToolError as error:
                left_out[name] = str(error)
                continue
            if size > MAX_FILE_BYTES:
                left_out[name] = f"it is larger than {MAX_FILE_BYTES // 1_000_000} MB."
                continue
            sizes[name] = size
        if len(sizes) > MAX_FILES or sum(sizes.values()) > MAX_SKILL_BYTES:
            raise BadInput(f"it contains more than {MAX_FILES} files or {MAX_SKILL_BYTES // 1_000_000} MB.")
        return SkillFiles(sizes, left_out)

    def read(self, path: str) -> bytes:
        """Return a file, up to its size limit. Raises: `ToolError` for a missing file, a link, or a path outside."""
        with self._roots.open_file(self._roots.find(path)) as file:
            return file.stream.read(MAX_FILE_BYTES)

    def read_text(self, path: str) -> str:
        """Return a file's text. Raises: as `read`; `ToolFailed` for a binary file."""
        content = decode_text(self.read(path))
        if content is None:
            raise ToolFailed(f"{path} is not a text file.")
        return content

    def copy_to(self, target: Path) -> None:
        """Copy the files into `target`, readable by every user, since a sandbox runs as an unprivileged one.

        Programs stay executable: scripts of a skill may start them. The line breaks of shell scripts become those that
        a shell reads.
        """
        for name in self.list_files().sizes:
            copy = target / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            content = self.read(name)
            copy.write_bytes(content.replace(b"\r\n", b"\n") if name.endswith(".sh") else content)
            copy.chmod(0o755 if os.access(self.path / name, os.X_OK) else 0o644)
        for folder in (target, *(path for path in target.rglob("*") if path.is_dir())):
            folder.chmod(0o755)
