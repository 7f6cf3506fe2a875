"""Search and read text files inside the folders that are allowed."""

import io
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from opposable.domain.errors import FieldProblem, InvalidArguments, ToolFailed, ToolRefused
from opposable.domain.text_normalization import fold_text
from opposable.safety.filesystem.allowed_roots import AllowedRoots, RootedPath, to_printable
from opposable.safety.filesystem.text_decoding import decode_text, detect_encoding, truncate_line

_MAX_SNIPPET_CHARACTERS = 160
_MAX_LINE_CHARACTERS = 500
_MAX_PAGE_CHARACTERS = 12_000  # characters read_file gives at most
_CHUNK_CHARACTERS = 65536  # characters of a line read at a time
_MAX_LINES = 1000
_MAX_MATCHES = 100
_MAX_FILES = 50


@dataclass(slots=True)
class _Search:
    """What one search looks for and what it has found so far."""

    words: list[str]
    is_match: Callable[[str], bool]
    limit: int
    deadline: float
    matches_by_file: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    total_matches: int = 0
    searched_files: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def is_late(self) -> bool:
        return time.monotonic() > self.deadline


class FileSearch:
    """Search and read text files under `roots`.

    Args:
        roots: the only folders that may be read; links out of them are not followed.
        seconds: a search stops after this long and says that it is partial.
        largest: files of more bytes are not searched, which the result says.
    """

    def __init__(self, roots: list[Path], *, timeout_seconds: float = 10.0, max_file_bytes: int = 20_000_000) -> None:
        self._roots = AllowedRoots(roots)
        self._timeout_seconds = timeout_seconds
        self._max_file_bytes = max_file_bytes

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
        phrase = _parse_query(query)
        places = self._resolve_places(root_dir)
        until = time.monotonic() + self._timeout_seconds
        wanted = max(1, min(limit, _MAX_MATCHES))
        words = phrase.split()
        search = _Search([phrase], lambda text: phrase in text, wanted, until)
        self._search_places(search, places, phrase)
        if not search.total_matches and len(words) > 1 and not search.is_late:
            search = _Search(words, lambda text: all(word in text for word in words), wanted, until)
            self._search_places(search, places, "")
            if search.total_matches:
                search.notes.append("The whole phrase occurs nowhere; these lines have all of its words.")
        return self._to_result(query, root_dir, search)

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
        first, most = max(1, start_line), max(1, min(lines, _MAX_LINES))
        with self._roots.open_file(place) as file:
            encoding = detect_encoding(file.stream.peek(65536)[:65536])  # type: ignore[attr-defined]  # a buffered reader
            if encoding is None:
                raise ToolRefused(f"{self._roots.format_path(place)} is no text file.")
            reader = io.TextIOWrapper(file.stream, encoding, "replace")
            page, last, more = _read_page(reader, first, most, time.monotonic() + self._timeout_seconds)
        if not page and first > 1 and not more:
            raise ToolFailed(f"{self._roots.format_path(place)} has only {last} lines; start_line is {first}.")
        result: dict[str, Any] = {"path": self._roots.format_path(place), "start_line": first, "end_line": last}
        if more:
            result["more"] = f"The file goes on after line {last}; read on with start_line={last + 1}."
        return result | {"text": "\n".join(page)}

    def _resolve_places(self, root_dir: str | None) -> list[RootedPath]:
        if root_dir is None or root_dir.strip().strip("\"'") in ("", ".", "./", "/", "*", "all"):
            return self._roots.list_roots()
        return [self._roots.find(root_dir, "root_dir")]

    def _search_places(self, search: _Search, places: list[RootedPath], pattern: str) -> None:
        for place in self._walk_files(places, search.deadline):
            if search.is_late:
                break
            search.searched_files += 1
            self._search_file(search, place, pattern)
        if search.is_late:
            search.notes.append(f"Partial: the search was stopped after {self._timeout_seconds:g} seconds.")

    def _walk_files(self, places: list[RootedPath], deadline: float) -> Iterator[RootedPath]:
        for place in places:
            if self._roots.is_folder(place):
                yield from self._roots.walk(place, deadline)
            else:
                yield place

    def _search_file(self, search: _Search, place: RootedPath, pattern: str) -> None:
        shown = self._roots.format_path(place)
        name = fold_text(to_printable(place.parts[-1]))
        found: list[dict[str, Any]] = []
        if search.is_match(fold_text(shown) if "/" in search.words[0] else name) or (
            ("*" in pattern or "?" in pattern) and fnmatch(name, pattern)
        ):
            found.append({"path": shown, "text": "(the file's name matches)"})
            search.total_matches += 1
        for number, line in self._iterate_matching_lines(search, place, shown):
            search.total_matches += 1
            if len(found) < search.limit:
                found.append({"path": shown, "line": number, "text": _make_snippet(line, search.words)})
        if found:
            search.matches_by_file[shown] = found

    def _iterate_matching_lines(
        self, search: _Search, place: RootedPath, display_path: str
    ) -> Iterator[tuple[int, str]]:
        try:
            with self._roots.open_file(place) as file:
                if file.size > self._max_file_bytes:
                    search.notes.append(
                        f"Not searched, larger than {self._max_file_bytes // 1_000_000} MB: {display_path}"
                    )
                    return
                content = file.stream.read(self._max_file_bytes)
        except (ToolFailed, ToolRefused, OSError):
            search.notes.append(f"Not searched, cannot be read: {display_path}")
            return
        text = decode_text(content)
        if text is None or not all(word in fold_text(text) for word in search.words):
            return
        for number, line in enumerate(text.splitlines(), 1):
            if search.is_match(fold_text(line)):
                yield number, line

    def _to_result(self, query: str, root_dir: str | None, search: _Search) -> dict[str, Any]:
        where = f" in {root_dir}" if root_dir else ""
        result: dict[str, Any] = {
            "query": query,
            "total_matches": search.total_matches,
            "files": list(search.matches_by_file)[:_MAX_FILES],
            "matches": _distribute_matches(list(search.matches_by_file.values()), search.limit),
        }
        if len(search.matches_by_file) > _MAX_FILES:
            search.notes.append(f"{len(search.matches_by_file)} files match; the first {_MAX_FILES} are named.")
        if not search.total_matches:
            result["message"] = (
                f"Nothing found for {query!r}: names and text of {search.searched_files} files{where} were searched."
            )
        if search.notes:
            result["notes"] = search.notes[:5]
        return result


