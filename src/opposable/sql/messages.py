"""The message catalog of the SQL package, in English and Chinese."""

from collections.abc import Iterable, Sequence
from typing import Literal

from opposable.domain.errors import InvalidArguments
from opposable.domain.localized_text import LocalizedText, join_localized, localize

_READ_ONLY_RULE = "only one reading statement (SELECT, WITH … SELECT, VALUES) may run here"
_KINDS_IN_CHINESE = {"table": "表", "column": "列"}
_SCHEMA_TOOLS = "schema.list_tables or schema.list_columns"
_TOOLS_BY_STATEMENT = dict.fromkeys(("SHOW", "DESCRIBE", "DESC", "SUMMARIZE", "PRAGMA"), _SCHEMA_TOOLS)


def join_messages(messages: Iterable[LocalizedText]) -> LocalizedText:
    """Join messages into one."""
    return join_localized(messages, " ", "；")


def get_error_message(error: BaseException) -> str:
    """Return the message of an error, with its translation where it has one."""
    if not isinstance(error, InvalidArguments):
        return error.args[0] if error.args and isinstance(error.args[0], LocalizedText) else str(error)
    if not all(isinstance(problem.problem, LocalizedText) for problem in error.problems):
        return str(error)
    return LocalizedText(str(error), "；".join(localize(problem.problem, "zh") for problem in error.problems))


# statements that the guard refuses


def statement_not_allowed(statement: str) -> LocalizedText:
    """A statement other than a read."""
    refusal = LocalizedText(
        f"{statement} is not allowed: {_READ_ONLY_RULE}.", f"只能执行读取数据的语句，不允许 {statement}"
    )
    return _name_tool(refusal, _TOOLS_BY_STATEMENT.get(statement))


def clause_not_allowed(clause: str) -> LocalizedText:
    """A clause that a read has no use for."""
    refusal = LocalizedText(
        f"{clause} is not allowed in a query: {_READ_ONLY_RULE}.", f"只能执行读取数据的语句，不允许 {clause}"
    )
    return _name_tool(refusal, _TOOLS_BY_STATEMENT.get(clause))


def _name_tool(refusal: LocalizedText, tool: str | None) -> LocalizedText:
    if tool is None:
        return refusal
    advice = LocalizedText(f"Call {tool} instead.", f"请改用 {tool.replace(' or ', ' 或 ')}")
    return join_messages([refusal, advice])


def several_statements(count: int) -> LocalizedText:
    """More or fewer statements than one."""
    return LocalizedText(
        f"The SQL holds {count} statements: {_READ_ONLY_RULE}.", f"只能执行一条语句，而这里有 {count} 条"
    )


def too_many(count: int, unit: str, limit: int) -> LocalizedText:
    """A query with more characters, tokens or SELECTs than allowed."""
    return LocalizedText(f"The SQL has {count} {unit}: at most {limit} are allowed.", "SQL 过长或过于复杂")


def too_deep(depth: int, limit: int) -> LocalizedText:
    """A query with more levels of nesting than allowed."""
    return LocalizedText(f"The SQL is nested {depth} deep: at most {limit} levels are allowed.", "SQL 过长或过于复杂")


def function_not_available(name: str, dialect: str, similar_names: Sequence[str]) -> LocalizedText:
    """A function that is not on the allow list."""
    refusal = LocalizedText(
        f"The function {name} is not available here: use the usual functions of {dialect}.", f"不能使用函数 {name}"
    )
    return join_messages([refusal, did_you_mean(similar_names)] if similar_names else [refusal])


def length_without_bound(function: str, limit: int) -> LocalizedText:
    """A function whose length argument has no bound in the SQL."""
    return LocalizedText(
        f"{function}() takes its length as a number written out, or as least(length, 50), at most {limit}.",
        f"{function}() 的长度要写成数字，或写成 least(长度, 50)，最大为 {limit}",
    )


def system_table(name: str) -> LocalizedText:
    """A table of the engine's own catalog."""
    refusal = LocalizedText(
        f"The system table {name} may not be read: use the tables of this database.", f"不能读取系统表 {name}"
    )
    return _name_tool(refusal, _SCHEMA_TOOLS)


def file_not_readable(name: str) -> LocalizedText:
    """A table name that is the path of a file."""
    return LocalizedText(
        f"Files may not be read: {name} is not a table of this database.",
        f"不能读取文件：{name} 不是这个数据库的表",
    )


def unlisted_table(name: str) -> LocalizedText:
    """A table that the schema does not list."""
    return LocalizedText(f"There is no table {name} here: use the tables of this database.", f"没有表 {name}")


# SQL that cannot be parsed


def unreadable_sql() -> LocalizedText:
    """SQL that the parser rejects without saying where."""
    return LocalizedText("The SQL cannot be read: check quotes, commas and parentheses.", "SQL 无法解析")


def unreadable_sql_near(excerpt: str, line: int, column: int, description: str) -> LocalizedText:
    """SQL that the parser rejects, with the place. The engine may accept it: the parser lacks some of its forms."""
    return LocalizedText(
        f"The safety check cannot read the SQL near {excerpt!r} (line {line}, column {column}): {description}."
        " Correct it there, or write it in another way.",
        f"安全检查无法解析 SQL 中 {excerpt!r} 附近的内容，请改正或换一种写法",
    )


