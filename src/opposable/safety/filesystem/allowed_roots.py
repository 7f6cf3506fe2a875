"""The folders file tools may read, and the only way into them.

Every file is opened part by part from its root with links refused (`O_NOFOLLOW`, `dir_fd`), so neither `..`, nor an
absolute path, nor a link made at the last moment leads out; what was opened is looked at before it is read.
"""

import errno
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import BinaryIO

from opposable.domain.errors import BadInput, FieldProblem, InvalidArguments, ToolFailed, ToolRefused, ToolUnavailable

_MAX_DEPTH = 40
_MAX_LISTED_FILES = 20_000  # files walked through when looking for one name
_LISTING_SECONDS = 2.0  # seconds for that
_SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "venv", "site-packages"})
_FOLDER_OPEN_FLAGS = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
# not blocking, so that opening a pipe comes back at once
_FILE_OPEN_FLAGS = (
    getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOCTTY", 0)
)


@dataclass(frozen=True, slots=True)
class RootedPath:
    """A file or folder under the root numbered `root`: the names that lead to it, () for the root itself."""

    root_index: int
    parts: tuple[str, ...] = ()

    def __truediv__(self, name: str) -> "RootedPath":
        return RootedPath(self.root_index, (*self.parts, name))


@dataclass(frozen=True, slots=True)
class OpenFile:
    """An open regular file: bytes, size, and the moment (Unix seconds) of its last change."""

    stream: BinaryIO
    size: int
    modified_at: float


