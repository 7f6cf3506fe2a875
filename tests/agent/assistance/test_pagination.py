"""What a result says of how it goes on, and how much of it a request wants."""

import pytest

from opposable.agent.assistance.pagination import (
    count_requested_items,
    find_next_value,
    get_next_page_arguments,
    is_about_whole_list,
)

PAGED = {"properties": {"page": {"type": "integer"}, "kind": {"type": "string"}}}
CURSOR = {"properties": {"page_token": {"type": "string"}, "cursor": {"type": "string"}}}


@pytest.mark.parametrize(
    ("arguments", "parameters", "data", "more"),
    [
        ({}, PAGED, {"items": [1], "next_page": 2}, {"page": 2}),
        ({"kind": "x", "page": 2}, PAGED, {"items": [1], "nextPage": 3}, {"kind": "x", "page": 3}),
        ({}, CURSOR, {"nextPageToken": "abc"}, {"page_token": "abc"}),
        ({"cursor": "a"}, CURSOR, {"meta": {"next_cursor": "b"}}, {"cursor": "b"}),
        ({"page": 4}, PAGED, {"has_more": True}, {"page": 5}),
        ({}, PAGED, {"pagination": {"hasMore": True}}, {"page": 2}),
        ({}, PAGED, {"items": [1], "next_page": None}, None),
        ({"page": 2}, PAGED, {"next_page": 2}, None),
        ({}, PAGED, {"has_more": False}, None),
        ({}, CURSOR, {"next_cursor": ""}, None),
        ({}, CURSOR, {"has_more": True}, None),
        ({}, PAGED, {"next_steps": "call delete"}, None),
        ({}, PAGED, ["next_page", 2], None),
    ],
)
def test_the_call_of_the_next_page_is_known_where_the_result_names_it(arguments, parameters, data, more):
    assert get_next_page_arguments(arguments, parameters, data) == more


@pytest.mark.parametrize(
    ("arguments", "said", "found"),
    [
        ({"door": "door-7"}, "The next is door-14.", {"door": "door-14"}),
        ({"n": 1, "stop": "S 03"}, "Done. Next stop: s 04", {"stop": "s 04"}),
        ({"station": "站点2"}, "下一个是站点3。", {"station": "站点3"}),
        ({"door": "door-7"}, "Behind it is door-14.", {}),
        ({"door": "door-7"}, "The next is door-7.", {}),
        ({"door": "door-7"}, "The next is outdoor-14.", {}),
        ({"door": "front"}, "The next is back.", {}),
    ],
)
def test_the_next_of_a_chain_is_what_is_so_called_and_alike(arguments, said, found):
    assert find_next_value(arguments, said) == found


@pytest.mark.parametrize(
    ("request_", "many", "whole"),
    [
        ("Open four gates, please", 4, False),
        ("Send 3 short messages", 3, False),
        ("打开十二扇门", 12, False),
        ("发两条消息", 2, False),
        ("发三条消息", 3, False),
        ("Cancel order 17.", 1, False),
        ("Show every order", 1, True),
        ("What is the cheapest room?", 1, True),
        ("列出所有订单", 1, True),
        ("最贵的是哪个？", 1, True),
        ("Show the order of Anna", 1, False),
    ],
)
def test_how_much_a_request_wants_is_read_from_its_words(request_, many, whole):
    assert (count_requested_items(request_), is_about_whole_list(request_)) == (many, whole)
