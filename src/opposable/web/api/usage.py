"""The route with the tokens and costs of each API key and model."""

from datetime import date
from typing import Annotated

from fastapi import Depends, Query, Request
from pydantic import BaseModel, Field

from opposable.domain.usage import Price
from opposable.settings import TokenPrices
from opposable.web.api.dependencies import ApiRouter, RequireScope, ServiceDep
from opposable.web.errors import error_responses

router = ApiRouter(prefix="/api/usage", tags=["keys"], dependencies=[Depends(RequireScope("admin"))])


class ModelUsageResponse(BaseModel):
    """The use of a model by an API key."""

    key_id: str = Field(description="Empty for requests without a stored key.")
    key_name: str
    model: str
    requests: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int = Field(description="The input tokens that were read from the cache of the model's server.")
    cost: float | None = Field(description="In the currency of OPPOSABLE_PRICES; null if the price is unknown.")


class DayUsageResponse(BaseModel):
    """The use of all models on a day (UTC)."""

    day: date
    requests: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost: float = Field(description="The sum of the known costs.")


class UsageResponse(BaseModel):
    """The use of all models by all API keys, the most tokens first."""

    items: list[ModelUsageResponse]
    days: list[DayUsageResponse] = Field(description="The days with requests, the earliest first.")
    cost: float = Field(description="The sum of the known costs.")


@router.get("", responses=error_responses(), summary="Get tokens and costs by key and model")
async def get_usage(
    request: Request,
    service: ServiceDep,
    since: Annotated[date | None, Query(description="The first day (UTC).", examples=["2026-01-01"])] = None,
    until: Annotated[date | None, Query(description="The last day (UTC).", examples=["2026-01-31"])] = None,
) -> UsageResponse:
    """Return the requests, tokens and cost of each API key and model."""
    await request.app.state.usage_recorder.write()
    names = {key.key_id: key.name for key in await service.store.keys.list()}
    items = []
    for record in await service.store.model_usage.list(since, until):
        price = find_price(service.settings.prices, record.model)
        items.append(
            ModelUsageResponse(
                key_id=record.key_id,
                key_name=names.get(record.key_id, ""),
                model=record.model,
                requests=record.usage.requests,
                input_tokens=record.usage.input_tokens,
                output_tokens=record.usage.output_tokens,
                cached_tokens=record.usage.cached_tokens,
                cost=None if price is None else price.compute_cost(record.usage),
            )
        )
    days: dict[date, DayUsageResponse] = {}
    for day, model, usage in await service.store.model_usage.list_by_day(since, until):
        price = find_price(service.settings.prices, model)
        no_usage = DayUsageResponse(day=day, requests=0, input_tokens=0, output_tokens=0, cached_tokens=0, cost=0)
        total = days.setdefault(day, no_usage)
        total.requests += usage.requests
        total.input_tokens += usage.input_tokens
        total.output_tokens += usage.output_tokens
        total.cached_tokens += usage.cached_tokens
        total.cost += 0 if price is None else price.compute_cost(usage)
    return UsageResponse(items=items, days=list(days.values()), cost=sum(item.cost or 0 for item in items))


def find_price(prices: dict[str, TokenPrices], model: str) -> Price | None:
    """Return the price of a model by its own name, with which or without the provider prices are set."""
    for name, per_million in prices.items():
        if name == model or name.endswith((f":{model}", f"#{model}")):
            return Price(*per_million)
    return None
