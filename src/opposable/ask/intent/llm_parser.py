"""Asks a model for the intent that the rules could not settle, within the ids of the semantic model."""

import datetime
import json
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import ValidationError

from opposable.ask.intent.intent import (
    PERIOD,
    Comparison,
    Grain,
    IntentType,
    Operator,
    StructuredIntent,
    intent_problems,
    with_ids,
)
from opposable.ask.intent.rule_parser import Ruled
from opposable.ask.semantics.model import SemanticModel, Term
from opposable.domain.events import Reply
from opposable.domain.messages import system, user
from opposable.domain.usage import NO_USAGE, Usage
from opposable.models.base import Model, ModelOptions
from opposable.sql.schema import one_line

_MAX_LINES = 80

_INSTRUCTIONS = (
    "You read a question about data as JSON. Use only the ids listed below; never invent one. "
    "comparison: yoy = against the same period a year before (同比), qoq = against the quarter before, mom = against the "
    "month before (环比), ytd = from the first day of the year (年累计). grain = one row for each period. A filter's "
    "dimension is an id of a dimension, a metric or a filter (then its value is true). Answer with the JSON alone."
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model made of a question: an intent with known ids only, or why there is none.

    `agrees` says that it kept what the rules had understood.
    """

    intent: StructuredIntent | None
    problems: tuple[str, ...] = ()
    agrees: bool = False
    usage: Usage = NO_USAGE


async def ask_model(
    question: str, ruled: Ruled, semantics: SemanticModel, model: Model, today: datetime.date
) -> Answer:
    """One request. The time and the values that the rules found are kept, since they were read from the words.

    Raises:
        ModelError: the model did not answer.
    """
    options = ModelOptions(stream=False, temperature=0.0, max_tokens=600, response_schema=intent_schema(semantics))
    messages = (system(f"{_INSTRUCTIONS}\n\n{_listing(semantics)}"), user(_asked(question, ruled, today)))
    reply: Reply | None = None
    async for part in model.stream(messages, (), options):
        reply = part if isinstance(part, Reply) else reply
    if reply is None:
        return Answer(None, ("the model gave no reply",))
    intent, problems = _read(reply.message.content, semantics)
    if intent is None:
        return Answer(None, problems, usage=reply.usage)
    kept = reconciled(intent, ruled.intent)
    return Answer(kept, agrees=set(ruled.intent.metrics) <= set(kept.metrics), usage=reply.usage)


def reconciled(asked: StructuredIntent, ruled: StructuredIntent) -> StructuredIntent:
    """The model's intent with the time, limit, values and exclusions of the rules where they found some."""
    mine = {condition.dimension for condition in ruled.filters}
    others = tuple(condition for condition in asked.filters if condition.dimension not in mine)
    return asked.model_copy(
        update={
            "time": ruled.time or asked.time,
            "limit": ruled.limit or asked.limit,
            "filters": (*ruled.filters, *others),
            "exclusions": tuple(dict.fromkeys([*ruled.exclusions, *asked.exclusions])),
        }
    )


def intent_schema(semantics: SemanticModel) -> dict[str, Any]:
    """The JSON Schema of an intent whose ids are those of `semantics` and no others."""
    filterable = [*semantics.dimensions, *semantics.filters, *semantics.metrics]
    scalar = {"type": ["string", "number", "boolean"]}
    value = {"anyOf": [scalar, {"type": "array", "items": scalar, "maxItems": 20}]}
    condition = {
        "dimension": {"enum": filterable},
        "value": value,
        "operator": {"enum": list(get_args(Operator))},
    }
    order = {
        "column": {"enum": [*semantics.metrics, *semantics.dimensions, PERIOD]},
        "direction": {"enum": ["ASC", "DESC"]},
    }
    return _object(
        {
            "intent_type": {"enum": list(get_args(IntentType))},
            "metrics": _ids(semantics.metrics),
            "dimensions": _ids(semantics.dimensions),
            "time": {"anyOf": [{"type": "null"}, _object(_TIME)]},
            "filters": {"type": "array", "items": _object(condition), "maxItems": 8 if filterable else 0},
            "exclusions": _ids(semantics.exclusions),
            "order_by": {"anyOf": [{"type": "null"}, _object(order)]},
            "limit": {"anyOf": [{"type": "null"}, {"type": "integer", "minimum": 1}]},
        }
    )


_TIME: dict[str, Any] = {
    "year": {"type": ["integer", "null"]},
    "quarter": {"enum": [1, 2, 3, 4, None]},
    "month": {"anyOf": [{"type": "null"}, {"type": "integer", "minimum": 1, "maximum": 12}]},
    "start": {"type": ["string", "null"]},
    "end": {"type": ["string", "null"]},
    "comparison": {"enum": [*get_args(Comparison), None]},
    "grain": {"enum": [*get_args(Grain), None]},
}


def _ids(known: dict[str, Any]) -> dict[str, Any]:
    if not known:
        return {"type": "array", "maxItems": 0}
    return {"type": "array", "items": {"enum": list(known)}, "maxItems": min(len(known), 6)}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _read(text: str, semantics: SemanticModel) -> tuple[StructuredIntent | None, tuple[str, ...]]:
    start, end = text.find("{"), text.rfind("}")
    try:
        intent = with_ids(StructuredIntent.model_validate(json.loads(text[start : end + 1])), semantics)
    except (ValueError, ValidationError) as error:
        return None, (f"the model's answer is no intent: {one_line(str(error), 160)}",)
    problems = intent_problems(intent, semantics)
    return (None, problems) if problems else (intent, ())


def _listing(semantics: SemanticModel) -> str:
    sections = (("metrics", semantics.metrics), ("dimensions", semantics.dimensions), ("filters", semantics.filters))
    lines: list[str] = []
    for title, terms in (*sections, ("exclusions", semantics.exclusions)):
        shown = [_line(term) for term in list(terms.values())[:_MAX_LINES]]
        lines += [f"{title}:", *shown] if shown else []
    return "\n".join(lines)


def _line(term: Term) -> str:
    names = ", ".join(term.synonyms[:8])
    return f"- {term.id}{f' ({names})' if names else ''}{f': {one_line(term.description, 120)}' if term.description else ''}"


def _asked(question: str, ruled: Ruled, today: datetime.date) -> str:
    known = ruled.intent.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
    doubts = "; ".join([*(f"not understood: {word}" for word in ruled.unmatched), *ruled.unsure])
    return (
        f"Today is {today.isoformat()}.\nQuestion: {question}\n"
        f"Read so far: {json.dumps(known, ensure_ascii=False)}\nIn doubt: {doubts or 'nothing'}"
    )
