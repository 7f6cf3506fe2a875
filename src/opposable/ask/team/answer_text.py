"""Formats the answer as a sentence and as a chart, from the rows alone."""

import re
from collections.abc import Sequence
from typing import Any

from opposable.domain.json_text import dump_json
from opposable.domain.language import Language, detect_language
from opposable.domain.localized_text import LocalizedText, localize

MAX_LISTED_ROWS = 5
_MAX_LISTED_COLUMNS = 4
_MAX_PLAIN_COLUMNS = 2
"""The largest number of columns of a row that is listed without a colon."""
_DATE_PATTERN = re.compile(r"\d{4}(-\d{1,2}){0,2}([ T].*)?|\d{4}-?Q[1-4]|\d{4}年.*")
_SIGNS: dict[Language, tuple[str, str, str, str]] = {"en": (", ", "; ", ": ", "."), "zh": ("，", "；", "：", "。")}
"""The comma, the semicolon, the colon and the full stop."""
_AGGREGATE_PATTERN = re.compile(r"(?i)(count|sum|avg|min|max)(?:_star)?\((?:distinct\s+)?(?:\w+\.)?(\*|\w*)\)")
_AMOUNT_PATTERN = re.compile(r"(count|count_star|sum|avg)\(", re.IGNORECASE)
_LONG_DECIMAL_PATTERN = re.compile(r"(?=(?:\D?\d){16})-?\d{1,10}\.\d{7,}(?:E-\d+)?", re.ASCII)
"""A decimal with more digits than a float, which is text in rows: PostgreSQL averages to 25.9733333333333333."""
_KEY_PATTERN = re.compile(r"(.*[_ ])?id", re.IGNORECASE)
_QUALIFIER_PATTERN = re.compile(r"^[^\W\d]\w*\.(?=\w+$)")
_AGGREGATE_LABELS: dict[Language, dict[str, str]] = {
    "en": {"count": "count", "sum": "total {}", "avg": "average {}", "min": "lowest {}", "max": "highest {}"},
    "zh": {"count": "数量", "sum": "{} 合计", "avg": "平均 {}", "min": "最低 {}", "max": "最高 {}"},
}


def format_answer_sentence(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    truncated: bool,
    language: Language,
    empty_reason: str = "",
    *,
    is_compiled: bool = False,
) -> str:
    """Return the rows as one sentence: the value, the row, or the count, the columns and the first rows.

    `truncated` says that there are more rows, `empty_reason` why there are none. With `is_compiled`, a column
    `x_growth` is a fraction; only the SQL of the compiler names columns so.
    """
    comma, _, colon, stop = _SIGNS[language]
    if is_compiled:
        columns, rows = _shorten_comparisons(columns, rows)
    if not rows or (empty_reason and all(cell is None for row in rows for cell in row)):
        text = "没有符合条件的数据" if language == "zh" else "No rows match"
        return text + (colon + empty_reason if empty_reason else "") + stop
    is_amount = [_AMOUNT_PATTERN.match(name) is not None for name in columns]
    cells = [[_format_cell(cell, language, flag) for cell, flag in zip(row, is_amount, strict=True)] for row in rows]
    if len(rows) == 1 and len(columns) == 1:
        return f"{'答案是' if language == 'zh' else 'The answer is'} {cells[0][0]}{stop}"
    labels = [_format_label(column, language) for column in columns]
    if len(rows) == 1:
        return comma.join(f"{label} {cell}" for label, cell in zip(labels, cells[0], strict=True)) + stop
    return _format_rows(labels, cells, truncated, language)


def _format_rows(labels: Sequence[str], rows: Sequence[Sequence[str]], truncated: bool, language: Language) -> str:
    """Return the count, the names of the columns and the first rows: "2 rows (city: n): Bonn 3, Berlin 1."."""
    comma, semicolon, _, _ = _SIGNS[language]
    shown = [_format_row(row, language) for row in rows[:MAX_LISTED_ROWS]]
    text = (comma if len(labels) <= _MAX_PLAIN_COLUMNS else semicolon).join(shown)
    heading = _format_row(labels, language, has_colon=True)
    more = len(rows) - len(shown)
    if language == "zh":
        rest = "，等等" if truncated else f"，另有 {more} 行" if more else ""
        return f"{'前' if truncated else '共'} {len(rows)} 行（{heading}）：{text}{rest}。"
    rest = " and more" if truncated else f" and {more} more" if more else ""
    return f"{'The first ' if truncated else ''}{len(rows)} rows ({heading}): {text}{rest}."


def _format_row(cells: Sequence[str], language: Language, *, has_colon: bool = False) -> str:
    """Return the first cell, and what the others say of it."""
    others = [*cells[1:_MAX_LISTED_COLUMNS], *(["…"] if len(cells) > _MAX_LISTED_COLUMNS else [])]
    separator = _SIGNS[language][2] if has_colon or len(cells) > _MAX_PLAIN_COLUMNS else " "
    return separator.join([*cells[:1], *([("、" if language == "zh" else ", ").join(others)] if others else [])])


