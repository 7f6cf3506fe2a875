"""Parses a reply in every split, and asserts that each gives the same result."""

from collections.abc import Sequence

from opposable.parsers import ParseResult, StreamParser, parse
from opposable.parsers.tool_names import ToolLike


def parse_in_every_split(text: str, tools: Sequence[ToolLike], truncated: bool = False) -> ParseResult:
    """Return the result of the whole text, after comparing it with every split in two and with single characters."""
    expected = _hide_ids(parse(text, tools, truncated=truncated))
    for deltas in (list(text), *([text[:at], text[at:]] for at in range(1, len(text)))):
        parser = StreamParser(tools)
        for delta in deltas:
            parser.feed(delta)
        assert _hide_ids(parser.close(truncated)) == expected, deltas[0][-40:]
    return parse(text, tools, truncated=truncated)


def _hide_ids(result: ParseResult) -> tuple[object, ...]:
    calls = [(call.name, call.arguments, call.dialect, call.repairs) for call in result.calls]
    return result.text, result.thinking, calls, result.rejected
