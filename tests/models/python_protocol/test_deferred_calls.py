"""Calls that wait for what the others of a reply bring."""

import pytest

from opposable.domain.tools import ToolDefinition
from opposable.models.python_protocol.call_builder import build_calls
from opposable.models.python_protocol.deferred_calls import build_deferred_calls

TEXT = {"type": "string"}
TOOLS = tuple(
    ToolDefinition(name, name, {"type": "object", "properties": dict.fromkeys(fields, TEXT), "required": list(fields)})
    for name, fields in {"read": ("path",), "write": ("path", "text"), "rooms": (), "book": ("room", "time")}.items()
)


@pytest.mark.parametrize(
    ("code", "waiting"),
    [
        ("read(path='a')\nwrite(path='b', text=read(path='a'))", [("write", {"path": "b"})]),
        ("t = read(path='a')\nwrite(path='b', text=t)", [("write", {"path": "b"})]),
        ("t = read(path='a')\nwrite('b', t)", [("write", {"path": "b"})]),
        ("t = read(path='a')\nwrite(path='b', text=t, mode=t, size=3)", [("write", {"path": "b"})]),
        ("rooms()\nbook(room='R-101', time='11:00')", [("book", {"time": "11:00"})]),
        ("rooms()\nbook(room='Blue', time='11:00')", []),
        ("read(path='a')", []),
        ("pass", []),
        ("write(path='b', text=read(", []),
    ],
)
def test_calls_wait_with_the_arguments_that_are_known(code, waiting):
    said = "Copy a to b. Book the room Blue at 11:00."
    made = build_calls(code, TOOLS, said)
    found = build_deferred_calls(code, TOOLS, said, made)
    assert [(call.name, call.arguments) for call in found] == waiting


def test_what_was_written_for_good_measure_does_not_wait():
    code = "rooms()\nbook(room='R-101', time='11:00')"
    made = build_calls(code, TOOLS, "rooms at 11:00", doubtful_lines={2})
    assert build_deferred_calls(code, TOOLS, "rooms at 11:00", made, doubtful_lines={2}) == ()
