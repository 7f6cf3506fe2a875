"""Values that a request contains and a call omits."""

import pytest

from opposable.domain.language import split_words
from opposable.models.python_protocol.request_grounding import (
    add_requested_optionals,
    find_requested_choices,
    match_choices_to_request,
)
from opposable.parsers.schema_coercion import SchemaNode

KINDS = ["War", "Culture", "Arts and crafts", "Arts"]
ROOMS = ["Wi-Fi", "Reading Room", "Café", "儿童区"]
SCHEMA = SchemaNode(
    {
        "type": "object",
        "properties": {
            "place": {"type": "string"},
            "kind": {"type": "string", "enum": KINDS},
            "rooms": {"type": "array", "items": {"type": "string", "enum": ROOMS}},
            "level": {"type": "string", "enum": ["A", "B"]},
            "years": {"type": "integer", "description": "Between 1 and 100 years: 20 is usual."},
            "names": {"type": "array", "items": {"type": "string"}},
            "state": {
                "type": "integer",
                "description": "The state. For example, 1 for new books, 2 for well used books.",
            },
            "order": {"type": "integer", "description": "排序：1 表示升序，2 表示降序"},
            "include_prices": {"type": "boolean"},
            "withMaps": {"type": "boolean"},
            "garden": {"type": "string", "enum": ["True", "False", "any"]},
        },
        "required": ["place"],
    }
)


@pytest.mark.parametrize(
    ("asked", "given", "made"),
    [
        (
            "wi-fi and a reading room",
            {"place": "", "rooms": ["Wi-Fi"]},
            {"place": "", "rooms": ["Wi-Fi", "Reading Room"]},
        ),
        ("with free Wi-Fi", {"place": "", "rooms": ROOMS}, {"place": "", "rooms": ["Wi-Fi"]}),
        ("要有儿童区", {"place": "", "rooms": ROOMS}, {"place": "", "rooms": ["儿童区"]}),
        ("with everything", {"place": "", "rooms": ROOMS}, {"place": "", "rooms": ROOMS}),
        (
            "Wi-Fi; something to eat",
            {"place": "", "rooms": ["Café", "Wi-Fi"]},
            {"place": "", "rooms": ["Café", "Wi-Fi"]},
        ),
        (
            "Wi-Fi in the Café Central",
            {"place": "Café Central", "rooms": ["Wi-Fi"]},
            {"place": "Café Central", "rooms": ["Wi-Fi"]},
        ),
        (
            "Wi-Fi 在自然儿童区博物馆",
            {"place": "自然儿童区博物馆", "rooms": ["Wi-Fi"]},
            {"place": "自然儿童区博物馆", "rooms": ["Wi-Fi"]},
        ),
        (
            "Wi-Fi and a reading room in a quiet house",
            {"place": "Wi-Fi and a reading room in a quiet house", "rooms": ["Wi-Fi"]},
            {"place": "Wi-Fi and a reading room in a quiet house", "rooms": ["Wi-Fi", "Reading Room"]},
        ),
    ],
)
def test_choices_are_as_the_request_says_them(asked, given, made):
    repairs: list[str] = []
    assert match_choices_to_request(given, SCHEMA, split_words(asked), repairs) == made
    assert bool(repairs) == (given != made)


@pytest.mark.parametrize(
    ("asked", "rest", "more"),
    [
        ("Ten years of Spain: 10", {"years": 10}, {"years": 10}),
        ("Spain in 10 years", {"years": 11}, {}),
        ("Spain through the years", {"years": 100}, {}),
        ("Spain", {"names": ["Spain"]}, {}),
        ("Ana and Rui in Spain", {"names": ["Ana", "Rui"]}, {"names": ["Ana", "Rui"]}),
        ("Ana in Spain", {"names": ["Ana", "Rui"]}, {}),
        ("Used books on Spain", {"state": 2}, {"state": 2}),
        ("Used books on Spain", {"state": 1}, {}),
        ("Books on Spain", {"state": 1}, {}),
        ("西班牙的书，降序", {"order": 2}, {"order": 2}),
        ("西班牙的书，降序", {"order": 1}, {}),
        ("西班牙的书", {"order": 2}, {}),
        ("Spain for two", {"names": []}, {}),
        ("Spain with prices", {"include_prices": True, "withMaps": True}, {"include_prices": True}),
        ("Spain, a map please", {"include_prices": True, "withMaps": True}, {"withMaps": True}),
        ("Spain without prices", {"include_prices": True}, {}),
        ("Spain, but do not show me the prices", {"include_prices": True}, {}),
        ("Spain, hide prices", {"include_prices": True}, {}),
        ("Spain, a kind", {"kind": "true"}, {}),
        ("Spain over several years", {"years": 1}, {}),
        ("Spain, with a garden", {"garden": "True"}, {"garden": "True"}),
        ("Spain, no garden", {"garden": "True"}, {}),
        ("Spain with prices", {"include_prices": False}, {}),
        ("True Spain", {"years": True}, {}),
        ("Spain, ten", {"years": "ten"}, {}),
        ("War or peace in Spain", {"kind": "peace"}, {}),
        ("A war in Spain", {"level": "A"}, {}),
        ("Spain and Portugal", {"place": "Portugal", "land": "Portugal"}, {}),
    ],
)
def test_what_the_model_goes_on_with_counts_where_it_was_said(asked, rest, more):
    assert add_requested_optionals({"place": "Spain"}, rest, SCHEMA, split_words(asked), []) == {
        "place": "Spain",
        **more,
    }


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("The wars of Spain", ["War"]),
        ("Arts and crafts in Spain", ["Arts and crafts"]),
        ("Culture and war", ["War", "Culture"]),
        ("Spain, but not its wars", []),
        ("A warm room in Spain", []),
    ],
)
def test_a_choice_is_said_whole_and_wanted(asked, found):
    assert find_requested_choices(KINDS, split_words(asked)) == found


def test_a_choice_within_a_longer_one_is_not_said():
    assert find_requested_choices(["new", "new york", 3, None], ["a", "new", "york", "flat"]) == ["new york"]
