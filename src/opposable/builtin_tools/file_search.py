"""Tool that searches and reads text files in allowed folders."""

import io
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from itertools import islice, zip_longest
from operator import itemgetter
from pathlib import Path
from typing import Any

from opposable.domain.errors import FieldProblem, InvalidArguments, ToolFailed, ToolRefused
from opposable.domain.text_normalization import fold_text
from opposable.safety.filesystem.allowed_roots import AllowedRoots, RootedPath, to_printable
from opposable.safety.filesystem.text_decoding import decode_text, detect_encoding, truncate_line

_MAX_SNIPPET_CHARACTERS = 160
_MAX_PAGE_CHARACTERS = 12_000  # characters that read_file returns, also of one line
_CHUNK_CHARACTERS = 65536  # characters of a line read per step
_MAX_LINES = 1000
_MAX_MATCHES = 100
_MAX_FILES = 50


@dataclass(slots=True)
class _Search:
    """The conditions of one search and its results so far."""

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
    """Search and reading of text files in allowed folders.

    Args:
        roots: The only folders that may be read. Links out of them are not followed.
        timeout_seconds: A search stops after this time and reports that it is partial.
        max_file_bytes: Larger files are not searched. The result lists them.
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
        rooted_paths = self._resolve_root(root_dir)
        until = time.monotonic() + self._timeout_seconds
        max_matches = max(1, min(limit, _MAX_MATCHES))
        words = phrase.split()
        search = _Search([phrase], lambda text: phrase in text, max_matches, until)
        self._search_paths(search, rooted_paths, phrase)
        if not search.total_matches and len(words) > 1 and not search.is_late:
            search = _Search(words, lambda text: all(word in text for word in words), max_matches, until)
            self._search_paths(search, rooted_paths, "")
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
            ToolFailed: there is no such file, or it has fewer lines.
        """
        rooted_path = self._roots.find(path)
        display_path = self._roots.format_path(rooted_path)
        first_line, max_lines = max(1, start_line), max(1, min(lines, _MAX_LINES))
        with self._roots.open_file(rooted_path) as file:
            encoding = detect_encoding(file.stream.peek(65536)[:65536])  # type: ignore[attr-defined]  # a buffered reader
            if encoding is None:
                raise ToolRefused(f"{display_path} is not a text file.")
            reader = io.TextIOWrapper(file.stream, encoding, "replace")
            page_lines, last_line, has_more = _read_page(
                reader, first_line, max_lines, time.monotonic() + self._timeout_seconds
            )
        if not page_lines and first_line > 1 and not has_more:
            raise ToolFailed(f"{display_path} has only {last_line} lines; start_line is {first_line}.")
        result: dict[str, Any] = {"path": display_path, "start_line": first_line, "end_line": last_line}
        if has_more:
            result["more"] = f"The file goes on after line {last_line}; read on with start_line={last_line + 1}."
        return result | {"text": "\n".join(page_lines)}

    def _resolve_root(self, root_dir: str | None) -> list[RootedPath]:
        if root_dir is None or root_dir.strip().strip("\"'") in ("", ".", "./", "/", "*", "all"):
            return self._roots.list_roots()
        return [self._roots.find(root_dir, "root_dir")]

    def _search_paths(self, search: _Search, rooted_paths: list[RootedPath], pattern: str) -> None:
        for rooted_path in self._walk_files(rooted_paths, search.deadline):
            if search.is_late:
                break
            search.searched_files += 1
            self._search_file(search, rooted_path, pattern)
        if search.is_late:
            search.notes.append(f"Partial: the search was stopped after {self._timeout_seconds:g} seconds.")

    def _walk_files(self, rooted_paths: list[RootedPath], deadline: float) -> Iterator[RootedPath]:
        for rooted_path in rooted_paths:
            if self._roots.is_folder(rooted_path):
                yield from self._roots.walk(rooted_path, deadline)
            else:
                yield rooted_path

    def _search_file(self, search: _Search, rooted_path: RootedPath, pattern: str) -> None:
        display_path = self._roots.format_path(rooted_path)
        name = fold_text(to_printable(rooted_path.parts[-1]))
        file_matches: list[dict[str, Any]] = []
        if search.is_match(fold_text(display_path) if "/" in search.words[0] else name) or (
            ("*" in pattern or "?" in pattern) and fnmatch(name, pattern)
        ):
            file_matches.append({"path": display_path, "text": "(the file's name matches)"})
            search.total_matches += 1
        for line_number, line in self._iterate_matching_lines(search, rooted_path, display_path):
            search.total_matches += 1
            if len(file_matches) < search.limit:
                file_matches.append(
                    {"path": display_path, "line": line_number, "text": _make_snippet(line, search.words)}
                )
        if file_matches:
            search.matches_by_file[display_path] = file_matches

    def _iterate_matching_lines(
        self, search: _Search, rooted_path: RootedPath, display_path: str
    ) -> Iterator[tuple[int, str]]:
        try:
            with self._roots.open_file(rooted_path) as file:
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
        if text is None:
            return
        folded_text = fold_text(text)
        if not all(word in folded_text for word in search.words):
            return
        for line_number, line in enumerate(text.splitlines(), 1):
            if search.is_match(fold_text(line)):
                yield line_number, line

    def _to_result(self, query: str, root_dir: str | None, search: _Search) -> dict[str, Any]:
        root_text = f" in {root_dir}" if root_dir else ""
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
                f"Nothing found for {query!r}: names and text of {search.searched_files} files{root_text} were searched."
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
    """Return at most `limit` matches in the order of the files, shared evenly between files."""
    rounds = zip_longest(*matches_by_file)  # the first match of each file, then the second of each, …
    in_turn = ((index, match) for matches in rounds for index, match in enumerate(matches) if match is not None)
    return [match for _, match in sorted(islice(in_turn, limit), key=itemgetter(0))]


def _read_page(
    reader: io.TextIOWrapper, first_line: int, max_lines: int, deadline: float
) -> tuple[list[str], int, bool]:
    """Read lines of a text file.

    Returns:
        The lines, the number of the last line read, and whether there are more.
    """
    page_lines: list[str] = []
    line_number = page_characters = 0
    starts_line = True
    while chunk := reader.readline(_CHUNK_CHARACTERS):
        if starts_line:
            is_in_page = line_number + 1 >= first_line
            line = truncate_line(chunk.rstrip("\r\n"), _MAX_PAGE_CHARACTERS) if is_in_page else ""
            is_full = bool(page_lines) and page_characters + len(line) > _MAX_PAGE_CHARACTERS
            if is_full or len(page_lines) >= max_lines or time.monotonic() > deadline:
                return page_lines, line_number, True
            line_number += 1
            if is_in_page:
                page_lines.append(line)
                page_characters += len(line) + 1
        elif time.monotonic() > deadline:
            return page_lines, line_number, True
        starts_line = chunk.endswith("\n")
    return page_lines, line_number, False
