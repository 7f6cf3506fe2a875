"""The catalog of a database: its schema and samples of its values."""

from opposable.ask.catalog.catalog import open_catalog
from opposable.ask.catalog.schema_selection import Catalog

__all__ = ["Catalog", "open_catalog"]
