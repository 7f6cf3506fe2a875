"""Search and read text files inside the folders that are allowed."""

import io
import re
import time
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from opposable.domain.errors import FieldProblem, InvalidArguments, ToolFailed, ToolRefused
from opposable.safety.filesystem.allowed_roots import Place, Roots, printable
from opposable.safety.filesystem.text_decoding import clipped, encoding_of, text_of

_SNIPPET = 160
_LINE = 500
_PAGE = 12_000  # characters read_file gives at most
_PIECE = 65536  # characters of a line read at a time
_MOST_LINES = 1000
_MOST_MATCHES = 100
_MOST_FILES = 50


@dataclass(slots=True)
class _Search:
    """What one search looks for and what it has found so far."""

    words: list[str]
    match: Callable[[str], bool]
    limit: int
    until: float
    matches: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    total: int = 0
    files: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def late(self) -> bool:
        return time.monotonic() > self.until


class FileSearch:
    """Search and read text files under `roots`.

    Args:
        roots: the only folders that may be read; links out of them are not followed.
        seconds: a search stops after this long and says that it is partial.
        largest: files of more bytes are not searched, which the result says.
    """

    def __init__(self, roots: list[Path], *, seconds: float = 10.0, largest: int = 20_000_000) -> None:
        self._roots = Roots(roots)
        self._seconds = seconds
        self._largest = largest

    def file_search(self, query: str, root_dir: str | None = None, limit: int = 20) -> dict[str, Any]:
        """Find files whose name or text contains a word or phrase, with line numbers and snippets.

        Args:
            query: the word or phrase to look for, or a file name pattern such as *.md.
            root_dir: folder or file to search in; leave out to search everywhere allowed.
            limit: how many matches to return.

        Raises:
            InvalidArguments: the query is empty.
            ToolRefused: `root_dir` is outside the allowed folders or a link.
            ToolFailed: `root_dir` does not exist.
        """
        phrase = _phrase(query)
        places = self._places(root_dir)
        until = time.monotonic() + self._seconds
        wanted = max(1, min(limit, _MOST_MATCHES))
        words = phrase.split()
        search = _Search([phrase], lambda text: phrase in text, wanted, until)
        self._search(search, places, phrase)
        if not search.total and len(words) > 1 and not search.late:
            search = _Search(words, lambda text: all(word in text for word in words), wanted, until)
            self._search(search, places, "")
            if search.total:
                search.notes.append("The whole phrase occurs nowhere; these lines have all of its words.")
        return self._result(query, root_dir, search)

    def read_file(self, path: str, start_line: int = 1, lines: int = 200) -> dict[str, Any]:
        """Read lines of a text file.

        Args:
            path: the file, such as docs/guide.md.
            start_line: first line to read, counted from 1.
            lines: how many lines to read.

        Raises:
            InvalidArguments: `path` is no path.
            ToolRefused: the file is outside the allowed folders, a link or no text.
            ToolFailed: there is no such file, or not so many lines.
        """
        place = self._roots.find(path)
        first, most = max(1, start_line), max(1, min(lines, _MOST_LINES))
        with self._roots.opened(place) as file:
            encoding = encoding_of(file.stream.peek(65536)[:65536])  # type: ignore[attr-defined]  # a buffered reader
            if encoding is None:
                raise ToolRefused(f"{self._roots.shown(place)} is no text file.")
            reader = io.TextIOWrapper(file.stream, encoding, "replace")
            page, last, more = _page(reader, first, most, time.monotonic() + self._seconds)
        if not page and first > 1 and not more:
            raise ToolFailed(f"{self._roots.shown(place)} has only {last} lines; start_line is {first}.")
        result: dict[str, Any] = {"path": self._roots.shown(place), "start_line": first, "end_line": last}
        if more:
            result["more"] = f"The file goes on after line {last}; read on with start_line={last + 1}."
        return result | {"text": "\n".join(page)}

    def _places(self, root_dir: str | None) -> list[Place]:
        if root_dir is None or root_dir.strip().strip("\"'") in ("", ".", "./", "/", "*", "all"):
            return self._roots.everything()
        return [self._roots.find(root_dir, "root_dir")]

    def _search(self, search: _Search, places: list[Place], pattern: str) -> None:
        for place in self._files(places, search.until):
            if search.late:
                break
            search.files += 1
            self._in_file(search, place, pattern)
        if search.late:
            search.notes.append(f"Partial: the search was stopped after {self._seconds:g} seconds.")

    def _files(self, places: list[Place], until: float) -> Iterator[Place]:
        for place in places:
            if self._roots.is_folder(place):
                yield from self._roots.walk(place, until)
            else:
                yield place

    def _in_file(self, search: _Search, place: Place, pattern: str) -> None:
        shown = self._roots.shown(place)
        name = _folded(printable(place.parts[-1]))
        found: list[dict[str, Any]] = []
        if search.match(_folded(shown) if "/" in search.words[0] else name) or (
            ("*" in pattern or "?" in pattern) and fnmatch(name, pattern)
        ):
            found.append({"path": shown, "text": "(the file's name matches)"})
            search.total += 1
        for number, line in self._hits(search, place, shown):
            search.total += 1
            if len(found) < search.limit:
                found.append({"path": shown, "line": number, "text": _snippet(line, search.words)})
        if found:
            search.matches[shown] = found

    def _hits(self, search: _Search, place: Place, shown: str) -> Iterator[tuple[int, str]]:
        try:
            with self._roots.opened(place) as file:
                if file.size > self._largest:
                    search.notes.append(f"Not searched, larger than {self._largest // 1_000_000} MB: {shown}")
                    return
                content = file.stream.read(self._largest)
        except (ToolFailed, ToolRefused, OSError):
            search.notes.append(f"Not searched, cannot be read: {shown}")
            return
        text = text_of(content)
        if text is None or not all(word in _folded(text) for word in search.words):
            return
        for number, line in enumerate(text.splitlines(), 1):
            if search.match(_folded(line)):
                yield number, line

    def _result(self, query: str, root_dir: str | None, search: _Search) -> dict[str, Any]:
        where = f" in {root_dir}" if root_dir else ""
        result: dict[str, Any] = {
            "query": query,
            "total_matches": search.total,
            "files": list(search.matches)[:_MOST_FILES],
            "matches": _shared_out(list(search.matches.values()), search.limit),
        }
        if len(search.matches) > _MOST_FILES:
            search.notes.append(f"{len(search.matches)} files match; the first {_MOST_FILES} are named.")
        if not search.total:
            result["message"] = (
                f"Nothing found for {query!r}: names and text of {search.files} files{where} were searched."
            )
        if search.notes:
            result["notes"] = search.notes[:5]
        return result


