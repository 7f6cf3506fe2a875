"""The background writer of failures, on a store that fails on request."""

import pytest

from opposable.agent.failure_writer import FailureWriter
from opposable.domain.errors import StoreUnavailable
from opposable.domain.records import Failure

pytestmark = pytest.mark.anyio

SLOW = Failure("web", "read", "timeout", "f1", message="slow")


class UnreliableStore:
    """Records what is written; each name in `broken` fails once."""

    def __init__(self, *broken: str) -> None:
        self.broken = list(broken)
        self.written: list[tuple] = []

    async def add(self, new_failures):
        self._write("add", *((failure.fingerprint, failure.count) for failure in new_failures))

    async def correct(self, failure_id, correction):
        self._write("correct", failure_id, correction)

    async def forget(self, failure_id):
        self._write("forget", failure_id)

    def _write(self, name, *details):
        if name in self.broken:
            self.broken.remove(name)
            raise StoreUnavailable("down")
        self.written.append((name, *details))


@pytest.mark.parametrize("broken", ["", "add", "correct"])
async def test_each_change_is_written_once_also_after_an_error(broken):
    store = UnreliableStore(broken)
    writer = FailureWriter(store, 0.001)
    writer.add("one", SLOW)
    writer.add("one", SLOW)
    writer.correct("one", {"right": {"seconds": 60}})
    assert writer.pending_ids == {"one"}
    while writer.pending_ids:
        await writer._task
    assert store.written == [("add", ("f1", 2)), ("correct", "one", {"right": {"seconds": 60}})]


@pytest.mark.parametrize("is_seen_again", [False, True])
async def test_a_deletion_replaces_what_was_not_written_and_ends_with_a_new_failure(is_seen_again):
    store = UnreliableStore()
    writer = FailureWriter(store, 60)
    writer.add("one", SLOW)
    writer.forget("one")
    if is_seen_again:
        writer.add("one", SLOW)
    await writer.aclose()
    assert store.written == ([("add", ("f1", 1))] if is_seen_again else [("forget", "one")])
