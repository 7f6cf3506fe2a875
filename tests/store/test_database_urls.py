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


@pytest.mark.parametrize(("text", "normalized"), URLS.items())
def test_url_is_normalized(text, normalized):
    url = parse_database_url(text)
    assert (url.render_as_string(hide_password=False), describe_database(url)) == normalized


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "database URL of the store is not valid"),
        ("store.db", "database URL of the store is not valid"),
        ("mysql://u:secret@h/d", "does not support 'mysql'"),
        ("sqlite://", "must be a file"),
        ("sqlite:///:memory:", "must be a file"),
        ("sqlite://store.db", "needs a third slash"),
        ("sqlite:///~unknown-ann/a.db", "The user of the path ~unknown-ann/a.db does not exist"),
        ("postgresql://u:p@secret[@h/d", "has an @. Write it as %40"),
        ("postgresql://u:secret@h:port/d", "database URL of the store is not valid"),
    ],
)
def test_invalid_url_is_reported_without_its_password(text, message):
    with pytest.raises(BadInput, match=message) as caught:
        parse_database_url(text)
    assert "secret" not in str(caught.value)
