"""MySQL and MariaDB databases, opened read-only."""
