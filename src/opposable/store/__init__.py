"""Persistence in SQLite or PostgreSQL: tools, agents, conversations, runs, failures and keys."""

from opposable.store.factory import open_store

__all__ = ["open_store"]
