"""Settings of the tests, and the names of the tools that they expect."""

from pathlib import Path

from opposable.settings import Settings

BUILTIN = ("echo", "calculator", "time", "file_search", "read_file", "log_transform")
SQL = (
    *("schema_list_columns", "schema_list_tables"),
    *("sql_auto_fix_columns", "sql_execute", "sql_refine", "sql_validate", "sql_validate_columns"),
)


def create_settings(tmp_path: Path, **options) -> Settings:
    return Settings(_env_file=None, home=tmp_path / "home", roots=(tmp_path,), **options)
