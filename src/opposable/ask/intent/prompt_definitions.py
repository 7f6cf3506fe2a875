"""The definitions of a semantic model that a question needs, short enough for a prompt."""

from opposable.ask.intent.intent import StructuredIntent
from opposable.ask.semantics.model import Metric, SemanticModel, Term
from opposable.parsers import defuse
from opposable.sql.schema import one_line

_MOST = 40


def definitions_text(model: SemanticModel, intent: StructuredIntent | None = None) -> str:
    """What the ids of `intent` stand for, a line each, with default filters and joins; of the whole model without one.

    At most 40 lines a section.
    """
    named = _named(intent) if intent is not None else None
    lines: list[str] = []
    tables: set[str] = set()
    for section, term in model.terms():
        needed = named is None or term.id in named or _default(model, named, term.id)
        if needed and sum(line.startswith(section[:-1]) for line in lines) < _MOST:
            lines.append(f"{section[:-1]} {term.id}: {_line(term)}")
            tables.add(term.table)
    everywhere = [
        f"always: {one_line(found.expr if (found := model.find(text)) else text, 300)}"
        for text in model.default_filters
    ]
    joins = [f"join {one_line(join.text, 300)}" for join in model.joins if len(tables) > 1 or named is None]
    return defuse("\n".join([*lines, *everywhere, *joins[:_MOST]]))


def _named(intent: StructuredIntent) -> set[str]:
    return {*intent.metrics, *intent.dimensions, *intent.exclusions, *(f.dimension for f in intent.filters)}


def _default(model: SemanticModel, named: set[str], ref: str) -> bool:
    return any(ref in metric.default_filters for metric in model.metrics.values() if metric.id in named)


def _line(term: Term) -> str:
    notes = [f"of {term.table}" if term.table else "", one_line(term.description, 120) or ""]
    if isinstance(term, Metric):
        notes += [f"time {term.time}" if term.time else "", f"unit {term.unit}" if term.unit else ""]
        notes += [f"only rows where {', '.join(term.default_filters)}"] if term.default_filters else []
    told = "; ".join(note for note in notes if note)
    return f"{one_line(term.expr, 300)}{f' ({told})' if told else ''}"
