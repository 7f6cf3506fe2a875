"""The published deltas of a run, concatenated, equal its text."""

import pytest

from opposable.service.answer_text import AnswerText

LONG = "a long story " * 30


@pytest.mark.parametrize(
    ("replies", "final", "commentary", "text"),
    [
        (["It is 5."], "It is 5.", [], "It is 5."),
        (["Let me check.", "It is 5."], "It is 5.", ["Let me check."], "It is 5."),
        ([LONG], LONG, [], LONG),
        ([LONG, "It is 5."], "It is 5.", [], f"{LONG}\n\nIt is 5."),
        ([LONG, LONG], LONG, [], f"{LONG}\n\n{LONG}"),
        ([LONG, "Let me check.", LONG, "It is 5."], "It is 5.", ["Let me check."], f"{LONG}\n\n{LONG}\n\nIt is 5."),
        (["Let me check.", ""], "The model gave no answer.", ["Let me check."], "The model gave no answer."),
        ([], "The task used up its time.", [], "The task used up its time."),
        ([LONG + "  \n"], LONG, [], LONG + "  \n"),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_published_deltas_equal_the_text(replies, final, commentary, text, size):
    answer, published, comments = AnswerText(), "", []
    for number, reply in enumerate(replies):
        if number:
            comments.append(answer.end_reply())
        for start in range(0, len(reply), size):
            published += answer.add_delta(reply[start : start + size])
    rest, run_text = answer.finish(final)
    assert (published + rest, run_text) == (text, text)
    assert [comment for comment in comments if comment] == commentary


def test_a_long_reply_is_published_while_it_is_written():
    answer = AnswerText()
    published = [answer.add_delta("word ") for _ in range(60)]
    assert published[0] == ""
    assert "".join(published[:45]) == "word " * 45


def test_nothing_is_held_where_no_call_can_follow():
    answer = AnswerText(max_held=0)
    assert [answer.add_delta("It "), answer.add_delta("is 5.")] == ["It ", "is 5."]
    assert answer.finish("It is 5.") == ("", "It is 5.")


@pytest.mark.parametrize(
    ("published", "finished_replies", "streamed", "final", "rest"),
    [
        ([""], 0, "It is 5.", "It is 5.", "It is 5."),
        ([LONG], 0, LONG + "the end", LONG + "the end", "the end"),
        ([LONG], 0, "Another story.", "Another story.", "\n\nAnother story."),
        ([LONG, "\n\nIt"], 1, "It is 5.", "It is 5.", " is 5."),
        (["", ""], 1, "It is 5.", "It is 5.", "It is 5."),
        (["", "It is 5."], 0, "", "It is 5.", ""),  # the answer was recorded, the end of the run was not
        (["", "", "It is 5."], 1, "", "It is 5.", ""),
        ([LONG, ""], 0, "", LONG, ""),
        ([LONG + "\n\nAnother story.", ""], 0, "", "Another story.", ""),
        ([LONG, "\n\nIt is 5."], 1, "", "It is 5.", ""),
    ],
)
@pytest.mark.parametrize("size", [1, 10_000])
def test_a_takeover_publishes_the_rest_only(published, finished_replies, streamed, final, rest, size):
    answer, new = AnswerText(published=published), ""
    for _ in range(finished_replies):
        assert answer.end_reply() == ""
    for start in range(0, len(streamed), size):
        new += answer.add_delta(streamed[start : start + size])
    last, text = answer.finish(final)
    assert (new + last, text) == (rest, "".join(published) + rest)
