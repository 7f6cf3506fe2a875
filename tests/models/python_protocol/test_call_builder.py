"""Calls read from Python code that a model wrote."""

import pytest

from opposable.domain.tools import ToolDefinition
from opposable.models.python_protocol.call_builder import build_calls, is_ungrounded, replace_argument
from opposable.models.python_protocol.python_call_parser import CodeCall, parse_calls

TEXT = {"type": "string"}
NUMBER = {"type": "integer"}
TOOLS = (
    ToolDefinition(
        "book",
        "Book a room.",
        {
            "type": "object",
            "properties": {
                "note": TEXT,
                "hotel": TEXT,
                "nights": NUMBER,
                "day": TEXT,
                "board": {"type": "string", "enum": ["none", "Breakfast", "full board"]},
                "guests": {"type": "array", "items": TEXT},
                "extras": {"type": "object", "properties": {"size": {"type": "string", "enum": ["small", "large"]}}},
                "smoking": {"type": ["boolean", "null"]},
            },
            "required": ["hotel", "nights"],
        },
    ),
    ToolDefinition("price", "The price of a room.", {"type": "object", "properties": {"hotel": TEXT}}),
)
ORDER = {"f": ("a", "b"), "g": ("x",), "a_b": ()}


@pytest.mark.parametrize(
    ("code", "calls"),
    [
        ("f(1, b='x')", [("f", {"a": 1, "b": "x"})]),
        ("r = f(a=1)\nprint(r)", [("f", {"a": 1})]),
        ("print(f(a='奥斯陆'))", [("f", {"a": "奥斯陆"})]),
        ("body = {'k': [1, -2.5]}\nf(body)", [("f", {"a": {"k": [1, -2.5]}})]),
        ("f(a='q', b=f'{a}-{a}/x')", [("f", {"a": "q", "b": "q-q/x"})]),
        ("f(a=5 * 12 + 10, b='x' + 'y')", [("f", {"a": 70, "b": "xy"})]),
        ("for c in ['x', 'y']:\n    g(x=c)", [("g", {"x": "x"}), ("g", {"x": "y"})]),
        ("[g(x=1), g(x=2)]", [("g", {"x": 1}), ("g", {"x": 2})]),
        ("f({'a': 1, 'b': 2})", [("f", {"a": 1, "b": 2})]),
        ("f(**{'a': 1})", [("f", {"a": 1})]),
        ("f(a=true, b=null)", [("f", {"a": True, "b": None})]),
        ("f(a=(1, 2), b=dict(k=1))", [("f", {"a": [1, 2], "b": {"k": 1}})]),
        ("a.b()", [("a_b", {})]),
        ("f(a=today())", [("f", {"a": "today()"})]),
        ("x = g(x=1)\nf(a=x)", [("g", {"x": 1})]),
        ("f(a=g(x=1))", [("g", {"x": 1})]),
        ("g(x=1)\nf(a=g(x=1))", [("g", {"x": 1})]),
        ("g(x=1)\nf(a=g(x=2))", [("g", {"x": 1}), ("g", {"x": 2})]),
        ("g(x=1)\ng(x=1)", [("g", {"x": 1}), ("g", {"x": 1})]),
        ("def f(a):\n    return g(x=a)", []),
        ("import os\nos.system('x')", []),
        ("pass", []),
        ("# f(a=1)", []),
        ("f(a=9 ** 9 ** 9)", [("f", {"a": "9 ** 9 ** 9"})]),
        ("f(a=1 / 0)", [("f", {"a": "1 / 0"})]),
        ("f(", None),
        ("f(a=07)", None),
        ("(" * 5000, None),
        ("\0", None),
    ],
)
def test_code_is_read_without_being_run(code, calls):
    found = parse_calls(code, ORDER)
    assert (found if found is None else [(call.name, call.arguments) for call in found]) == calls


@pytest.mark.parametrize(
    ("code", "made"),
    [
        ("emagnetic_force(charge=5, distance=3)", 1),
        ("electromagnetic_force(charge=5, distance=3)", 1),
        ("emagnetic_force(5, 3)", 0),
        ("emagnetic_force(charge=5, colour=3)", 0),
        ("emagnetic_force()", 0),
        ("extromagnetic_force(charge=5, distance=3)", 0),
        ("force(charge=5, distance=3)", 0),
    ],
)
def test_a_name_with_letters_left_out_is_the_one_that_has_them(code, made):
    calls = parse_calls(code, {"electromagnetic_force": ("charge", "distance"), "electric_force": ("voltage",)})
    assert [(call.name, call.arguments) for call in calls] == [
        ("electromagnetic_force", {"charge": 5, "distance": 3})
    ] * made
    assert all(bool(call.repairs) == code.startswith("em") for call in calls)


