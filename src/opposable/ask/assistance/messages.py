"""The message catalog of the repairs of rejected SQL."""

from opposable.domain.localized_text import LocalizedText


def table_joined(table: str, column: str) -> LocalizedText:
    """Report a join added for a column."""
    return LocalizedText(f"{table} joined for {column}", f"为 {column} 连接了 {table}")


def many_joins(count: int) -> LocalizedText:
    """Report joins, which small models often get wrong."""
    return LocalizedText(f"the SQL has {count} join{'s' if count > 1 else ''}", f"SQL 中有 {count} 个连接")


EMPTY_RESULT = LocalizedText("the result is empty", "结果为空")
