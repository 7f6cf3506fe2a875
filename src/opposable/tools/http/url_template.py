"""URL templates: scheme and host are the owner's, each `{param}` fills one segment and cannot leave it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from opposable.domain.errors import FieldProblem, InvalidArguments, ToolRefused, ToolRegistrationError
from opposable.safety.network.url_parsing import parse_url

_PARAMETER_PATTERN = re.compile(r"\{([^{}/?#&=+*;,]+)\}")
_DOT_SEGMENTS = (".", "..")
_PATH_SAFE_CHARACTERS = "/:@!$&'()*+,;=~-._%"


@dataclass(frozen=True, slots=True)
class UrlTemplate:
    """A template taken apart. `origin` is scheme, host and port; `path` and `query` are split at their parameters.

    `path` is one tuple a segment, `query` one a pair: texts at even places, names of parameters at odd ones.
    """

    origin: str
    path: tuple[tuple[str, ...], ...]
    query: tuple[tuple[str, ...], ...]

    @property
    def path_parameters(self) -> frozenset[str]:
        """The parameters of the path: each must be given."""
        return frozenset(name for segment in self.path for name in segment[1::2])

    @property
    def parameters(self) -> frozenset[str]:
        """All parameters of the template."""
        return self.path_parameters | frozenset(name for pair in self.query for name in pair[1::2])

    def fill(self, values: Mapping[str, str]) -> str:
        """The URL, each value percent-encoded; a pair of the query whose parameter has no value is left out.

        Raises: `InvalidArguments` where a value would change the path: empty, `.` or `..` as a segment or a part of one.
        """
        path = "/".join(_fill_segment(segment, values) for segment in self.path)
        pairs = [_fill_parts(pair, values) for pair in self.query if all(name in values for name in pair[1::2])]
        return f"{self.origin}{path}{'?' if pairs else ''}{'&'.join(pairs)}"


def parse_url_template(tool_id: str, text: str) -> UrlTemplate:
    """Read a template.

    Raises: `ToolRegistrationError` for another scheme than http and https, a parameter or a user name in the host, a
    fragment, or braces that enclose no name.
    """
    scheme, colon, rest = text.partition("://")
    cut = re.search(r"[/?#]", rest)
    authority, tail = (rest, "") if cut is None else (rest[: cut.start()], rest[cut.start() :])
    if not colon or set("{}") & set(scheme + authority):
        raise ToolRegistrationError(
            f"{tool_id}: a URL template begins with a fixed https://host or http://host; {{parameters}} come after it."
        )
    if "#" in tail:
        raise ToolRegistrationError(f"{tool_id}: a URL template has no part after #; it would never be sent.")
    if set("{}") & set(_PARAMETER_PATTERN.sub("", tail)):
        raise ToolRegistrationError(
            f"{tool_id}: in a URL template, {{name}} stands for a parameter and other braces for none."
        )
    try:
        target = parse_url(f"{scheme}://{authority}/")
    except ToolRefused as error:
        raise ToolRegistrationError(f"{tool_id}: {error}") from error
    path, _, query = tail.partition("?")
    segments = tuple(_split_parameters(segment) for segment in path.split("/")) if path else (("",), ("",))
    if any(segment[0] in _DOT_SEGMENTS for segment in segments if len(segment) == 1):
        raise ToolRegistrationError(f"{tool_id}: a URL template has no . or .. segments.")
    pairs = tuple(_split_parameters(pair) for pair in query.split("&") if pair)
    return UrlTemplate(str(target.url).removesuffix("/"), segments, pairs)


def percent_encode(name: str, value: str) -> str:
    """A value as one percent-encoded part of a URL. Raises: `InvalidArguments` for half a character."""
    try:
        return quote(value, safe="")
    except UnicodeEncodeError as error:
        raise InvalidArguments((FieldProblem(name, "must be text; it holds half a character"),)) from error


def _split_parameters(text: str) -> tuple[str, ...]:
    pieces = _PARAMETER_PATTERN.split(text)
    return tuple(quote(piece, safe=_PATH_SAFE_CHARACTERS) if at % 2 == 0 else piece for at, piece in enumerate(pieces))


def _fill_parts(parts: tuple[str, ...], values: Mapping[str, str]) -> str:
    return "".join(part if at % 2 == 0 else percent_encode(part, values[part]) for at, part in enumerate(parts))


def _fill_segment(parts: tuple[str, ...], values: Mapping[str, str]) -> str:
    if len(parts) == 1:
        return parts[0]
    for name in parts[1::2]:
        value = values.get(name)
        if value is None:
            raise InvalidArguments((FieldProblem(name, "is required"),))
        if any(step in _DOT_SEGMENTS for step in re.split(r"[/\\]", value)) and (set("/\\") & set(value)):
            raise InvalidArguments(
                (FieldProblem(name, "must not have . or .. as a part of a path", f'"{value[:100]}"'),)
            )
    filled = _fill_parts(parts, values)
    if filled in ("", *_DOT_SEGMENTS):
        raise InvalidArguments((FieldProblem(parts[1], "must not be empty, . or ..", f'"{values[parts[1]][:100]}"'),))
    return filled
