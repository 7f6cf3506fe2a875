"""Questions are read, split by database, and sampled reproducibly."""

import pytest

from opposable.domain.errors import BadInput
from opposable.evals.text_to_sql.datasets import read_questions, sample_questions, select_part


def test_a_third_of_the_databases_is_held_out(question_folder):
    questions = read_questions(question_folder)
    dev, held = select_part(questions, "dev"), select_part(questions, "held")
    assert (len(dev), len(held)) == (4, 2)
    assert {q.database for q in dev}.isdisjoint({q.database for q in held})
    assert select_part(questions, "held") == held
    assert sample_questions(questions, 3) == sample_questions(questions, 3)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 1"),
        ("[1]", r"line 1: it is not an object: \[1\]"),
        ('{"id": "a"}', "line 1: db is missing"),
        ('{"id": "a", "db": "d", "gold_sql": "s"}', "line 1: question is missing, or not a text"),
        ('{"id": "a", "db": "d", "question": "q", "gold_sql": null}', "line 1: gold_sql is missing, or not a text"),
        ('{"id":"a","question":"q","gold_sql":"s","db":"no"}', "line 1: the database no does not exist"),
    ],
)
def test_an_invalid_line_is_reported_with_its_number(question_folder, line, message):
    (question_folder / "questions.jsonl").write_text(line)
    with pytest.raises(BadInput, match=message):
        read_questions(question_folder)


def test_a_byte_order_mark_before_the_questions_is_skipped(question_folder):
    questions, file = read_questions(question_folder), question_folder / "questions.jsonl"
    file.write_text(file.read_text(), encoding="utf-8-sig")
    assert read_questions(question_folder) == questions
