"""Opens a team for a database, with its catalog and an optional semantic model."""

import datetime
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

from opposable.ask.intent.dimension_values import load_dimension_values
from opposable.ask.intent.parser import SemanticParser
from opposable.ask.semantics.model import SemanticModel
from opposable.ask.team.examples import LoadExamples
from opposable.ask.team.semantic_interpreter import interpret_question
from opposable.ask.team.team import Team, TeamOptions
from opposable.models.base import Model
from opposable.sql.database import Database


@asynccontextmanager
async def open_team(
    model: Model,
    database: Database,
    *,
    semantics: SemanticModel | None = None,
    options: TeamOptions | None = None,
    today: Callable[[], datetime.date] = datetime.date.today,
    load_examples: LoadExamples | None = None,
) -> AsyncIterator[Team]:
    """Open a team and close it at the end; the model and the database stay open.

    `today` returns the date on which questions are asked, `load_examples` the confirmed questions of the database.
    """
    interpret = synonyms = None
    if semantics is not None:
        parser = SemanticParser(semantics, await load_dimension_values(semantics, database))
        interpret = partial(interpret_question, parser=parser, dialect=database.dialect, today=today)
        synonyms = {table.source: table.synonyms for table in semantics.tables.values()}
    options = options or TeamOptions()
    yield Team(model, database, synonyms=synonyms, interpret=interpret, options=options, load_examples=load_examples)
