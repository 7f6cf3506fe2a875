"""Database URLs are normalized, and wrong ones are reported without their password."""

import pytest

from opposable.domain.errors import BadInput
from opposable.store.database_urls import describe_database, parse_database_url

URLS = {
    "sqlite:///a/b.db": ("sqlite+aiosqlite:///a/b.db", "SQLite file a/b.db"),
    "sqlite:////a/b.db": ("sqlite+aiosqlite:////a/b.db", "SQLite file /a/b.db"),
    "sqlite+pysqlite:///b.db": ("sqlite+aiosqlite:///b.db", "SQLite file b.db"),
    "postgres://u:p%40@h/d": ("postgresql+psycopg://u:p%40@h/d", "PostgreSQL at h/d"),
    " postgresql://u:p@h:5433/d\n": ("postgresql+psycopg://u:p@h:5433/d", "PostgreSQL at h:5433/d"),
    "postgresql+asyncpg://u@h/d?sslmode=require": (
        "postgresql+psycopg://u@h/d?sslmode=require",
        "PostgreSQL at h/d",
    ),
    "postgresql:///d?host=/run": ("postgresql+psycopg:///d?host=%2Frun", "PostgreSQL at the local socket/d"),
}


@pytest.mark.parametrize(("given", "made"), URLS.items())
def test_urls_are_taken_in_the_shapes_people_write(given, made):
    url = parse_database_url(given)
    assert (url.render_as_string(hide_password=False), describe_database(url)) == made


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("", "This is no database URL"),
        ("store.db", "This is no database URL"),
        ("mysql://u:secret@h/d", "'mysql' cannot be the store"),
        ("sqlite://", "One in memory would be lost"),
        ("sqlite:///:memory:", "One in memory would be lost"),
        ("sqlite://store.db", "needs a third slash"),
        ("postgresql://u:secret@h:port/d", "This is no database URL"),
    ],
)
def test_a_wrong_url_is_told_without_its_password(given, said):
    with pytest.raises(BadInput, match=said) as caught:
        parse_database_url(given)
    assert "secret" not in str(caught.value)
