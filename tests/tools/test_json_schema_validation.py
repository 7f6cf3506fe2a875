"""Arguments against schemas that came as data."""

import pytest

from opposable.domain.errors import BadInput, FieldProblem, InvalidArguments
from opposable.tools.json_schema_validation import compile_validator

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer", "minimum": 1, "maximum": 7},
        "unit": {"enum": ["C", "F"]},
        "tags": {"type": "array", "items": {"type": ["number", "null"]}},
        "at": {
            "type": "object",
            "properties": {"x": {"type": "number", "exclusiveMinimum": 0}},
            "required": ["x"],
            "additionalProperties": False,
        },
        "kind": {"const": 4},
    },
    "required": ["city"],
    "additionalProperties": False,
}

PROBLEMS = [
    ({}, [FieldProblem("city", "is required")]),
    ({"city": 5}, [FieldProblem("city", "must be a valid string", "5")]),
    ({"city": "x", "days": "many"}, [FieldProblem("days", "must be a valid integer", '"many"')]),
    ({"city": "x", "days": 0}, [FieldProblem("days", "must be greater than or equal to 1", "0")]),
    ({"city": "x", "days": 9}, [FieldProblem("days", "must be less than or equal to 7", "9")]),
    ({"city": "x", "unit": "K"}, [FieldProblem("unit", 'must be "C" or "F"', '"K"')]),
    ({"city": "x", "kind": 5}, [FieldProblem("kind", "must be 4", "5")]),
    ({"city": "x", "tags": [1, "y"]}, [FieldProblem("tags.1", "must be a valid number or null", '"y"')]),
    ({"city": "x", "at": {}}, [FieldProblem("at.x", "is required")]),
    ({"city": "x", "at": {"x": 0}}, [FieldProblem("at.x", "must be greater than 0", "0")]),
    ({"city": "x", "at": {"x": 1, "z": 2}}, [FieldProblem("at.z", "there is no such parameter; take it out", "2")]),
    (
        {"city": "x", "wind": True},
        [
            FieldProblem(
                "wind",
                "there is no such parameter; the parameters are city, days, unit, tags, at, kind",
                "true",
            )
        ],
    ),
]


@pytest.mark.parametrize(("arguments", "problems"), PROBLEMS)
def test_each_problem_is_reported_by_field(arguments, problems):
    with pytest.raises(InvalidArguments) as raised:
        compile_validator(SCHEMA)(arguments)
    assert list(raised.value.problems) == problems


