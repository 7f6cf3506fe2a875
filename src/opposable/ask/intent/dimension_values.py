"""Loads the values of the dimensions of a semantic model, which questions may name."""

from opposable.ask.semantics.expressions import BoundModel
from opposable.ask.semantics.join_graph import build_join_query, find_root_table
from opposable.ask.semantics.model import SemanticModel
from opposable.domain.errors import BadInput, ToolError
from opposable.sql.database import Database, QueryLimits

_MAX_VALUE_CHARACTERS = 120
_MAX_VALUES = 50_000
"""Most values of a dimension."""


async def load_dimension_values(model: SemanticModel, database: Database) -> dict[str, list[str]]:
    """Load the text values of the model's dimensions from the database, by the id of the dimension.

    A dimension with more than 50,000 values, or that fails to load, is omitted.
    """
    values: dict[str, list[str]] = {}
    semantics = BoundModel(model, database.dialect)
    for ref, dimension in model.dimensions.items():
        try:
            bound = semantics.bind_term(dimension)
            root = find_root_table(model, bound.tables)
            if root is None:
                continue
            query = build_join_query(model, root, bound.tables).select(bound.tree.copy()).distinct()
            sql, limits = query.limit(_MAX_VALUES + 1).sql(dialect=database.dialect), QueryLimits(_MAX_VALUES + 1)
            rows = (await database.run(sql, limits=limits)).rows
        except (BadInput, ToolError):
            continue
        texts = [row[0] for row in rows if isinstance(row[0], str) and row[0].strip()]
        if len(rows) <= _MAX_VALUES:
            values[ref] = [text for text in texts if len(text) <= _MAX_VALUE_CHARACTERS]
    return values