def unreadable_sql_in_line(line: int, description: str) -> LocalizedText:
    """SQL that the parser rejects, where the line alone is known."""
    return LocalizedText(
        f"The safety check cannot read the SQL in line {line}: {description}."
        " Correct it there, or write it in another way.",
        f"安全检查无法解析 SQL 第 {line} 行，请改正或换一种写法",
    )


# names that do not exist


def unknown_table(name: str) -> LocalizedText:
    """A table that does not exist."""
    return LocalizedText(f"There is no table {name}.", f"没有表 {name}")


def table_is_a_column(name: str, tables: Sequence[str]) -> LocalizedText:
    """A supposed table that is a column of `tables`."""
    return LocalizedText(
        f"{name} is a column of {', '.join(tables)}: use it there, without a join.",
        f"{name} 是 {_list_in_chinese(tables)} 的列",
    )


def unknown_alias(owner: str, column: str, labels: Sequence[str]) -> LocalizedText:
    """A qualifier that names nothing in FROM."""
    return LocalizedText(
        f"{owner} in {owner}.{column} is not a table or alias of this FROM, which has {', '.join(labels) or 'none'}.",
        f"{owner}.{column} 中的 {owner} 不是 FROM 中的表或别名，其中有 {_list_in_chinese(labels) or 'none'}",
    )


def column_of_sources(column: str, sources: Sequence[str]) -> LocalizedText:
    """The sources in FROM that have a column."""
    return LocalizedText(
        f"{column} is a column of {' and of '.join(sources)}.", f"{column} 是 {_list_in_chinese(sources)} 的列"
    )


def miswritten_name(kind: Literal["table", "column"], name: str, engine: str, names: Sequence[str]) -> LocalizedText:
    """A name that the engine reads as another one, and how to write it."""
    return LocalizedText(
        f"{name} is not a {kind} as {engine} reads it: write {' or '.join(names)}.",
        f"{engine} 中没有名为 {name} 的{_KINDS_IN_CHINESE[kind]}：应写成 {_list_in_chinese(names)}",
    )


def source_lacks_column(source: str, column: str) -> LocalizedText:
    """A column that its qualifier does not have."""
    return LocalizedText(f"{source} has no column {column}.", f"{source} 没有列 {column}")


def sources_have_it(sources: Sequence[str]) -> LocalizedText:
    """The other sources in FROM that have the column."""
    return LocalizedText(f"{' and '.join(sources)} has it.", f"{_list_in_chinese(sources)} 有这一列")


def unknown_column(name: str, sources: Sequence[str]) -> LocalizedText:
    """An unqualified column that no source in FROM has."""
    return LocalizedText(
        f"There is no column {name} in {', '.join(sources) or 'this query'}.",
        f"{_list_in_chinese(sources) or 'this query'} 中没有列 {name}",
    )


def column_in_other_tables(column: str, tables: Sequence[str]) -> LocalizedText:
    """The tables outside of FROM that have a column."""
    return LocalizedText(
        f"The table {' or '.join(tables)} has a column {column}: join it.",
        f"表 {_list_in_chinese(tables)} 有列 {column}",
    )


def text_in_double_quotes() -> LocalizedText:
    """Text written as a quoted identifier."""
    return LocalizedText("Text belongs in single quotes, not double quotes.", "文本要用单引号")


def did_you_mean(names: Sequence[str]) -> LocalizedText:
    """The similar names that exist."""
    return LocalizedText(f"Did you mean {' or '.join(names)}?", f"是否指 {_list_in_chinese(names)}")


def existing_names(label: str, names: Sequence[str]) -> LocalizedText:
    """All names that exist, where none is similar.

    `label` is "Tables", "Columns" or "Its columns".
    """
    return LocalizedText(f"{label}: {', '.join(names)}.", f"现有的是 {_list_in_chinese(names)}")


def name_replaced(kind: Literal["table", "column"], old: str, new: str) -> LocalizedText:
    """A correction of a name."""
    return LocalizedText(f"{kind} {old} → {new}", f"{_KINDS_IN_CHINESE[kind]} {old} → {new}")


def names_quoted(names: Sequence[str]) -> LocalizedText:
    """Quotes around names that the engine does not read without them."""
    return LocalizedText(f"{', '.join(names)} → in quotes", f"{_list_in_chinese(names)} 加上了引号")


def full_width_signs_replaced() -> LocalizedText:
    """Full-width signs written as SQL has them."""
    return LocalizedText("full-width signs → ASCII", "全角符号改成了半角")


# errors of the engine


def engine_refused(reason: str) -> LocalizedText:
    """A query that the engine's own protection stopped.

    `reason` is the engine's message.
    """
    return LocalizedText(f"The database refused it: {reason}", f"数据库拒绝执行：{reason}")


def engine_failed(reason: str, hint: str) -> LocalizedText:
    """A query that failed in the engine; `reason` is in the engine's language."""
    english = f"The database says: {reason}{f' Hint: {hint}.' if hint else ''}"
    return LocalizedText(english, f"数据库报错：{reason}")


def query_timed_out(seconds: float) -> LocalizedText:
    """A query that took too long."""
    return LocalizedText(
        f"The query took longer than {seconds:g} seconds and was stopped. Hint: filter or aggregate earlier.",
        f"查询超过 {seconds:g} 秒，已停止",
    )


def database_unreachable(name: str) -> LocalizedText:
    """A server that does not answer."""
    return LocalizedText(f"The database {name} does not answer now.", f"数据库 {name} 目前没有响应")


def _list_in_chinese(names: Sequence[str]) -> str:
    return "、".join(names)