ITEM = {"type": "object", "properties": {"sku": {"type": "string"}, "n": {"type": "integer"}}, "required": ["sku"]}
EXPIRY = {"type": "object", "properties": {"month": {"type": "integer", "maximum": 12}}, "required": ["month"]}
CARD = {"type": "object", "properties": {"kind": {"const": "card"}, "exp": EXPIRY}, "required": ["kind", "exp"]}
IBAN = {
    "type": "object",
    "properties": {"kind": {"const": "iban"}, "iban": {"type": "string"}},
    "required": ["kind", "iban"],
}
VALUES = [
    (
        {"oneOf": [CARD, IBAN]},
        {"kind": "card", "exp": {"month": 13}},
        ("exp.month", "must be less than or equal to 12"),
    ),
    ({"oneOf": [IBAN, CARD, {"type": "null"}]}, {"kind": "card"}, ("exp", "is required")),
    ({"anyOf": [{"type": "string"}, {"oneOf": [CARD, IBAN]}]}, {"kind": "iban"}, ("iban", "is required")),
    ({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, {}, ("", "must have a or b")),
    ({"anyOf": [{"type": "integer"}, {"type": "boolean"}]}, "k", ("", "must be a valid integer or a valid boolean")),
    ({"type": "string", "minLength": 3}, "x", ("", "must have at least 3 characters")),
    ({"type": "array", "maxItems": 1}, [1, 2], ("", "must have at most 1 item")),
    ({"type": "string", "pattern": "^x"}, "y", ("", "must match the pattern ^x")),
    ({"type": "array", "items": {"type": "integer"}}, 3, ("", "must be a list of integers")),
    ({"type": "array", "items": ITEM}, "x", ("", "must be a list of objects with sku (string), n (integer, optional)")),
    (ITEM, "x", ("", "must be an object with sku (string), n (integer, optional)")),
    ({"type": "object"}, "x", ("", "must be a valid dictionary")),
]


@pytest.mark.parametrize(("schema", "value", "problem"), VALUES)
def test_the_alternative_that_is_meant_and_the_shape_are_reported(schema, value, problem):
    with pytest.raises(InvalidArguments) as raised:
        compile_validator({"type": "object", "properties": {"o": schema}})({"o": value})
    [found] = raised.value.problems
    assert (found.field.removeprefix("o").removeprefix("."), found.problem) == problem
    assert found.problem.chinese


def test_problems_are_also_reported_in_chinese():
    schema = {"enum": ["p", "q"]}
    with pytest.raises(InvalidArguments) as raised:
        compile_validator({"type": "object", "properties": {"o": schema, "l": {"type": "array", "items": ITEM}}})(
            {"o": "z", "l": 1}
        )
    assert [problem.problem.chinese for problem in raised.value.problems] == [
        '必须是 "p" 或 "q"',
        "必须是 数组，元素为对象，包含 sku（字符串）、n（整数，可选）",
    ]


def test_valid_arguments_pass():
    compile_validator(SCHEMA)({"city": "北京", "days": 3, "unit": "C", "tags": [1.5, None], "at": {"x": 1}})
    compile_validator({"properties": {}})({"anything": 1})


def test_null_fits_where_the_schema_says_nullable():
    text = {"type": "string", "nullable": True}
    properties = {
        "due": text,
        "kinds": {"type": "array", "items": {"enum": ["a"], "nullable": True}},
        "name": {"type": "string"},
    }
    validate = compile_validator({"type": "object", "properties": properties})
    assert validate({"due": None, "kinds": [None]}) == {"due": None, "kinds": [None]}
    with pytest.raises(InvalidArguments):
        validate({"due": None, "name": None})


UNIT = {"type": ["string", "null"], "enum": ["celsius", "fahrenheit"]}
ENUMS = [
    (UNIT, None, True),
    (UNIT, "celsius", True),
    (UNIT, "kelvin", False),
    (UNIT, 5, False),
    ({"type": "array", "items": UNIT}, [None], True),
    ({"$ref": "#/$defs/unit"}, None, True),
    ({"type": ["string", "null"], "const": "celsius"}, None, True),
    ({"type": "string", "enum": ["celsius"]}, None, False),
    ({"type": ["object", "null"], "properties": {"unit": {"type": "string"}}}, {"unit": None}, False),
    ({"type": "boolean", "enum": ["true", "false"]}, True, True),
    ({"type": "boolean", "enum": ["true", "false"]}, "true", False),
    ({"type": "integer", "enum": ["1", "2"]}, 1, True),
    ({"type": "string", "enum": [1, 2]}, "1", True),
    ({"$ref": "#/$defs/flag"}, False, True),
    ({"type": ["integer", "string"], "enum": ["1", "2"]}, 1, False),
    ({"type": "number", "enum": [1, 2]}, 3, False),
    ({"enum": ["true", "false"]}, True, False),
]


@pytest.mark.parametrize(("schema", "value", "fits"), ENUMS)
def test_an_enum_limits_the_values_of_the_declared_type_that_it_names(schema, value, fits):
    definitions = {"unit": UNIT, "flag": {"type": "boolean", "enum": ["true", "false"]}}
    validate = compile_validator({"type": "object", "properties": {"x": schema}, "$defs": definitions})
    if fits:
        assert validate({"x": value}) == {"x": value}
        return
    with pytest.raises(InvalidArguments):
        validate({"x": value})


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "object", "properties": {"due": {"type": "string", "default": None}}}, {"due": None}),
        (
            {"type": "array", "items": {"properties": {"due": {"$ref": "#/$defs/day", "default": None}}}},
            [{"due": None}],
        ),
        ({"type": "object", "properties": {"size": {"enum": ["S", "M"], "default": "any"}}}, {"size": "any"}),
    ],
)
def test_the_declared_default_of_a_nested_value_fits(schema, value):
    parameters = {"type": "object", "properties": {"order": schema}, "$defs": {"day": {"type": "string"}}}
    assert compile_validator(parameters)({"order": value}) == {"order": value}


def test_a_value_that_is_not_the_default_does_not_fit():
    order = {"type": "object", "properties": {"done": {"type": "string", "default": 0}}}
    with pytest.raises(InvalidArguments):
        compile_validator({"type": "object", "properties": {"order": order}})({"order": {"done": False}})


@pytest.mark.parametrize("name", ["$ref", "default", "nullable", "anyOf"])
def test_a_property_may_be_named_like_a_keyword(name):
    with pytest.raises(InvalidArguments):
        compile_validator({"type": "object", "properties": {name: {"type": "string"}}})({name: None})


