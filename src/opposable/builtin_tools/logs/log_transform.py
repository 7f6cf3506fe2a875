"""Tool that summarizes log files."""

import codecs
import gzip
import io
import time
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast

from opposable.builtin_tools.logs.line_parser import LogLineParser
from opposable.builtin_tools.logs.summary import LogSummary
from opposable.domain.errors import ToolFailed, ToolRefused
from opposable.safety.filesystem.allowed_roots import AllowedRoots, OpenFile, RootedPath
from opposable.safety.filesystem.text_decoding import detect_encoding

_MAX_LINE_BYTES = 65536  # bytes of a line that are read; the rest is skipped
_MAX_ERRORS = 50
_CORRUPTION_ERRORS = (EOFError, OSError, zlib.error)


class LogTransform:
    """Summary of log files in allowed folders.

    Args:
        roots: The only folders that may be read.
        timeout_seconds: Reading stops after this time, and the result says that it is partial.
        max_bytes: Reading stops after this many bytes of unpacked text, and the result says so.
    """

    def __init__(self, roots: list[Path], *, timeout_seconds: float = 20.0, max_bytes: int = 2_000_000_000) -> None:
        self._roots = AllowedRoots(roots)
        self._timeout_seconds = timeout_seconds
        self._max_bytes = max_bytes

    def log_transform(self, path: str, limit: int = 10) -> dict[str, Any]:
        """Analyse a log file: number of lines, count per level, most frequent errors, time range.

        Args:
            path: the log file, such as logs/app.log.
            limit: how many of the most frequent errors to return.

        Raises:
            InvalidArguments: `path` is no path.
            ToolRefused: the file is outside the allowed folders, a link or no text.
            ToolFailed: there is no such file, or it is a folder.
        """
        rooted_path = self._roots.find(path)
        display_path = self._roots.format_path(rooted_path)
        if self._roots.is_folder(rooted_path):
            raise ToolFailed(f"{display_path} is a folder; give one file{self._suggest_files(rooted_path)}.")
        summary, notes, line_count = LogSummary(), list[str](), 0
        with self._roots.open_file(rooted_path) as file:
            reader = LogLineParser(file.modified_at)
            for line_count, line in enumerate(self._read_lines(file, display_path, notes), 1):
                if entry := reader.parse(line):
                    summary.add(entry, line_count)
                else:
                    summary.add_other_line(line)
        if not line_count:
            notes.append("The file is empty.")
        result = {"path": display_path, "lines": line_count} | summary.to_result(max(1, min(limit, _MAX_ERRORS)))
        if line_count and not result["entries"]:
            notes.append("No line is in a known log format; read the file instead.")
        return result | ({"notes": notes} if notes else {})

    def _suggest_files(self, rooted_path: RootedPath) -> str:
        files = [self._roots.format_path(file) for file in islice(self._roots.walk(rooted_path), 5)]
        return f", such as {' or '.join(files)}" if files else ""

    def _read_lines(self, file: OpenFile, display_path: str, notes: list[str]) -> Iterator[str]:
        """Yield the lines of a file without line ends. Add a note when reading stops early."""
        until = time.monotonic() + self._timeout_seconds
        size = 0
        try:
            for raw in _iterate_raw_lines(_open_text(file, display_path), until):
                size += len(raw)
                yield _decode_line(raw)
                if size > self._max_bytes:
                    notes.append(f"Partial: only the first {self._max_bytes // 1_000_000} MB of text were read.")
                    return
        except TimeoutError:
            notes.append(f"Partial: reading was stopped after {self._timeout_seconds:g} seconds.")
        except _CORRUPTION_ERRORS as error:
            notes.append(f"Partial: the file is damaged and cannot be read to its end ({error}).")


def _open_text(file: OpenFile, display_path: str) -> BinaryIO:
    """Return the file as text bytes: gzip unpacked, UTF-16 converted to UTF-8.

    Raises:
        ToolRefused: The file is not text.
    """
    stream = cast("io.BufferedReader", file.stream)
    if stream.peek(2)[:2] == b"\x1f\x8b":
        stream = io.BufferedReader(cast("io.RawIOBase", gzip.GzipFile(fileobj=stream)), 65536)
    sample = stream.peek(8192)[:8192]
    if sample.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return cast("BinaryIO", codecs.EncodedFile(stream, "utf-8", "utf-16", "replace"))
    if sample.count(0) * 10 > len(sample):  # after a crash a log has a few zero bytes, a binary file has many
        raise ToolRefused(f"{display_path} is not a text file.")
    return stream


def _iterate_raw_lines(stream: BinaryIO, deadline: float) -> Iterator[bytes]:
    """Yield lines, clipped at `_MAX_LINE_BYTES`.

    Raises:
        TimeoutError: The deadline passed.
    """
    count = 0
    while line := stream.readline(_MAX_LINE_BYTES):
        count += 1
        if (count & 0xFF == 0 or len(line) >= _MAX_LINE_BYTES) and time.monotonic() > deadline:
            raise TimeoutError
        yield line
        while line and not line.endswith(b"\n"):
            line = stream.readline(_MAX_LINE_BYTES)
            if time.monotonic() > deadline:
                raise TimeoutError


def _decode_line(raw: bytes) -> str:
    """Decode one line. Programs with different encodings may append to one log."""
    raw = raw.rstrip(b"\r\n").removeprefix(codecs.BOM_UTF8)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode(detect_encoding(raw) or "utf-8", "replace")