def _phrase(query: str) -> str:
    phrase = " ".join(_folded(query.strip().strip("\"'“”‘’「」《》`")).split())
    if not phrase or len(phrase) > 500:
        problem = "give a word or phrase to look for, of at most 500 characters"
        raise InvalidArguments((FieldProblem("query", problem, repr(query[:60])),))
    return phrase


def _folded(text: str) -> str:
    """Text as it is compared: case and full-width forms make no difference."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()


def _snippet(line: str, words: list[str]) -> str:
    line = re.sub(r"\s+", " ", line[:100_000]).strip()
    if len(line) <= _SNIPPET:
        return line
    at = max(0, _folded(line).find(words[0]) - _SNIPPET // 3)
    return ("…" if at else "") + clipped(line[at:], _SNIPPET)


def _shared_out(found: list[list[dict[str, Any]]], limit: int) -> list[dict[str, Any]]:
    """At most `limit` matches in the files' order, so that a file full of them leaves room for the others."""
    if not found:
        return []
    takes = [0] * len(found)
    left = limit
    while left and any(take < len(hits) for take, hits in zip(takes, found, strict=True)):
        for at, hits in enumerate(found):
            if left and takes[at] < len(hits):
                takes[at] += 1
                left -= 1
    return [hit for take, hits in zip(takes, found, strict=True) for hit in hits[:take]]


def _page(reader: io.TextIOWrapper, first: int, most: int, until: float) -> tuple[list[str], int, bool]:
    """Lines from `first` on, the number of the last line read, and whether there are more."""
    page: list[str] = []
    number = size = 0
    fresh = True
    while piece := reader.readline(_PIECE):
        if fresh:
            if len(page) >= most or size > _PAGE or time.monotonic() > until:
                return page, number, True
            number += 1
            if number >= first:
                page.append(clipped(piece.rstrip("\r\n"), _LINE))
                size += len(page[-1]) + 1
        elif time.monotonic() > until:
            return page, number, True
        fresh = piece.endswith("\n")
    return page, number, False
