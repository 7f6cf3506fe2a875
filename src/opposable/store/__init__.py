"""Tables, migrations and repositories: SQLite by default, PostgreSQL in production."""
