"""OpenAPI descriptions of responses that are text: streams of events, JSON lines, YAML."""

from typing import Any

EVENT_STREAM = "text/event-stream"
JSON_LINES = "application/x-ndjson"


def describe_text(media_type: str, description: str, example: str = "") -> dict[int | str, dict[str, Any]]:
    """Return the `responses` of a route whose success is a text of this type."""
    content: dict[str, Any] = {"schema": {"type": "string"}}
    if example:
        content["example"] = example
    return {200: {"description": description, "content": {media_type: content}}}
