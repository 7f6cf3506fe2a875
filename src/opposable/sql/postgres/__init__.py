"""PostgreSQL databases, read-only."""
