"""Opens a team over a database: its catalogue, and the semantic model's terms where there is one."""

import datetime
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from opposable.ask.catalog import Bounds, open_catalog
from opposable.ask.intent.value_lookup import read_values
from opposable.ask.semantics.model import SemanticModel
from opposable.ask.team.briefing import BothValues, CatalogBriefing, CatalogValues, SemanticLayer
from opposable.ask.team.team import Parts, Team
from opposable.models.base import Model
from opposable.sql.database import Database


@asynccontextmanager
async def open_team(
    model: Model,
    database: Database,
    *,
    semantics: SemanticModel | None = None,
    cache: Path | None = None,
    bounds: Bounds | None = None,
    parts: Parts | None = None,
    today: Callable[[], datetime.date] = datetime.date.today,
) -> AsyncIterator[Team]:
    """A team that knows the database's values; closed at the end, while model and database stay the caller's.

    `cache` is a folder where the catalogue is kept (None: memory only), `today` says which day questions are asked on.
    """
    synonyms = {table.source: table.synonyms for table in semantics.tables.values()} if semantics else None
    catalog = await open_catalog(database, cache, bounds, synonyms)
    try:
        layer = None
        if semantics is not None:
            values = BothValues(catalog, await read_values(semantics, database, computed=True))
            layer = SemanticLayer(semantics, database, values, today)
        yield Team(
            model,
            database,
            briefing=CatalogBriefing(catalog),
            semantics=layer,
            values=CatalogValues(catalog, database),
            parts=parts or Parts(),
        )
    finally:
        await catalog.close()