@pytest.mark.parametrize(
    "pair", ["lock unlock", "activate deactivate", "visible invisible", "do undo", "user superuser"]
)
def test_a_function_is_not_called_for_its_opposite(pair):
    for form in ("{}_door", "door_{}", "set_{}_door"):
        asked, offered = (form.format(name) for name in pair.split())
        assert parse_calls(f'{asked}(door="front")', {offered: ("door",)}) == []


def test_a_long_number_keeps_its_digits():
    [call] = build_calls("f(n=12345678901234567890123)", [ToolDefinition("f", "", {"properties": {"n": NUMBER}})], "")
    assert '"n":12345678901234567890123' in replace_argument(call, "c", "z").arguments_json.replace(" ", "")


def test_numbers_too_long_to_write_out_are_no_failure():
    tool = ToolDefinition("f", "", {"properties": {"r": {"type": "number", "description": "as a decimal"}}})
    for number in ("1e999", "0x" + "f" * 4000, "9" * 400, "[" + "0x" + "f" * 4000 + " for i in x]"):
        assert isinstance(build_calls(f"f(r={number})", [tool], "10 %"), tuple)


def test_a_call_knows_its_line():
    assert parse_calls("# two\ng(1)\n\ng(x=2)", ORDER) == [CodeCall("g", {"x": 1}, 2), CodeCall("g", {"x": 2}, 4)]


def test_a_loop_over_many_things_ends():
    assert len(parse_calls("for x in [" + "1," * 500 + "]:\n    g(x)", ORDER)) == 64


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        ('book("Astoria", 2)', {"hotel": "Astoria", "nights": 2}),
        ('book(hotel="Astoria", nights="2", note=None)', {"hotel": "Astoria", "nights": 2}),
        ('book(hotel="A", nights=2, smoking=None)', {"hotel": "A", "nights": 2, "smoking": None}),
        ('book(hotel="A", nights=2, board="breakfasts")', {"hotel": "A", "nights": 2, "board": "Breakfast"}),
        ('book(hotel="A", nights=2, board="sauna")', {"hotel": "A", "nights": 2, "board": "sauna"}),
        (
            'book(hotel="A", nights=2, extras={"size": "Large"})',
            {"hotel": "A", "nights": 2, "extras": {"size": "large"}},
        ),
        ('book(hotel="A", nights=2, day="2023-04-01")', {"hotel": "A", "nights": 2}),
        ('book(hotel="A", nights=2, day="May 5th")', {"hotel": "A", "nights": 2, "day": "May 5th"}),
        ('book(hotel="A", nights=07)', {"hotel": "A", "nights": 7}),
    ],
)
def test_arguments_get_their_types_and_lose_what_was_made_up(code, arguments):
    [call] = build_calls(code, TOOLS, "Two nights in the Astoria from the fifth of May")
    assert (call.name, call.arguments) == ("book", arguments)


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        ('book(hotel="A", nights=2, colour="red")', {"hotel": "A", "nights": 2}),
        ('book(hotel="A", nights=2, smokin=True)', {"hotel": "A", "nights": 2, "smokin": True}),
        ('book(hotel="A", colour="red")', {"hotel": "A", "colour": "red"}),
        ('book(hotel="A", nights=2, board="a morning meal")', {"hotel": "A", "nights": 2, "board": "full board"}),
        ('book(hotel="A", nights=2, board="BREAKFAST")', {"hotel": "A", "nights": 2, "board": "Breakfast"}),
    ],
    ids=["unknown", "perhaps a wrong name", "something is missing", "the choice asked for", "the choice written"],
)
def test_arguments_that_a_function_does_not_have_are_repaired(code, arguments):
    [call] = build_calls(code, TOOLS, "", "Two nights at A with full board")
    assert call.arguments == arguments


