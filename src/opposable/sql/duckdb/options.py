"""Options of every DuckDB connection: no extensions, bounded resources."""

RESTRICTED_OPTIONS: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "memory_limit": "512MB",
    "threads": "2",
    "temp_directory": "",
    "max_execution_time": "15000",
    "pivot_limit": "10000",  # planning more columns takes longer than a query may, and cannot be interrupted
}
