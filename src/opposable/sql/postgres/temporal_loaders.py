"""Dates and times that Python cannot represent, as PostgreSQL writes them."""

import functools
from typing import Any


def register_temporal_loaders(connection: Any) -> None:
    """Make a connection return infinite dates, those beyond the years 1 to 9999, and 24:00 as text."""
    for name, loader in _create_loaders().items():
        connection.adapters.register_loader(name, loader)


@functools.cache
def _create_loaders() -> dict[str, type[Any]]:
    """Return the loader of each type; psycopg is imported with the first connection."""
    from psycopg import DataError
    from psycopg.types.datetime import DateLoader, TimeLoader, TimestampLoader, TimestamptzLoader, TimetzLoader

    def create_loader(loader: type[Any]) -> type[Any]:
        class TextFallbackLoader(loader):  # type: ignore[misc]  # the base class is a value
            def load(self, data: Any) -> Any:
                try:
                    return super().load(data)
                except DataError:
                    return bytes(data).decode()

        return TextFallbackLoader

    dates = {"date": DateLoader, "timestamp": TimestampLoader, "timestamptz": TimestamptzLoader}
    loaders = {**dates, "time": TimeLoader, "timetz": TimetzLoader}
    return {name: create_loader(loader) for name, loader in loaders.items()}