def _shorten_comparisons(
    columns: Sequence[str], rows: Sequence[Sequence[Any]]
) -> tuple[Sequence[str], Sequence[Sequence[Any]]]:
    """Write the growth of a metric in percent, and leave out the value before it."""
    growths = _find_growth_columns(columns)
    previous = {name.removesuffix("_growth") + "_previous" for name in growths}
    shown = [at for at, name in enumerate(columns) if name not in previous]
    return [columns[at] for at in shown], [
        [f"{row[at]:+.1%}" if columns[at] in growths and row[at] is not None else row[at] for at in shown]
        for row in rows
    ]


def _find_growth_columns(columns: Sequence[str]) -> set[str]:
    """Return the columns that compare a metric of the result with the period before."""
    return {name for name in columns if name.endswith("_growth") and name.removesuffix("_growth") in columns}


def localize_problem(problem: str, language: Language) -> str:
    """Return why SQL did not run, without the name of the parameter, which is written for the model."""
    return localize(problem, language).removeprefix("sql: ")


def format_failure_sentence(reason: str, language: Language) -> str:
    """Return the sentence that states that there is no answer, and why."""
    explanation = localize_problem(reason, language).rstrip(" .。")
    if language == "en":
        return f"This question could not be answered reliably: {explanation or 'no SQL was written that runs'}."
    if explanation and not isinstance(reason, LocalizedText) and detect_language(explanation) == "en":
        explanation = f"最后一次尝试没有成功（{explanation}）"
    return f"无法可靠地回答这个问题：{explanation or '没有写出可以执行的 SQL'}。"


def format_doubts(doubts: Sequence[str], language: Language) -> str:
    """Return what an answer is unsure of as a sentence that follows its text, or ""."""
    if not doubts:
        return ""
    return f"不确定：{'；'.join(doubts)}。" if language == "zh" else f" This is uncertain: {'; '.join(doubts)}."


def build_chart(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, Any] | None:
    """Return a chart of the rows, or None if they do not suit one.

    Returns:
        `type` ("line" over dates, else "bar"), `x` (name of a column) and `y` (names of numeric columns). Of columns
        with one name, it is the first. None unless there are 2 to 200 rows, a label column and a numeric column.
    """
    if not 2 <= len(rows) <= 200 or len(columns) < 2:
        return None
    cells = {at: [to_number(row[at]) for row in rows] for at, name in enumerate(columns) if columns.index(name) == at}
    types = {at: {type(value) for value in values if value is not None} for at, values in cells.items()}
    numeric_columns = [at for at, found in types.items() if found and found <= {int, float}]
    date_columns = [at for at, values in cells.items() if all(map(_is_date, values))]
    distinct = [at for at, values in cells.items() if len(set(map(str, values))) == len(rows)]
    labels = [at for at in distinct if at in date_columns or at not in numeric_columns]
    axis = next(iter([at for at in date_columns if at not in numeric_columns] or labels), None)
    if axis is None or axis not in distinct:
        return None
    kind = "line" if axis in date_columns else "bar"  # numbers that may be years are not the values of bars
    names = [columns[at] for at in numeric_columns if at != axis and (kind == "line" or at not in date_columns)]
    names = [one for one in names if one not in _find_growth_columns(columns) and not _KEY_PATTERN.fullmatch(one)]
    return {"type": kind, "x": columns[axis], "y": names[:4]} if names else None


def _format_label(column: str, language: Language) -> str:
    """Return a column name as people say it: `SUM(o.net_amount)` is "total net amount"."""
    aggregate = _AGGREGATE_PATTERN.fullmatch(column)
    if aggregate is None:
        return _QUALIFIER_PATTERN.sub("", column).replace("_", " ")
    name = aggregate[2].replace("_", " ") if aggregate[2] != "*" else ""
    return _AGGREGATE_LABELS[language][aggregate[1].casefold()].format(name).strip()


def to_number(value: Any) -> Any:
    """Return a decimal that is text as a rounded number, and any other value unchanged."""
    return float(value) if isinstance(value, str) and _LONG_DECIMAL_PATTERN.fullmatch(value) else value


def _format_cell(value: Any, language: Language, is_amount: bool) -> str:
    """Return a cell as text: digits of possible codes are not grouped, up to six decimals not rounded."""
    if value is None:
        return "空" if language == "zh" else "nothing"
    value = dump_json(value).decode() if isinstance(value, bool | list | dict) else to_number(value)
    if isinstance(value, float):
        exact = f"{value:,.15g}" if abs(value) < 1e15 else f"{value:,.0f}"
        if len(exact.partition(".")[2]) <= 6:
            return exact
        rounded = round(value, 2) if abs(value) >= 1 else float(f"{value:.4g}")
        return f"{value:,.6f}" if rounded == round(rounded) else f"{rounded:,}"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 and is_amount else str(value)
    text = " ".join(str(value).split()) or ("空文本" if language == "zh" else "an empty text")
    return text if len(text) <= 120 else text[:119] + "…"


def _is_date(value: Any) -> bool:
    return 1900 <= value <= 2100 if type(value) is int else bool(_DATE_PATTERN.fullmatch(str(value)))
