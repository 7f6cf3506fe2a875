"""The structured intent of a question, in the ids of a semantic model."""

import datetime
from typing import Any, Literal

from pydantic import Field, field_validator

from opposable.ask.semantics.model import SemanticModel
from opposable.domain.specs import FrozenModel
from opposable.sql.name_similarity import suggest_names

IntentType = Literal["basic", "trend", "dimension", "complex"]
Grain = Literal["year", "quarter", "month", "week", "day"]
Comparison = Literal["yoy", "qoq", "mom", "ytd"]
Operator = Literal["=", "!=", ">", ">=", "<", "<=", "in", "not in", "contains"]
FilterValue = str | int | float | bool | None | tuple[str | int | float | bool, ...]

PERIOD_COLUMN = "period"
"""The result column of `TimeIntent.grain`, and its name in `OrderBy.column`."""


class TimeIntent(FrozenModel):
    """The period of a question.

    Attributes:
        granularity: The length of the period.
        year: A calendar year, alone or with a quarter or month.
        quarter: A calendar quarter, 1 to 4.
        month: A calendar month, 1 to 12.
        start: The first day of any other period.
        end: The last day of any other period, included.
        comparison: "yoy" compares with the same period a year before, "qoq" and "mom" with the quarter or month
            before; "ytd" is the period from the first day of the year.
        grain: Asks for one row per year, quarter, month, week or day.
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
    """A condition on a dimension, a metric or a named filter.

    `dimension` is the id of any of them. A named filter has the value true, or false to negate it. "in" and "not in" take a list; None is NULL.
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
    """The order of the rows.

    `column` is the id of a metric or dimension of the intent, or "period".
    """

    column: str
    direction: Literal["ASC", "DESC"] = "DESC"

    @field_validator("direction", mode="before")
    @classmethod
    def _uppercase_direction(cls, value: Any) -> Any:
        return value.upper() if isinstance(value, str) else value


class StructuredIntent(FrozenModel):
    """What a question asks for, in the ids of a semantic model."""

    intent_type: IntentType = "basic"
    metrics: tuple[str, ...] = ()
    dimensions: tuple[str, ...] = ()
    time: TimeIntent | None = None
    filters: tuple[IntentFilter, ...] = ()
    exclusions: tuple[str, ...] = ()
    order_by: OrderBy | None = None
    limit: int | None = Field(default=None, ge=1, le=100_000)


def find_intent_problems(intent: StructuredIntent, model: SemanticModel) -> tuple[str, ...]:
    """Describe each id of `intent` that the model does not define, with similar ids."""
    problems = [_describe_unknown_id("metric", ref, model.metrics) for ref in intent.metrics]
    problems += [_describe_unknown_id("dimension", ref, model.dimensions) for ref in intent.dimensions]
    problems += [_describe_unknown_id("exclusion", ref, model.exclusions) for ref in intent.exclusions]
    filterable = {**model.dimensions, **model.filters, **model.metrics}
    problems += [_describe_unknown_id("dimension", condition.dimension, filterable) for condition in intent.filters]
    if intent.order_by is not None:
        columns = [*intent.metrics, *intent.dimensions, PERIOD_COLUMN]
        changes = [f"{ref}_{suffix}" for ref in intent.metrics for suffix in ("previous", "growth")]
        problems += [_describe_unknown_id("column", intent.order_by.column, [*columns, *changes])]
    if not intent.metrics and not intent.dimensions:
        problems.append("The intent names no metric and no dimension: name at least one.")
    return tuple(problem for problem in problems if problem)


def resolve_ids(intent: StructuredIntent, model: SemanticModel) -> StructuredIntent:
    """Replace expressions of exclusions and names of values by ids and values."""
    ids_by_expr = {exclusion.expr: ref for ref, exclusion in model.exclusions.items()}
    filters = tuple(
        f.model_copy(update={"value": canonicalize_value(f.value, model.dimensions[f.dimension].values)})
        if f.dimension in model.dimensions
        else f
        for f in intent.filters
    )
    exclusions = tuple(dict.fromkeys(ids_by_expr.get(ref, ref) for ref in intent.exclusions))
    return intent.model_copy(update={"filters": filters, "exclusions": exclusions})


def canonicalize_value(value: FilterValue, values: dict[str, tuple[str, ...]]) -> FilterValue:
    """Return the stored value of a name, such as "USA" for "美国".

    Any other value is returned as it is.
    """
    if isinstance(value, tuple):
        stored_values = (canonicalize_value(item, values) for item in value)
        return tuple(item for item in stored_values if isinstance(item, str | int | float | bool))
    if not isinstance(value, str) or value in values:
        return value
    name = value.casefold()
    for stored, names in values.items():
        if name in (stored.casefold(), *(other.casefold() for other in names)):
            return stored
    return value


def _describe_unknown_id(kind: str, ref: str, known_ids: Any) -> str:
    if ref in known_ids:
        return ""
    near = suggest_names(ref, known_ids)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(list(known_ids)[:30]) or 'none'}."
    return f"There is no {kind} {ref!r} in the semantic model; {hint}"
