"""The message catalog of the repairs of rejected SQL."""

from opposable.domain.localized_text import LocalizedText


def table_joined(table: str, column: str) -> LocalizedText:
    """Report a join added for a column."""
    return LocalizedText(f"{table} joined for {column}", f"为 {column} 连接了 {table}")


def long_query(word_count: int) -> LocalizedText:
    """Report a long query, which small models often get wrong."""
    return LocalizedText(f"the SQL has {word_count} words", f"SQL 有 {word_count} 个词")


EMPTY_RESULT = LocalizedText("the result is empty", "结果为空")
EQUAL_ROWS = LocalizedText("some rows are equal", "有相同的行")
