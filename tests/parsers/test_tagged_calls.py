"""Values in tags arrive as they are written."""

import pytest
from tests.parsers.splits import parse_in_every_split

TEXT_OR_NUMBER = {"type": ["string", "number"]}
FORMS = {
    "qwen3-coder": "<tool_call>\n<function=save>\n<parameter=x>\n{}\n</parameter>\n</function>\n</tool_call>",
    "glm": "<tool_call>save\n<arg_key>x</arg_key>\n<arg_value>{}</arg_value>\n</tool_call>",
    "hunyuan": "<tool_call>save<tool_sep><arg_key>x</arg_key><arg_value>{}</arg_value></tool_call>",
    "invoke": '<function_calls>\n<invoke name="save">\n<parameter name="x">{}</parameter>\n</invoke>\n</function_calls>',
    "minimax": '<minimax:tool_call>\n<invoke name="save">\n<parameter name="x">{}</parameter>\n</invoke>\n</minimax:tool_call>',
    "minicpm": '<function name="save"><param name="x">{}</param></function>',
}


def get_value(form, written, schema):
    tool = {"name": "save", "parameters": {"type": "object", "properties": {"x": schema}, "required": ["x"]}}
    (call,) = parse_in_every_split(FORMS[form].format(written), [tool]).calls
    return call.arguments["x"]


@pytest.mark.parametrize("text", ["\nx\n", "\n\nx", "x\n\n", "\n", "\n\n", " x ", "x"])
@pytest.mark.parametrize("form", FORMS)
def test_the_line_breaks_of_a_text_are_part_of_it(form, text):
    assert get_value(form, text, {"type": "string"}) == text


NUMBERS = [
    *((written, written) for written in ("01067", "007", "00", "1.50", "+5", "1e3", "-0", ".5", "5.", " 5", "5 ")),
    *(("5", 5), ("-7", -7), ("1.5", 1.5), ("0", 0), ("12345678901234567890", 12345678901234567890)),
]


@pytest.mark.parametrize(("written", "value"), NUMBERS)
@pytest.mark.parametrize("schema", [TEXT_OR_NUMBER, {"anyOf": [{"type": "number"}, {"type": "string"}]}])
@pytest.mark.parametrize("form", ["qwen3-coder", "glm", "invoke"])
def test_a_number_where_text_is_allowed_is_one_only_if_no_character_is_lost(form, schema, written, value):
    found = get_value(form, written, schema)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(("written", "value"), [("01067", 1067), ("1.50", 1.5), ("1e3", 1000.0), ("\n5\n", 5)])
def test_a_number_may_be_written_in_any_way_where_text_is_not_allowed(written, value):
    assert get_value("invoke", written, {"type": "number"}) == value


@pytest.mark.parametrize(("allows_others", "arguments"), [(True, {"arguments": {"x": 1}}), (False, {"x": 1})])
def test_an_object_in_a_parameter_that_the_tool_allows_is_not_unwrapped(allows_others, arguments):
    parameters = {"type": "object", "properties": {"x": {}}, "additionalProperties": allows_others}
    text = FORMS["qwen3-coder"].replace("=x>", "=arguments>").format('{"x": 1}')
    (call,) = parse_in_every_split(text, [{"name": "save", "parameters": parameters}]).calls
    assert call.arguments == arguments
