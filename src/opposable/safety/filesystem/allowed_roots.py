"""The folders that file tools may read, and safe access to the files in them.

Every path is opened one component at a time from its root, without following links (`O_NOFOLLOW`, `dir_fd`). So
neither `..`, nor an absolute path, nor a link created at the last moment leads out of the roots. The type of an open
file is checked before it is read.
"""

import errno
import os
import secrets
import stat
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from opposable.domain.errors import BadInput, FieldProblem, InvalidArguments, ToolFailed, ToolRefused, ToolUnavailable

_MAX_DEPTH = 40
_MAX_LISTED_FILES = 20_000  # files that a search for a name visits
_LISTING_SECONDS = 2.0  # time limit of that search
_SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "venv", "site-packages"})
_KEY_STORE_PATTERNS = (
    *("*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk"),
    *("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "_netrc"),
)
_FOLDER_OPEN_FLAGS = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
# non-blocking, so that opening a pipe returns at once
_FILE_OPEN_FLAGS = (
    getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOCTTY", 0)
)


@dataclass(frozen=True, slots=True)
class RootedPath:
    """A file or folder under a root, by the names that lead to it."""

    root_index: int
    parts: tuple[str, ...] = ()

    @property
    def parent(self) -> "RootedPath":
        """The folder that contains it."""
        return RootedPath(self.root_index, self.parts[:-1])

    def __truediv__(self, name: str) -> "RootedPath":
        return RootedPath(self.root_index, (*self.parts, name))


@dataclass(frozen=True, slots=True)
class OpenFile:
    """An open regular file.

    `size` is in bytes, `modified_at` in Unix seconds.
    """

    stream: BinaryIO
    size: int
    modified_at: float


class AllowedRoots:
    """The folders that may be read, without hidden files and key stores.

    A hidden folder below a root can be read if it is listed as a root itself, with everything in it.

    Raises:
        BadInput: There is no folder, or a path is not an existing folder.
    """

    def __init__(self, folders: list[Path]) -> None:
        if not folders:
            raise BadInput("File tools need at least one folder that they may read, as in OPPOSABLE_ROOTS.")
        resolved = dict.fromkeys(Path(folder).expanduser().resolve() for folder in folders)
        self._folders = [folder for folder in resolved if _find_outer_root(folder, resolved) is None]
        hidden = [folder for folder in resolved if _is_hidden_below(folder, _find_outer_root(folder, resolved))]
        self._open_root_count = len(self._folders)
        self._folders += hidden
        self._unresolved_folders = [Path(os.path.abspath(Path(folder).expanduser())) for folder in folders]  # noqa: PTH100 - links stay
        for folder in self._folders:
            if not folder.is_dir():
                raise BadInput(
                    f"`{folder}` is not an existing folder. Create it, or pass another one, as in OPPOSABLE_ROOTS."
                )
        self._root_names = _make_unique([folder.name or "root" for folder in self._folders])

    def list_roots(self) -> list[RootedPath]:
        """Return the roots."""
        return [RootedPath(number) for number in range(len(self._folders))]

    def format_path(self, path: RootedPath) -> str:
        """Return a path for a model, relative to its root.

        The root's name comes first where there are several roots.
        """
        parts = path.parts if len(self._folders) == 1 else (self._root_names[path.root_index], *path.parts)
        return to_printable("/".join(parts)) or "."

    def find(self, path: str, field: str = "path") -> RootedPath:
        """Return the existing file or folder that `path` means.

        The path may be relative to a root, begin with a root's name, be relative to the working folder, be absolute,
        or be a file name that only one file has.

        Raises:
            InvalidArguments: The text is not a path.
            ToolRefused: The path leads out of the roots, or is a link.
            ToolFailed: Nothing exists there; the message lists similar paths.
        """
        candidates = self._resolve_candidates(path, field)
        for candidate in candidates:
            if self._exists(candidate):
                return candidate
        if only_match := self._find_by_name(candidates[-1].parts):
            return only_match
        raise ToolFailed(
            f"There is no {to_printable(path)!r}.{self._suggest_paths(candidates[-1].parts, field == 'root_dir')}"
        )

    def is_folder(self, path: RootedPath) -> bool:
        """Whether a path is a folder; a link raises `ToolRefused`."""
        mode = self._get_mode(path)
        return mode is not None and stat.S_ISDIR(mode)

    @contextmanager
    def open_file(self, path: RootedPath) -> Iterator[OpenFile]:
        """Open a regular file for reading bytes.

        Raises:
            ToolRefused: The file is a link, a device, a pipe or a folder.
            ToolFailed: The file does not exist any more or may not be read.
        """
        with self._open_folder(path.parent) as folder:
            descriptor = self._open_descriptor(path, folder)
        with os.fdopen(descriptor, "rb", buffering=65536) as stream:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise ToolRefused(f"{self.format_path(path)} is not a regular file.")
            os.set_blocking(descriptor, True)
            yield OpenFile(stream, status.st_size, status.st_mtime)

    def resolve_new_path(self, path: str, field: str = "path") -> RootedPath:
        """Return the path of a new file, inside a root and in an existing folder.

        Raises as `find`.
        """
        *_, last = candidates = self._resolve_candidates(path, field)
        for candidate in candidates:
            if candidate.parts and self.is_folder(candidate.parent):
                return candidate
        raise ToolFailed(f"There is no folder {to_printable('/'.join(last.parts[:-1])) or '.'!r} to write into.")

    @contextmanager
    def create_file(self, path: RootedPath, overwrite: bool = False) -> Iterator[BinaryIO]:
        """Write a file atomically: under a temporary name first.

        Raises:
            ToolFailed: The file exists and `overwrite` is false, or it cannot be written.
        """
        name, temporary_name = path.parts[-1], f".{secrets.token_hex(8)}.part"
        with self._open_folder(path.parent) as folder:
            try:
                descriptor = os.open(
                    temporary_name, os.O_RDWR | os.O_CREAT | os.O_EXCL | _FILE_OPEN_FLAGS, 0o644, dir_fd=folder
                )
            except OSError as error:
                raise self._to_tool_error(path, error) from error
            try:
                with os.fdopen(descriptor, "w+b") as stream:
                    yield stream
                if overwrite:
                    os.replace(temporary_name, name, src_dir_fd=folder, dst_dir_fd=folder)
                else:
                    os.link(temporary_name, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
            except FileExistsError as error:
                raise ToolFailed(f"There is a file {self.format_path(path)} already; give another name.") from error
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(temporary_name, dir_fd=folder)

    def walk(self, start: RootedPath, deadline: float = float("inf")) -> Iterator[RootedPath]:
        """Yield the regular files under `start`, ordered by name.

        Files of a folder come before those of its subfolders. Links, hidden files and key stores are omitted. The walk stops at
        `deadline` (seconds of the monotonic clock).
        """
        pending = [start]
        while pending and time.monotonic() < deadline:
            folder = pending.pop()
            files, subfolders = self._list_folder(folder)
            yield from files
            if len(folder.parts) < _MAX_DEPTH:
                pending.extend(reversed(subfolders))

    def _list_folder(self, path: RootedPath) -> tuple[list[RootedPath], list[RootedPath]]:
        files: list[RootedPath] = []
        folders: list[RootedPath] = []
        with suppress(ToolFailed, ToolRefused), self._open_folder(path) as folder, os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if self._is_protected(path / entry.name):
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
        is_absolute = text.startswith("/")
        if text.startswith("~"):
            raise self._build_refusal(path, "is not allowed")
        plain_path = os.path.normpath(text.lstrip("/"))
        if plain_path.split("/")[0] == "..":
            absolute_path = os.path.normpath(f"{_get_working_folder()}/{text}")
            candidates = [] if is_absolute else self._resolve_absolute(absolute_path)
            if not candidates:
                raise self._build_refusal(path, "leads out of the folders that may be read")
        else:
            names = () if plain_path == "." else tuple(plain_path.split("/"))
            inside_roots = self._resolve_absolute(os.path.normpath(text)) if is_absolute else []
            candidates = inside_roots + self._resolve_relative(names)
            if is_absolute and not inside_roots and not any(map(self._exists, candidates)):
                raise self._build_refusal(path, "is outside the folders that may be read")
        readable = [candidate for candidate in candidates if not self._is_protected(candidate)]
        if len(readable) < len(candidates) and not any(map(self._exists, readable)):
            raise self._build_refusal(path, "is hidden or may hold keys, so tools may not use it")
        return readable

    def _is_protected(self, path: RootedPath) -> bool:
        """Return whether a path leads to a hidden file or folder, or to a key store."""
        return path.root_index < self._open_root_count and any(is_protected_name(name) for name in path.parts)

    def _build_refusal(self, path: str, reason: str) -> ToolRefused:
        roots = " or ".join(map(to_printable, self._root_names))
        files = (file for root in self.list_roots() for file in self.walk(root))
        example = next(map(self.format_path, files), "notes.txt")
        return ToolRefused(f"{to_printable(path)!r} {reason}. Give a path inside {roots}, such as {example}.")

    def _resolve_relative(self, names: tuple[str, ...]) -> list[RootedPath]:
        """Return the paths that a relative path may mean, most likely first."""
        candidates = [RootedPath(number, names) for number in range(len(self._folders))]
        candidates += self._resolve_absolute("/".join((_get_working_folder(), *names)))
        if names:
            candidates += [RootedPath(i, names[1:]) for i, name in enumerate(self._root_names) if name == names[0]]
        return candidates

    def _resolve_absolute(self, absolute_path: str) -> list[RootedPath]:
        """Return the paths under the roots that an absolute path without `..` means."""
        return [
            RootedPath(self._folders.index(folder.resolve()), Path(absolute_path).relative_to(folder).parts)
            for folder in dict.fromkeys([*self._folders, *self._unresolved_folders])
            if Path(absolute_path).is_relative_to(folder) and folder.resolve() in self._folders
        ]

    def _find_by_name(self, parts: tuple[str, ...]) -> RootedPath | None:
        """Return the only file with this name in any folder."""
        if len(parts) != 1:
            return None
        matches = [file for file in self._list_files() if file.parts[-1].lower() == parts[0].lower()]
        return matches[0] if len(matches) == 1 else None

    def _suggest_paths(self, parts: tuple[str, ...], folders_only: bool) -> str:
        files = self._list_files()
        if folders_only:
            files = list(dict.fromkeys(file.parent for file in files))
        paths = [self.format_path(file) for file in files]
        wanted = "/".join(parts).lower()
        same_name = [path for path in paths if parts and path.rsplit("/", 1)[-1].lower() == parts[-1].lower()]
        by_name = {path.lower(): path for path in paths}
        similar = [by_name[match] for match in get_close_matches(wanted, by_name, n=3, cutoff=0.5)]
        if suggestions := list(dict.fromkeys(same_name + similar))[:5]:
            return f" Did you mean {' or '.join(suggestions)}?"
        return (
            f" There are: {', '.join(paths[:8])}{' …' if len(paths) > 8 else ''}." if paths else " The folder is empty."
        )

    def _list_files(self) -> list[RootedPath]:
        deadline = time.monotonic() + _LISTING_SECONDS
        files = (file for root in self.list_roots() for file in self.walk(root, deadline))
        return list(islice(files, _MAX_LISTED_FILES))

    def _exists(self, path: RootedPath) -> bool:
        return self._get_mode(path) is not None

    def _get_mode(self, path: RootedPath) -> int | None:
        """Return the file mode of a path, None where nothing exists.

        A link raises `ToolRefused`.
        """
        if not path.parts:
            return stat.S_IFDIR
        try:
            with self._open_folder(path.parent) as folder:
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
                raise ToolRefused(f"{self.format_path(path)} is not a regular file (a link, pipe or device).")
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
                    child = os.open(name, os.O_RDONLY | _FOLDER_OPEN_FLAGS, dir_fd=descriptor)
                except OSError as error:
                    raise self._to_tool_error(path, error, _is_link(name, descriptor)) from error
                os.close(descriptor)
                descriptor = child
            yield descriptor
        finally:
            os.close(descriptor)

    def _to_tool_error(self, path: RootedPath, error: OSError, is_link: bool = False) -> ToolFailed | ToolRefused:
        display_path = self.format_path(path)
        if is_link or error.errno == errno.ELOOP:
            return ToolRefused(f"{display_path} is a link or is below one; links are not followed.")
        if error.errno == errno.ENOTDIR:
            return ToolFailed(f"{display_path} leads through something that is no folder.")
        return ToolFailed(f"{display_path} cannot be read: {error.strerror or error}.")


def is_protected_name(name: str) -> bool:
    """Return whether a file or folder is hidden, or has the name of a key store."""
    return name.startswith(".") or any(fnmatch(name.lower(), pattern) for pattern in _KEY_STORE_PATTERNS)


def _find_outer_root(folder: Path, roots: Collection[Path]) -> Path | None:
    return next((parent for parent in reversed(folder.parents) if parent in roots), None)


def _is_hidden_below(folder: Path, outer_root: Path | None) -> bool:
    return outer_root is not None and any(is_protected_name(name) for name in folder.relative_to(outer_root).parts)


def to_printable(name: str) -> str:
    """Return a file name as valid Unicode, whatever bytes it contains."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _is_link(name: str, folder: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _get_working_folder() -> str:
    """Return the working folder, or a path without children where it was removed."""
    try:
        return str(Path.cwd())
    except OSError:
        return "/dev/null"


def _make_unique(names: list[str]) -> list[str]:
    return [name if name not in names[:at] else f"{name}-{at + 1}" for at, name in enumerate(names)]
