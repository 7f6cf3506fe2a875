"""A recorded model requests each reply once."""

import sqlite3

import pytest

from opposable.domain.errors import OpposableError
from opposable.domain.events import ModelEvent, Reply, Token
from opposable.domain.messages import assistant_message, user_message
from opposable.domain.usage import Usage
from opposable.evals.text_to_sql.recorded_model import RecordedModel
from opposable.models.base import ModelOptions, request_reply
from opposable.models.profile import ModelProfile

pytestmark = pytest.mark.anyio


class CountingModel:
    """A model that replies with the number of its requests."""

    name = "counting"
    profile = ModelProfile(assisted=True)

    def __init__(self) -> None:
        self.count = 0

    async def stream(self, messages, tools=(), options=None):
        self.count += 1
        event: ModelEvent = Reply(
            assistant_message(str(self.count)), "length", Usage(3, 2, 1), (Token("1", (("1", -0.5), ("2", -1.5))),)
        )
        yield event

    async def aclose(self) -> None:
        """Do nothing: no resource is open."""


async def test_a_request_is_answered_from_the_file_the_second_time(tmp_path):
    model = CountingModel()
    options = ModelOptions(stream=False, seed=1)
    replies = []
    for _ in range(2):
        recorded = RecordedModel(model, tmp_path / "replies.sqlite")
        replies.append(await request_reply(recorded, [user_message("a")], (), options))
        await recorded.aclose()
    assert (replies[0], model.count, recorded.profile.assisted) == (replies[1], 1, True)


async def test_a_file_that_cannot_be_used_is_reported(tmp_path):
    (tmp_path / "notes.txt").write_text("No database.\n" * 100)
    with pytest.raises(OpposableError, match=r"Cannot use .*notes.txt for recorded replies: file is not a database"):
        RecordedModel(CountingModel(), tmp_path / "notes.txt")
    recorded = RecordedModel(CountingModel(), tmp_path / "replies.sqlite")
    sqlite3.connect(tmp_path / "replies.sqlite", isolation_level=None).execute("DROP TABLE reply").connection.close()
    with pytest.raises(OpposableError, match=r"Cannot use .*replies.sqlite for recorded replies: no such table"):
        await request_reply(recorded, [user_message("a")], (), ModelOptions(stream=False))
    await recorded.aclose()


async def test_other_messages_and_options_are_other_requests(tmp_path):
    model = CountingModel()
    recorded = RecordedModel(model, tmp_path / "replies.sqlite")
    for text, seed in (("a", 1), ("a", 2), ("b", 1), ("a", 1)):
        await request_reply(recorded, [user_message(text)], (), ModelOptions(stream=False, seed=seed))
    await recorded.aclose()
    assert model.count == 3
