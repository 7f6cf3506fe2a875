"""Translation of engine exceptions to tool errors with hints."""

import re
from pathlib import Path

from opposable.domain.errors import ToolError, ToolFailed, ToolRefused
from opposable.sql import messages
from opposable.sql.schema import to_one_line

_HINTS_BY_PATTERN = (
    (
        r"must appear in the GROUP BY|isn't in GROUP BY|not in GROUP BY",
        "add it to GROUP BY or wrap it in an aggregate such as max() or any_value()",
    ),
    (
        r"aggregate functions are not allowed in WHERE|misuse of aggregate|WHERE clause cannot contain aggregates"
        r"|Invalid use of group function|is found in WHERE",
        "use HAVING, or a subquery, for aggregates",
    ),
    (r"[Aa]mbiguous", "write the table's alias before the column"),
    (
        r"Cannot compare values of type|Could not convert|Conversion Error|operator does not exist|invalid input syntax",
        "cast one side, e.g. CAST(x AS DATE)",
    ),
    (r"no such function|Function with name|function .* does not exist", "use another function of this engine"),
    (r"Out of Memory|out of memory", "aggregate or filter earlier so that less is held at once"),
    (r"string or blob too big", "leave very large texts or blobs out, or take substr(column, 1, 1000)"),
    (r"lambda arrow", "write lambda x: x + 1"),
    (r"window functions? .*not allowed|misuse of window", "compute the window in a subquery, then filter outside"),
)
_REFUSAL_PATTERN = (
    r"not authorized|prohibited|disabled by configuration|configuration has been locked|read-only|readonly"
    r"|may not be modified|disabled through configuration|too many attached|permission denied|data-modifying"
    r"|multiple commands|row-level security|READ ONLY transaction|command denied|Access denied"
)

_DETAILS_PATTERN = re.compile(
    "Traceback \\(most recent|\n\nLINE |\n\nPossible solutions|\n\nSee also|\nDatabase is launched in"
)
"""Where the part of an engine's message begins that models do not need."""


class QueryTimedOut(ToolFailed):
    """A query that exceeded its time limit and was stopped.

    It is not a `TimeoutError`: the database answered, and would answer the same query the same way.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(messages.query_timed_out(seconds))


def translate_engine_error(error: BaseException, path: Path | None) -> ToolError:
    """Return the tool error for an engine's exception.

    It is `ToolRefused` where the engine's own protection stopped the query, else `ToolFailed`. The folder of the file
    `path` is removed from the message.
    """
    sentence = format_engine_message(error, path)
    if re.search(_REFUSAL_PATTERN, sentence):
        return ToolRefused(messages.engine_refused(sentence))
    hint = next((hint for pattern, hint in _HINTS_BY_PATTERN if re.search(pattern, sentence)), "")
    return ToolFailed(messages.engine_failed(sentence, hint))


def format_engine_message(error: BaseException, path: Path | None) -> str:
    """Return the engine's message on one line, without SQL or folders."""
    text = _DETAILS_PATTERN.split(str(error), 1)[0]
    for location in {str(path), str(path.absolute()), str(path.resolve())} if path else ():
        text = text.replace(location, path.name if path else "")
    text = re.sub(r"(?<![\w.])(?:/[^/\s\"':]+){2,}/?", "…", text)
    sentence = to_one_line(text, 400) or type(error).__name__
    return sentence if sentence.endswith((".", "!", "?")) else f"{sentence}."
