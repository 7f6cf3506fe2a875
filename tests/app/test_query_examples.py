"""The last answer is stored for this user alone."""

import stat
from pathlib import Path

import pytest
from tests.app.settings import create_settings

from opposable.app.query_examples import confirm_last_answer, read_examples_file, save_last_answer
from opposable.domain.answers import DataAnswer
from opposable.domain.errors import BadInput

pytestmark = pytest.mark.anyio
ANSWER = DataAnswer("There are 25.", "SELECT count(*) FROM Genre")


def test_only_this_user_may_read_the_last_answer(tmp_path: Path) -> None:
    settings = create_settings(tmp_path)
    save_last_answer(settings, "shop", "How many genres are there?", ANSWER)
    [file] = (tmp_path / "home").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert b"How many genres" in file.read_bytes()


async def test_an_answer_without_sql_leaves_no_earlier_one_to_confirm(tmp_path: Path) -> None:
    settings = create_settings(tmp_path)
    save_last_answer(settings, "shop", "How many genres are there?", ANSWER)
    save_last_answer(settings, "shop", "And artists?", DataAnswer("I do not know.", error="no SQL"))
    with pytest.raises(BadInput, match="There is no answer to confirm"):
        await confirm_last_answer(settings)


def test_an_answer_is_given_where_no_state_can_be_stored(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("A file, not a folder.")
    save_last_answer(create_settings(tmp_path), "shop", "How many genres are there?", ANSWER)


def test_a_byte_order_mark_before_the_examples_is_skipped(tmp_path: Path) -> None:
    file = tmp_path / "examples.jsonl"
    file.write_text('{"question": "有多少专辑？", "sql": "SELECT count(*) FROM Album"}\r\n', encoding="utf-8-sig")
    assert read_examples_file(file) == [("有多少专辑？", "SELECT count(*) FROM Album")]


@pytest.mark.parametrize("line", ['{"question": null, "sql": "SELECT 1"}', '{"question": "Why?", "sql": ["SELECT 1"]}'])
def test_a_question_that_is_not_text_is_reported_with_its_line(tmp_path: Path, line: str) -> None:
    file = tmp_path / "examples.jsonl"
    file.write_text(f"\n{line}\n")
    with pytest.raises(BadInput, match="line 2 is not a JSON object with the texts question and sql"):
        read_examples_file(file)


def test_examples_in_another_encoding_are_reported(tmp_path: Path) -> None:
    file = tmp_path / "examples.jsonl"
    file.write_text('{"question": "有多少专辑？", "sql": "SELECT count(*) FROM Album"}', encoding="gbk")
    with pytest.raises(BadInput, match=r"examples\.jsonl is not UTF-8 text\. Save it as UTF-8\."):
        read_examples_file(file)


@pytest.mark.parametrize("content", ["{", "[]", '{"database": "shop"}'])
async def test_a_damaged_last_answer_is_reported(tmp_path: Path, content: str) -> None:
    settings = create_settings(tmp_path)
    save_last_answer(settings, "shop", "How many genres are there?", ANSWER)
    (tmp_path / "home" / "last_answer.json").write_text(content)
    with pytest.raises(BadInput, match=r"cannot be read\. Ask the question again"):
        await confirm_last_answer(settings)
