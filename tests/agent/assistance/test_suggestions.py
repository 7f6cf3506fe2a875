"""What a wrong argument may have meant, of what its failure names."""

import pytest

from opposable.agent.assistance.suggestions import (
    MAX_VALUE_CHARACTERS,
    suggest_arguments,
)

LAMPS = "There is no lamp {!r}. The lamps are: livingroom_1, kitchen_1, study_1."
TICKETS = "There is no ticket {!r}. The tickets are: T-3, T-18, T-181."


@pytest.mark.parametrize(
    ("given", "said", "meant"),
    [
        ("living room", LAMPS, "livingroom_1"),
        ("Study", LAMPS, "study_1"),
        ("kitchne_1", LAMPS, "kitchen_1"),
        ("18", TICKETS, "T-18"),
        ("t18", TICKETS, "T-18"),
        ("书房", "没有房间 {!r}。房间有：客厅、书房_1、卧室。", "书房_1"),
        ("B", "There is no room {!r}. The rooms are: Anton, Blue, 会议室B.", "会议室B"),
        ("a.txt", "{!r} is not there; there are 'old/a.txt' and 'old/b.txt'.", "old/a.txt"),
        ("PX204", "Parcel {} not found. Known parcels: PX-204, QZ-11", "PX-204"),
        ("sku88", "没有商品 {}。现有商品：SKU-88。", "SKU-88"),
        ("imports", "{!r} is no kind of job: it is export or import.", "import"),
    ],
)
def test_the_nearest_of_what_a_failure_names_is_found(given, said, meant):
    assert suggest_arguments({"what": given, "other": "x", "number": 3}, said.format(given)) == {"what": meant}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("garage", LAMPS),
        ("T-4", TICKETS),
        ("81", TICKETS),
        ("sdz", "There is no disk {!r}. The disks are: sda, sdb."),
        ("room", "There is no {!r}. There are room_1 and room_2."),
        ("Conference Room", "There is no room {!r}."),
        ("", "{!r} is empty."),
        ("x" * (MAX_VALUE_CHARACTERS + 1), "{!r} is not xx."),
        ("3 pm", "{!r} is no time: write it as HH:MM."),
        ("18", "18 tickets are open: T-18, T-19."),
        ("q3.txt", "archive/{} is not there; there is old/q3.txt."),
        ("--", "{!r} is not - or ---."),
    ],
)
def test_nothing_is_meant_where_nothing_or_more_than_one_thing_is_near(given, said):
    assert suggest_arguments({"what": given}, said.format(given)) == {}


def test_only_what_the_failure_repeats_is_looked_for():
    assert suggest_arguments({"path": "q3.txt", "to": "q4.txt"}, "There is no 'q3.txt'; there is old/q3.txt.") == {
        "path": "old/q3.txt"
    }
    assert suggest_arguments({"lamp": "study"}, "The lamps are: study_1.") == {}
