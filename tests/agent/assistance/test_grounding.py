"""Where a call's values come from."""

import pytest

from opposable.agent.assistance.grounding import get_content_words, is_number_grounded, is_ungrounded, is_user_value


@pytest.mark.parametrize(
    ("number", "said", "heard"),
    [
        (100, "Note the price of copper.", False),
        (9410, "Note the price, 9,410, of copper.", True),
        (5, "a room for five people", True),
        (0.2, "a discount of 20 %", True),
        (1, "cancel an order", True),
        (12, "a dozen eggs", True),
        (7, "a dozen eggs", False),
        (15, "订一间十五人的房间", True),
        (100, "记录铜的价格。", False),
    ],
)
def test_a_number_is_heard_where_it_was_said_or_may_be_meant(number, said, heard):
    assert is_number_grounded(number, ["Hello.", said]) is heard


@pytest.mark.parametrize(
    ("value", "request_", "wanted"),
    [
        ("B-5", "Cancel my order", True),
        ("Atlantis", "Book Atlantis at nine", True),
        ("the big hall", "Book the hall", False),
        ("下午三点", "下午三点开会", True),
        ("a[href]", "Click the link", False),
        (7, "", True),
    ],
)
def test_an_id_and_the_users_own_words_are_what_the_user_wants(value, request_, wanted):
    assert is_user_value(value, request_) is wanted


@pytest.mark.parametrize(
    ("value", "field", "made_up"),
    [
        ("Conference Room", "room", True),
        ("the conference", "room", False),
        ("Room", "room", False),
        ("会议室", "room", True),
        (5, "room", False),
    ],
)
def test_a_text_of_which_nothing_was_said_is_made_up(value, field, made_up):
    assert is_ungrounded(value, field, "Book a room for the conference") is (made_up and value != "Conference Room")
    assert is_ungrounded(value, field, "Book a room for five") is (made_up or value == "the conference")


def test_names_say_what_they_are_about():
    assert get_content_words("list_orders") == {"list", "order"}
    assert get_content_words("orderId") == {"order"}
    assert get_content_words("HTTPProxies_of") == {"http", "proxie"}
