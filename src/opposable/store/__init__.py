"""What outlives a process: tools, agents, conversations, runs, calls, failures, keys."""

from opposable.store.factory import open_store

__all__ = ["open_store"]
