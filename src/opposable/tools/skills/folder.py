"""The files of a skill: listed, read and copied without ever following a link."""

from dataclasses import dataclass
from pathlib import Path

from opposable.domain.errors import BadInput, ToolError, ToolFailed
from opposable.safety.filesystem.allowed_roots import Roots
from opposable.safety.filesystem.text_decoding import text_of

LARGEST_FILE = 10_000_000
MOST_FILES = 500
LARGEST_SKILL = 50_000_000


@dataclass(frozen=True, slots=True)
class Files:
    """The ordinary files of a folder by their paths in it, with their sizes, and what was left out with the reason."""

    sizes: dict[str, int]
    left_out: dict[str, str]


class SkillFolder:
    """One folder. Raises: `BadInput` when it is none."""

    def __init__(self, path: Path) -> None:
        if path.is_symlink():
            raise BadInput("it is a link; links are not followed.")
        self.path = path
        self._roots = Roots([path])

    def files(self) -> Files:
        """What lies in it. Raises: `BadInput` for more than 500 files or 50 MB."""
        sizes: dict[str, int] = {}
        left_out: dict[str, str] = {}
        [root] = self._roots.everything()
        for place in self._roots.walk(root):
            name = "/".join(place.parts)
            try:
                with self._roots.opened(place) as file:
                    size = file.size
            except ToolError as error:
                left_out[name] = str(error)
                continue
            if size > LARGEST_FILE:
                left_out[name] = f"it is larger than {LARGEST_FILE // 1_000_000} MB."
                continue
            sizes[name] = size
        if len(sizes) > MOST_FILES or sum(sizes.values()) > LARGEST_SKILL:
            raise BadInput(f"it holds more than {MOST_FILES} files or {LARGEST_SKILL // 1_000_000} MB.")
        return Files(sizes, left_out)

    def read(self, path: str, most: int = LARGEST_FILE) -> bytes:
        """A file's bytes, at most `most`. Raises: `ToolError` for what is not inside, a link, or not there."""
        with self._roots.opened(self._roots.find(path)) as file:
            return file.stream.read(most)

    def text(self, path: str, most: int = LARGEST_FILE) -> str:
        """A file's text. Raises: as `read`; `ToolFailed` for a binary file."""
        content = text_of(self.read(path, most))
        if content is None:
            raise ToolFailed(f"{path} is no text file.")
        return content

    def copy_to(self, target: Path) -> None:
        """Copy the files into `target`, readable by anyone: a sandbox runs as nobody."""
        for name in self.files().sizes:
            copy = target / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(self.read(name))
            copy.chmod(0o644)
        for folder in (target, *(path for path in target.rglob("*") if path.is_dir())):
            folder.chmod(0o755)