@pytest.mark.parametrize(
    ("written", "said", "value"),
    [
        (r"'C:\new\table'", r"open C:\new\table", r"C:\new\table"),
        (r"'C:\\new'", r"open C:\new", r"C:\new"),
        (r"r'C:\new'", r"open C:\new", r"C:\new"),
        (r"'a\nb'", "two lines, a and b", "a\nb"),
        (r"'\\\\srv\\x'", r"open \\srv\x", r"\\srv\x"),
    ],
)
def test_backslashes_are_taken_as_the_request_has_them(written, said, value):
    assert parse_calls(f"g(x={written})", ORDER, said) == [CodeCall("g", {"x": value}, 1)]


def test_arguments_are_put_into_the_only_object_they_belong_to():
    body = {"type": "object", "properties": {"mode": TEXT, "degrees": NUMBER}}
    tool = ToolDefinition("cool", "", {"type": "object", "properties": {"body": body}, "required": ["body"]})
    [call] = build_calls("cool(mode='dry', degrees=20)", (tool,), "")
    assert call.arguments == {"body": {"mode": "dry", "degrees": 20}}


@pytest.mark.parametrize(
    ("description", "said", "written", "value"),
    [
        ("the yield as a percentage", "5% a year", 0.05, 5.0),
        ("the yield as a percentage", "2.5 percent", 0.025, 2.5),
        ("the yield as a percentage", "half a percent, 0.5 %", 0.5, 0.5),
        ("the yield as a percentage", "5% a year", 5, 5),
        ("the yield as a percentage", "a yield of 0.05", 0.05, 0.05),
        ("the rate as a decimal", "5% a year", 5, 0.05),
        ("the rate as a decimal", "5% a year", 0.05, 0.05),
        ("a percentage as a decimal", "5% a year", 5, 5),
        ("the rate", "5% a year", 5, 5),
    ],
)
def test_per_cent_are_given_as_the_description_wants_them(description, said, written, value):
    rate = {"type": "number", "description": description}
    tool = ToolDefinition("grow", "", {"type": "object", "properties": {"rate": rate}, "required": ["rate"]})
    [call] = build_calls(f"grow(rate={written})", (tool,), said)
    assert call.arguments == {"rate": value}


def test_a_list_of_decimals_has_items_of_one_type():
    points = {"type": "array", "items": {"type": "array", "items": {"type": "number"}}}
    counts = {"type": "array", "items": {"type": "integer"}}
    tool = ToolDefinition("plot", "", {"type": "object", "properties": {"points": points, "counts": counts}})
    [call] = build_calls("plot(points=[(1, 2.5)], counts=[1, 2.0])", (tool,), "")
    assert call.arguments_json == '{"points":[[1.0,2.5]],"counts":[1,2]}'


@pytest.mark.parametrize(
    ("about", "written", "value"),
    [
        ("The day, as MM-DD-YYYY", "2022/08/16", "08-16-2022"),
        ("day/month/year", "August 6th, 2022", "06/08/2022"),
        ("格式 YYYY-MM-DD", "2022年8月16日", "2022-08-16"),
        ("YYYY-MM-DD", "2 Mar 2022", "2022-03-02"),
        ("YYYY-MM-DD", "2022-8-6", "2022-08-06"),
        ("YYYY-MM-DD", "03/04/2022", "03/04/2022"),
        ("MM/DD/YYYY or YYYY-MM-DD", "2022-08-16", "2022-08-16"),
        ("DD/MM/YYYY", "2022-13-40", "2022-13-40"),
        ("DD/MM/YYYY", "Mayor", "Mayor"),
        ("The day", "2022/08/16", "2022/08/16"),
        ("in the format of 'YYYY-MM-DD HH:mm:ss'", "2022-08-16 16:00", "2022-08-16 16:00:00"),
        ("YYYY-MM-DDTHH:MM:SS", "2022-08-16T16:00", "2022-08-16T16:00:00"),
        ("YYYY-MM-DD HH:mm", "2022-08-16 16:00", "2022-08-16 16:00"),
    ],
)
def test_dates_are_given_as_the_description_wants_them(about, written, value):
    tool = ToolDefinition("on", "", {"type": "object", "properties": {"day": {"type": "string", "description": about}}})
    [call] = build_calls(f"on(day={written!r})", (tool,), written)
    assert call.arguments == {"day": value}


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        ('note(title="Rain", slug="rain")', {"title": "Rain"}),
        ('note(title="Rain", slug="Rain, rain")', {"title": "Rain"}),
        ('note(title="Rain", slug="a rain")', {"title": "Rain", "slug": "a rain"}),
        ('note(title="Rain", lang="English")', {"title": "Rain", "lang": "English"}),
        ('note(title="Rain", by="Rain")', {"title": "Rain", "by": "Rain"}),
        ('note(title="Rain 7", slug="7")', {"title": "Rain 7", "slug": "7"}),
        ('note(title="Rain", unit="metres")', {"title": "Rain"}),
        ('note(title="Rain", unit="numbers")', {"title": "Rain", "unit": "numbers"}),
    ],
    ids=["once", "twice", "more", "unsaid", "without a default", "a number", "a choice unsaid", "a choice said"],
)
def test_an_optional_text_that_repeats_what_was_said_once_is_left_to_its_default(code, arguments):
    text = {"type": "string"}
    unit = {**text, "enum": ["metres", "numbers"], "default": "none"}
    properties = {
        "unit": unit,
        "title": text,
        "lang": {**text, "default": "en"},
        "slug": {**text, "default": None},
        "by": text,
    }
    tool = ToolDefinition("note", "", {"type": "object", "properties": properties, "required": ["title"]})
    [call] = build_calls(code, (tool,), "A note on rain: number 7")
    assert call.arguments == arguments


