"""Definitions of a semantic model as text for a prompt."""

from opposable.ask.intent.intent import StructuredIntent
from opposable.ask.semantics.model import Metric, SemanticModel, Term
from opposable.parsers import escape_special_tokens
from opposable.sql.schema import to_one_line

_MAX_LINES_PER_SECTION = 40


def format_definitions(model: SemanticModel, intent: StructuredIntent | None = None) -> str:
    """Format the definitions that a question needs, one per line.

    Args:
        model: The semantic model.
        intent: The intent whose terms are listed; None lists the whole model.

    Returns:
        At most 40 lines per section.
    """
    named_ids = _get_named_ids(intent) if intent is not None else None
    lines: list[str] = []
    tables: set[str] = set()
    for section, term in model.iter_terms():
        kind = section[:-1]
        is_needed = named_ids is None or term.id in named_ids or _is_default_filter(model, named_ids, term.id)
        if is_needed and sum(line.startswith(kind) for line in lines) < _MAX_LINES_PER_SECTION:
            lines.append(f"{kind} {term.id}: {_format_term(term)}")
            tables.add(term.table)
    default_filters = [
        f"always: {to_one_line(definition.expr if (definition := model.find_term(text)) else text, 300)}"
        for text in model.default_filters
    ]
    joins = [f"join {to_one_line(join.text, 300)}" for join in model.joins if len(tables) > 1 or named_ids is None]
    return escape_special_tokens("\n".join([*lines, *default_filters, *joins[:_MAX_LINES_PER_SECTION]]))


def _get_named_ids(intent: StructuredIntent) -> set[str]:
    return {*intent.metrics, *intent.dimensions, *intent.exclusions, *(f.dimension for f in intent.filters)}


def _is_default_filter(model: SemanticModel, named_ids: set[str], term_id: str) -> bool:
    return any(term_id in metric.default_filters for metric in model.metrics.values() if metric.id in named_ids)


def _format_term(term: Term) -> str:
    notes = [f"of {term.table}" if term.table else "", to_one_line(term.description, 120) or ""]
    if isinstance(term, Metric):
        notes += [f"time {term.time}" if term.time else "", f"unit {term.unit}" if term.unit else ""]
        notes += [f"only rows where {', '.join(term.default_filters)}"] if term.default_filters else []
    note_text = "; ".join(note for note in notes if note)
    return f"{to_one_line(term.expr, 300)}{f' ({note_text})' if note_text else ''}"
