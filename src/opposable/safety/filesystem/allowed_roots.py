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

_DEEPEST = 40
_MOST_LISTED = 20_000  # files walked through when looking for one name
_LONGEST = 2.0  # seconds for that
_SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "site-packages"})
_DIRECTORY = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
# not blocking, so that opening a pipe comes back at once
_FILE = (
    getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOCTTY", 0)
)


@dataclass(frozen=True, slots=True)
class Place:
    """A file or folder under the root numbered `root`: the names that lead to it, () for the root itself."""

    root: int
    parts: tuple[str, ...] = ()

    def __truediv__(self, name: str) -> "Place":
        return Place(self.root, (*self.parts, name))


@dataclass(frozen=True, slots=True)
class Opened:
    """An open regular file: bytes, size, and the moment (Unix seconds) of its last change."""

    stream: BinaryIO
    size: int
    changed: float


class Roots:
    """The folders that may be read. Raises: `BadInput` for a root that is no folder."""

    def __init__(self, folders: list[Path]) -> None:
        if not folders:
            raise BadInput("File tools need at least one folder they may read.")
        real = dict.fromkeys(Path(folder).expanduser().resolve() for folder in folders)
        self._folders = [folder for folder in real if real.keys().isdisjoint(folder.parents)]
        self._given = [Path(os.path.abspath(Path(folder).expanduser())) for folder in folders]  # noqa: PTH100 - links kept
        for folder in self._folders:
            if not folder.is_dir():
                raise BadInput(f"{folder} is no folder; file tools need existing folders.")
        self._names = _distinct([folder.name or "root" for folder in self._folders])

    def everything(self) -> list[Place]:
        """The roots themselves."""
        return [Place(number) for number in range(len(self._folders))]

    def shown(self, place: Place) -> str:
        """The path as a model is told it: from the root, with the root's name in front where there are several."""
        named = place.parts if len(self._folders) == 1 else (self._names[place.root], *place.parts)
        return printable("/".join(named)) or "."

    def find(self, path: str, field: str = "path") -> Place:
        """The file or folder meant by `path`, which exists and is no link.

        Taken as meant: from a root, from a root's name, from the working folder, absolute, or a file's bare name when
        only one file bears it.

        Raises:
            InvalidArguments: the text is no path.
            ToolRefused: it leads out of the roots, or is a link.
            ToolFailed: nothing is there; near paths are told.
        """
        candidates = self._candidates(path, field)
        for place in candidates:
            if self._kind(place) is not None:
                return place
        if bare := self._by_name(candidates[-1].parts):
            return bare
        raise ToolFailed(f"There is no {printable(path)!r}.{self._near(candidates[-1].parts, field == 'root_dir')}")

    def is_folder(self, place: Place) -> bool:
        """Whether `place` is a folder. Raises: `ToolRefused` for a link."""
        mode = self._kind(place)
        return mode is not None and stat.S_ISDIR(mode)

    @contextmanager
    def opened(self, place: Place) -> Iterator[Opened]:
        """Open a regular file for reading bytes.

        Raises:
            ToolRefused: it is a link, a device, a pipe or a folder.
            ToolFailed: it is not there any more or may not be read.
        """
        with self._folder(Place(place.root, place.parts[:-1])) as folder:
            descriptor = self._open_file(place, folder)
        with os.fdopen(descriptor, "rb", buffering=65536) as stream:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise ToolRefused(f"{self.shown(place)} is no ordinary file.")
            os.set_blocking(descriptor, True)
            yield Opened(stream, status.st_size, status.st_mtime)

    def new_place(self, path: str, field: str = "path") -> Place:
        """Where a file of that path would be: inside a root, in a folder that exists. Raises: as `find`."""
        *_, last = candidates = self._candidates(path, field)
        for place in candidates:
            if place.parts and self.is_folder(Place(place.root, place.parts[:-1])):
                return place
        raise ToolFailed(f"There is no folder {printable('/'.join(last.parts[:-1])) or '.'!r} to write into.")

    @contextmanager
    def created(self, place: Place, overwrite: bool = False) -> Iterator[BinaryIO]:
        """Write a file that is there only when all of it is: under a name of its own first, then moved into place.

        Raises: `ToolFailed` when there is such a file already and `overwrite` is false, or it cannot be written.
        """
        name, part = place.parts[-1], f".{secrets.token_hex(8)}.part"
        with self._folder(Place(place.root, place.parts[:-1])) as folder:
            try:
                descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | _FILE, 0o644, dir_fd=folder)
            except OSError as error:
                raise self._failure(place, error) from error
            try:
                with os.fdopen(descriptor, "w+b") as stream:
                    yield stream
                if overwrite:
                    os.replace(part, name, src_dir_fd=folder, dst_dir_fd=folder)
                else:
                    os.link(part, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
            except FileExistsError as error:
                raise ToolFailed(f"There is a file {self.shown(place)} already; give another name.") from error
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(part, dir_fd=folder)

    def walk(self, start: Place, until: float = float("inf")) -> Iterator[Place]:
        """Ordinary files under `start`, a folder's own before those below it, each in the order of their names.

        Links and hidden files are left out. Stops at `until` (seconds of the monotonic clock).
        """
        waiting = [start]
        while waiting and time.monotonic() < until:
            place = waiting.pop()
            files, folders = self._listed(place)
            yield from files
            if len(place.parts) < _DEEPEST:
                waiting.extend(reversed(folders))

    def _listed(self, place: Place) -> tuple[list[Place], list[Place]]:
        files: list[Place] = []
        folders: list[Place] = []
        with suppress(ToolFailed, ToolRefused), self._folder(place) as folder, os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.name.startswith("."):
                    continue
                if entry.is_file(follow_symlinks=False):
                    files.append(place / entry.name)
                elif entry.is_dir(follow_symlinks=False) and entry.name not in _SKIPPED:
                    folders.append(place / entry.name)
        return files, folders

    def _candidates(self, path: str, field: str) -> list[Place]:
        text = path.strip().strip("\"'`").removeprefix("file://").replace("\\", "/")
        if "\0" in text or not text or len(text) > 4096:
            problem = "give the path of a file or folder, such as logs/app.log"
            raise InvalidArguments((FieldProblem(field, problem, repr(path[:60])),))
        if text.startswith("~"):
            raise ToolRefused(f"{printable(path)!r} is not allowed. {self._allowed()}")
        found = self._below(os.path.normpath(text)) if text.startswith("/") else []
        inside = bool(found) or not text.startswith("/")
        plain = os.path.normpath(text.lstrip("/"))
        if plain.split("/")[0] == "..":
            found = [] if text.startswith("/") else self._below(os.path.normpath(_working() + "/" + text))
            if not found:
                raise ToolRefused(f"{printable(path)!r} leads out of the folders that may be read. {self._allowed()}")
            return found
        names = () if plain == "." else tuple(plain.split("/"))
        found += self._relative(names)
        if not inside and all(self._kind(place) is None for place in found):
            raise ToolRefused(f"{printable(path)!r} is outside the folders that may be read. {self._allowed()}")
        return found

    def _relative(self, names: tuple[str, ...]) -> list[Place]:
        """What a relative path may mean; first from every root, last without the root's own name."""
        found = [Place(number, names) for number in range(len(self._folders))]
        found += self._below("/".join((_working(), *names)))
        if names:
            found += [Place(number, names[1:]) for number, name in enumerate(self._names) if name == names[0]]
        return found

    def _below(self, absolute: str) -> list[Place]:
        """The places an absolute path without `..` names under the roots."""
        return [
            Place(self._folders.index(folder.resolve()), Path(absolute).relative_to(folder).parts)
            for folder in dict.fromkeys([*self._folders, *self._given])
            if Path(absolute).is_relative_to(folder) and folder.resolve() in self._folders
        ]

    def _allowed(self) -> str:
        return f"Give a path inside {' or '.join(printable(name) for name in self._names)}, such as {self._example()}."

    def _example(self) -> str:
        return next((self.shown(place) for root in self.everything() for place in self.walk(root)), "notes.txt")

    def _by_name(self, parts: tuple[str, ...]) -> Place | None:
        """The one file of a bare name, wherever it lies."""
        if len(parts) != 1:
            return None
        same = [place for place in self._all() if place.parts[-1].lower() == parts[0].lower()]
        return same[0] if len(same) == 1 else None

    def _near(self, parts: tuple[str, ...], folders: bool) -> str:
        places = self._all()
        if folders:
            places = list(dict.fromkeys(Place(place.root, place.parts[:-1]) for place in places))
        paths = [self.shown(place) for place in places]
        wanted = "/".join(parts).lower()
        same = [path for path in paths if parts and path.rsplit("/", 1)[-1].lower() == parts[-1].lower()]
        by_name = {path.lower(): path for path in paths}
        near = [by_name[like] for like in get_close_matches(wanted, by_name, n=3, cutoff=0.5)]
        if chosen := list(dict.fromkeys(same + near))[:5]:
            return f" Did you mean {' or '.join(chosen)}?"
        return (
            f" There are: {', '.join(paths[:8])}{' …' if len(paths) > 8 else ''}." if paths else " The folder is empty."
        )

    def _all(self) -> list[Place]:
        places: list[Place] = []
        until = time.monotonic() + _LONGEST
        for root in self.everything():
            for place in self.walk(root, until):
                places.append(place)
                if len(places) >= _MOST_LISTED:
                    return places
        return places

    def _kind(self, place: Place) -> int | None:
        """The file mode at `place`, None where there is nothing. Raises: `ToolRefused` for a link."""
        if not place.parts:
            return stat.S_IFDIR
        try:
            with self._folder(Place(place.root, place.parts[:-1])) as folder:
                mode = os.stat(place.parts[-1], dir_fd=folder, follow_symlinks=False).st_mode
        except (ToolFailed, OSError, ValueError):
            return None
        if stat.S_ISLNK(mode):
            raise ToolRefused(f"{self.shown(place)} is a link; links are not followed.")
        return mode

    def _open_file(self, place: Place, folder: int) -> int:
        if not place.parts:
            raise ToolRefused("That is a folder; give a file in it.")
        try:
            mode = os.stat(place.parts[-1], dir_fd=folder, follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                raise ToolRefused(f"{self.shown(place)} is a folder; give a file in it.")
            if not stat.S_ISREG(mode):
                raise ToolRefused(f"{self.shown(place)} is no ordinary file (a link, pipe or device).")
            return os.open(place.parts[-1], os.O_RDONLY | _FILE, dir_fd=folder)
        except OSError as error:
            raise self._failure(place, error) from error

    @contextmanager
    def _folder(self, place: Place) -> Iterator[int]:
        if os.open not in os.supports_dir_fd:
            raise ToolUnavailable("File tools need a system that opens files relative to a folder (Linux, macOS).")
        try:
            descriptor = os.open(self._folders[place.root], os.O_RDONLY | _DIRECTORY)
        except OSError as error:
            raise ToolUnavailable(f"The folder {self._names[place.root]} cannot be read: {error.strerror}.") from error
        try:
            for name in place.parts:
                try:
                    below = os.open(name, os.O_RDONLY | _DIRECTORY, dir_fd=descriptor)
                except OSError as error:
                    raise self._failure(place, error, _is_link(name, descriptor)) from error
                os.close(descriptor)
                descriptor = below
            yield descriptor
        finally:
            os.close(descriptor)

    def _failure(self, place: Place, error: OSError, link: bool = False) -> ToolFailed | ToolRefused:
        shown = self.shown(place)
        if link or error.errno == errno.ELOOP:
            return ToolRefused(f"{shown} is a link or lies behind one; links are not followed.")
        if error.errno == errno.ENOTDIR:
            return ToolFailed(f"{shown} leads through something that is no folder.")
        return ToolFailed(f"{shown} cannot be read: {error.strerror or error}.")


def printable(name: str) -> str:
    """A file name as text that is valid Unicode, whatever bytes it holds."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _is_link(name: str, folder: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _working() -> str:
    """The working folder, or a path under which nothing is when it was removed."""
    try:
        return str(Path.cwd())
    except OSError:
        return "/dev/null"


def _distinct(names: list[str]) -> list[str]:
    return [name if name not in names[:at] else f"{name}-{at + 1}" for at, name in enumerate(names)]
