"""Output of answers to questions about data: text, SQL, table and chart, or CSV."""

import csv
import io
from decimal import Decimal
from typing import Any

from rich.console import Console

from opposable.ask.team.answer_text import to_number
from opposable.cli.rendering import render_chart, render_table, style_text
from opposable.domain.answers import DataAnswer
from opposable.domain.json_text import dump_json
from opposable.domain.language import Language

MAX_LINE_CHARACTERS = 80
"""SQL up to this length stays on one line."""

_LABELS: dict[Language, tuple[str, str, str, str]] = {
    "en": ("corrected", "assumed", "warning", "more rows are not shown"),
    "zh": ("已更正", "假设", "警告", "还有更多行没有列出"),
}
_JOIN_WORDS = frozenset(("LEFT", "RIGHT", "FULL", "INNER", "CROSS", "NATURAL", "OUTER"))
_CLAUSES = (
    _JOIN_WORDS
    | frozenset(("SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "WINDOW", "QUALIFY", "ORDER BY", "LIMIT"))
    | frozenset(("UNION", "EXCEPT", "INTERSECT", "JOIN"))
)


def print_answer(out: Console, answer: DataAnswer, language: Language, limit: int = 50) -> None:
    """Print the SQL, what was corrected and assumed, at most `limit` rows, the chart and the sentence."""
    corrected, assumed, warning, left_out = _LABELS[language]
    if answer.sql:
        sql = format_sql(answer.sql)
        out.print(style_text(("SQL", "bold"), f"\n{sql}" if "\n" in sql else f"  {sql}"), soft_wrap=True)
    for label, texts in ((corrected, answer.corrections), (assumed, answer.assumptions), (warning, answer.warnings)):
        for text in texts:
            out.print(style_text((label, "yellow"), f"  {text}"))
    if answer.columns:
        rows = [[_format_json(round_number(cell)) for cell in row] for row in answer.rows]
        out.print(render_table(answer.columns, rows, limit, language=language))
    if answer.chart is not None:
        numbers = [[to_number(cell) for cell in row] for row in answer.rows]
        out.print(render_chart(answer.chart, answer.columns, numbers, language=language))
    if answer.truncated:
        out.print(style_text((left_out, "yellow")))
    out.print(style_text(answer.text))


def format_sql(sql: str) -> str:
    """Break a long query before its clauses; only white space between tokens changes."""
    if len(sql) <= MAX_LINE_CHARACTERS or "\n" in sql.strip() or "\\" in sql:  # a backslash may be in front of a quote
        return sql
    from sqlglot import tokenize  # lazy: needs the extra "sql"
    from sqlglot.errors import TokenError  # lazy: needs the extra "sql"

    try:
        tokens = tokenize(sql, "clickhouse")  # it has the quotes of all dialects but [name]
    except TokenError:
        return sql
    breaks: list[int] = []
    depth, previous = 0, ""
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        word = " ".join(token.text.upper().split())
        depth += {"(": 1, ")": -1, "[": 1, "]": -1}.get(word, 0)
        is_function = following is not None and following.text == "(" and word in _JOIN_WORDS
        is_quoted = sql[token.start : token.start + 1] in ('"', "'", "`")
        is_clause = depth == 0 and word in _CLAUSES and not is_function and not is_quoted
        if is_clause and token.start and previous not in _JOIN_WORDS:
            breaks.append(token.start)
        previous = word
    lines = [sql[start:end].strip() for start, end in zip([0, *breaks], [*breaks, len(sql)], strict=True)]
    return "\n".join(line for line in lines if line)


def round_number(value: Any) -> Any:
    """Return a fraction as people read it: two decimals, or four digits below one. Other values are unchanged."""
    if isinstance(value, bool) or not isinstance(value, float | Decimal) or value != value:
        return value
    if -1 < value < 1:
        return f"{value:.4g}"
    text = f"{value:,.2f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _format_json(value: Any) -> Any:
    """Return a list, an object or a boolean as JSON, and any other value unchanged."""
    return dump_json(value).decode() if isinstance(value, bool | list | dict) else value


def format_csv(answer: DataAnswer, limit: int | None = None) -> str:
    """Return the rows with their exact values as CSV; NULL is empty, lists, objects and booleans are JSON."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    if answer.columns:
        writer.writerow(answer.columns)
    writer.writerows(["" if cell is None else _format_json(cell) for cell in row] for row in answer.rows[:limit])
    return file.getvalue()
