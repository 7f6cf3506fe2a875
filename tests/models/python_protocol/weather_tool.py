"""A tool with a required and an optional argument, a list and an object."""

from opposable.domain.tools import ToolDefinition

WEATHER = ToolDefinition(
    "get_weather",
    "The weather in a city.",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "the city's name"},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
            "days": {"type": "array", "items": {"type": "integer"}},
            "place": {
                "type": "object",
                "properties": {"lat": {"type": "number", "description": "degrees"}},
                "required": ["lat"],
            },
        },
        "required": ["city"],
    },
)
