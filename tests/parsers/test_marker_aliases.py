"""Aliases add a model family as data, also from a model's response template."""

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


def test_known_markers_need_no_alias():
    fields = {
        "thinking": {"open": "<think>", "close": "</think>"},
        "tool_calls": {"open_pattern": "<function=(?P<name>.+)>"},
    }
    assert aliases_from_template({"fields": fields}) == {}
    assert aliases_from_template({}) == {}


def test_a_family_added_by_aliases_is_parsed_however_the_stream_is_split():
    for size in (1, 3, len(TEXT)):
        parser = StreamParser(TOOLS, aliases=aliases_from_template(TEMPLATE))
        for start in range(0, len(TEXT), size):
            parser.feed(TEXT[start : start + size])
        result = parser.close()
        assert (result.thinking, result.text) == ("Be kind.", "Hello.")
        assert [(call.name, call.arguments) for call in result.calls] == [("greet", {"who": "Ann"})]
