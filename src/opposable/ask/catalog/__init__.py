"""The catalog of a database: its schema, sample values and an index of its values."""

from opposable.ask.catalog.catalog import Catalog, CatalogLimits, open_catalog
from opposable.ask.catalog.schema_view import SchemaView, TableView
from opposable.ask.catalog.value_matching import ValueMatch

__all__ = ["Catalog", "CatalogLimits", "SchemaView", "TableView", "ValueMatch", "open_catalog"]
