"""The model-based intent parser, for questions the rules cannot resolve."""

import datetime
import json
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import ValidationError

from opposable.ask.intent.intent import (
    PERIOD_COLUMN,
    Comparison,
    Grain,
    IntentType,
    Operator,
    StructuredIntent,
    find_intent_problems,
    resolve_ids,
)
from opposable.ask.intent.rule_parser import RuleParseResult
from opposable.ask.semantics.model import SemanticModel, Term
from opposable.domain.events import Reply
from opposable.domain.messages import system_message, user_message
from opposable.domain.usage import NO_USAGE, Usage
from opposable.models.base import Model, ModelOptions
from opposable.sql.schema import to_one_line

_MAX_TERMS_PER_SECTION = 80

_INSTRUCTIONS = (
    "You read a question about data as JSON. Use only the ids listed below; never invent one. "
    "comparison: yoy = against the same period a year before (同比), qoq = against the quarter before, mom = against the "
    "month before (环比), ytd = from the first day of the year (年累计). grain = one row for each period. A filter's "
    "dimension is an id of a dimension, a metric or a filter (then its value is true). Answer with the JSON alone."
)


@dataclass(frozen=True, slots=True)
class LlmParseResult:
    """The intent that a model found, or the problems of its answer.

    `agrees_with_rules` says whether the intent contains every metric that the rules found.
    """

    intent: StructuredIntent | None
    problems: tuple[str, ...] = ()
    agrees_with_rules: bool = False
    usage: Usage = NO_USAGE


async def parse_with_model(
    question: str, rule_result: RuleParseResult, semantics: SemanticModel, model: Model, today: datetime.date
) -> LlmParseResult:
    """Ask the model for an intent, in one request.

    The time and the values that the rules found are preserved: they come from the words of the question.

    Raises:
        ModelError: The request failed.
    """
    options = ModelOptions(
        stream=False, temperature=0.0, max_tokens=600, response_schema=build_intent_schema(semantics)
    )
    messages = (
        system_message(f"{_INSTRUCTIONS}\n\n{_format_terms(semantics)}"),
        user_message(_format_question(question, rule_result, today)),
    )
    reply: Reply | None = None
    async for event in model.stream(messages, (), options):
        reply = event if isinstance(event, Reply) else reply
    if reply is None:
        return LlmParseResult(None, ("The model returned no reply.",))
    intent, problems = _parse_answer(reply.message.content, semantics)
    if intent is None:
        return LlmParseResult(None, problems, usage=reply.usage)
    merged = merge_intents(intent, rule_result.intent)
    agrees_with_rules = set(rule_result.intent.metrics) <= set(merged.metrics)
    return LlmParseResult(merged, agrees_with_rules=agrees_with_rules, usage=reply.usage)


def merge_intents(model_intent: StructuredIntent, rule_intent: StructuredIntent) -> StructuredIntent:
    """Merge the two intents; what the rules found takes precedence."""
    rule_dimensions = {condition.dimension for condition in rule_intent.filters}
    others = tuple(condition for condition in model_intent.filters if condition.dimension not in rule_dimensions)
    return model_intent.model_copy(
        update={
            "time": rule_intent.time or model_intent.time,
            "limit": rule_intent.limit or model_intent.limit,
            "filters": (*rule_intent.filters, *others),
            "exclusions": tuple(dict.fromkeys([*rule_intent.exclusions, *model_intent.exclusions])),
        }
    )


def build_intent_schema(semantics: SemanticModel) -> dict[str, Any]:
    """Build the JSON Schema of an intent whose ids are those of `semantics`."""
    filterable = [*semantics.dimensions, *semantics.filters, *semantics.metrics]
    scalar = {"type": ["string", "number", "boolean"]}
    value = {"anyOf": [scalar, {"type": "array", "items": scalar, "maxItems": 20}]}
    condition = {
        "dimension": {"enum": filterable},
        "value": value,
        "operator": {"enum": list(get_args(Operator))},
    }
    order = {
        "column": {"enum": [*semantics.metrics, *semantics.dimensions, PERIOD_COLUMN]},
        "direction": {"enum": ["ASC", "DESC"]},
    }
    return _build_object_schema(
        {
            "intent_type": {"enum": list(get_args(IntentType))},
            "metrics": _build_id_list_schema(semantics.metrics),
            "dimensions": _build_id_list_schema(semantics.dimensions),
            "time": {"anyOf": [{"type": "null"}, _build_object_schema(_TIME_PROPERTIES)]},
            "filters": {"type": "array", "items": _build_object_schema(condition), "maxItems": 8 if filterable else 0},
            "exclusions": _build_id_list_schema(semantics.exclusions),
            "order_by": {"anyOf": [{"type": "null"}, _build_object_schema(order)]},
            "limit": {"anyOf": [{"type": "null"}, {"type": "integer", "minimum": 1}]},
        }
    )


_TIME_PROPERTIES: dict[str, Any] = {
    "year": {"type": ["integer", "null"]},
    "quarter": {"enum": [1, 2, 3, 4, None]},
    "month": {"anyOf": [{"type": "null"}, {"type": "integer", "minimum": 1, "maximum": 12}]},
    "start": {"type": ["string", "null"]},
    "end": {"type": ["string", "null"]},
    "comparison": {"enum": [*get_args(Comparison), None]},
    "grain": {"enum": [*get_args(Grain), None]},
}


def _build_id_list_schema(terms: dict[str, Any]) -> dict[str, Any]:
    if not terms:
        return {"type": "array", "maxItems": 0}
    return {"type": "array", "items": {"enum": list(terms)}, "maxItems": min(len(terms), 6)}


def _build_object_schema(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _parse_answer(text: str, semantics: SemanticModel) -> tuple[StructuredIntent | None, tuple[str, ...]]:
    start, end = text.find("{"), text.rfind("}")
    try:
        intent = resolve_ids(StructuredIntent.model_validate(json.loads(text[start : end + 1])), semantics)
    except (ValueError, ValidationError) as error:
        return None, (f"The model's answer is not an intent: {to_one_line(str(error), 160)}",)
    problems = find_intent_problems(intent, semantics)
    return (None, problems) if problems else (intent, ())


def _format_terms(semantics: SemanticModel) -> str:
    sections = (("metrics", semantics.metrics), ("dimensions", semantics.dimensions), ("filters", semantics.filters))
    lines: list[str] = []
    for title, terms in (*sections, ("exclusions", semantics.exclusions)):
        term_lines = [_format_term(term) for term in list(terms.values())[:_MAX_TERMS_PER_SECTION]]
        lines += [f"{title}:", *term_lines] if term_lines else []
    return "\n".join(lines)


def _format_term(term: Term) -> str:
    synonyms = f" ({', '.join(term.synonyms[:8])})" if term.synonyms else ""
    description = f": {to_one_line(term.description, 120)}" if term.description else ""
    return f"- {term.id}{synonyms}{description}"


def _format_question(question: str, rule_result: RuleParseResult, today: datetime.date) -> str:
    known = rule_result.intent.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
    doubts = "; ".join([*(f"not understood: {word}" for word in rule_result.unmatched_words), *rule_result.ambiguities])
    return (
        f"Today is {today.isoformat()}.\nQuestion: {question}\n"
        f"Read so far: {json.dumps(known, ensure_ascii=False)}\nIn doubt: {doubts or 'nothing'}"
    )
