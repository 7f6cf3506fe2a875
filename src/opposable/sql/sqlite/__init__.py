"""SQLite files as read-only databases."""
