"""A family the reader does not know is taught as data, from a model's own response template too."""

from opposable.parsers import StreamParser, aliases_from_template

TOOLS = [{"name": "greet", "parameters": {"type": "object", "properties": {"who": {"type": "string"}}}}]
TEMPLATE = {
    "defaults": {"role": "assistant"},
    "start_anchor": "<|bot|>",
    "fields": {
        "thinking": {"open": "[[reason]]", "close": "[[/reason]]", "content": "text"},
        "tool_calls": {"open": ["{{call}}", "{{CALL}}"], "close": "{{/call}}", "repeats": True, "content": "json"},
        "content": {"close": "<|stop|>", "content": "text"},
    },
}
TEXT = '[[reason]]Be kind.[[/reason]]Hello. {{call}}{"name": "greet", "arguments": {"who": "Ann"}}{{/call}}'


def test_a_response_template_is_loaded_as_data():
    assert aliases_from_template(TEMPLATE) == {
        "[[reason]]": "<think>",
        "[[/reason]]": "</think>",
        "{{call}}": "<tool_call>",
        "{{CALL}}": "<tool_call>",
        "{{/call}}": "</tool_call>",
    }


def test_what_the_reader_knows_needs_no_alias():
    fields = {
        "thinking": {"open": "<think>", "close": "</think>"},
        "tool_calls": {"open_pattern": "<function=(?P<name>.+)>"},
    }
    assert aliases_from_template({"fields": fields}) == {}
    assert aliases_from_template({}) == {}


def test_a_taught_family_is_read_however_the_stream_is_cut():
    for size in (1, 3, len(TEXT)):
        reader = StreamParser(TOOLS, aliases=aliases_from_template(TEMPLATE))
        for start in range(0, len(TEXT), size):
            reader.feed(TEXT[start : start + size])
        reading = reader.close()
        assert (reading.thinking, reading.text) == ("Be kind.", "Hello.")
        assert [(call.name, call.arguments) for call in reading.calls] == [("greet", {"who": "Ann"})]