@pytest.mark.parametrize(
    ("code", "nights"),
    [
        ("stay('A', 1)\nstay('B', 2)\nstay('A', 1)\nstay('B', 2)", [1, 2]),
        ("stay('A', 1)\nstay('A', 1)", [1, 1]),
        ("stay('A', 1)\nstay('A', 1)\nstay('B', 2)\nstay('B', 2)", [1, 1, 2, 2]),
        ("stay('A', 1)\nstay('B', 2)\nstay('A', 1)", [1, 2, 1]),
    ],
    ids=["twice round", "one twice", "each twice", "back again"],
)
def test_a_second_round_of_the_same_calls_is_left_out(code, nights):
    properties = {"hotel": {"type": "string"}, "nights": {"type": "integer"}}
    tool = ToolDefinition("stay", "", {"type": "object", "properties": properties})
    assert [call.arguments["nights"] for call in build_calls(code, (tool,), "A, B")] == nights


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("book(city='Oslo')", "weather"),
        ("book(city='Oslo', nights=2)", "book"),
        ("book(town='Oslo')", "book"),
        ("book()", "book"),
    ],
    ids=["only the other takes it", "it takes some", "none takes it", "nothing given"],
)
def test_a_call_is_of_the_function_that_takes_its_arguments(code, name):
    text = {"type": "string"}
    tools = (
        ToolDefinition("book", "", {"type": "object", "properties": {"nights": {"type": "integer"}}}),
        ToolDefinition("weather", "", {"type": "object", "properties": {"city": text}, "required": ["city"]}),
    )
    assert [call.name for call in build_calls(code, tools, "Oslo")] == [name]


def test_one_bad_line_does_not_spoil_the_others():
    calls = build_calls('price(hotel="A")\nprice(hotel="B"))\nprice(hotel="C")', TOOLS, "")
    assert [call.arguments["hotel"] for call in calls] == ["A", "C"]


@pytest.mark.parametrize(
    ("doubtful", "names"),
    [((), ["price", "book"]), ((1,), ["book"]), ((2,), ["price"]), ((1, 2), ["price", "book"])],
)
def test_doubtful_calls_are_left_out_if_there_are_certain_ones(doubtful, names):
    calls = build_calls('price(hotel="A")\nbook(hotel="A", nights=2)', TOOLS, "", doubtful_lines=doubtful)
    assert [call.name for call in calls] == names


@pytest.mark.parametrize(
    ("said", "names"),
    [("The best one for two nights", ["price"]), ("H-7 for two nights", ["price", "book"])],
    ids=["nobody named it", "named"],
)
def test_a_call_of_a_made_up_id_waits_for_the_other_tools_result(said, names):
    calls = build_calls('price()\nbook(hotel="H-7", nights=2)', TOOLS, said)
    assert [call.name for call in calls] == names


def test_ungrounded_calls_of_one_tool_alone_stay():
    calls = build_calls('book(hotel="H-1", nights=2)\nbook(hotel="H-2", nights=2)', TOOLS, "Two rooms")
    assert [call.arguments["hotel"] for call in calls] == ["H-1", "H-2"]


