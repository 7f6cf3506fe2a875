"""The JSON forms in which steps record replies and tool results."""

from dataclasses import asdict
from typing import Any

from opposable.domain.content import part_from_json, part_to_json
from opposable.domain.events import Reply, Token
from opposable.domain.json_forms import message_from_json, message_to_json
from opposable.domain.json_text import dump_json, parse_json
from opposable.domain.tools import ToolResult
from opposable.domain.usage import Usage

MAX_DATA_BYTES = 64_000
"""A larger value of a tool is not recorded; its text is."""


def reply_to_json(reply: Reply) -> dict[str, Any]:
    """Return a reply as JSON."""
    return {
        "message": message_to_json(reply.message, include_parsing=True),
        "finish": reply.finish,
        "usage": asdict(reply.usage),
        "tokens": [[token.text, token.alternatives] for token in reply.tokens],
    }


def reply_from_json(form: dict[str, Any]) -> Reply:
    """Return the reply of a form."""
    return Reply(
        message_from_json(form["message"]),
        form["finish"],
        Usage(**form["usage"]),
        tuple(Token(text, tuple((other, score) for other, score in others)) for text, others in form["tokens"]),
    )


def tool_result_to_json(result: ToolResult) -> dict[str, Any]:
    """Return a result as JSON, without a `data` that is large or not JSON."""
    form = {name: getattr(result, name) for name in ToolResult.__slots__}
    media = [part_to_json(part) for part in result.media]
    return form | {"repairs": list(result.repairs), "data": _to_json_value(result.data), "media": media}


def tool_result_from_json(form: dict[str, Any]) -> ToolResult:
    """Return the result of a form."""
    media = tuple(part_from_json(part) for part in form["media"])
    return ToolResult(**{**form, "repairs": tuple(form["repairs"]), "media": media})


def _to_json_value(value: Any) -> Any:
    try:
        encoded = dump_json(value)
        return parse_json(encoded.decode()) if len(encoded) <= MAX_DATA_BYTES else None
    except (TypeError, ValueError, RecursionError):
        return None