class AllowedRoots:
    """The folders that may be read. Raises: `BadInput` for a root that is no folder."""

    def __init__(self, folders: list[Path]) -> None:
        if not folders:
            raise BadInput("File tools need at least one folder they may read.")
        real = dict.fromkeys(Path(folder).expanduser().resolve() for folder in folders)
        self._folders = [folder for folder in real if real.keys().isdisjoint(folder.parents)]
        self._unresolved_folders = [Path(os.path.abspath(Path(folder).expanduser())) for folder in folders]  # noqa: PTH100 - links kept
        for folder in self._folders:
            if not folder.is_dir():
                raise BadInput(f"{folder} is no folder; file tools need existing folders.")
        self._root_names = _make_unique([folder.name or "root" for folder in self._folders])

    def list_roots(self) -> list[RootedPath]:
        """The roots themselves."""
        return [RootedPath(number) for number in range(len(self._folders))]

    def format_path(self, path: RootedPath) -> str:
        """The path as a model is told it: from the root, with the root's name in front where there are several."""
        named = path.parts if len(self._folders) == 1 else (self._root_names[path.root_index], *path.parts)
        return to_printable("/".join(named)) or "."

    def find(self, path: str, field: str = "path") -> RootedPath:
        """The file or folder meant by `path`, which exists and is no link.

        Taken as meant: from a root, from a root's name, from the working folder, absolute, or a file's bare name when
        only one file bears it.

        Raises:
            InvalidArguments: the text is no path.
            ToolRefused: it leads out of the roots, or is a link.
            ToolFailed: nothing is there; near paths are told.
        """
        candidates = self._resolve_candidates(path, field)
        for place in candidates:
            if self._get_mode(place) is not None:
                return place
        if bare := self._find_by_name(candidates[-1].parts):
            return bare
        raise ToolFailed(
            f"There is no {to_printable(path)!r}.{self._suggest_paths(candidates[-1].parts, field == 'root_dir')}"
        )

    def is_folder(self, path: RootedPath) -> bool:
        """Whether `place` is a folder. Raises: `ToolRefused` for a link."""
        mode = self._get_mode(path)
        return mode is not None and stat.S_ISDIR(mode)

    @contextmanager
    def open_file(self, path: RootedPath) -> Iterator[OpenFile]:
        """Open a regular file for reading bytes.

        Raises:
            ToolRefused: it is a link, a device, a pipe or a folder.
            ToolFailed: it is not there any more or may not be read.
        """
        with self._open_folder(RootedPath(path.root_index, path.parts[:-1])) as folder:
            descriptor = self._open_descriptor(path, folder)
        with os.fdopen(descriptor, "rb", buffering=65536) as stream:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise ToolRefused(f"{self.format_path(path)} is no ordinary file.")
            os.set_blocking(descriptor, True)
            yield OpenFile(stream, status.st_size, status.st_mtime)

    def resolve_new_path(self, path: str, field: str = "path") -> RootedPath:
        """Where a file of that path would be: inside a root, in a folder that exists. Raises: as `find`."""
        *_, last = candidates = self._resolve_candidates(path, field)
        for place in candidates:
            if place.parts and self.is_folder(RootedPath(place.root_index, place.parts[:-1])):
                return place
        raise ToolFailed(f"There is no folder {to_printable('/'.join(last.parts[:-1])) or '.'!r} to write into.")

    @contextmanager
    def create_file(self, path: RootedPath, overwrite: bool = False) -> Iterator[BinaryIO]:
        """Write a file that is there only when all of it is: under a name of its own first, then moved into place.

        Raises: `ToolFailed` when there is such a file already and `overwrite` is false, or it cannot be written.
        """
        name, part = path.parts[-1], f".{secrets.token_hex(8)}.part"
        with self._open_folder(RootedPath(path.root_index, path.parts[:-1])) as folder:
            try:
                descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | _FILE_OPEN_FLAGS, 0o644, dir_fd=folder)
            except OSError as error:
                raise self._to_tool_error(path, error) from error
            try:
                with os.fdopen(descriptor, "w+b") as stream:
                    yield stream
                if overwrite:
                    os.replace(part, name, src_dir_fd=folder, dst_dir_fd=folder)
                else:
                    os.link(part, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
            except FileExistsError as error:
                raise ToolFailed(f"There is a file {self.format_path(path)} already; give another name.") from error
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(part, dir_fd=folder)

    def walk(self, start: RootedPath, deadline: float = float("inf")) -> Iterator[RootedPath]:
        """Ordinary files under `start`, a folder's own before those below it, each in the order of their names.

        Links and hidden files are left out. Stops at `until` (seconds of the monotonic clock).
        """
        waiting = [start]
        while waiting and time.monotonic() < deadline:
            place = waiting.pop()
            files, folders = self._list_folder(place)
            yield from files
            if len(place.parts) < _MAX_DEPTH:
                waiting.extend(reversed(folders))

    def _list_folder(self, path: RootedPath) -> tuple[list[RootedPath], list[RootedPath]]:
        files: list[RootedPath] = []
        folders: list[RootedPath] = []
        with suppress(ToolFailed, ToolRefused), self._open_folder(path) as folder, os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.name.startswith("."):
                    continue
                if entry.is_file(follow_symlinks=False):
                    files.append(path / entry.name)
                elif entry.is_dir(follow_symlinks=False) and entry.name not in _SKIPPED_FOLDERS:
                    folders.append(path / entry.name)
        return files, folders

    def _resolve_candidates(self, path: str, field: str) -> list[RootedPath]:
        text = path.strip().strip("\"'`").removeprefix("file://").replace("\\", "/")
        if "\0" in text or not text or len(text) > 4096:
            problem = "give the path of a file or folder, such as logs/app.log"
            raise InvalidArguments((FieldProblem(field, problem, repr(path[:60])),))
        if text.startswith("~"):
            raise ToolRefused(f"{to_printable(path)!r} is not allowed. {self._describe_allowed_paths()}")
        found = self._resolve_absolute(os.path.normpath(text)) if text.startswith("/") else []
        inside = bool(found) or not text.startswith("/")
        plain = os.path.normpath(text.lstrip("/"))
        if plain.split("/")[0] == "..":
            found = (
                []
                if text.startswith("/")
                else self._resolve_absolute(os.path.normpath(_get_working_folder() + "/" + text))
            )
            if not found:
                raise ToolRefused(
                    f"{to_printable(path)!r} leads out of the folders that may be read. {self._describe_allowed_paths()}"
                )
            return found
        names = () if plain == "." else tuple(plain.split("/"))
        found += self._resolve_relative(names)
        if not inside and all(self._get_mode(place) is None for place in found):
            raise ToolRefused(
                f"{to_printable(path)!r} is outside the folders that may be read. {self._describe_allowed_paths()}"
            )
        return found

    def _resolve_relative(self, names: tuple[str, ...]) -> list[RootedPath]:
        """What a relative path may mean; first from every root, last without the root's own name."""
        found = [RootedPath(number, names) for number in range(len(self._folders))]
        found += self._resolve_absolute("/".join((_get_working_folder(), *names)))
        if names:
            found += [RootedPath(number, names[1:]) for number, name in enumerate(self._root_names) if name == names[0]]
        return found

    def _resolve_absolute(self, absolute_path: str) -> list[RootedPath]:
        """The places an absolute path without `..` names under the roots."""
        return [
            RootedPath(self._folders.index(folder.resolve()), Path(absolute_path).relative_to(folder).parts)
            for folder in dict.fromkeys([*self._folders, *self._unresolved_folders])
            if Path(absolute_path).is_relative_to(folder) and folder.resolve() in self._folders
        ]

    def _describe_allowed_paths(self) -> str:
        return f"Give a path inside {' or '.join(to_printable(name) for name in self._root_names)}, such as {self._find_example_path()}."

    def _find_example_path(self) -> str:
        return next((self.format_path(place) for root in self.list_roots() for place in self.walk(root)), "notes.txt")

    def _find_by_name(self, parts: tuple[str, ...]) -> RootedPath | None:
        """The one file of a bare name, wherever it lies."""
        if len(parts) != 1:
            return None
        same = [place for place in self._list_files() if place.parts[-1].lower() == parts[0].lower()]
        return same[0] if len(same) == 1 else None

    def _suggest_paths(self, parts: tuple[str, ...], folders_only: bool) -> str:
        places = self._list_files()
        if folders_only:
            places = list(dict.fromkeys(RootedPath(place.root_index, place.parts[:-1]) for place in places))
        paths = [self.format_path(place) for place in places]
        wanted = "/".join(parts).lower()
        same = [path for path in paths if parts and path.rsplit("/", 1)[-1].lower() == parts[-1].lower()]
        by_name = {path.lower(): path for path in paths}
        near = [by_name[like] for like in get_close_matches(wanted, by_name, n=3, cutoff=0.5)]
        if chosen := list(dict.fromkeys(same + near))[:5]:
            return f" Did you mean {' or '.join(chosen)}?"
        return (
            f" There are: {', '.join(paths[:8])}{' …' if len(paths) > 8 else ''}." if paths else " The folder is empty."
        )

    def _list_files(self) -> list[RootedPath]:
        places: list[RootedPath] = []
        until = time.monotonic() + _LISTING_SECONDS
        for root in self.list_roots():
            for place in self.walk(root, until):
                places.append(place)
                if len(places) >= _MAX_LISTED_FILES:
                    return places
        return places

    def _get_mode(self, path: RootedPath) -> int | None:
        """The file mode at `place`, None where there is nothing. Raises: `ToolRefused` for a link."""
        if not path.parts:
            return stat.S_IFDIR
        try:
            with self._open_folder(RootedPath(path.root_index, path.parts[:-1])) as folder:
                mode = os.stat(path.parts[-1], dir_fd=folder, follow_symlinks=False).st_mode
        except (ToolFailed, OSError, ValueError):
            return None
        if stat.S_ISLNK(mode):
            raise ToolRefused(f"{self.format_path(path)} is a link; links are not followed.")
        return mode

    def _open_descriptor(self, path: RootedPath, folder: int) -> int:
        if not path.parts:
            raise ToolRefused("That is a folder; give a file in it.")
        try:
            mode = os.stat(path.parts[-1], dir_fd=folder, follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                raise ToolRefused(f"{self.format_path(path)} is a folder; give a file in it.")
            if not stat.S_ISREG(mode):
                raise ToolRefused(f"{self.format_path(path)} is no ordinary file (a link, pipe or device).")
            return os.open(path.parts[-1], os.O_RDONLY | _FILE_OPEN_FLAGS, dir_fd=folder)
        except OSError as error:
            raise self._to_tool_error(path, error) from error

    @contextmanager
    def _open_folder(self, path: RootedPath) -> Iterator[int]:
        if os.open not in os.supports_dir_fd:
            raise ToolUnavailable("File tools need a system that opens files relative to a folder (Linux, macOS).")
        try:
            descriptor = os.open(self._folders[path.root_index], os.O_RDONLY | _FOLDER_OPEN_FLAGS)
        except OSError as error:
            raise ToolUnavailable(
                f"The folder {self._root_names[path.root_index]} cannot be read: {error.strerror}."
            ) from error
        try:
            for name in path.parts:
                try:
                    below = os.open(name, os.O_RDONLY | _FOLDER_OPEN_FLAGS, dir_fd=descriptor)
                except OSError as error:
                    raise self._to_tool_error(path, error, _is_link(name, descriptor)) from error
                os.close(descriptor)
                descriptor = below
            yield descriptor
        finally:
            os.close(descriptor)

    def _to_tool_error(self, path: RootedPath, error: OSError, is_link: bool = False) -> ToolFailed | ToolRefused:
        shown = self.format_path(path)
        if is_link or error.errno == errno.ELOOP:
            return ToolRefused(f"{shown} is a link or lies behind one; links are not followed.")
        if error.errno == errno.ENOTDIR:
            return ToolFailed(f"{shown} leads through something that is no folder.")
        return ToolFailed(f"{shown} cannot be read: {error.strerror or error}.")


def to_printable(name: str) -> str:
    """A file name as text that is valid Unicode, whatever bytes it holds."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _is_link(name: str, folder: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _get_working_folder() -> str:
    """The working folder, or a path under which nothing is when it was removed."""
    try:
        return str(Path.cwd())
    except OSError:
        return "/dev/null"


def _make_unique(names: list[str]) -> list[str]:
    return [name if name not in names[:at] else f"{name}-{at + 1}" for at, name in enumerate(names)]
