"""Read-only SQL on DuckDB, PostgreSQL and SQLite."""
