"""What is known of a database before a question is asked, and what of it a question needs."""

from opposable.ask.catalog.catalog import Bounds, Catalog, open_catalog
from opposable.ask.catalog.schema_view import SchemaView, TableView
from opposable.ask.catalog.value_matching import ValueMatch

__all__ = ["Bounds", "Catalog", "SchemaView", "TableView", "ValueMatch", "open_catalog"]
