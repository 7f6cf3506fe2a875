"""Renders scores as an HTML page: a table, and every failure with both queries and their rows."""

from collections.abc import Mapping
from html import escape

from opposable.evals.text_to_sql.harness import SqlScore, SqlScoreSheet

_HTML_HEAD = """<!doctype html><meta charset="utf-8"><title>Text to SQL</title><style>
body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#222}
table{border-collapse:collapse}td,th{padding:.3rem .8rem;border-bottom:1px solid #ddd;text-align:right}
td:first-child,th:first-child{text-align:left}pre{background:#f6f6f4;padding:.6rem;white-space:pre-wrap}
summary{cursor:pointer;padding:.2rem 0}.problem{color:#a33}</style>"""


def render_report(score_sheets: Mapping[str, SqlScoreSheet]) -> str:
    """Return the page."""
    sections = [_HTML_HEAD, "<h1>Text to SQL</h1>", _render_table(score_sheets)]
    for name, score_sheet in score_sheets.items():
        failures = [score for score in score_sheet.scores if not score.is_correct]
        sections += [f"<h2>{escape(name)}: {len(failures)} incorrect</h2>", *map(_render_failure, failures)]
    return "\n".join(sections)


def _render_table(score_sheets: Mapping[str, SqlScoreSheet]) -> str:
    rows = {name: score_sheet.summary() for name, score_sheet in score_sheets.items()}
    columns = list(next(iter(rows.values()))) if rows else []
    head = "".join(f"<th>{escape(column)}</th>" for column in ("", *columns))
    body = [
        f"<tr><td>{escape(name)}</td>{''.join(f'<td>{summary[column]:g}</td>' for column in columns)}</tr>"
        for name, summary in rows.items()
    ]
    return f"<table><tr>{head}</tr>{''.join(body)}</table>"


def _render_failure(score: SqlScore) -> str:
    notes = "; ".join(score.notes)
    lines = [
        f"<details><summary>{escape(score.question.question_id)}: {escape(score.question.prompt_text)}</summary>",
        f"<p class=problem>{escape(score.problem or 'other rows')}</p>" + (f"<p>{escape(notes)}</p>" if notes else ""),
        f"<pre>{escape(score.sql or '(none)')}\n→ {escape(str(score.rows))}</pre>",
        f"<pre>{escape(score.question.gold_sql)}\n→ {escape(str(score.gold_rows))}</pre></details>",
    ]
    return "".join(lines)
