"""ClickHouse data directories as read-only databases."""
