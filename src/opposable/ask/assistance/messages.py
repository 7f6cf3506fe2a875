"""The message catalog of the repairs of rejected SQL."""

from opposable.domain.localized_text import LocalizedText


def table_joined(table: str, column: str) -> LocalizedText:
    """Report a join added for a column."""
    return LocalizedText(f"{table} joined for {column}", f"为 {column} 连接了 {table}")