def test_calls_that_differ_in_ungrounded_values_are_one():
    code = 'price(hotel="A-1")\nprice(hotel="A-2")\nprice(hotel="A-3")'
    assert [call.arguments_json for call in build_calls(code, TOOLS, "The prices?")] == ["{}"]
    assert len(build_calls("price()\nprice()", TOOLS, "The price, twice")) == 2, "written so, it is meant"
    dice = ToolDefinition("roll", "Roll a die.", {"properties": {"sides": NUMBER}, "required": ["sides"]})
    assert len(build_calls("roll(sides=6, die='red')\nroll(sides='6', die='blue')", [dice], "Roll two dice")) == 2


@pytest.mark.parametrize(
    "stray",
    [
        "p price",
        "calls: price",
        "- price",
        "`price",
        "1. price",
        "* price",
        "2、price",
        "首先：price",
        "Then price",
        "Step 1: price",
    ],
)
def test_a_stray_letter_before_a_call_does_not_hide_it(stray):
    [call] = build_calls(f'{stray}(hotel="A")', TOOLS, "What does the A cost?")
    assert call.arguments_json == '{"hotel":"A"}'


@pytest.mark.parametrize(
    "line",
    [
        "# not needed: book()",
        "no book()",
        "if book()",
        "不 book()",
        "I did not call book()",
        "x.book()",
        "os.book()",
        "'book()'",
        "I will not call: book()",
    ],
)
def test_a_call_that_is_only_spoken_of_is_none(line):
    calls = build_calls(f'price(hotel="A")\n{line}\nHere it is', TOOLS, "What does the A cost?")
    assert [call.name for call in calls] == ["price"]


@pytest.mark.parametrize("line", ['print(price(hotel="A"))', '[price(hotel="A"), price(hotel="B")]'])
def test_a_line_of_calls_between_prose_is_parsed_whole(line):
    assert len(build_calls(f"Here you go\n{line}", TOOLS, "What do A and B cost?")) == line.count("price")


@pytest.mark.parametrize(
    ("said", "given"),
    [("A three star hotel", {"stars": "3"}), ("三星级酒店", {"stars": "3"}), ("A hotel", {}), ("4 stars?", {})],
)
def test_a_number_may_be_said_in_words(said, given):
    stars = {"type": "object", "properties": {"stars": {"type": "string"}}}
    [call] = build_calls('find(stars="3")', [ToolDefinition("find", "Find a hotel.", stars)], said)
    assert call.arguments == given


DISHES = ToolDefinition(
    "recipe",
    "Find a recipe.",
    {
        "type": "object",
        "properties": {
            "dish": TEXT,
            "diet": {"type": "string", "default": "none", "description": "A diet, like vegan or kosher"},
            "style": {"type": "string", "default": "none", "description": "A style of cooking"},
            "country": {"type": "integer", "description": "1 for India, 2 for Peru"},
        },
        "required": ["dish"],
    },
)


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        ('recipe(dish="vegan cake", diet="vegan")', {"dish": "vegan cake", "diet": "vegan"}),
        ('recipe(dish="vegan cake", style="vegan")', {"dish": "vegan cake"}),
        ('recipe(dish="cake", country=2, style="Peru")', {"dish": "cake", "country": 2}),
        ('recipe(dish="cake", country=1, style="Peru")', {"dish": "cake", "country": 1, "style": "Peru"}),
    ],
    ids=["named by the description", "not named", "said by a number", "the number says another"],
)
def test_a_repeated_text_stays_if_its_description_names_it(code, arguments):
    [call] = build_calls(code, [DISHES], "A vegan cake as they have it in Peru")
    assert call.arguments == arguments


def test_doubtful_calls_of_one_tool_alone_stay():
    assert len(build_calls('price(hotel="A")\nprice(hotel="B")', TOOLS, "", doubtful_lines={2})) == 2


def test_what_the_token_limit_cut_off_is_left_out():
    calls = build_calls('price(hotel="A")\nprice(hotel="B', TOOLS, "", is_truncated=True)
    assert [call.arguments_json for call in calls] == ['{"hotel":"A"}']


@pytest.mark.parametrize(
    ("value", "said", "is_so"),
    [
        ("2023-04-01", "today", True),
        ("2023-04-01", "on 1 April 2023", False),
        ("2023-09-30", "today is 20230929", False),
        ("Room 7", "a room", False),
        ("blue", "red", False),
    ],
)
def test_a_value_is_made_up_where_it_has_numbers_and_nothing_of_it_was_said(value, said, is_so):
    assert is_ungrounded(value, said.split()) is is_so
