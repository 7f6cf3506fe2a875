"""Opens a team over a database: its catalogue, and the semantic model's terms where there is one."""

import datetime
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from opposable.ask.catalog import CatalogLimits, open_catalog
from opposable.ask.intent.value_lookup import load_dimension_values
from opposable.ask.semantics.model import SemanticModel
from opposable.ask.team.briefing import (
    CatalogBriefProvider,
    CatalogValueFinder,
    CombinedValueLookup,
    SemanticModelInterpreter,
)
from opposable.ask.team.team import Team, TeamOptions
from opposable.models.base import Model
from opposable.sql.database import Database


@asynccontextmanager
async def open_team(
    model: Model,
    database: Database,
    *,
    semantics: SemanticModel | None = None,
    cache_directory: Path | None = None,
    bounds: CatalogLimits | None = None,
    options: TeamOptions | None = None,
    today: Callable[[], datetime.date] = datetime.date.today,
) -> AsyncIterator[Team]:
    """A team that knows the database's values; closed at the end, while model and database stay the caller's.

    `cache` is a folder where the catalogue is kept (None: memory only), `today` says which day questions are asked on.
    """
    synonyms = {table.source: table.synonyms for table in semantics.tables.values()} if semantics else None
    catalog = await open_catalog(database, cache_directory, bounds, synonyms)
    try:
        layer = None
        if semantics is not None:
            values = CombinedValueLookup(catalog, await load_dimension_values(semantics, database, computed_only=True))
            layer = SemanticModelInterpreter(semantics, database, values, today)
        yield Team(
            model,
            database,
            brief_provider=CatalogBriefProvider(catalog),
            interpreter=layer,
            value_finder=CatalogValueFinder(catalog, database),
            options=options or TeamOptions(),
        )
    finally:
        await catalog.close()
