"""The catalog of a database: its schema and samples of its values."""

from opposable.ask.catalog.catalog import Catalog, open_catalog
from opposable.ask.catalog.schema_view import SchemaView, TableView

__all__ = ["Catalog", "SchemaView", "TableView", "open_catalog"]
