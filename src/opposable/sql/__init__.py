"""Read-only SQL on DuckDB, PostgreSQL and SQLite: schema, guards, name repair, execution."""
