"""The structured intent of a question, in the ids of a semantic model."""

import datetime
from collections.abc import Collection, Iterable
from typing import Literal

from pydantic import Field

from opposable.ask.semantics.model import SemanticModel
from opposable.domain.specs import FrozenModel
from opposable.sql.name_similarity import suggest_names

IntentType = Literal["basic", "trend", "dimension", "complex"]
Grain = Literal["year", "quarter", "month", "week", "day"]
Comparison = Literal["yoy", "qoq", "mom", "ytd"]
Operator = Literal["=", "!=", ">", ">=", "<", "<=", "in", "not in"]
FilterValue = str | int | float | bool | None | tuple[str | int | float | bool, ...]

PERIOD_COLUMN = "period"
"""The result column of `TimeIntent.grain`, and its name in `OrderBy.column`."""
MAX_LIMIT = 100_000
"""The largest number of rows that an intent may ask for."""


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


class IntentFilter(FrozenModel):
    """A condition on a dimension, a metric or a named filter.

    `dimension` is the id of any of them. A named filter has the value true, or false to negate it. "in" and "not in" take a list; None is NULL.
    """

    dimension: str
    value: FilterValue = None
    operator: Operator = "="


class OrderBy(FrozenModel):
    """The order of the rows: `column` is the id of a metric or dimension of the intent, or "period"."""

    column: str
    direction: Literal["ASC", "DESC"] = "DESC"


class StructuredIntent(FrozenModel):
    """What a question asks for, in the ids of a semantic model."""

    intent_type: IntentType = "basic"
    metrics: tuple[str, ...] = ()
    dimensions: tuple[str, ...] = ()
    time: TimeIntent | None = None
    filters: tuple[IntentFilter, ...] = ()
    exclusions: tuple[str, ...] = ()
    order_by: OrderBy | None = None
    limit: int | None = Field(default=None, ge=1, le=MAX_LIMIT)


def find_intent_problems(intent: StructuredIntent, model: SemanticModel) -> tuple[str, ...]:
    """Describe each id of `intent` that the model does not define, with similar ids."""
    changes = [f"{ref}_{suffix}" for ref in intent.metrics for suffix in ("previous", "growth")]
    columns = [*intent.metrics, *intent.dimensions, PERIOD_COLUMN, *changes]
    references: list[tuple[str, Iterable[str], Collection[str]]] = [
        ("metric", intent.metrics, model.metrics),
        ("dimension", intent.dimensions, model.dimensions),
        ("exclusion", intent.exclusions, model.exclusions),
        ("dimension", [f.dimension for f in intent.filters], {**model.dimensions, **model.filters, **model.metrics}),
        ("column", [intent.order_by.column] if intent.order_by else [], columns),
    ]
    problems = [
        _describe_unknown_id(kind, ref, ids) for kind, refs, ids in references for ref in refs if ref not in ids
    ]
    if not intent.metrics and not intent.dimensions:
        problems.append("The intent names no metric and no dimension: name at least one.")
    return tuple(problems)


def _describe_unknown_id(kind: str, ref: str, known_ids: Collection[str]) -> str:
    near = suggest_names(ref, known_ids)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(list(known_ids)[:30]) or 'none'}."
    return f"There is no {kind} {ref!r} in the semantic model; {hint}"
