"""URL templates: scheme and host are fixed, and each `{parameter}` fills part of one path segment or query pair."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote

from opposable.domain.argument_problems import is_required, must_be
from opposable.domain.errors import FieldProblem, InvalidArguments, ToolRefused, ToolRegistrationError
from opposable.domain.json_text import preview_json
from opposable.safety.network.url_parsing import parse_url

_PARAMETER_PATTERN = re.compile(r"\{([^{}/?#&=+*;,]+)\}")
_DOT_SEGMENTS = (".", "..")
_PATH_SAFE_CHARACTERS = "/:@!$&'()*+,;=~-._%"


@dataclass(frozen=True, slots=True)
class UrlTemplate:
    """A parsed template.

    `origin` is scheme, host and port. `path` has one tuple per segment and `query` one per pair: texts at even
    positions, names of parameters at odd ones.
    """

    origin: str
    path: tuple[tuple[str, ...], ...]
    query: tuple[tuple[str, ...], ...]

    @property
    def path_parameters(self) -> frozenset[str]:
        """The parameters of the path, all of which are required."""
        return frozenset(name for segment in self.path for name in segment[1::2])

    @property
    def parameters(self) -> frozenset[str]:
        """All parameters of the template."""
        return self.path_parameters | frozenset(name for pair in self.query for name in pair[1::2])

    def fill(self, values: Mapping[str, str]) -> str:
        """Return the URL for values that are percent-encoded. A query pair without a value is left out.

        Raises:
            InvalidArguments: A value would change the path: an empty segment, or `.` or `..` as a part of it.
        """
        path = "/".join(_fill_segment(segment, values) for segment in self.path)
        pairs = [_fill_parts(pair, values) for pair in self.query if all(name in values for name in pair[1::2])]
        return f"{self.origin}{path}{'?' if pairs else ''}{'&'.join(pairs)}"


def parse_url_template(tool_id: str, text: str) -> UrlTemplate:
    """Parse a template.

    Raises:
        ToolRegistrationError: The scheme is not http or https, the host has a parameter or a user name, or the
            template has a fragment or braces without a name.
    """
    scheme, colon, rest = text.partition("://")
    authority_end = re.search(r"[/?#]", rest)
    position = len(rest) if authority_end is None else authority_end.start()
    authority, tail = rest[:position], rest[position:]
    if not colon or set("{}") & set(scheme + authority):
        raise ToolRegistrationError(
            f"{tool_id}: a URL template must begin with a fixed https://host or http://host. {{parameters}} come after it."
        )
    if "#" in tail:
        raise ToolRegistrationError(f"{tool_id}: a URL template cannot have a part after #, which is never sent.")
    if set("{}") & set(_PARAMETER_PATTERN.sub("", tail)):
        raise ToolRegistrationError(f"{tool_id}: in a URL template, braces must enclose a parameter: {{name}}.")
    try:
        target = parse_url(f"{scheme}://{authority}/")
    except ToolRefused as error:
        raise ToolRegistrationError(f"{tool_id}: {error}") from error
    path, _, query = tail.partition("?")
    segments = tuple(_split_parameters(segment) for segment in path.split("/")) if path else (("",), ("",))
    if any(segment[0] in _DOT_SEGMENTS for segment in segments if len(segment) == 1):
        raise ToolRegistrationError(f"{tool_id}: a URL template cannot have . or .. segments.")
    pairs = tuple(_split_parameters(pair) for pair in query.split("&") if pair)
    return UrlTemplate(str(target.url).removesuffix("/"), segments, pairs)


def rename_in_template(text: str, names: Mapping[str, str]) -> str:
    """Return a template with other names of its parameters."""
    return re.sub(r"\{([^{}]+)\}", lambda match: f"{{{names.get(match[1], match[1])}}}", text)


def percent_encode(name: str, value: str) -> str:
    """Percent-encode a value as one part of a URL. Raises: `InvalidArguments` for a lone surrogate."""
    try:
        return quote(value, safe="")
    except UnicodeEncodeError as error:
        problem = FieldProblem(name, must_be("text; it holds half a character"), preview_json(value))
        raise InvalidArguments((problem,)) from error


def _split_parameters(text: str) -> tuple[str, ...]:
    parts = _PARAMETER_PATTERN.split(text)
    return tuple(quote(part, safe=_PATH_SAFE_CHARACTERS) if i % 2 == 0 else part for i, part in enumerate(parts))


def _fill_parts(parts: tuple[str, ...], values: Mapping[str, str]) -> str:
    return "".join(part if i % 2 == 0 else values[part] for i, part in enumerate(parts))


def _fill_segment(parts: tuple[str, ...], values: Mapping[str, str]) -> str:
    if len(parts) == 1:
        return parts[0]
    for name in parts[1::2]:
        value = values.get(name)
        if value is None:
            raise InvalidArguments((FieldProblem(name, is_required()),))
        value = unquote(value)
        if any(step in _DOT_SEGMENTS for step in re.split(r"[/\\]", value)) and (set("/\\") & set(value)):
            problem = "must not have . or .. as a part of a path"
            raise InvalidArguments((FieldProblem(name, problem, f'"{value[:100]}"'),))
    filled = _fill_parts(parts, values)
    if filled in ("", *_DOT_SEGMENTS):
        raise InvalidArguments((FieldProblem(parts[1], "must not be empty, . or ..", f'"{values[parts[1]][:100]}"'),))
    return filled
