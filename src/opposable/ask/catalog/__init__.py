"""What is known of a database before a question is asked, and what of it a question needs."""

from opposable.ask.catalog.catalog import Catalog, CatalogLimits, open_catalog
from opposable.ask.catalog.schema_view import SchemaView, TableView
from opposable.ask.catalog.value_matching import ValueMatch

__all__ = ["Catalog", "CatalogLimits", "SchemaView", "TableView", "ValueMatch", "open_catalog"]
