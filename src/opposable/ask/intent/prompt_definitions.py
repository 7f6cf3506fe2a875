"""Definitions of a semantic model as text for a prompt."""

from opposable.ask.intent.intent import StructuredIntent
from opposable.ask.semantics.model import SECTIONS, Metric, SemanticModel, Term
from opposable.parsers import escape_special_tokens
from opposable.sql.schema import to_one_line

_MAX_LINES_PER_SECTION = 40


def format_definitions(model: SemanticModel, intent: StructuredIntent | None = None) -> str:
    """Format the definitions of the terms of an intent, or of the whole model, at most 40 lines per section."""
    named_ids = {term.id for _, term in model.iter_terms()}
    if intent is not None:
        named_ids = {*intent.metrics, *intent.dimensions, *intent.exclusions, *(f.dimension for f in intent.filters)}
        named_ids.update(*(metric.default_filters for metric in model.metrics.values() if metric.id in named_ids))
    lines: list[str] = []
    tables: set[str] = set()
    for section in SECTIONS:
        terms: list[Term] = [term for term in getattr(model, section).values() if term.id in named_ids]
        shown = terms[:_MAX_LINES_PER_SECTION]
        lines += [f"{section[:-1]} {term.id}: {_format_term(term)}" for term in shown]
        tables.update(term.table for term in shown)
    for text in model.default_filters:
        definition = model.filters.get(text) or model.exclusions.get(text)
        lines.append(f"always: {to_one_line(definition.expr if definition else text, 300)}")
    joins = model.joins[:_MAX_LINES_PER_SECTION] if len(tables) > 1 or intent is None else ()
    lines += [f"join {to_one_line(join.text, 300)}" for join in joins]
    return escape_special_tokens("\n".join(lines))


def _format_term(term: Term) -> str:
    notes = [f"of {term.table}" if term.table else "", to_one_line(term.description, 120)]
    if isinstance(term, Metric):
        notes += [f"time {term.time}" if term.time else "", f"unit {term.unit}" if term.unit else ""]
        notes += [f"only rows where {', '.join(term.default_filters)}"] if term.default_filters else []
    note_text = "; ".join(note for note in notes if note)
    return f"{to_one_line(term.expr, 300)}{f' ({note_text})' if note_text else ''}"
