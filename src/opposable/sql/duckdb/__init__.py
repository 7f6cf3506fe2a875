"""DuckDB files as read-only databases."""
