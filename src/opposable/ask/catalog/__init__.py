"""The catalog of a database: its schema and samples of its values."""

from opposable.ask.catalog.catalog import Catalog, open_catalog

__all__ = ["Catalog", "open_catalog"]
