"""Optional values that a model wavered over."""

import pytest

from opposable.domain.events import Token
from opposable.domain.language import split_words
from opposable.domain.tools import ToolCall, ToolDefinition
from opposable.models.python_protocol.uncertain_defaults import drop_uncertain_defaults

LIST = ToolDefinition(
    "list_files",
    "List files.",
    {
        "type": "object",
        "properties": {
            "folder": {"type": "string", "default": "."},
            "sort_order": {"type": "string", "enum": ["asc", "desc"], "default": "asc"},
            "dry_run": {"type": "boolean", "default": False},
            "limit": {"type": "integer", "default": 10},
            "depth": {"type": "integer"},
            "style": {"type": "string", "description": "long or short. Default is 'short'."},
            "hidden": {"type": "boolean", "description": "Hidden files too. Defaults to false"},
            "units": {"type": "string", "description": "单位，默认为“兆”"},
        },
        "required": ["folder"],
    },
)


def keep_certain_arguments(said: str, *pieces: str | tuple[str, str, float], **given: object) -> dict[str, object]:
    """What is left of the call; a piece is a token's text, or that with a rival and the rival's log-probability."""
    tokens = [
        Token(piece, ((piece, -0.1),)) if isinstance(piece, str) else Token(piece[0], ((piece[0], -0.6), piece[1:]))
        for piece in pieces
    ]
    call = ToolCall("1", "list_files", {"folder": "/", **given})
    made = drop_uncertain_defaults(call, tokens, (LIST,), split_words(said))
    assert bool(made.repairs) == (made.arguments != call.arguments)
    del (expected := made.arguments)["folder"]
    return expected


CALL = ("list_files(folder='/',", " sort", "_order")


@pytest.mark.parametrize(
    ("said", "rival", "expected"),
    [
        ("List /", ("desc", "asc", -0.8), {}),
        ("List /", ("desc", "asc", -6.0), {"sort_order": "desc"}),
        ("List /", ("desc", "date", -0.8), {"sort_order": "desc"}),
        ("List / in descending order", ("desc", "asc", -0.8), {"sort_order": "desc"}),
        ("List / sorted", ("desc", "asc", -0.8), {"sort_order": "desc"}),
        ("列出根目录", ("desc", "asc", -0.8), {"sort_order": "desc"}),
        ("列出根目录，倒序", ("desc", "asc", -7.0), {"sort_order": "desc"}),
    ],
    ids=["wavered", "sure", "another rival", "said", "its name said", "in another script", "sure in Chinese"],
)
def test_an_unmentioned_choice_gives_way_to_a_rival_default(said, rival, expected):
    assert keep_certain_arguments(said, *CALL, "='", rival, "')", sort_order="desc") == expected


@pytest.mark.parametrize(
    ("said", "rival", "expected"),
    [
        ("List /", ("=True", "=False", -2.0), {}),
        ("What would be deleted?", ("=True", "=False", -6.0), {"dry_run": True}),
        ("A dry run, please", ("=True", "=False", -2.0), {"dry_run": True}),
    ],
)
def test_a_flag_stays_if_the_model_was_certain(said, rival, expected):
    assert keep_certain_arguments(said, "list_files(folder='/',", " dry", "_run", rival, ")", dry_run=True) == expected


@pytest.mark.parametrize(
    ("said", "value", "expected"),
    [
        ("List /", 5, {}),
        ("List 5 of /", 5, {"limit": 5}),
        ("List five of /", 5, {"limit": 5}),
        ("List /", 10, {"limit": 10}),
    ],
)
def test_a_number_stays_if_it_is_mentioned_or_the_default(said, value, expected):
    piece = (str(value), "1", -1.0) if value == 5 else "10"
    assert keep_certain_arguments(said, "list_files(folder='/', limit", "=", piece, ")", limit=value) == expected


def test_a_description_can_state_the_default():
    assert keep_certain_arguments("List /", "list_files(style='", ("long", "short", -0.7), "')", style="long") == {}
    assert keep_certain_arguments("List /", "list_files(style='", ("long", "wide", -0.7), "')", style="long") == {
        "style": "long"
    }
    assert keep_certain_arguments("List /", "list_files(hidden", ("=True", "=False", -0.7), ")", hidden=True) == {}
    assert keep_certain_arguments("列出根目录", "list_files(units='", ("千", "兆", -0.7), "')", units="千") == {}


def test_what_may_stand_within_a_text_is_not_looked_at():
    tokens = ("list_files(style='sort_order=", ("asc", "desc", -0.7), "', sort_order='", "desc", "')")
    assert keep_certain_arguments("List /", *tokens, sort_order="desc") == {"sort_order": "desc"}


def test_a_value_without_a_default_or_tokens_stays():
    assert keep_certain_arguments("List /", "list_files(depth=", ("3", "None", -0.7), ")", depth=3) == {"depth": 3}
    assert keep_certain_arguments("List /", "list_files()", dry_run=True) == {"dry_run": True}
    assert keep_certain_arguments("List /", dry_run=True) == {"dry_run": True}