def _parse_query(query: str) -> str:
    phrase = " ".join(fold_text(query.strip().strip("\"'“”‘’「」《》`")).split())
    if not phrase or len(phrase) > 500:
        problem = "give a word or phrase to look for, of at most 500 characters"
        raise InvalidArguments((FieldProblem("query", problem, repr(query[:60])),))
    return phrase


def _make_snippet(line: str, words: list[str]) -> str:
    line = re.sub(r"\s+", " ", line[:100_000]).strip()
    if len(line) <= _MAX_SNIPPET_CHARACTERS:
        return line
    at = max(0, fold_text(line).find(words[0]) - _MAX_SNIPPET_CHARACTERS // 3)
    return ("…" if at else "") + truncate_line(line[at:], _MAX_SNIPPET_CHARACTERS)


def _distribute_matches(matches_by_file: list[list[dict[str, Any]]], limit: int) -> list[dict[str, Any]]:
    """At most `limit` matches in the files' order, so that a file full of them leaves room for the others."""
    if not matches_by_file:
        return []
    takes = [0] * len(matches_by_file)
    left = limit
    while left and any(take < len(hits) for take, hits in zip(takes, matches_by_file, strict=True)):
        for at, hits in enumerate(matches_by_file):
            if left and takes[at] < len(hits):
                takes[at] += 1
                left -= 1
    return [hit for take, hits in zip(takes, matches_by_file, strict=True) for hit in hits[:take]]


def _read_page(
    reader: io.TextIOWrapper, first_line: int, max_lines: int, deadline: float
) -> tuple[list[str], int, bool]:
    """Lines from `first` on, the number of the last line read, and whether there are more."""
    page: list[str] = []
    number = size = 0
    fresh = True
    while piece := reader.readline(_CHUNK_CHARACTERS):
        if fresh:
            if len(page) >= max_lines or size > _MAX_PAGE_CHARACTERS or time.monotonic() > deadline:
                return page, number, True
            number += 1
            if number >= first_line:
                page.append(truncate_line(piece.rstrip("\r\n"), _MAX_LINE_CHARACTERS))
                size += len(page[-1]) + 1
        elif time.monotonic() > deadline:
            return page, number, True
        fresh = piece.endswith("\n")
    return page, number, False
