"""The catalog of a database: its schema and samples of its values."""
