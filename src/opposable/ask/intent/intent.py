"""The structured intent: what a question asks for, in the ids of a semantic model."""

import datetime
from typing import Any, Literal

from pydantic import Field, field_validator

from opposable.ask.semantics.model import SemanticModel
from opposable.domain.specs import FrozenModel
from opposable.sql.name_similarity import suggest_names

IntentType = Literal["basic", "trend", "dimension", "complex"]
Grain = Literal["year", "quarter", "month", "week", "day"]
Comparison = Literal["yoy", "qoq", "mom", "ytd"]
Operator = Literal["=", "!=", ">", ">=", "<", "<=", "in", "not in", "between", "contains", "is null", "is not null"]
FilterValue = str | int | float | bool | None | tuple[str | int | float | bool, ...]

PERIOD_COLUMN = "period"
"""The column that `grain` brings, and its name in `order_by`."""


class TimeIntent(FrozenModel):
    """The period a question is about.

    `granularity` is the size of the period named by `year`, `quarter`, `month`; `start` and `end` are days, both
    included, and stand for any other period. `grain` asks for one row a period. `comparison`: "yoy" with the same
    period a year before, "qoq" and "mom" with the quarter or month before, "ytd" from the first day of the year.
    """

    granularity: Grain | None = None
    year: int | None = Field(default=None, ge=1, le=9999)
    quarter: int | None = Field(default=None, ge=1, le=4)
    month: int | None = Field(default=None, ge=1, le=12)
    start: datetime.date | None = None
    end: datetime.date | None = None
    comparison: Comparison | None = None
    grain: Grain | None = None

    @field_validator("*", mode="before")
    @classmethod
    def _null_text_to_none(cls, value: Any) -> Any:
        return None if value in ("null", "none", "") else value


class IntentFilter(FrozenModel):
    """A condition: `dimension` is the id of a dimension, of a metric (for a limit to its value), or of a named filter.

    A named filter has the value true (or false for its contrary). "in", "not in" and "between" take a list.
    """

    dimension: str
    value: FilterValue = None
    operator: Operator = "="

    @field_validator("operator", mode="before")
    @classmethod
    def _normalize_operator(cls, value: Any) -> Any:
        text = " ".join(value.lower().split()) if isinstance(value, str) else value
        return {"<>": "!=", "==": "=", "like": "contains"}.get(text, text)


class OrderBy(FrozenModel):
    """`column` is the id of a metric or dimension of the intent, or "period"."""

    column: str
    direction: Literal["ASC", "DESC"] = "DESC"

    @field_validator("direction", mode="before")
    @classmethod
    def _uppercase_direction(cls, value: Any) -> Any:
        return value.upper() if isinstance(value, str) else value


class StructuredIntent(FrozenModel):
    """What a question asks for. Every id stands in the semantic model; `exclusions` are ids of exclusions."""

    intent_type: IntentType = "basic"
    metrics: tuple[str, ...] = ()
    dimensions: tuple[str, ...] = ()
    time: TimeIntent | None = None
    filters: tuple[IntentFilter, ...] = ()
    exclusions: tuple[str, ...] = ()
    order_by: OrderBy | None = None
    limit: int | None = Field(default=None, ge=1, le=100_000)


def find_intent_problems(intent: StructuredIntent, model: SemanticModel) -> tuple[str, ...]:
    """What in `intent` the model does not have, a sentence each with the nearest ids; () when all is there."""
    found = [_describe_unknown_id("metric", ref, model.metrics) for ref in intent.metrics]
    found += [_describe_unknown_id("dimension", ref, model.dimensions) for ref in intent.dimensions]
    found += [_describe_unknown_id("exclusion", ref, model.exclusions) for ref in intent.exclusions]
    known = {**model.dimensions, **model.filters, **model.metrics}
    found += [_describe_unknown_id("dimension", condition.dimension, known) for condition in intent.filters]
    if intent.order_by is not None:
        columns = [*intent.metrics, *intent.dimensions, PERIOD_COLUMN]
        changes = [f"{ref}_{end}" for ref in intent.metrics for end in ("previous", "growth")]
        found += [_describe_unknown_id("column", intent.order_by.column, [*columns, *changes])]
    if not intent.metrics and not intent.dimensions:
        found.append("The intent names no metric and no dimension: name at least one.")
    return tuple(sentence for sentence in found if sentence)


def resolve_ids(intent: StructuredIntent, model: SemanticModel) -> StructuredIntent:
    """The same with exclusions given by their expression, and values by what people call them, put as in the model."""
    by_expr = {exclusion.expr: ref for ref, exclusion in model.exclusions.items()}
    filters = tuple(
        f.model_copy(update={"value": canonicalize_value(f.value, model.dimensions[f.dimension].values)})
        if f.dimension in model.dimensions
        else f
        for f in intent.filters
    )
    exclusions = tuple(dict.fromkeys(by_expr.get(ref, ref) for ref in intent.exclusions))
    return intent.model_copy(update={"filters": filters, "exclusions": exclusions})


def canonicalize_value(value: FilterValue, values: dict[str, tuple[str, ...]]) -> FilterValue:
    """The database's own value for one that people use ("美国" → "USA"); any other as it is."""
    if isinstance(value, tuple):
        return tuple(one for v in value if isinstance(one := canonicalize_value(v, values), str | int | float | bool))
    if not isinstance(value, str) or value in values:
        return value
    wanted = value.casefold()
    for stored, names in values.items():
        if wanted in (stored.casefold(), *(name.casefold() for name in names)):
            return stored
    return value


def _describe_unknown_id(kind: str, ref: str, known_ids: Any) -> str:
    if ref in known_ids:
        return ""
    near = suggest_names(ref, known_ids)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(list(known_ids)[:30]) or 'none'}."
    return f"There is no {kind} {ref!r} in the semantic model; {hint}"