def test_a_value_fits_one_of_that_overlaps():
    size = {"oneOf": [{"type": "integer"}, {"type": "number"}]}
    name = {"oneOf": [{"type": "string"}, {"enum": ["a"]}]}
    target = {"oneOf": [{"required": ["host"]}, {"required": ["ip"]}]}
    parameters = {"type": "object", "properties": {"size": size, "name": name, "target": target}}
    validate = compile_validator(parameters)
    assert validate({"size": 1, "name": "a"}) == {"size": 1, "name": "a"}
    with pytest.raises(InvalidArguments):
        validate({"target": {"host": "a", "ip": "b"}})


OPTIONAL_A = {"type": "object", "properties": {"a": {"type": "string"}}}
OPTIONAL_B = {"type": "object", "properties": {"b": {"type": "string"}}}


@pytest.mark.parametrize(
    ("alternatives", "fits"),
    [
        ([OPTIONAL_A, OPTIONAL_B], True),
        ([{"$ref": "#/$defs/a"}, OPTIONAL_B], True),
        ([{"allOf": [{"$ref": "#/$defs/a"}]}, OPTIONAL_B], True),
        ([{**OPTIONAL_A, "required": ["a"]}, OPTIONAL_B], True),
        ([{**OPTIONAL_A, "required": ["a"]}, {"allOf": [{"$ref": "#/$defs/a"}], "minProperties": 1}], False),
        ([{**OPTIONAL_A, "additionalProperties": False}, {"type": "object", "required": ["a"]}], False),
    ],
)
def test_an_object_fits_alternatives_that_nothing_separates(alternatives, fits):
    parameters = {"type": "object", "properties": {"x": {"oneOf": alternatives}}, "$defs": {"a": OPTIONAL_A}}
    validate = compile_validator(parameters)
    if fits:
        assert validate({"x": {"a": "q"}}) == {"x": {"a": "q"}}
    else:
        with pytest.raises(InvalidArguments):
            validate({"x": {"a": "q"}})
    with pytest.raises(InvalidArguments):
        validate({"x": 5})


@pytest.mark.parametrize(
    "reference",
    [
        {"$ref": "#/$defs/user"},
        {"allOf": [{"$ref": "#/$defs/user"}]},
        {"oneOf": [{"$ref": "#/$defs/user"}, {"type": "string"}]},
    ],
)
def test_null_fits_where_a_nullable_schema_refers_to_others(reference):
    definitions = {"user": {"type": "object", "properties": {"id": {"type": "integer"}}}}
    properties = {"owner": reference | {"nullable": True}, "author": reference}
    validate = compile_validator({"type": "object", "properties": properties, "$defs": definitions})
    assert validate({"owner": None}) == {"owner": None}
    for wrong in ({"author": None}, {"owner": {"id": None}}):
        with pytest.raises(InvalidArguments):
            validate(wrong)


def test_a_list_of_choices_fits_where_the_list_has_the_enum():
    schema = {"type": "array", "items": {"type": "string"}, "enum": ["temperature", "humidity"]}
    validate = compile_validator({"type": "object", "properties": {"metrics": schema}})
    for metrics in ([], ["humidity"], ["temperature", "humidity"]):
        assert validate({"metrics": metrics}) == {"metrics": metrics}
    for wrong in ("humidity", ["noise"], [["humidity"]]):
        with pytest.raises(InvalidArguments):
            validate({"metrics": wrong})


@pytest.mark.parametrize(
    ("text_format", "text"),
    [
        ("date-time", "2026-11-22T09:00"),
        ("uri", "https://例子.中国/路径"),
        ("email", "jörg@exämple.de"),
        ("time", "09:00"),
    ],
)
@pytest.mark.parametrize("draft", [None, "http://json-schema.org/draft-07/schema#"])
def test_a_format_rejects_no_text_in_any_draft(draft, text_format, text):
    schema = {"type": "object", "properties": {"a": {"type": "string", "format": text_format}}}
    arguments = {"a": text}
    assert compile_validator(schema | ({"$schema": draft} if draft else {}))(arguments) == arguments


def test_nothing_is_fetched():
    with pytest.raises(BadInput, match=r"refers to http://127\.0\.0\.1:9/schema"):
        compile_validator({"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/schema"}}})


@pytest.mark.parametrize("name", ["节点", "List[User]", "Result<User>", "a b"])
def test_references_may_have_any_name(name):
    schema = {"properties": {"x": {"$ref": f"#/$defs/{name}"}}, "$defs": {name: {"type": "integer"}}}
    validate = compile_validator(schema)
    assert validate({"x": 1}) == {"x": 1}
    with pytest.raises(InvalidArguments):
        validate({"x": "a"})


def test_an_unknown_draft_is_read_as_the_default_one():
    schema = {"$schema": "https://spec.openapis.org/oas/3.1/dialect/base", "type": ["object", "null"]}
    assert compile_validator(schema)({"x": 1}) == {"x": 1}
